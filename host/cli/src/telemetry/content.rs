//! What models, tools and people say, in the form of the conventions: JSON, bounded, without secrets.
//!
//! None of it is made unless the operator asked for content.

use std::sync::Arc;

use fief_core::message::{Answer, Arguments, Assistant, Content, Message, Request};
use fief_core::report::cut;
use fief_sandbox::redact::Redactor;
use serde_json::{Value, json};

use super::tree::finish_name;

/// The most bytes of one part of a message, and of all messages of one span: collectors refuse requests above a few
/// megabytes, and a request holds many spans. The record keeps all of it.
const LONGEST_PART: usize = 16 << 10;
const LONGEST: usize = 64 << 10;

/// Makes content fit to be exported.
pub(super) struct Author {
    redact: Arc<Redactor>,
}

impl Author {
    pub(super) fn new(redact: Arc<Redactor>) -> Self {
        Self { redact }
    }

    /// A text without secrets, cut after they were taken out: half of one is one too.
    pub(super) fn text(&self, text: &str) -> String {
        cut(&self.redact.text(text), LONGEST_PART).into_owned()
    }

    /// JSON as a text.
    pub(super) fn json(&self, value: &Value) -> String {
        self.text(&value.to_string())
    }

    /// The system prompt.
    pub(super) fn system(&self, text: &str) -> String {
        json!([self.part(text)]).to_string()
    }

    /// A task in the user's place.
    pub(super) fn task(&self, text: &str) -> String {
        json!([{ "role": "user", "parts": [self.part(text)] }]).to_string()
    }

    /// An agent's report.
    pub(super) fn report(&self, text: &str) -> String {
        json!([{ "role": "assistant", "parts": [self.part(text)], "finish_reason": "stop" }]).to_string()
    }

    /// The newest messages of a history that fit, and how many older ones do not.
    pub(super) fn input(&self, request: &Request) -> (String, usize) {
        let mut kept = Vec::new();
        let mut room = LONGEST;
        for message in request.history.iter().rev() {
            let shown = self.message(message);
            let Some(left) = room.checked_sub(shown.to_string().len()) else {
                break;
            };
            room = left;
            kept.push(shown);
        }
        let omitted = request.history.len() - kept.len();
        kept.reverse();
        (Value::Array(kept).to_string(), omitted)
    }

    /// The answer.
    pub(super) fn output(&self, answer: &Answer) -> String {
        let message = json!({
            "role": "assistant",
            "parts": self.said(&answer.message),
            "finish_reason": finish_name(answer.finish),
        });
        json!([message]).to_string()
    }

    fn part(&self, text: &str) -> Value {
        json!({ "type": "text", "content": self.text(text) })
    }

    fn message(&self, message: &Message) -> Value {
        match message {
            Message::User { content } => json!({ "role": "user", "parts": self.parts(content) }),
            Message::Assistant(said) => json!({ "role": "assistant", "parts": self.said(said) }),
            Message::Results { results } => {
                let parts = results.iter().map(|result| {
                    let text = self.text(&fief_core::message::to_text(&result.content));
                    json!({ "type": "tool_call_response", "id": result.call, "response": text })
                });
                json!({ "role": "tool", "parts": parts.collect::<Vec<_>>() })
            }
        }
    }

    /// Blobs are a line of their type and size.
    fn parts(&self, content: &[Content]) -> Vec<Value> {
        content.iter().map(|part| self.part(&part.to_line())).collect()
    }

    fn said(&self, said: &Assistant) -> Vec<Value> {
        let thoughts = said.reasoning.iter().filter(|thought| !thought.text.is_empty());
        let mut parts: Vec<Value> = thoughts
            .map(|thought| json!({ "type": "reasoning", "content": self.text(&thought.text) }))
            .collect();
        if !said.text.is_empty() {
            parts.push(self.part(&said.text));
        }
        parts.extend(said.calls.iter().map(|call| {
            let arguments = match &call.arguments {
                Arguments::Object(map) => {
                    let mut value = Value::Object(map.clone());
                    self.redact.value(&mut value);
                    let text = value.to_string();
                    if text.len() > LONGEST_PART {
                        cut(&text, LONGEST_PART).into_owned().into()
                    } else {
                        value
                    }
                }
                Arguments::Malformed { raw, .. } => self.text(raw).into(),
            };
            json!({ "type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments })
        }));
        parts
    }
}
