//! Answers of chat completions, streamed and whole.

use fief_core::message::{Finish, Reasoning, Usage};
use serde_json::{Map, Value, json};

use super::super::{Progress, Reader};
use super::think::Thinking;
use crate::draft::{Draft, DraftCall};
use crate::fault::{Cause, Fault, error_object, shorten};
use crate::sse::SseEvent;

/// Reads a stream.
#[derive(Debug, Default)]
pub(super) struct StreamReader {
    gathered: Gathered,
    /// `[DONE]` has come.
    done: bool,
}

/// What is gathered from deltas, or from one message.
#[derive(Debug, Default)]
struct Gathered {
    draft: Draft,
    /// The index that the server gave each call, beside it.
    slots: Vec<Option<u64>>,
    thoughts: Thoughts,
    thinking: Thinking,
}

/// Thoughts by the field in which they came, which is the one in which they go back.
#[derive(Debug, Default)]
struct Thoughts {
    text: String,
    field: Option<&'static str>,
    details: Vec<Value>,
}

impl Reader for StreamReader {
    fn take(&mut self, event: &SseEvent, shown: &mut String) -> Result<Progress, Fault> {
        let data = event.data.trim();
        if data == "[DONE]" {
            self.done = true;
            if self.gathered.draft.is_blank() {
                return Err(Fault::new(Cause::Cut, "the stream ended without an answer"));
            }
            return Ok(Progress::Over);
        }
        if data.is_empty() {
            return Ok(self.progress());
        }
        let chunk: Value = serde_json::from_str(data)
            .map_err(|_| Fault::new(Cause::Garbled, format!("an event is not JSON: `{}`", shorten(data))))?;
        if event.name == "error" && error_object(&chunk).is_none() {
            return Err(Fault::of_error(Cause::Frame, &chunk));
        }
        self.gathered.chunk(chunk, shown)?;
        Ok(self.progress())
    }

    fn into_draft(self: Box<Self>) -> Draft {
        self.gathered.into_draft()
    }
}

impl StreamReader {
    fn progress(&self) -> Progress {
        match (self.done, self.gathered.draft.finish, self.gathered.draft.usage) {
            (true, _, _) => Progress::Over,
            (false, Some(_), _) => Progress::Whole,
            (false, None, _) => Progress::Open,
        }
    }
}

/// Reads an answer that came whole.
pub(super) fn whole(body: Value) -> Result<Draft, Fault> {
    let mut gathered = Gathered::default();
    // Google wraps its errors in an array.
    let body = match body {
        Value::Array(mut items) if items.len() == 1 => items.remove(0),
        other => other,
    };
    if let Err(fault) = gathered.chunk(body, &mut String::new()) {
        return Err(fault.having_spent(gathered.draft.usage));
    }
    if gathered.draft.is_blank() {
        let fault = Fault::new(Cause::Garbled, "the answer holds no `choices`");
        return Err(fault.having_spent(gathered.draft.usage));
    }
    Ok(gathered.into_draft())
}

