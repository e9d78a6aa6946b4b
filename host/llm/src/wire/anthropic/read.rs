//! Answers of Anthropic's messages, streamed and whole.

use fief_core::message::{Finish, Reasoning, Usage};
use serde_json::{Map, Value, json};

use super::super::{Progress, Reader};
use crate::draft::{Draft, DraftCall};
use crate::fault::{Cause, Fault, error_object, shorten};
use crate::sse::SseEvent;

/// Reads a stream.
#[derive(Debug, Default)]
pub(super) struct StreamReader {
    draft: Draft,
    counts: Counts,
    /// Blocks that have begun, in order, each with the index that the server gave it.
    open: Vec<(u64, Open)>,
    over: bool,
}

/// A block while it comes.
#[derive(Debug)]
enum Open {
    Text,
    /// Index of the call in the draft.
    Call(usize),
    /// A thought, as it goes back.
    Thought(Map<String, Value>),
    /// What is not for us, such as a search that the server does by itself.
    Other,
}

impl Reader for StreamReader {
    fn take(&mut self, event: &SseEvent, shown: &mut String) -> Result<Progress, Fault> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(self.progress());
        }
        let value: Value = serde_json::from_str(data)
            .map_err(|_| Fault::new(Cause::Garbled, format!("an event is not JSON: `{}`", shorten(data))))?;
        if error_object(&value).is_some() || event.name == "error" {
            self.counts.add(value.get("usage"));
            return Err(Fault::of_error(Cause::Frame, &value));
        }
        // The data repeats the event's name; some proxies leave the one or the other out.
        let kind = value.get("type").and_then(Value::as_str).unwrap_or(&event.name).to_owned();
        match kind.as_str() {
            "message_start" => self.start(&value),
            "content_block_start" => self.block_start(value, shown),
            "content_block_delta" => self.block_delta(&value, shown),
            "content_block_stop" => {
                let index = index(&value);
                if let Some(at) = self.open.iter().rposition(|(open, _)| *open == index) {
                    let (_, block) = self.open.remove(at);
                    self.close(block);
                }
            }
            "message_delta" => {
                if let Some(reason) = value.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    self.draft.finish = Some(finish(reason));
                }
                self.counts.add(value.get("usage"));
            }
            "message_stop" => {
                self.over = true;
                if self.draft.is_blank() {
                    return Err(Fault::new(Cause::Cut, "the stream ended without an answer"));
                }
            }
            // `ping`, and what a later version adds: clients are told to expect it.
            _ => {}
        }
        Ok(self.progress())
    }

    fn into_draft(mut self: Box<Self>) -> Draft {
        for (_, block) in std::mem::take(&mut self.open) {
            self.close(block);
        }
        self.draft.usage = self.counts.usage();
        self.draft
    }
}

impl StreamReader {
    fn progress(&self) -> Progress {
        match (self.over, self.draft.finish) {
            (true, _) => Progress::Over,
            (false, Some(_)) => Progress::Whole,
            (false, None) => Progress::Open,
        }
    }

    fn start(&mut self, value: &Value) {
        let message = value.get("message").unwrap_or(value);
        let text = |key: &str| message.get(key).and_then(Value::as_str).map(str::to_owned);
        self.draft.model = text("model");
        self.draft.id = text("id");
        self.counts.add(message.get("usage"));
    }

    fn block_start(&mut self, mut value: Value, shown: &mut String) {
        let index = index(&value);
        let block = value.get_mut("content_block").map(Value::take).unwrap_or_default();
        let open = match block.get("type").and_then(Value::as_str) {
            Some("text") => {
                self.text(block.get("text"), shown);
                Open::Text
            }
            Some("tool_use") => {
                self.draft.calls.push(call(block));
                Open::Call(self.draft.calls.len() - 1)
            }
            Some("thinking" | "redacted_thinking") => match block {
                Value::Object(fields) => Open::Thought(fields),
                _ => Open::Other,
            },
            _ => Open::Other,
        };
        self.open.push((index, open));
    }

    fn block_delta(&mut self, value: &Value, shown: &mut String) {
        let (index, delta) = (index(value), value.get("delta").unwrap_or(&Value::Null));
        let piece = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = delta.get("type").and_then(Value::as_str).unwrap_or_default();
        if kind == "text_delta" {
            // Text counts also in a block whose beginning never came.
            return self.text(delta.get("text"), shown);
        }
        let Some((_, open)) = self.open.iter_mut().rev().find(|(open, _)| *open == index) else { return };
        match (kind, open) {
            ("input_json_delta", Open::Call(at)) => match delta.get("partial_json") {
                Some(Value::String(piece)) => self.draft.calls[*at].arguments.push(piece),
                Some(Value::Null) | None => {}
                Some(value) => self.draft.calls[*at].arguments.set(value.clone()),
            },
            ("thinking_delta", Open::Thought(fields)) => append(fields, "thinking", piece("thinking")),
            ("signature_delta", Open::Thought(fields)) => append(fields, "signature", piece("signature")),
            _ => {}
        }
    }

