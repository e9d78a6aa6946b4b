//! The calls of one answer: each is checked, run or refused, and gets exactly one result, in call order.

use std::sync::Arc;

use serde_json::Value;

use super::action::Action;
use super::ending::Ending;
use super::entries::{Calls, Entry, State, Stop, Target};
use super::state::{Agent, Phase};
use crate::message::{Arguments, Message, ToolCall};
use crate::report::Status;
use crate::tool::{Invocation, Outcome, OutcomeKind};

/// The most of a call's raw arguments that its result quotes, in bytes.
const MAX_QUOTED: usize = 2_000;
/// The most tools that a refusal lists.
const MAX_LISTED: usize = 40;

impl Agent {
    /// Starts the calls of an answer: all at once, or the first.
    pub(super) fn start_calls(&mut self, calls: Vec<ToolCall>, out: &mut Vec<Action>) {
        let most = self
            .spec
            .bounds
            .max_tool_calls_per_turn
            .map_or(usize::MAX, |most| most as usize);
        let mut entries = Vec::with_capacity(calls.len());
        for (index, call) in calls.into_iter().enumerate() {
            let target = self.target(&call.name);
            let checked = if index >= most {
                Err(Box::new(Outcome::refused(
                    OutcomeKind::Limit,
                    format!("not run: one answer may make {most} calls, and this one came after them"),
                )))
            } else {
                self.check(&target, &call)
            };
            let mut entry = Entry {
                id: call.id,
                name: call.name,
                target,
                state: State::Running,
            };
            match checked {
                Ok(arguments) => entry.state = State::Waiting(Arc::new(arguments)),
                Err(outcome) => entry.finish(&outcome, 0, None, out),
            }
            entries.push(entry);
        }
        self.phase = Phase::Calling(Calls::new(entries));
        self.run_waiting(out);
    }

    /// What a call's name means for this agent.
    fn target(&self, name: &str) -> Target {
        if let Some((tool, _)) = self.spec.tools.get(name) {
            Target::Tool(tool.clone())
        } else if self.spec.ways.holds(name) {
            Target::Child
        } else {
            Target::Nothing
        }
    }

    /// The arguments, if the call may run.
    fn check(&self, target: &Target, call: &ToolCall) -> Result<Value, Box<Outcome>> {
        let bad = |why: String| Box::new(Outcome::refused(OutcomeKind::ToolError, format!("not run: {why}")));
        let arguments = match &call.arguments {
            // What cannot be read may lack even its name, so that this is said before the name is looked at.
            Arguments::Malformed { raw, why } => {
                return Err(bad(format!(
                    "the call cannot be read: {why}\nit was: {}",
                    crate::report::cut(raw, MAX_QUOTED)
                )));
            }
            Arguments::Object(_) if *target == Target::Nothing => return Err(Box::new(self.denied(&call.name))),
            Arguments::Object(map) => Value::Object(map.clone()),
        };
        if let Some((_, tool)) = self.spec.tools.get(&call.name) {
            let validator = self
                .validators
                .get(&tool.input_schema)
                .map_err(|error| bad(error.to_string()))?;
            validator.check(&arguments).map_err(|error| bad(error.to_string()))?;
        }
        Ok(arguments)
    }

    /// The refusal of a name that this agent may not call, the nearest of what it may call first.
    fn denied(&self, name: &str) -> Outcome {
        let mut names: Vec<&str> = self.spec.declarations.iter().map(|one| one.name.as_str()).collect();
        let shown: String = name.chars().take(80).collect();
        if names.is_empty() {
            return Outcome::refused(
                OutcomeKind::Denied,
                format!("`{shown}` may not be called: this agent has no tools, and answers in text"),
            );
        }
        let near = |other: &str| -strsim::jaro_winkler(&shown, other);
        names.sort_by(|a, b| near(a).total_cmp(&near(b)).then_with(|| a.cmp(b)));
        let more = names.len().saturating_sub(MAX_LISTED);
        names.truncate(MAX_LISTED);
        let mut text = format!(
            "`{shown}` may not be called by this agent\nit may call `{}`",
            names.join("`, `")
        );
        if more > 0 {
            text.push_str(&format!(" and {more} more"));
        }
        Outcome::refused(OutcomeKind::Denied, text)
    }

    /// Starts what may start now, and ends the turn when nothing is left.
    fn run_waiting(&mut self, out: &mut Vec<Action>) {
        let at_once = self.spec.parallel_tool_calls.unwrap_or(true);
        loop {
            let Phase::Calling(calls) = &mut self.phase else {
                return;
            };
            if calls.all_finished() {
                self.calls_ended(out);
                return;
            }
            if calls.any_running() && !at_once {
                return;
            }
            let Some((index, arguments)) = calls.start_next() else {
                return;
            };
            self.run(index, arguments, out);
        }
    }

    fn run(&mut self, index: usize, arguments: Arc<Value>, out: &mut Vec<Action>) {
        let Phase::Calling(calls) = &self.phase else {
            return;
        };
        let entry = calls.entry(index);
        match entry.target.clone() {
            Target::Tool(tool) => {
                out.push(entry.started(arguments.clone()));
                out.push(Action::Call(Invocation {
                    call: entry.id.clone(),
                    tool,
                    arguments,
                }));
            }
            Target::Child => self.start_child(index, arguments, out),
            Target::Nothing => {}
        }
    }

