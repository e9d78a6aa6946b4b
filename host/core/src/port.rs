//! The seams: what the loop needs from the world, as traits that the other crates implement.
//!
//! Cancellation is by dropping: whoever drops a stream or a future stops the request or the guest behind it.

use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use serde_json::Value;

use crate::event::CallNote;
use crate::message::{Answer, Request, Usage};
use crate::tool::{Invocation, Outcome};

/// A future that owns what it needs.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// A stream that owns what it needs.
pub type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;

/// A language model.
pub trait Model: Send + Sync {
    /// Asks once. The stream ends after [`ModelEvent::Done`] or [`ModelEvent::Failed`]; a stream that ends without
    /// either is a failure. What is worth a retry has been retried inside, with a [`ModelEvent::Retry`] each time.
    fn ask(&self, request: Request) -> BoxStream<'static, ModelEvent>;
}

/// What a model's stream brings.
#[derive(Clone, PartialEq, Debug)]
pub enum ModelEvent {
    /// A piece of the answer's text, for the watcher.
    Delta(String),
    /// An attempt failed and another follows: what was shown of the answer so far is void.
    Retry {
        /// From 1.
        attempt: u32,
        /// Milliseconds until the next one.
        wait_ms: u64,
        /// Why.
        error: String,
    },
    /// What an attempt that broke had cost by then, as the server counted it: paid for, and part of no answer.
    Spent(Usage),
    /// The whole answer.
    Done(Answer),
    /// No answer.
    Failed(ModelError),
}

/// Why a model gave no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What the loop decides by.
    pub kind: ModelErrorKind,
    /// In the server's own words where it gave any; never holds a key.
    pub message: String,
}

/// The kinds of failure that the loop tells apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModelErrorKind {
    /// The request does not fit the model's context.
    ContextOverflow,
    /// The server could not be reached, or went on failing.
    Unavailable,
    /// The server refused: key, quota, unknown model, bad request.
    Refused,
    /// A recorded model does not fit the run: a configuration fault, or a request that lacks a call's result.
    Script,
}

/// Where a call reports what happens while it runs. Never part of a model's context.
pub trait CallSink: Send + Sync {
    /// Takes one note. Must not block.
    fn note(&self, note: CallNote);
}

/// The agent's other tools, for a plugin that was granted `toolbox`: the same grants, filters and accounts as a call
/// of the model's.
pub trait Toolbox: Send + Sync {
    /// The tools that may be called, as `PLUGIN.TOOL`, without the caller itself and without any way to a child.
    fn list(&self) -> Vec<crate::tool::Declaration>;
    /// Calls one by its name.
    fn call(&self, name: String, arguments: Value) -> BoxFuture<'static, Outcome>;
}

/// The person who watches the run.
pub trait Person: Send + Sync {
    /// Asks a yes-or-no question; nobody there is no.
    fn confirm(&self, question: String) -> BoxFuture<'static, bool>;
}

/// What a single call may use besides its arguments.
#[derive(Clone)]
pub struct CallContext {
    /// Where progress, logs and audits go.
    pub sink: Arc<dyn CallSink>,
    /// Present only if granted.
    pub toolbox: Option<Arc<dyn Toolbox>>,
    /// Present only if granted.
    pub person: Option<Arc<dyn Person>>,
}

/// Carries out the calls of one agent: it holds only what that agent was granted.
pub trait Tools: Send + Sync {
    /// One call. An unknown or ungranted tool is `denied`: enforced here too, not only where tools are listed.
    fn call(&self, invocation: Invocation, context: CallContext) -> BoxFuture<'static, Outcome>;
}

/// One call as a filter sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct Subject {
    /// `main`, or a child such as `explore_1`.
    pub session: crate::id::SessionId,
    /// As people write it: `files.read`, `spawn_subagent`.
    pub tool: String,
    /// A JSON object. Shared: it may be a whole file.
    pub arguments: Arc<Value>,
}

/// What a filter says before a call.
#[derive(Clone, PartialEq, Debug)]
pub enum CallVerdict {
    /// Go on.
    Pass,
    /// Go on with these arguments, which are checked again.
    Change(Value),
    /// Do not run it; the model is told why.
    Refuse(String),
}

/// What a filter says of an outcome, before the model sees it.
#[derive(Clone, PartialEq, Debug)]
pub enum OutcomeVerdict {
    /// Go on.
    Pass,
    /// Show this instead.
    Change(Outcome),
    /// Show only why it is withheld.
    Refuse(String),
}

/// A plugin that sees every call of an agent. One that traps or runs out refuses.
pub trait Filter: Send + Sync {
    /// Before a call runs.
    fn before_call(&self, subject: Subject, context: CallContext) -> BoxFuture<'static, CallVerdict>;
    /// After it, before its outcome is seen.
    fn after_call(
        &self,
        subject: Subject,
        outcome: Outcome,
        context: CallContext,
    ) -> BoxFuture<'static, OutcomeVerdict>;
}
