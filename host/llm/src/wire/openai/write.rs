//! A question as a body of chat completions.

use std::sync::atomic::Ordering;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use fief_core::message::{Assistant, Blob, CallResult, Content, Message};
use fief_core::tool::{Declaration, wire_name};
use serde_json::{Map, Value, json};

use super::super::Question;
use super::ChatCompletions;
use crate::names::wire_id;
use crate::schema;

/// The longest description of a tool that OpenAI accepts, in characters.
const LONGEST_DESCRIPTION: usize = 1024;

/// The body.
pub(super) fn body(format: &ChatCompletions, question: &Question<'_>) -> Value {
    let request = question.request;
    let mut system = request.system.to_string();
    let mut tools = Vec::with_capacity(request.tools.len());
    for tool in request.tools.iter() {
        tools.push(declare(format.official, tool, &mut system));
    }
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| {
        body.insert(key.to_owned(), value);
    };
    put("model", question.model.into());
    put("messages", messages(&system, &request.history));
    if !tools.is_empty() {
        put("tools", tools.into());
        if let Some(parallel) = request.parallel_tool_calls
            && !format.no_parallel.load(Ordering::Relaxed)
        {
            put("parallel_tool_calls", parallel.into());
        }
    }
    let generation = &question.generation;
    if let Some(limit) = generation.max_output_tokens {
        let new = format.new_limit.load(Ordering::Relaxed);
        put(if new { "max_completion_tokens" } else { "max_tokens" }, limit.into());
    }
    for (key, value) in [
        ("temperature", generation.temperature.map(Value::from)),
        ("top_p", generation.top_p.map(Value::from)),
        ("stop", generation.stop.clone().filter(|stop| !stop.is_empty()).map(Value::from)),
        ("seed", generation.seed.map(Value::from)),
    ] {
        if let Some(value) = value {
            put(key, value);
        }
    }
    if format.openrouter && question.model.starts_with("anthropic/") {
        // The last block that can be cached, and it moves on as the history grows. Everybody else who caches does so
        // unasked.
        put("cache_control", json!({"type": "ephemeral"}));
    }
    put("stream", question.stream.into());
    if question.stream && !format.no_stream_options.load(Ordering::Relaxed) {
        put("stream_options", json!({"include_usage": true}));
    }
    Value::Object(body)
}

/// One tool. What OpenAI does not take of its description follows in the system prompt, so that nothing is lost.
fn declare(official: bool, tool: &Declaration, system: &mut String) -> Value {
    let name = wire_name(&tool.name);
    let mut description = tool.description.clone();
    if official && description.chars().count() > LONGEST_DESCRIPTION {
        let pointer = " (goes on in the system prompt)";
        let (end, _) = description
            .char_indices()
            .nth(LONGEST_DESCRIPTION - pointer.len())
            .expect("the description is longer than the limit");
        let rest = description.split_off(end);
        description.push_str(pointer);
        system.push_str(&format!("\n\nThe description of the tool `{name}` goes on: …{rest}"));
    }
    let dialect = if official { schema::Dialect::OpenAi } else { schema::Dialect::Compatible };
    json!({"type": "function", "function": {
        "name": name,
        "description": description,
        "parameters": schema::acceptable(&tool.input_schema, dialect),
    }})
}

fn messages(system: &str, history: &[Message]) -> Value {
    let mut messages = Vec::with_capacity(history.len() + 1);
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system}));
    }
    // Thoughts go back only within the exchange in which they were thought: servers that want them back want them
    // there, and some refuse older ones.
    let exchange = history.iter().rposition(|message| matches!(message, Message::User { .. })).unwrap_or(0);
    for (index, message) in history.iter().enumerate() {
        match message {
            Message::User { content } => push_user(&mut messages, parts(content)),
            Message::Assistant(assistant) => messages.push(answer(assistant, index > exchange)),
            Message::Results { results } => {
                messages.extend(results.iter().map(result));
                if let Some(shown) = blobs(results) {
                    push_user(&mut messages, shown);
                }
            }
        }
    }
    messages.into()
}

/// Adds what a user says. Templates of several models refuse two user messages in a row, so that neighbours are one.
fn push_user(messages: &mut Vec<Value>, content: Value) {
    let as_parts = |content: Value| match content {
        Value::Array(parts) => parts,
        text => vec![json!({"type": "text", "text": text})],
    };
    match messages.last_mut() {
        Some(last) if last["role"] == "user" => {
            last["content"] = match (last["content"].take(), content) {
                (Value::String(first), Value::String(second)) => format!("{first}\n\n{second}").into(),
                (first, second) => as_parts(first).into_iter().chain(as_parts(second)).collect(),
            };
        }
        _ => messages.push(json!({"role": "user", "content": content})),
    }
}

fn answer(assistant: &Assistant, thoughts: bool) -> Value {
    let mut message = json!({"role": "assistant", "content": assistant.text});
    if assistant.calls.is_empty() {
        return message;
    }
    if assistant.text.is_empty() {
        message["content"] = Value::Null;
    }
    if thoughts {
        for block in assistant.reasoning.iter().filter_map(|thought| thought.block.as_ref()) {
            if let Some(Value::Object(fields)) = block.get("openai") {
                for (key, value) in fields {
                    message[key] = value.clone();
                }
            }
        }
    }
    let calls: Vec<Value> = assistant
        .calls
        .iter()
        .map(|call| {
            json!({"id": wire_id(&call.id), "type": "function", "function": {
                "name": wire_name(&call.name),
                "arguments": call.arguments.to_value().to_string(),
            }})
        })
        .collect();
    message["tool_calls"] = calls.into();
    message
}

/// A result: text alone, since a tool message holds nothing else.
fn result(result: &CallResult) -> Value {
    let lines: Vec<String> = result.content.iter().map(Content::to_line).collect();
    json!({"role": "tool", "tool_call_id": wire_id(&result.call), "content": lines.join("\n")})
}

/// The images and sounds of results, in a message of their own after all results: the format has no other place.
fn blobs(results: &[CallResult]) -> Option<Value> {
    let mut content = Vec::new();
    for result in results {
        let shown: Vec<Value> = result.content.iter().filter_map(blob).collect();
        if !shown.is_empty() {
            let line = format!("Part of the result of `{}` ({}):", wire_name(&result.name), wire_id(&result.call));
            content.push(json!({"type": "text", "text": line}));
            content.extend(shown);
        }
    }
    (!content.is_empty()).then(|| content.into())
}

/// What a user says: one text as text, which every server takes, else parts.
fn parts(content: &[Content]) -> Value {
    if content.iter().all(|part| blob(part).is_none()) {
        let lines: Vec<String> = content.iter().map(Content::to_line).collect();
        return lines.join("\n").into();
    }
    content
        .iter()
        .map(|part| blob(part).unwrap_or_else(|| json!({"type": "text", "text": part.to_line()})))
        .collect()
}

fn blob(part: &Content) -> Option<Value> {
    match part {
        Content::Image(Blob { media_type, data }) => {
            let url = format!("data:{media_type};base64,{}", STANDARD.encode(data));
            Some(json!({"type": "image_url", "image_url": {"url": url}}))
        }
        Content::Audio(Blob { media_type, data }) => {
            let format = match media_type.as_str() {
                "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
                "audio/mpeg" | "audio/mp3" => "mp3",
                _ => return None,
            };
            Some(json!({"type": "input_audio", "input_audio": {"data": STANDARD.encode(data), "format": format}}))
        }
        Content::Text(_) | Content::File(_) => None,
    }
}
