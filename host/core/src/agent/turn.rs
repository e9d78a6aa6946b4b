//! Asking the model, and what its answer leads to.

use super::action::Action;
use super::ending::Ending;
use super::history::parsable;
use super::state::{Agent, Phase};
use crate::event::{CallSummary, EventKind};
use crate::message::{Answer, Arguments, Finish, Message, Request, Usage};
use crate::port::{ModelError, ModelErrorKind};
use crate::report::Status;

/// The least output, in tokens, for which a model is asked at all.
pub(super) const LEAST_OUTPUT: u64 = 128;
/// The output that is kept back for the closing request: a page of text.
pub(super) const CLOSING_OUTPUT: u64 = 1_024;
/// The most output of one answer where the agent has a budget and no `max_output_tokens`: without a cap one answer
/// could outspend any budget, and with a larger one some models refuse the request.
const CAPPED_OUTPUT: u64 = 8_192;

impl Agent {
    /// Goes on after a task, or after the results of a turn: the next turn, or the end.
    pub(super) fn next(&mut self, out: &mut Vec<Action>) {
        if self.task.ending.is_none() {
            self.task.ending = self.limit();
        }
        if self.task.ending.is_some() {
            self.close(out);
            return;
        }
        self.task.turn += 1;
        out.push(Action::Emit(EventKind::TurnStarted { turn: self.task.turn }));
        let closing = self.history.tokens().saturating_add(CLOSING_OUTPUT);
        self.phase = Phase::Asking;
        let output = self.output_room(closing);
        out.push(Action::Ask(self.request(true, output)));
    }

    /// Why the next turn cannot be, if it cannot.
    fn limit(&self) -> Option<Ending> {
        if let Some(most) = self.spec.bounds.max_turns
            && self.task.turn >= most
        {
            return Some(Ending::new(
                Status::TurnLimit,
                format!("the limit of {most} turns is reached"),
            ));
        }
        let tokens = self.history.tokens();
        if let Some(most) = self.context
            && tokens > most
        {
            return Some(Ending::overflow());
        }
        let closing = tokens.saturating_add(CLOSING_OUTPUT);
        match self.output_room(closing) {
            Some(room) if room < self.least_output() => Some(self.exhausted()),
            _ => None,
        }
    }

    pub(super) fn exhausted(&self) -> Ending {
        let limit = self.account.limit();
        let bound = match (limit.tokens, limit.cost) {
            (Some(tokens), None) => format!("the budget of {tokens} tokens"),
            (None, Some(cost)) => format!("the budget of {cost} in money"),
            (Some(tokens), Some(cost)) => format!("the budget of {tokens} tokens and {cost} in money"),
            (None, None) => "the budget".into(),
        };
        Ending::new(
            Status::Budget,
            format!("{bound} leaves no room for another turn and the closing summary"),
        )
    }

    pub(super) fn least_output(&self) -> u64 {
        self.spec
            .generation
            .max_output_tokens
            .map_or(LEAST_OUTPUT, |most| most.min(LEAST_OUTPUT))
    }