impl Gathered {
    fn chunk(&mut self, mut chunk: Value, shown: &mut String) -> Result<(), Fault> {
        // What it cost counts even if nothing else of it does.
        if let Some(usage) = chunk.get("usage").and_then(usage) {
            self.draft.usage = Some(usage);
        }
        // An error may stand alone or beside choices; either way the answer is not one.
        if error_object(&chunk).is_some() {
            return Err(Fault::of_error(Cause::Frame, &chunk));
        }
        for (key, told) in [("model", &mut self.draft.model), ("id", &mut self.draft.id)] {
            if let Some(text) = chunk.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()) {
                told.get_or_insert_with(|| text.to_owned());
            }
        }
        let Some(Value::Array(choices)) = chunk.get_mut("choices").map(Value::take) else {
            return Ok(());
        };
        for mut choice in choices {
            // More than one choice is never asked for; another than the first is another answer.
            if choice.get("index").and_then(Value::as_u64).unwrap_or(0) != 0 {
                continue;
            }
            if error_object(&choice).is_some() {
                return Err(Fault::of_error(Cause::Frame, &choice));
            }
            // Some servers close a stream with a `message`, in place of or beside an empty delta.
            let delta = [choice.get_mut("delta").map(Value::take), choice.get_mut("message").map(Value::take)]
                .into_iter()
                .flatten()
                .find(Value::is_object);
            if let Some(Value::Object(delta)) = delta {
                self.delta(delta, shown)?;
            }
            if let Some(usage) = choice.get("usage").and_then(usage) {
                self.draft.usage = Some(usage);
            }
            if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str)
                && !reason.is_empty()
            {
                self.draft.finish = Some(finish(reason)?);
            }
        }
        Ok(())
    }

    fn delta(&mut self, mut delta: Map<String, Value>, shown: &mut String) -> Result<(), Fault> {
        for field in ["reasoning_content", "reasoning"] {
            if let Some(Value::String(text)) = delta.get(field)
                && !text.is_empty()
                // A server that sends both sends the same twice.
                && self.thoughts.field.is_none_or(|known| known == field)
            {
                self.thoughts.field = Some(field);
                self.thoughts.text.push_str(text);
            }
        }
        if let Some(Value::Array(details)) = delta.remove("reasoning_details") {
            self.thoughts.add_details(details);
        }
        match delta.remove("content") {
            Some(Value::String(text)) => self.text(&text, shown),
            Some(Value::Array(parts)) => self.parts(&parts, shown),
            _ => {}
        }
        if let Some(Value::String(text)) = delta.get("refusal") {
            self.draft.refusal.push_str(text);
            shown.push_str(text);
        }
        match delta.remove("tool_calls") {
            Some(Value::Array(calls)) => calls.into_iter().for_each(|call| self.call(call)),
            Some(single @ Value::Object(_)) => self.call(single),
            Some(Value::Null) | None => {}
            Some(other) => {
                let text = shorten(&other.to_string());
                return Err(Fault::new(Cause::Garbled, format!("`tool_calls` is no list: `{text}`")));
            }
        }
        // The form before `tool_calls`: one call, never with an index.
        if let Some(function @ Value::Object(_)) = delta.remove("function_call") {
            self.call(json!({"index": u64::MAX, "function": function}));
        }
        Ok(())
    }

    fn text(&mut self, text: &str, shown: &mut String) {
        let before = self.draft.text.len();
        self.thinking.push(text, &mut self.draft.text, &mut self.thoughts.text);
        shown.push_str(&self.draft.text[before..]);
    }

    /// Content as a list of parts: text, and with Mistral thoughts.
    fn parts(&mut self, parts: &[Value], shown: &mut String) {
        for part in parts {
            match part.get("type").and_then(Value::as_str) {
                Some("thinking") => {
                    let pieces = part.get("thinking").and_then(Value::as_array);
                    for piece in pieces.into_iter().flatten() {
                        self.thoughts.text.push_str(piece.get("text").and_then(Value::as_str).unwrap_or_default());
                    }
                }
                Some("refusal") => {
                    let text = part.get("refusal").and_then(Value::as_str).unwrap_or_default();
                    self.draft.refusal.push_str(text);
                    shown.push_str(text);
                }
                _ => {
                    if let Some(text) = part.as_str().or_else(|| part.get("text").and_then(Value::as_str)) {
                        self.text(text, shown);
                    }
                }
            }
        }
    }

    fn call(&mut self, mut call: Value) {
        let index = call.get("index").and_then(Value::as_u64);
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        // Standard: `function` holds the name and the arguments. Some servers put them beside it.
        let mut function = match call.get_mut("function").map(Value::take) {
            Some(function @ Value::Object(_)) => function,
            _ => call,
        };
        let name = function.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let slot = self.slot(index, &id, &name);
        let draft = &mut self.draft.calls[slot];
        if draft.id.is_empty() {
            draft.id = id;
        }
        if draft.name.is_empty() {
            draft.name = name;
        } else if !name.is_empty() && draft.name != name && draft.arguments.is_empty() {
            draft.name.push_str(&name);
        }
        match function.get_mut("arguments").map(Value::take) {
            Some(Value::String(piece)) => draft.arguments.push(&piece),
            Some(Value::Null) | None => {}
            Some(value) => draft.arguments.set(value),
        }
    }

    /// Which call a delta belongs to. An index says so, unless it comes with another id than before, or names a
    /// function again after whole arguments: then two calls came under one index. Without an index the id says so, and
    /// without both a name starts a call and anything else continues the last.
    fn slot(&mut self, index: Option<u64>, id: &str, name: &str) -> usize {
        let last = self.draft.calls.len().checked_sub(1);
        let known = match index {
            // The last call under this index: an earlier one under it is over.
            Some(_) => self.slots.iter().rposition(|slot| *slot == index),
            None if !id.is_empty() => self.draft.calls.iter().position(|call| call.id == id),
            None if name.is_empty() => last,
            None => None,
        };
        let known = known.filter(|slot| {
            let call = &self.draft.calls[*slot];
            let other_id = !id.is_empty() && !call.id.is_empty() && call.id != id;
            let again = id.is_empty() && !name.is_empty() && !call.name.is_empty() && call.arguments.is_whole();
            !other_id && !again
        });
        known.unwrap_or_else(|| {
            self.draft.calls.push(DraftCall::default());
            self.slots.push(index);
            self.draft.calls.len() - 1
        })
    }

    fn into_draft(mut self) -> Draft {
        self.thinking.finish(&mut self.draft.text, &mut self.thoughts.text);
        let thoughts = self.thoughts;
        let mut fields = Map::new();
        if !thoughts.details.is_empty() {
            fields.insert("reasoning_details".into(), thoughts.details.into());
        }
        if let Some(field) = thoughts.field {
            fields.insert(field.into(), thoughts.text.clone().into());
        }
        if !thoughts.text.is_empty() || !fields.is_empty() {
            self.draft.reasoning.push(Reasoning {
                text: thoughts.text,
                block: (!fields.is_empty()).then(|| json!({"openai": fields})),
            });
        }
        self.draft
    }
}