    fn text(&mut self, text: Option<&Value>, shown: &mut String) {
        if let Some(text) = text.and_then(Value::as_str) {
            self.draft.text.push_str(text);
            shown.push_str(text);
        }
    }

    fn close(&mut self, block: Open) {
        if let Open::Thought(fields) = block {
            self.draft.reasoning.push(thought(&fields));
        }
    }
}

/// Reads an answer that came whole.
pub(super) fn whole(mut body: Value) -> Result<Draft, Fault> {
    let mut counts = Counts::default();
    counts.add(body.get("usage"));
    if error_object(&body).is_some() {
        return Err(Fault::of_error(Cause::Frame, &body).having_spent(counts.usage()));
    }
    let Some(Value::Array(blocks)) = body.get_mut("content").map(Value::take) else {
        return Err(Fault::new(Cause::Garbled, "the answer holds no `content`").having_spent(counts.usage()));
    };
    let text = |key: &str| body.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut draft = Draft {
        model: text("model"),
        id: text("id"),
        finish: text("stop_reason").as_deref().map(finish),
        usage: counts.usage(),
        ..Draft::default()
    };
    for block in blocks {
        let Value::Object(fields) = block else { continue };
        match fields.get("type").and_then(Value::as_str) {
            Some("text") => draft.text.push_str(fields.get("text").and_then(Value::as_str).unwrap_or_default()),
            Some("tool_use") => draft.calls.push(call(fields.into())),
            Some("thinking" | "redacted_thinking") => draft.reasoning.push(thought(&fields)),
            _ => {}
        }
    }
    if draft.is_blank() {
        return Err(Fault::new(Cause::Cut, "the answer is empty").having_spent(draft.usage));
    }
    Ok(draft)
}

fn index(value: &Value) -> u64 {
    value.get("index").and_then(Value::as_u64).unwrap_or(0)
}

fn call(mut block: Value) -> DraftCall {
    let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut draft = DraftCall {
        id: text("id"),
        name: text("name"),
        ..DraftCall::default()
    };
    // A stream begins with an empty object and sends the input in pieces.
    match block.get_mut("input").map(Value::take) {
        Some(Value::Null) | None => {}
        Some(Value::Object(input)) if input.is_empty() => {}
        Some(input) => draft.arguments.set(input),
    }
    draft
}

fn append(fields: &mut Map<String, Value>, key: &str, piece: &str) {
    match fields.get_mut(key) {
        Some(Value::String(text)) => text.push_str(piece),
        _ => {
            fields.insert(key.to_owned(), piece.into());
        }
    }
}

/// A thought. It goes back only if it is signed: an unsigned one is refused.
fn thought(fields: &Map<String, Value>) -> Reasoning {
    let text = fields.get("thinking").and_then(Value::as_str).unwrap_or_default().to_owned();
    let filled = |key: &str| fields.get(key).and_then(Value::as_str).is_some_and(|value| !value.is_empty());
    let whole = filled("signature") || filled("data");
    Reasoning {
        text,
        block: whole.then(|| json!({"anthropic": fields})),
    }
}

fn finish(reason: &str) -> Finish {
    match reason {
        "end_turn" | "stop_sequence" => Finish::Stop,
        "tool_use" => Finish::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "refusal" => Finish::Filter,
        _ => Finish::Other,
    }
}

/// Tokens as they are told: at the start and again, in total, at the end.
#[derive(Debug, Default)]
struct Counts {
    known: bool,
    fresh: u64,
    written: u64,
    cached: u64,
    output: u64,
    /// Within the output.
    thoughts: u64,
}

impl Counts {
    fn add(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        for (key, count) in [
            ("/input_tokens", &mut self.fresh),
            ("/cache_creation_input_tokens", &mut self.written),
            ("/cache_read_input_tokens", &mut self.cached),
            ("/output_tokens", &mut self.output),
            ("/output_tokens_details/thinking_tokens", &mut self.thoughts),
        ] {
            if let Some(told) = usage.pointer(key).and_then(Value::as_u64) {
                self.known = true;
                // The end repeats the start's counts, or leaves them out, or says 0.
                *count = told.max(*count);
            }
        }
    }

    fn usage(&self) -> Option<Usage> {
        self.known.then(|| Usage {
            input_tokens: self.fresh + self.written + self.cached,
            output_tokens: self.output,
            cached_tokens: self.cached,
            reasoning_tokens: self.thoughts,
            cost: None,
        })
    }
}
