//! An answer while it is gathered, before its names are mapped back and its calls are made sound.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use fief_core::manifest::config::Prices;
use fief_core::message::{Answer, Arguments, Assistant, Finish, Reasoning, Served, ToolCall, Usage};
use serde_json::Value;

use crate::arguments;
use crate::names::Names;

/// What a reader has gathered.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// The answer's text.
    pub(crate) text: String,
    /// What a provider's refusal says.
    pub(crate) refusal: String,
    /// Thoughts, in order.
    pub(crate) reasoning: Vec<Reasoning>,
    /// Calls, in order.
    pub(crate) calls: Vec<DraftCall>,
    /// How it ended, once the server has said so.
    pub(crate) finish: Option<Finish>,
    /// What it cost, if the server has said so.
    pub(crate) usage: Option<Usage>,
    /// The model that the server says it used.
    pub(crate) model: Option<String>,
    /// The server's name for the answer.
    pub(crate) id: Option<String>,
}

/// One call as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct DraftCall {
    /// The server's id; empty if it gave none.
    pub(crate) id: String,
    /// As the model wrote it.
    pub(crate) name: String,
    /// As the model wrote them.
    pub(crate) arguments: DraftArguments,
}

/// Arguments as they come: as text by the standard, as a value from servers that parse them.
#[derive(Debug)]
pub(crate) enum DraftArguments {
    Text(String),
    Value(Value),
}

impl Default for DraftArguments {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl DraftArguments {
    /// Appends a piece of text.
    pub(crate) fn push(&mut self, piece: &str) {
        match self {
            Self::Text(text) => text.push_str(piece),
            // A piece after a whole value: both are kept as text, and will not parse.
            Self::Value(value) => {
                if !piece.is_empty() {
                    *self = Self::Text(format!("{value}{piece}"));
                }
            }
        }
    }

    /// Takes a whole value.
    pub(crate) fn set(&mut self, value: Value) {
        match self {
            Self::Text(text) if text.trim().is_empty() => *self = Self::Value(value),
            Self::Text(text) => text.push_str(&value.to_string()),
            Self::Value(old) if *old == value => {}
            Self::Value(old) => *self = Self::Text(format!("{old}{value}")),
        }
    }

    /// Whether a whole object has come, so that what follows belongs to another call.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Self::Text(text) => text.trim_end().ends_with('}') && serde_json::from_str::<Value>(text).is_ok(),
            Self::Value(_) => true,
        }
    }

    /// Whether nothing has come yet.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }

    fn finish(self, cut: bool) -> Arguments {
        match self {
            Self::Text(text) if cut && text.trim().is_empty() => {
                arguments::malformed(&text, "the output limit cut the call before its arguments")
            }
            Self::Text(text) => match arguments::parse(&text) {
                Arguments::Malformed { raw, why } if cut => Arguments::Malformed {
                    raw,
                    why: format!("the output limit cut the call: {why}"),
                },
                parsed => parsed,
            },
            Self::Value(Value::Null) => Arguments::Object(serde_json::Map::new()),
            // A string where an object belongs is the standard form, sent whole.
            Self::Value(Value::String(text)) => Self::Text(text).finish(cut),
            Self::Value(value) => {
                let raw = value.to_string();
                match arguments::of_value(value) {
                    Ok(object) => Arguments::Object(object),
                    Err(why) => arguments::malformed(&raw, why),
                }
            }
        }
    }
}

impl Draft {
    /// Whether the server said anything at all.
    pub(crate) fn is_blank(&self) -> bool {
        self.text.is_empty()
            && self.refusal.is_empty()
            && self.reasoning.is_empty()
            && self.calls.is_empty()
            && self.finish.is_none()
    }

    /// The answer. `estimate` stands for the usage where the server gave none.
    pub(crate) fn into_answer(self, names: &Names, prices: Option<&Prices>, estimate: Usage) -> Answer {
        let finish = finish(self.finish, !self.calls.is_empty(), !self.refusal.is_empty());
        let last = self.calls.len().saturating_sub(1);
        let mut ids = HashSet::new();
        let calls = self
            .calls
            .into_iter()
            .enumerate()
            .map(|(index, call)| {
                let name = names.back(call.name.trim());
                let mut arguments = call.arguments.finish(finish == Finish::Length && index == last);
                names.restore(&name, &mut arguments);
                ToolCall {
                    id: unique(call.id, &mut ids),
                    name,
                    arguments,
                }
            })
            .collect();
        let mut usage = self.usage.unwrap_or(estimate);
        usage.cost = prices.map(|prices| prices.cost(&usage));
        Answer {
            message: Assistant {
                text: if self.text.is_empty() { self.refusal } else { self.text },
                reasoning: self.reasoning,
                calls,
            },
            finish,
            usage,
            served: Served {
                by: None,
                model: self.model,
                id: self.id,
            },
        }
    }
}

/// How an answer ended, made consistent with what it holds: servers say `stop` beside calls, and `tool_calls` without.
fn finish(said: Option<Finish>, calls: bool, refused: bool) -> Finish {
    match said {
        Some(kept @ (Finish::Length | Finish::Filter)) => kept,
        _ if calls => Finish::ToolCalls,
        _ if refused => Finish::Filter,
        Some(Finish::Other) => Finish::Other,
        _ => Finish::Stop,
    }
}

/// The id if no other call has it, else one that no call has.
fn unique(id: String, taken: &mut HashSet<String>) -> String {
    let id = if id.trim().is_empty() { fresh_id() } else { id };
    if taken.insert(id.clone()) {
        return id;
    }
    let other = fresh_id();
    taken.insert(other.clone());
    other
}

/// An id that this process gives out once.
pub(crate) fn fresh_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    format!("fief_{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// An estimate of tokens from bytes, for servers that count nothing: four bytes a token, as in English text. A budget
/// that counts an estimate holds; one that counts nothing does not.
pub(crate) fn estimate(sent: usize, received: usize) -> Usage {
    Usage {
        input_tokens: sent.div_ceil(4) as u64,
        output_tokens: received.div_ceil(4) as u64,
        ..Usage::default()
    }
}
