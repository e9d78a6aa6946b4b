//! Archetypes: what pins an agent's instruction, tools, model and limits.
//!
//! The types; [`toml`] and [`markdown`] read the two forms in which they are written.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::grant::FileMode;
use crate::id::{ArchetypeName, Digest, PluginName, ToolName, ToolRef};

pub(crate) mod grant;
pub mod mapping;
pub mod markdown;
pub(crate) mod settings;
pub mod toml;

/// A parsed archetype, immutable once loaded.
#[derive(Clone, PartialEq, Debug)]
pub struct Archetype {
    /// By which it is started.
    pub name: ArchetypeName,
    /// Free text.
    pub version: String,
    /// Third person: a parent's model chooses by it.
    pub description: String,
    /// Second person: the agent obeys it. A minijinja template over the closed set of variables.
    pub instruction: Arc<str>,
    /// Where it came from, for messages: a path, `built in`, `rust`.
    pub origin: String,
    /// What it may call. Absent: its parent's, or all.
    pub tools: Option<Vec<ToolGrant>>,
    /// Tools that it never holds, whatever else it holds or inherits ([`Archetype::disallows`]).
    pub disallow: Vec<Disallowed>,
    /// Archetypes that it may spawn. Absent: none.
    pub agents: Option<Agents>,
    /// Archetypes served as tools of their own, each named `agent-…`. Absent: none.
    pub agent_tools: Option<Vec<ArchetypeName>>,
    /// Model, generation, limits: what is absent here comes from `[agents.config]`, else from the table of defaults.
    pub config: AgentConfig,
    /// Present: it has `dynamic_subagent`.
    pub dynamic: Option<Dynamic>,
    /// Its `[spawn]` table.
    pub spawn: SpawnConfig,
    /// JSON Schema of richer input for `agent-NAME`, in place of `subtask`.
    pub input_schema: Option<Arc<Value>>,
    /// JSON Schema that its report must satisfy.
    pub report_schema: Option<Arc<Value>>,
}

impl Archetype {
    /// One that says nothing but what every archetype must: it inherits its tools and starts no children. Set the
    /// other fields for more.
    #[must_use]
    pub fn new(name: ArchetypeName, description: impl Into<String>, instruction: impl Into<Arc<str>>) -> Self {
        Self {
            name,
            version: String::new(),
            description: description.into(),
            instruction: instruction.into(),
            origin: "rust".into(),
            tools: None,
            disallow: Vec::new(),
            agents: None,
            agent_tools: None,
            config: AgentConfig::default(),
            dynamic: None,
            spawn: SpawnConfig::default(),
            input_schema: None,
            report_schema: None,
        }
    }

    /// Whether this archetype refuses itself `tool` of `plugin`, whatever grants it. Who resolves an archetype asks
    /// this of every tool, inherited ones above all.
    #[must_use]
    pub fn disallows(&self, plugin: &PluginName, tool: &ToolName) -> bool {
        self.disallow.iter().any(|entry| match entry {
            Disallowed::Plugin(name) => name == plugin,
            Disallowed::Tool(entry) => entry.plugin == *plugin && entry.tool == *tool,
        })
    }
}

/// What an archetype refuses itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Disallowed {
    /// Every tool of a plugin.
    Plugin(PluginName),
    /// One tool.
    Tool(ToolRef),
}

/// Whom an agent may spawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Agents {
    /// All registered, `main` excepted.
    All,
    /// These.
    Named(Vec<ArchetypeName>),
}

/// One entry of `tools` or `filters`.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolGrant {
    /// Which plugin.
    pub plugin: PluginName,
    /// The build that is pinned.
    pub digest: Option<Digest>,
    /// Some of its tools; absent: all.
    pub allow: Option<Vec<ToolName>>,
    /// With what rights.
    pub grant: GrantRequest,
}

/// What an archetype grants a plugin, before policy.
#[allow(clippy::large_enum_variant)] // A host holds a few dozen, and a box would be in every reader's way.
#[derive(Clone, PartialEq, Debug)]
pub enum GrantRequest {
    /// What the plugin needs, as wide as policy (`grant = "policy"`, Markdown archetypes, `main`).
    Policy,
    /// Exactly this.
    Exact(GrantTable),
}

/// A `[tools.grant]` table.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct GrantTable {
    /// Directories.
    pub files: Vec<FileRequest>,
    /// Origins.
    pub http: Vec<OriginRequest>,
    /// Literal values.
    pub env: BTreeMap<String, String>,
    /// Secrets.
    pub secrets: Vec<SecretRequest>,
    /// The agent's other tools.
    pub toolbox: bool,
    /// The person who watches.
    pub person: bool,
    /// Bounds; what is absent is the default.
    pub limits: LimitRequest,
}

