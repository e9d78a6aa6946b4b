//! The one stream of events of a run: what a watcher sees, `--json` prints and the record keeps.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::SessionId;
use crate::message::{Finish, Usage};
use crate::report::Status;
use crate::tool::OutcomeKind;

/// One event as it leaves the host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// What happened, with its own keys; the key `event` names it.
    #[serde(flatten)]
    pub kind: EventKind,
    /// The run.
    pub run: String,
    /// Whose event it is.
    pub session: SessionId,
    /// The session that started this one; null for main.
    pub parent: Option<SessionId>,
    /// 0 for main.
    pub depth: u32,
    /// From 1, without gaps in the stream that it stands in.
    pub seq: u64,
    /// RFC 3339, UTC, milliseconds.
    pub time: String,
    /// Present on a child's forwarded events: that it is progress, and never part of the parent's context.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<Forwarded>,
}

/// What marks a child's event that is forwarded to the parent's watcher.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Forwarded {
    /// Always true.
    pub tool_progress: bool,
    /// The child's archetype.
    pub author: String,
    /// True for a delta.
    pub partial: bool,
}

/// What can happen. Names and keys are a public contract.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// The main agent starts.
    RunStarted {
        /// What it was asked.
        task: String,
        /// Under which archetype.
        archetype: String,
        /// With which model.
        model: String,
        /// What it may call, as people write it.
        tools: Vec<String>,
    },
    /// A child starts.
    AgentStarted {
        /// The parent's call.
        call: String,
        /// Under which archetype; `dynamic` for one that a model wrote.
        archetype: String,
        /// What it was asked.
        task: String,
        /// The spawn's `description`.
        label: Option<String>,
        /// What it may call.
        tools: Vec<String>,
    },
    /// A model is about to be asked.
    TurnStarted {
        /// From 1.
        turn: u32,
    },
    /// A piece of the answer's text.
    ModelDelta {
        /// The piece.
        content: String,
    },
    /// A whole answer.
    ModelMessage {
        /// Its text.
        content: String,
        /// The calls that it asks for.
        tool_calls: Vec<CallSummary>,
        /// How it ended.
        finish: Finish,
        /// What it cost.
        usage: Usage,
    },
    /// An attempt failed and another follows.
    ModelRetry {
        /// From 1.
        attempt: u32,
        /// Milliseconds until it.
        wait_ms: u64,
        /// Why.
        error: String,
    },
    /// A call is about to run.
    ToolStarted {
        /// Its id.
        call: String,
        /// Null for a way to a child.
        plugin: Option<String>,
        /// As people write it.
        tool: String,
        /// With what.
        arguments: Arc<Value>,
    },
    /// What a running tool says of its progress.
    ToolUpdate {
        /// Its id.
        call: String,
        /// Null for a way to a child.
        plugin: Option<String>,
        /// As people write it.
        tool: String,
        /// For the person who watches.
        message: String,
        /// How much is done.
        done: Option<u64>,
        /// Of how much.
        total: Option<u64>,
    },
    /// A call ended.
    ToolFinished {
        /// Its id.
        call: String,
        /// Null for a way to a child.
        plugin: Option<String>,
        /// As people write it.
        tool: String,
        /// How.
        outcome: OutcomeKind,
        /// What the model sees, as text.
        content: String,
        /// What the log records beside it.
        error: Option<String>,
        /// How long it took, in milliseconds.
        ms: u64,
    },
    /// A capability was used, or refused.
    Capability {
        /// The call that did it.
        call: String,
        /// The plugin that did it.
        plugin: String,
        /// Of what kind.
        kind: CapabilityKind,
        /// What it was used on: a path, an origin, a secret's name, a tool, a question.
        target: String,
        /// Whether it was allowed.
        allowed: bool,
        /// The manifest line or the policy that decided.
        rule: String,
        /// How many uses of this kind and rule the call made; on allowed uses, which are said once a call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<u64>,
    },
    /// Something that a person should know.
    Warning {
        /// What.
        message: String,
    },
    /// A child ended.
    AgentFinished {
        /// How.
        status: Status,
        /// The bare text that it hands back.
        report: String,
        /// Of its tree.
        usage: Usage,
        /// Its own.
        own_usage: Usage,
    },
    /// The main agent ended.
    RunFinished {
        /// How.
        status: Status,
        /// The answer.
        report: String,
        /// Of its tree.
        usage: Usage,
        /// Its own.
        own_usage: Usage,
    },
}

/// A call as `model_message` names it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CallSummary {
    /// Its id.
    pub call: String,
    /// As people write it.
    pub tool: String,
    /// With what; the raw text where it does not parse.
    pub arguments: Value,
}

/// What kinds of capability there are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CapabilityKind {
    /// A file or directory.
    File,
    /// A request over the network.
    Http,
    /// A secret, added to a request.
    Secret,
    /// Another tool of the agent.
    Toolbox,
    /// A question to the person.
    Person,
}

/// What a running call tells the host, before the driver gives it a call id and a session.
#[derive(Clone, PartialEq, Debug)]
pub enum CallNote {
    /// Progress for the watcher.
    Progress {
        /// For people.
        message: String,
        /// How much is done.
        done: Option<u64>,
        /// Of how much.
        total: Option<u64>,
    },
    /// A line for the log: level (`trace` to `error`) and text.
    Log {
        /// `trace`, `debug`, `info`, `warn`, `error`.
        level: &'static str,
        /// The text, already cut and redacted.
        message: String,
    },
    /// A use of a capability.
    Capability {
        /// Of what kind.
        kind: CapabilityKind,
        /// On what.
        target: String,
        /// Whether it was allowed.
        allowed: bool,
        /// What decided.
        rule: String,
        /// For allowed uses: how many.
        count: Option<u64>,
    },
}
