//! Tools as the host knows them: what a plugin offers, what a model is shown, what a call comes to.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub mod arguments;
pub mod schema;

use crate::id::{Digest, PluginName, ToolName, ToolRef};
use crate::manifest::plugin::Needs;
use crate::message::{Content, to_text};

/// One tool of a plugin, as `list-tools` or a typed export describes it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Unique within the plugin.
    pub name: ToolName,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema 2020-12 of the arguments, an object.
    pub input_schema: Arc<Value>,
    /// JSON Schema of the structured result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Arc<Value>>,
    /// For people and policies.
    #[serde(default)]
    pub hints: Hints,
}

/// What a tool says of itself; never a substitute for a grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Hints {
    /// Changes nothing.
    pub read_only: bool,
    /// May destroy what it cannot bring back.
    pub destructive: bool,
    /// Twice is as once.
    pub idempotent: bool,
    /// Reaches beyond this machine.
    pub open_world: bool,
}

/// A plugin as it was found: everything that can be known without running it for an agent.
#[derive(Clone, PartialEq, Debug)]
pub struct PluginInfo {
    /// The namespace of its tools.
    pub name: PluginName,
    /// From its manifest; empty if there is none.
    pub version: String,
    /// From its manifest; empty if there is none.
    pub description: String,
    /// Of the component's bytes.
    pub digest: Digest,
    /// The component's file.
    pub path: std::path::PathBuf,
    /// What it asks for.
    pub needs: Needs,
    /// What it offers; empty for a plugin that is only a filter.
    pub tools: Vec<ToolSpec>,
    /// The interfaces that it imports, such as `wasi:http/outgoing-handler@0.2.4`.
    pub imports: Vec<String>,
    /// Whether it exports `fief:plugin/filter`.
    pub filter: bool,
}

/// A tool as it is declared to a model.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// As people write it: `files.read`, `spawn_subagent`, `agent-worker`.
    pub name: String,
    /// What the model chooses by.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Arc<Value>,
}

/// The name that a model sees for what people write as `name`: the dot, which providers do not allow, becomes `__`.
/// What is then longer than 64, holds other characters, or holds `__` already is shortened and gets a suffix of the
/// digest of the whole name, so that two names never meet.
#[must_use]
pub fn wire_name(name: &str) -> String {
    const LONGEST: usize = 64;
    const SUFFIX: usize = 9; // `_` and eight hexadecimal digits
    let plain = !name.contains("__") && name.matches('.').count() <= 1;
    let dotted = name.replacen('.', "__", 1);
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if plain && !dotted.is_empty() && dotted.len() <= LONGEST && dotted.chars().all(allowed) {
        return dotted;
    }
    let kept: String = dotted
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .take(LONGEST - SUFFIX)
        .collect();
    format!("{kept}_{}", &Digest::of(name.as_bytes()).hex()[..SUFFIX - 1])
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeKind {
    /// As asked.
    Ok,
    /// The tool says no: bad arguments, or its own failure.
    ToolError,
    /// A grant, the policy, a filter or the person says no.
    Denied,
    /// A limit stopped it.
    Limit,
    /// The guest crashed or exited.
    Trap,
    /// The run was cancelled.
    Cancelled,
}

/// What a call came to. The model reads `content`; the log records `detail`.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// How it ended.
    pub kind: OutcomeKind,
    /// What the model sees: for anything but `ok`, one text that it can act on.
    pub content: Vec<Content>,
    /// The structured result, where the tool gives one.
    pub structured: Option<Value>,
    /// What the log records beside it, such as a backtrace or the last lines on standard error.
    pub detail: Option<String>,
}

impl Outcome {
    /// A success that is one text.
    #[must_use]
    pub fn ok(text: impl Into<String>) -> Self {
        Self {
            kind: OutcomeKind::Ok,
            content: vec![Content::Text(text.into())],
            structured: None,
            detail: None,
        }
    }

    /// Anything but a success, with the text that tells the model what happened and what it can do.
    #[must_use]
    pub fn refused(kind: OutcomeKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            content: vec![Content::Text(text.into())],
            structured: None,
            detail: None,
        }
    }

    /// The content as one text.
    #[must_use]
    pub fn text(&self) -> String {
        to_text(&self.content)
    }
}

/// One call to carry out. Arguments are an object, already valid against the tool's input schema.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The call's id, unique within the session.
    pub call: String,
    /// Which tool.
    pub tool: ToolRef,
    /// With what. Shared with the event that tells of the call: it may be a whole file.
    pub arguments: Arc<Value>,
}