    /// Takes a call's end. One that is no longer waited for changes nothing.
    pub(super) fn call_finished(&mut self, call: &str, outcome: &Outcome, ms: u64, out: &mut Vec<Action>) {
        if let Phase::Calling(calls) = &mut self.phase
            && let Some(index) = calls.running(call)
            && matches!(calls.entry(index).target, Target::Tool(_))
        {
            calls.finish(index, outcome, ms, None, out);
            self.run_waiting(out);
        }
    }

    pub(super) fn call_ended(&mut self, out: &mut Vec<Action>) {
        self.run_waiting(out);
    }

    /// All calls have a result.
    fn calls_ended(&mut self, out: &mut Vec<Action>) {
        let Phase::Calling(calls) = std::mem::replace(&mut self.phase, Phase::Ended) else {
            return;
        };
        let stopped = calls.stopped;
        let answer = self.childs_answer(&calls);
        let results = calls.into_results();
        self.push(Message::Results { results }, out);
        if let Some(keep) = self.spec.bounds.keep_tool_results {
            self.history.keep_results(keep as usize);
        }
        match (stopped, answer) {
            (Some(Stop::Cancelled), _) => self.cancelled(out),
            (None, Some(text)) => self.answer_of_child(text, out),
            _ => self.next(out),
        }
    }

    /// Gives the calls of a closing answer, which was to make none, their results.
    pub(super) fn refuse_all(&mut self, calls: &[ToolCall], out: &mut Vec<Action>) {
        let outcome = Outcome::refused(OutcomeKind::Limit, "not run: the closing answer may make no calls");
        self.settle_all(calls, &outcome, out);
    }

    /// Gives the calls of a history that breaks off after them their results.
    pub(super) fn interrupted(&mut self, calls: &[ToolCall], out: &mut Vec<Action>) {
        let outcome = Outcome::refused(OutcomeKind::Cancelled, "the run was interrupted before this call ended");
        self.settle_all(calls, &outcome, out);
    }

    fn settle_all(&mut self, calls: &[ToolCall], outcome: &Outcome, out: &mut Vec<Action>) {
        if calls.is_empty() {
            return;
        }
        let results = calls
            .iter()
            .map(|call| {
                let mut entry = Entry {
                    id: call.id.clone(),
                    name: call.name.clone(),
                    target: self.target(&call.name),
                    state: State::Running,
                };
                entry.finish(outcome, 0, None, out);
                entry.result(outcome)
            })
            .collect();
        self.push(Message::Results { results }, out);
    }

    /// Stops what runs. Tools have their results at once; children still hand back what they cost.
    pub(super) fn stop_calls(&mut self, stop: Stop, wait: bool, out: &mut Vec<Action>) {
        out.push(Action::StopCalls);
        let stopped = out.len();
        let mut abandoned = Vec::new();
        if let Phase::Calling(calls) = &mut self.phase {
            calls.stopped = Some(stop);
            for index in 0..calls.len() {
                let entry = calls.entry(index);
                let owed = entry.target == Target::Child && matches!(entry.state, State::Running);
                if matches!(entry.state, State::Finished(..)) || (owed && wait) {
                    continue;
                }
                if owed {
                    abandoned.push(entry.id.clone());
                }
                calls.finish(index, &stop.outcome(), 0, None, out);
            }
        }
        if !abandoned.is_empty() {
            // Before the results, so that no child's end comes after its parent's.
            out.insert(stopped, Action::AbandonChildren);
        }
        for call in abandoned {
            self.account.release(&call);
        }
        self.run_waiting(out);
    }

    /// Takes the end of the agent's time.
    pub(super) fn deadline(&mut self, out: &mut Vec<Action>) {
        let bound = self.spec.bounds.wall.map(|wall| format!(" of {}s", wall.as_secs_f64()));
        let ending = Ending::new(
            Status::Budget,
            format!("the time{} is used up", bound.unwrap_or_default()),
        );
        match &self.phase {
            Phase::Ended => {}
            Phase::Asking => {
                out.push(Action::StopCalls);
                self.task.ending = Some(ending);
                self.close(out);
            }
            Phase::Closing(closing) => {
                let closing = closing.clone();
                out.push(Action::StopCalls);
                self.closed(closing, String::new(), out);
            }
            Phase::Calling(calls) => {
                let first = calls.stopped.is_none();
                self.task.ending.get_or_insert(ending);
                self.stop_calls(Stop::Deadline, first, out);
            }
        }
    }

    /// Takes a cancellation.
    pub(super) fn cancel(&mut self, out: &mut Vec<Action>) {
        match &self.phase {
            Phase::Ended => {}
            Phase::Asking | Phase::Closing(_) => {
                out.push(Action::StopCalls);
                self.cancelled(out);
            }
            Phase::Calling(calls) => {
                let first = calls.stopped != Some(Stop::Cancelled);
                self.stop_calls(Stop::Cancelled, first, out);
            }
        }
    }
}