impl Thoughts {
    /// OpenRouter's details, which go back as they came: the pieces of a streamed one share index and type.
    fn add_details(&mut self, details: Vec<Value>) {
        for detail in details {
            let key = |value: &Value| (value.get("index").cloned(), value.get("type").cloned());
            match self.details.last_mut() {
                Some(last) if key(last) == key(&detail) && detail.get("index").is_some() => merge(last, detail),
                _ => self.details.push(detail),
            }
        }
    }
}

fn merge(last: &mut Value, detail: Value) {
    let (Value::Object(last), Value::Object(detail)) = (last, detail) else {
        return;
    };
    for (key, value) in detail {
        match (last.get_mut(&key), value) {
            (Some(Value::String(text)), Value::String(piece)) if matches!(key.as_str(), "text" | "summary" | "data") => {
                text.push_str(&piece);
            }
            (_, Value::Null) => {}
            (_, value) => {
                last.insert(key, value);
            }
        }
    }
}

/// The closed set, for every server's word.
fn finish(reason: &str) -> Result<Finish, Fault> {
    Ok(match reason {
        "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "STOP" => Finish::Stop,
        "tool_calls" | "tool_use" | "function_call" => Finish::ToolCalls,
        "length" | "max_tokens" | "model_length" | "MAX_TOKENS" => Finish::Length,
        "content_filter" | "safety" | "recitation" | "SAFETY" | "RECITATION" => Finish::Filter,
        "error" => return Err(Fault::new(Cause::Frame, "the server ended the answer with `error`")),
        "insufficient_system_resource" | "abort" => {
            return Err(Fault::new(Cause::Frame, format!("the server ended the answer with `{reason}`")));
        }
        _ => Finish::Other,
    })
}

fn usage(usage: &Value) -> Option<Usage> {
    let count = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    let input = count("/prompt_tokens").or_else(|| count("/input_tokens"));
    let output = count("/completion_tokens").or_else(|| count("/output_tokens"));
    if input.is_none() && output.is_none() {
        return None;
    }
    let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
    let reasoning = count("/completion_tokens_details/reasoning_tokens")
        .or_else(|| count("/output_tokens_details/reasoning_tokens"))
        .unwrap_or(0);
    // xAI and Google count thoughts beside the output, which only their total tells.
    let beside = reasoning > 0 && count("/total_tokens") == Some(input + output + reasoning);
    Some(Usage {
        input_tokens: input,
        output_tokens: if beside { output + reasoning } else { output },
        cached_tokens: count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens"))
            .or_else(|| count("/cached_tokens"))
            .unwrap_or(0),
        reasoning_tokens: reasoning,
        cost: None,
    })
}
