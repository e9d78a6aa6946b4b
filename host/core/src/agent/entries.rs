//! The calls of one answer as they stand: which of them wait, run, or have their result.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::action::Action;
use crate::event::EventKind;
use crate::id::ToolRef;
use crate::message::CallResult;
use crate::tool::{Outcome, OutcomeKind};

/// The calls that are being carried out.
///
/// What is asked of them at every step is counted, not searched for: one answer may start a thousand children, and each
/// of them ends with a step of its own.
#[derive(Debug)]
pub(super) struct Calls {
    entries: Vec<Entry>,
    /// Where each stands, by its id: ids are unique.
    places: HashMap<String, usize>,
    /// No entry before this one waits.
    next: usize,
    waiting: usize,
    /// Of those that wait, the ones that start a child.
    waiting_children: usize,
    unfinished: usize,
    /// Set once they were stopped: no further one starts, and only the children's last reports are waited for.
    pub(super) stopped: Option<Stop>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) target: Target,
    pub(super) state: State,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Target {
    /// A plugin's tool.
    Tool(ToolRef),
    /// A way to a child.
    Child,
    /// Nothing that this agent may call.
    Nothing,
}

#[derive(Debug)]
pub(super) enum State {
    Waiting(Arc<Value>),
    Running,
    /// With a child's report, where a child ended as `done`.
    Finished(CallResult, Option<String>),
}

/// Why calls are stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    Cancelled,
    Deadline,
}

impl Stop {
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Cancelled => Outcome::refused(OutcomeKind::Cancelled, "the run was cancelled before this call ended"),
            Self::Deadline => Outcome::refused(OutcomeKind::Limit, "the agent's time ran out before this call ended"),
        }
    }
}

impl Calls {
    pub(super) fn new(entries: Vec<Entry>) -> Self {
        let mut calls = Self {
            places: entries
                .iter()
                .enumerate()
                .map(|(at, entry)| (entry.id.clone(), at))
                .collect(),
            entries,
            next: 0,
            waiting: 0,
            waiting_children: 0,
            unfinished: 0,
            stopped: None,
        };
        for entry in &calls.entries {
            let waits = usize::from(matches!(entry.state, State::Waiting(_)));
            calls.waiting += waits;
            calls.waiting_children += waits * usize::from(entry.target == Target::Child);
            calls.unfinished += usize::from(!matches!(entry.state, State::Finished(..)));
        }
        calls
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn entry(&self, index: usize) -> &Entry {
        &self.entries[index]
    }

    pub(super) fn all_finished(&self) -> bool {
        self.unfinished == 0
    }

    pub(super) fn any_running(&self) -> bool {
        self.unfinished > self.waiting
    }

    /// How many that start a child have not started.
    pub(super) fn waiting_children(&self) -> usize {
        self.waiting_children
    }

    /// The only call of the answer, if it made one.
    pub(super) fn only(&self) -> Option<&Entry> {
        match self.entries.as_slice() {
            [entry] => Some(entry),
            _ => None,
        }
    }

    /// The call of this id, if it is running.
    pub(super) fn running(&self, call: &str) -> Option<usize> {
        let index = *self.places.get(call)?;
        matches!(self.entries[index].state, State::Running).then_some(index)
    }

    /// Makes the first call that waits one that runs, and hands out its arguments.
    pub(super) fn start_next(&mut self) -> Option<(usize, Arc<Value>)> {
        while let Some(entry) = self.entries.get_mut(self.next) {
            let index = self.next;
            self.next += 1;
            match std::mem::replace(&mut entry.state, State::Running) {
                State::Waiting(arguments) => {
                    self.waiting -= 1;
                    self.waiting_children -= usize::from(entry.target == Target::Child);
                    return Some((index, arguments));
                }
                other => entry.state = other,
            }
        }
        None
    }

    /// Gives a call, which has none yet, its result.
    pub(super) fn finish(
        &mut self,
        index: usize,
        outcome: &Outcome,
        ms: u64,
        answer: Option<String>,
        out: &mut Vec<Action>,
    ) {
        let entry = &mut self.entries[index];
        if matches!(entry.state, State::Waiting(_)) {
            self.waiting -= 1;
            self.waiting_children -= usize::from(entry.target == Target::Child);
        }
        self.unfinished -= 1;
        entry.finish(outcome, ms, answer, out);
    }

    /// The results, in call order.
    pub(super) fn into_results(self) -> Vec<CallResult> {
        let finished = self.entries.into_iter().filter_map(|entry| match entry.state {
            State::Finished(result, _) => Some(result),
            State::Waiting(_) | State::Running => None,
        });
        finished.collect()
    }
}

impl Entry {
    pub(super) fn started(&self, arguments: Arc<Value>) -> Action {
        Action::Emit(EventKind::ToolStarted {
            call: self.id.clone(),
            plugin: self.plugin(),
            tool: self.name.clone(),
            arguments,
        })
    }

    /// Gives the call its result.
    pub(super) fn finish(&mut self, outcome: &Outcome, ms: u64, answer: Option<String>, out: &mut Vec<Action>) {
        out.push(Action::Emit(EventKind::ToolFinished {
            call: self.id.clone(),
            plugin: self.plugin(),
            tool: self.name.clone(),
            outcome: outcome.kind,
            content: outcome.text(),
            error: outcome.detail.clone(),
            ms,
        }));
        self.state = State::Finished(self.result(outcome), answer);
    }

    pub(super) fn result(&self, outcome: &Outcome) -> CallResult {
        CallResult {
            call: self.id.clone(),
            name: self.name.clone(),
            content: outcome.content.clone(),
            is_error: outcome.kind != OutcomeKind::Ok,
        }
    }

    fn plugin(&self) -> Option<String> {
        match &self.target {
            Target::Tool(tool) => Some(tool.plugin.to_string()),
            Target::Child => None,
            Target::Nothing => self.name.split_once('.').map(|(plugin, _)| plugin.to_owned()),
        }
    }
}
