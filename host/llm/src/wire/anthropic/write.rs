//! A question as a body of messages.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fief_core::message::{Assistant, Blob, CallResult, Content, Message};
use fief_core::tool::wire_name;
use serde_json::{Map, Value, json};

use super::super::Question;
use crate::names::wire_id;
use crate::schema::{self, Dialect};

/// The body, with the output limit, which the format demands.
pub(super) fn body(question: &Question<'_>, output: u64) -> Value {
    let request = question.request;
    let generation = &question.generation;
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| {
        body.insert(key.to_owned(), value);
    };
    put("model", question.model.into());
    put("max_tokens", output.into());
    if !request.system.is_empty() {
        // The prefix up to a mark is cached: tools and system prompt are the same on every turn.
        put("system", json!([{"type": "text", "text": &*request.system, "cache_control": {"type": "ephemeral"}}]));
    }
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            json!({
                "name": wire_name(&tool.name),
                "description": tool.description,
                "input_schema": schema::acceptable(&tool.input_schema, Dialect::Anthropic),
            })
        })
        .collect();
    if tools.is_empty() {
        // A history with calls is refused without declarations: the closing request names them and allows none.
        tools = called(&request.history);
        if !tools.is_empty() {
            put("tool_choice", json!({"type": "none"}));
        }
    } else if let Some(parallel) = request.parallel_tool_calls {
        put("tool_choice", json!({"type": "auto", "disable_parallel_tool_use": !parallel}));
    }
    if !tools.is_empty() {
        if request.system.is_empty()
            && let Some(last) = tools.last_mut()
        {
            last["cache_control"] = json!({"type": "ephemeral"});
        }
        put("tools", tools.into());
    }
    put("messages", messages(&request.history));
    for (key, value) in [
        ("temperature", generation.temperature.map(Value::from)),
        ("top_p", generation.top_p.map(Value::from)),
        ("stop_sequences", generation.stop.clone().filter(|stop| !stop.is_empty()).map(Value::from)),
    ] {
        if let Some(value) = value {
            put(key, value);
        }
    }
    if generation.seed.is_some() {
        tracing::warn!("`seed` is not sent: Anthropic's format has none");
    }
    put("stream", question.stream.into());
    Value::Object(body)
}

/// Declarations of what the history calls, for a request that may call nothing.
fn called(history: &[Message]) -> Vec<Value> {
    let mut names = BTreeSet::new();
    for message in history {
        if let Message::Assistant(answer) = message {
            names.extend(answer.calls.iter().map(|call| wire_name(&call.name)));
        }
    }
    names
        .into_iter()
        .map(|name| json!({"name": name, "description": "", "input_schema": {"type": "object", "properties": {}}}))
        .collect()
}

/// The messages, each a role and blocks; neighbours of one role are one message, and an empty message is none.
fn messages(history: &[Message]) -> Value {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::with_capacity(history.len());
    for message in history {
        let (role, blocks): (&str, Vec<Value>) = match message {
            Message::User { content } => ("user", content.iter().filter_map(block).collect()),
            Message::Assistant(answer) => ("assistant", answer_blocks(answer)),
            Message::Results { results } => ("user", results.iter().map(result).collect()),
        };
        match messages.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => messages.push((role, blocks)),
        }
    }
    // The end of this request is the middle of the next: a mark there, and one at the end of the request before.
    let users = messages.iter_mut().rev().filter(|(role, _)| *role == "user").take(2);
    for (_, blocks) in users {
        if let Some(last) = blocks.last_mut() {
            last["cache_control"] = json!({"type": "ephemeral"});
        }
    }
    messages.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn answer_blocks(answer: &Assistant) -> Vec<Value> {
    let mut blocks: Vec<Value> = answer
        .reasoning
        .iter()
        .filter_map(|thought| thought.block.as_ref()?.get("anthropic").cloned())
        .collect();
    // Thoughts alone are no answer, and are refused.
    if answer.text.trim().is_empty() && answer.calls.is_empty() {
        return Vec::new();
    }
    if !answer.text.trim().is_empty() {
        blocks.push(json!({"type": "text", "text": answer.text.trim_end()}));
    }
    blocks.extend(answer.calls.iter().map(|call| {
        json!({
            "type": "tool_use",
            "id": wire_id(&call.id),
            "name": wire_name(&call.name),
            "input": call.arguments.to_value(),
        })
    }));
    blocks
}

fn result(result: &CallResult) -> Value {
    let mut whole = json!({"type": "tool_result", "tool_use_id": wire_id(&result.call)});
    let content: Vec<Value> = result.content.iter().filter_map(block).collect();
    if !content.is_empty() {
        whole["content"] = content.into();
    }
    if result.is_error {
        whole["is_error"] = true.into();
    }
    whole
}

/// One part; an empty text is none, since it is refused.
fn block(part: &Content) -> Option<Value> {
    let text = |text: String| (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}));
    match part {
        Content::Text(said) => text(said.clone()),
        Content::Image(Blob { media_type, data })
            if matches!(media_type.as_str(), "image/png" | "image/jpeg" | "image/gif" | "image/webp") =>
        {
            let source = json!({"type": "base64", "media_type": media_type, "data": STANDARD.encode(data)});
            Some(json!({"type": "image", "source": source}))
        }
        other => text(other.to_line()),
    }
}
