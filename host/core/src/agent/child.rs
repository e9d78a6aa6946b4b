//! Calls that start a child: what is reserved for it, and what its report comes to.

use std::sync::Arc;

use serde_json::Value;

use super::action::Action;
use super::entries::{Calls, State, Target};
use super::request;
use super::spec::ChildRequest;
use super::state::{Agent, Phase};
use super::turn::CLOSING_OUTPUT;
use super::ways::SPAWN;
use crate::id::SessionId;
use crate::manifest::archetype::BudgetRequest;
use crate::message::{Assistant, Message};
use crate::report::{Report, Status};
use crate::tool::{Outcome, OutcomeKind};

impl Agent {
    /// Starts a child, if the call is right and there is something left for it to spend.
    pub(super) fn start_child(&mut self, index: usize, arguments: Arc<Value>, out: &mut Vec<Action>) {
        // Kept back from all children: what the closing request needs.
        let reserve = self.history.tokens().saturating_add(CLOSING_OUTPUT);
        let Phase::Calling(calls) = &mut self.phase else {
            return;
        };
        let starting = calls.waiting_children() + 1;
        let entry = calls.entry(index);
        let object = arguments.as_object().cloned().unwrap_or_default();
        let parsed = request::parse(&self.spec.ways, &self.own_tools, &self.validators, &entry.name, &object);
        let request = match parsed {
            Ok(request) => request,
            Err(why) => {
                let outcome = Outcome::refused(OutcomeKind::ToolError, format!("no agent was started: {why}"));
                calls.finish(index, &outcome, 0, None, out);
                return;
            }
        };
        let asked = asked_budget(&self.spec.ways, &request);
        let starting = u32::try_from(starting).unwrap_or(u32::MAX);
        match self.account.reserve(&entry.id, &asked, starting, reserve) {
            Err(exhausted) => {
                let outcome = Outcome::refused(OutcomeKind::Limit, format!("no agent was started: {exhausted}"));
                calls.finish(index, &outcome, 0, None, out);
            }
            Ok(allowance) => {
                out.push(entry.started(arguments.clone()));
                out.push(Action::Spawn {
                    call: entry.id.clone(),
                    tool: entry.name.clone(),
                    arguments,
                    request,
                    allowance,
                    parent_history: Some(self.history.share()),
                });
            }
        }
    }

    /// Takes a child's end. What it cost counts, however it ended.
    pub(super) fn child_finished(
        &mut self,
        call: &str,
        report: &Report,
        session: &SessionId,
        ms: u64,
        out: &mut Vec<Action>,
    ) {
        let Some((calls, index)) = self.running_child(call) else {
            return;
        };
        let outcome = Outcome {
            kind: match report.status {
                Status::Done => OutcomeKind::Ok,
                Status::Cancelled => OutcomeKind::Cancelled,
                _ => OutcomeKind::ToolError,
            },
            ..Outcome::ok(report.framed(session))
        };
        let answer = (report.status == Status::Done).then(|| report.text.clone());
        calls.finish(index, &outcome, ms, answer, out);
        self.usage += report.usage;
        self.descendants = self.descendants.saturating_add(1).saturating_add(report.descendants);
        self.account.settle(call, &report.usage, report.descendants);
        self.call_ended(out);
    }

    /// Takes the news that a child did not start.
    pub(super) fn child_refused(&mut self, call: &str, outcome: &Outcome, ms: u64, out: &mut Vec<Action>) {
        let Some((calls, index)) = self.running_child(call) else {
            return;
        };
        calls.finish(index, outcome, ms, None, out);
        self.account.release(call);
        self.call_ended(out);
    }

    fn running_child(&mut self, call: &str) -> Option<(&mut Calls, usize)> {
        let Phase::Calling(calls) = &mut self.phase else {
            return None;
        };
        let index = calls.running(call)?;
        (calls.entry(index).target == Target::Child).then_some((calls, index))
    }

    /// The report that is this agent's answer: its only call of the turn started a child whose report needs no
    /// further word, and the child is done.
    pub(super) fn childs_answer(&self, calls: &Calls) -> Option<String> {
        let entry = calls.only()?;
        let ways = &self.spec.ways;
        let dynamic = ways.dynamic.as_ref().is_some_and(|dynamic| dynamic.name == entry.name);
        let skips = if dynamic && entry.name != SPAWN && ways.agent_tool(&entry.name).is_none() {
            ways.dynamic_skip_summarization
        } else {
            ways.skip_summarization
        };
        match &entry.state {
            State::Finished(_, Some(text)) if skips && self.fits_schema(text).is_ok() => Some(text.clone()),
            _ => None,
        }
    }

    /// Ends with a child's report, word for word, as the answer.
    pub(super) fn answer_of_child(&mut self, text: String, out: &mut Vec<Action>) {
        let message = Assistant {
            text: text.clone(),
            ..Assistant::default()
        };
        self.push(Message::Assistant(message), out);
        self.finish(Status::Done, text, None, out);
    }
}

/// The child's own `[budget]`, what it leaves out from `[agents.config]`.
fn asked_budget(ways: &super::spec::Ways, request: &ChildRequest) -> BudgetRequest {
    let own = match request {
        ChildRequest::Dynamic { .. } => ways.dynamic.as_ref().map(|dynamic| dynamic.config.budget),
        ChildRequest::Archetype { name, .. } => ways
            .spawn
            .iter()
            .chain(&ways.agent_tools)
            .find(|archetype| archetype.name == *name)
            .map(|archetype| archetype.config.budget),
    }
    .unwrap_or_default();
    let defaults = &ways.defaults.budget;
    BudgetRequest {
        tokens: own.tokens.or(defaults.tokens),
        wall: own.wall.or(defaults.wall),
        children: own.children.or(defaults.children),
        cost: own.cost.or(defaults.cost),
    }
}