    /// How much output the budget leaves for a request with the history as it is, `reserve` tokens kept back; absent:
    /// no budget bounds it.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )] // Far below 2^52.
    pub(super) fn output_room(&self, reserve: u64) -> Option<u64> {
        let left = self.account.left();
        let input = self.history.tokens();
        let by_tokens = left
            .tokens
            .map(|left| left.saturating_sub(input).saturating_sub(reserve));
        let by_cost = left.cost.map(|left| match self.prices {
            Some(prices) if prices.output > 0.0 => {
                let input_cost = (input as f64) * prices.input;
                let reserve_cost = if reserve == 0 {
                    0.0
                } else {
                    (reserve.saturating_sub(CLOSING_OUTPUT) as f64) * prices.input
                        + (CLOSING_OUTPUT as f64) * prices.output
                };
                ((left * 1e6 - input_cost - reserve_cost).max(0.0) / prices.output) as u64
            }
            // Without prices money is known only once it is spent.
            _ if left > 0.0 => u64::MAX,
            _ => 0,
        });
        match (by_tokens, by_cost) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    pub(super) fn request(&self, tools: bool, room: Option<u64>) -> Request {
        let mut generation = self.spec.generation.clone();
        if let Some(room) = room {
            generation.max_output_tokens = Some(generation.max_output_tokens.unwrap_or(CAPPED_OUTPUT).min(room));
        }
        Request {
            session: self.session.clone(),
            system: self.system.clone(),
            history: self.history.share(),
            tools: if tools {
                self.spec.declarations.clone()
            } else {
                self.no_tools.clone()
            },
            generation,
            parallel_tool_calls: self.spec.parallel_tool_calls,
        }
    }

    /// Takes the model's answer.
    pub(super) fn answered(&mut self, answer: Answer, out: &mut Vec<Action>) {
        if !matches!(self.phase, Phase::Asking | Phase::Closing(_)) {
            return;
        }
        let Answer {
            mut message,
            finish,
            usage,
            served: _,
        } = answer;
        self.spent(&usage);
        self.history.measured(&usage);
        self.history.admit(&mut message.calls);
        out.push(Action::Emit(EventKind::ModelMessage {
            content: message.text.clone(),
            tool_calls: message
                .calls
                .iter()
                .map(|call| CallSummary {
                    call: call.id.clone(),
                    tool: call.name.clone(),
                    arguments: match &call.arguments {
                        Arguments::Malformed { raw, .. } => raw.clone().into(),
                        object @ Arguments::Object(_) => object.to_value(),
                    },
                })
                .collect(),
            finish,
            usage,
        }));
        let calls = message.calls.clone();
        let text = message.text.clone();
        parsable(&mut message.calls);
        self.push(Message::Assistant(message), out);
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Closing(closing) => {
                self.refuse_all(&calls, out);
                self.closed(closing, text, out);
            }
            _ if calls.is_empty() => self.answered_in_text(text, finish, out),
            _ => {
                if !text.trim().is_empty() {
                    self.task.last_text = text;
                }
                self.start_calls(calls, out);
            }
        }
    }

    /// Books what its own model cost, whether or not an answer came of it.
    pub(super) fn spent(&mut self, usage: &Usage) {
        self.own_usage += *usage;
        self.usage += *usage;
        self.account.spend(usage);
    }

    /// An answer without calls is the end of the task, in one way or another.
    fn answered_in_text(&mut self, text: String, finish: Finish, out: &mut Vec<Action>) {
        let blank = text.trim().is_empty();
        if !blank {
            self.task.last_text.clone_from(&text);
        }
        match finish {
            Finish::Filter => {
                let message = "the provider's content filter stopped the answer".to_owned();
                self.failed(
                    ModelError {
                        kind: ModelErrorKind::Refused,
                        message,
                    },
                    out,
                );
            }
            Finish::Length => {
                self.task.ending = Some(Ending::new(Status::Length, "the model's output limit cut the answer"));
                self.finish_at_limit(out);
            }
            _ if blank => {
                self.task.ending = Some(Ending::new(Status::Empty, "the last answer held no text"));
                self.finish_at_limit(out);
            }
            _ => self.done(text, out),
        }
    }

    /// Takes the model's failure. Only an overflow is an event of the loop; nothing else drops any history.
    pub(super) fn model_failed(&mut self, error: ModelError, out: &mut Vec<Action>) {
        let overflow = error.kind == ModelErrorKind::ContextOverflow;
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Asking if overflow => {
                self.task.ending = Some(Ending::overflow());
                self.drop_pairs(out);
                self.close(out);
            }
            Phase::Asking => self.failed(error, out),
            Phase::Closing(closing) if overflow => self.shrink_and_retry(closing, out),
            // A failure on closing changes nothing about how the task ended.
            Phase::Closing(closing) => self.closed(closing, String::new(), out),
            other => self.phase = other,
        }
    }
}
