//! One agent as it is about to run: everything resolved, nothing that a model can change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::grant::{Holding, Holdings};
use crate::id::{ArchetypeName, PluginName, ToolRef};
use crate::manifest::archetype::{AgentConfig, Archetype, Dynamic, Generation, Summary};
use crate::tool::{Declaration, ToolSpec};

/// One agent, resolved. Made by [`crate::plan`] and by nothing else.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    /// Names its sessions: the archetype's name, or `dynamic`.
    pub label: String,
    /// 0 for main.
    pub depth: u32,
    /// The system prompt's template; rendered when the agent starts.
    pub instruction: Arc<str>,
    /// The model's configured name, or `provider:name`.
    pub model: String,
    /// Sampling.
    pub generation: Generation,
    /// Whether calls of one turn run at once; absent: the model's own default, and at once.
    pub parallel_tool_calls: Option<bool>,
    /// What it may call, with what rights: the ceiling of every child that it makes up.
    pub holdings: Arc<Holdings>,
    /// What it may call, by the name that people write.
    pub tools: Arc<BTreeMap<String, (ToolRef, Arc<ToolSpec>)>>,
    /// All declarations in order: the plugins' tools, then the ways to a child.
    pub declarations: Arc<[Declaration]>,
    /// Plugins that see its calls, in order, each with its own grant.
    pub filters: Vec<(PluginName, Holding)>,
    /// How it may start children.
    pub ways: Ways,
    /// Its bounds.
    pub bounds: Bounds,
    /// Whether its parent's history is shown, and how many user turns of it (absent: all).
    pub parent_history: Option<Option<u32>>,
    /// Whether its events reach the watcher.
    pub forward_events: bool,
    /// When a summary is asked for.
    pub summary: Summary,
    /// How it is to be written.
    pub summary_instruction: Option<String>,
    /// Added to its task.
    pub task_suffix: Option<String>,
    /// JSON Schema that its report must satisfy.
    pub report_schema: Option<Arc<Value>>,
}

/// Bounds of one agent; absent: none.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Bounds {
    /// Answers of the model.
    pub max_turns: Option<u32>,
    /// Calls of one answer that run.
    pub max_tool_calls_per_turn: Option<u32>,
    /// Newest tool results that stay in the history.
    pub keep_tool_results: Option<u32>,
    /// Input and output tokens of its tree.
    pub tokens: Option<u64>,
    /// Money of its tree.
    pub cost: Option<f64>,
    /// Descendants.
    pub children: Option<u32>,
    /// Time in all.
    pub wall: Option<Duration>,
}

/// How an agent may start children. Empty: not at all, and nothing of it is declared.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    /// Whom `spawn_subagent` may start, in catalogue order; empty: no such tool.
    pub spawn: Vec<Arc<Archetype>>,
    /// Served as tools of their own, by name.
    pub agent_tools: Vec<Arc<Archetype>>,
    /// `dynamic_subagent`.
    pub dynamic: Option<Arc<Dynamic>>,
    /// Where [`Dynamic::tools`] fixes a set: the names of its tools, as people write them, resolved. Else unused: the
    /// bound is then what the agent itself may call.
    pub dynamic_tools: Vec<String>,
    /// Whether the parent's model is spared after a child by `spawn_subagent` or an agent tool.
    pub skip_summarization: bool,
    /// Whether it is spared after a dynamic child.
    pub dynamic_skip_summarization: bool,
    /// Filters of `spawn_subagent` and the agent tools: they see the calls that start a child and its report, after the
    /// agent's own filters, and every call of the child, after the child's own.
    pub spawn_filters: Vec<(PluginName, Holding)>,
    /// The same of dynamic children.
    pub dynamic_filters: Vec<(PluginName, Holding)>,
    /// `[agents.config]`: what a key means that a child's archetype leaves out.
    pub defaults: AgentConfig,
}

/// What a valid call of a way to a child asks for.
#[derive(Clone, PartialEq, Debug)]
pub enum ChildRequest {
    /// By `spawn_subagent` or `agent-NAME`: a frozen archetype.
    Archetype {
        /// Which.
        name: ArchetypeName,
        /// Its task.
        task: String,
        /// A few words for the watcher.
        label: Option<String>,
    },
    /// By `dynamic_subagent`.
    Dynamic {
        /// What the model wrote, or the fallback.
        instruction: String,
        /// Its task.
        task: String,
        /// Tools by the names that people write, inside the bound; absent: all of it.
        tools: Option<Vec<String>>,
    },
}