/// A directory that is granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileRequest {
    /// As written; relative to the directory in which the run starts.
    pub host: PathBuf,
    /// Absolute guest path.
    pub guest: String,
    /// Read or write.
    pub mode: FileMode,
}

/// An origin that is granted, as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OriginRequest {
    /// The pattern, as written.
    pub origin: String,
    /// Whether a name may resolve to a private address.
    pub private: bool,
}

/// A secret that is granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecretRequest {
    /// Its name.
    pub name: String,
    /// The origin it is for, as written.
    pub origin: String,
    /// The header; absent: the need's, else `authorization`.
    pub header: Option<String>,
    /// Its value; absent: the need's, else `Bearer {}`.
    pub format: Option<String>,
}

/// Limits as a manifest writes them; absent ones are the default, all are capped by policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // each is the field of the same name of `grant::Limits`
pub struct LimitRequest {
    pub memory: Option<u64>,
    pub cpu: Option<Duration>,
    pub wall: Option<Duration>,
    pub output: Option<u64>,
    pub tables: Option<u64>,
    pub instances: Option<u64>,
    pub log: Option<u64>,
    pub handles: Option<u64>,
    pub requests: Option<u64>,
    pub request_bytes: Option<u64>,
    pub response_bytes: Option<u64>,
}

/// Sampling parameters; absent ones are inherited.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs)] // the field's standard names
pub struct Generation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl Generation {
    /// This one, with what is absent here taken from `base`.
    #[must_use]
    pub fn or(&self, base: &Self) -> Self {
        Self {
            temperature: self.temperature.or(base.temperature),
            top_p: self.top_p.or(base.top_p),
            max_output_tokens: self.max_output_tokens.or(base.max_output_tokens),
            stop: self.stop.clone().or_else(|| base.stop.clone()),
            seed: self.seed.or(base.seed),
        }
    }
}

/// What `[agents.config]`, an archetype and `[dynamic]` can say alike. Everything absent is inherited or defaulted.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AgentConfig {
    /// A model's name; `inherit` is absent.
    pub model: Option<String>,
    /// Sampling.
    pub generation: Generation,
    /// Whether the calls of one turn run at once.
    pub parallel_tool_calls: Option<bool>,
    /// Plugins that see every call, in order.
    pub filters: Option<Vec<ToolGrant>>,
    /// -1: no limit; never 0.
    pub max_turns: Option<i64>,
    /// -1: no limit; never 0.
    pub max_tool_calls_per_turn: Option<i64>,
    /// How many of the newest tool results stay in the history; -1: all.
    pub keep_tool_results: Option<i64>,
    /// Whether the parent's history is shown.
    pub include_parent_history: Option<bool>,
    /// How many user turns of it; -1: all.
    pub max_parent_history_turns: Option<i64>,
    /// Whether its events reach the watcher.
    pub forward_events: Option<bool>,
    /// When a summary is asked for.
    pub summary: Option<Summary>,
    /// How it is to be written.
    pub summary_instruction: Option<String>,
    /// A sentence added to every task.
    pub task_suffix: Option<String>,
    /// Whether the parent's model is asked again after such a child; the parent's choice.
    pub skip_summarization: Option<bool>,
    /// What it may spend.
    pub budget: BudgetRequest,
}

/// When an agent is asked for a closing summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Summary {
    /// Only at a limit.
    #[default]
    AtLimit,
    /// Also after a normal end.
    Always,
}

/// A `[budget]` table; absent: no bound of its own.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct BudgetRequest {
    /// Input and output tokens of its tree.
    pub tokens: Option<u64>,
    /// Time in all.
    pub wall: Option<Duration>,
    /// Descendants.
    pub children: Option<u32>,
    /// Money, where prices are known.
    pub cost: Option<f64>,
}

/// A `[spawn]` table.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SpawnConfig {
    /// Of `spawn_subagent` and the agent tools of this agent.
    pub skip_summarization: Option<bool>,
    /// Plugins that see the calls that start a child, its report, and every call of the child's, in order.
    pub filters: Option<Vec<ToolGrant>>,
}

/// A `[dynamic]` table.
#[derive(Clone, PartialEq, Debug)]
pub struct Dynamic {
    /// The tool's name.
    pub name: String,
    /// The tool's description; absent: the host's own.
    pub description: Option<String>,
    /// Whether the model may narrow the tools.
    pub expose_tool_selection: bool,
    /// For a missing or blank instruction; absent: the host's own.
    pub fallback_instruction: Option<String>,
    /// The child's fixed set; absent: the parent's.
    pub tools: Option<Vec<ToolGrant>>,
    /// The children's configuration.
    pub config: AgentConfig,
}

impl Default for Dynamic {
    fn default() -> Self {
        Self {
            name: "dynamic_subagent".into(),
            description: None,
            expose_tool_selection: true,
            fallback_instruction: None,
            tools: None,
            config: AgentConfig::default(),
        }
    }
}
