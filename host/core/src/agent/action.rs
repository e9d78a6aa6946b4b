//! What an agent wants done.

use std::sync::Arc;

use serde_json::Value;

use super::spec::ChildRequest;
use crate::budget::Allowance;
use crate::event::EventKind;
use crate::message::{Message, Request};
use crate::report::Report;
use crate::tool::Invocation;

/// One thing to do. The driver carries them out in the order in which they are given.
#[derive(Clone, Debug)]
pub enum Action {
    /// Ask the model; answer with [`super::Input::Answered`] or [`super::Input::ModelFailed`].
    Ask(Request),
    /// Run a call, its arguments valid; answer with [`super::Input::CallFinished`].
    Call(Invocation),
    /// Start a child; answer with [`super::Input::ChildFinished`] or [`super::Input::ChildRefused`].
    Spawn {
        /// The call's id.
        call: String,
        /// The way to a child that was called, for filters.
        tool: String,
        /// Its arguments, for filters. Changed ones are read again by [`super::request::parse`].
        arguments: Arc<Value>,
        /// What they ask for.
        request: ChildRequest,
        /// What the child may spend, reserved: goes into its [`super::Start`].
        allowance: Allowance,
        /// The agent's own history, for the child's [`super::Start`]; used there only if the child is to see it. It
        /// must be dropped when the child ends.
        parent_history: Option<Arc<Vec<Message>>>,
    },
    /// Keep a message in the record: it has entered the history.
    Record(Message),
    /// Show an event of this session.
    Emit(EventKind),
    /// Drop the outstanding request and the outstanding calls, of which no input is expected any more, and feed
    /// [`super::Input::Cancel`] to every outstanding child, of each of which an input *is* still expected.
    StopCalls,
    /// Drop the outstanding children, of none of which an input is expected any more: they were told to stop, and did
    /// not. Each must have ended for its watcher and its record before the next action.
    AbandonChildren,
    /// It ended. Always the last action.
    Finish(Report),
}
