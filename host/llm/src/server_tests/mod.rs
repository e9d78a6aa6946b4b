//! What servers send, right and wrong, from a socket, for every format, streamed and whole.

#![allow(clippy::unwrap_used)]

mod calls;
mod faults;
mod odd;
mod providers;
mod reading;
mod recorded;

use fief_core::message::{Arguments, Finish};
use serde_json::{Value, json};

use crate::fake::{Act, Asked, stream};

/// One format, and the same answer in it, streamed and whole: the text "Grüße 🦀", and a call of `files.read`.
struct Format {
    provider: &'static str,
    /// The events, each with its blank line. Cut anywhere before `whole_from`, the answer is not whole.
    events: Vec<String>,
    /// The first event after which the answer is whole.
    whole_from: usize,
    whole: Value,
    error: fn(&str, &str) -> Value,
}

fn formats() -> Vec<Format> {
    let openai = |delta: Value, finish: Value| {
        let chunk =
            json!({"id": "x", "model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        format!("data: {chunk}\n\n")
    };
    let anthropic = |kind: &str, mut data: Value| {
        data["type"] = kind.into();
        format!("event: {kind}\ndata: {data}\n\n")
    };
    let arguments = "{\"path\": \"grün/🦀\"}";
    vec![
        Format {
            provider: "openai",
            events: vec![
                openai(json!({"role": "assistant", "content": ""}), Value::Null),
                openai(json!({"content": "Grüße "}), Value::Null),
                openai(json!({"content": "🦀"}), Value::Null),
                openai(
                    json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function",
                    "function": {"name": "files__read", "arguments": ""}}]}),
                    Value::Null,
                ),
                openai(
                    json!({"tool_calls": [{"index": 0, "function": {"arguments": &arguments[..8]}}]}),
                    Value::Null,
                ),
                openai(
                    json!({"tool_calls": [{"index": 0, "function": {"arguments": &arguments[8..]}}]}),
                    Value::Null,
                ),
                openai(json!({}), "tool_calls".into()),
                format!(
                    "data: {}\n\n",
                    json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5,
                    "prompt_tokens_details": {"cached_tokens": 3}}})
                ),
                "data: [DONE]\n\n".into(),
            ],
            whole_from: 7,
            whole: json!({"model": "m-1", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": "Grüße 🦀", "tool_calls": [{"id": "c1", "type": "function",
                "function": {"name": "files__read", "arguments": arguments}}]}}],
                "usage": {"prompt_tokens": 11, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}}}),
            error: |kind, message| json!({"error": {"type": kind, "message": message}}),
        },
        Format {
            provider: "anthropic",
            events: vec![
                anthropic(
                    "message_start",
                    json!({"message": {"role": "assistant", "model": "m-1", "content": [],
                    "usage": {"input_tokens": 8, "cache_read_input_tokens": 3, "output_tokens": 1}}}),
                ),
                anthropic(
                    "content_block_start",
                    json!({"index": 0, "content_block": {"type": "text", "text": ""}}),
                ),
                anthropic(
                    "content_block_delta",
                    json!({"index": 0, "delta": {"type": "text_delta", "text": "Grüße "}}),
                ),
                anthropic(
                    "content_block_delta",
                    json!({"index": 0, "delta": {"type": "text_delta", "text": "🦀"}}),
                ),
                anthropic("content_block_stop", json!({"index": 0})),
                anthropic(
                    "content_block_start",
                    json!({"index": 1, "content_block": {"type": "tool_use", "id": "c1",
                    "name": "files__read", "input": {}}}),
                ),
                anthropic(
                    "content_block_delta",
                    json!({"index": 1, "delta": {"type": "input_json_delta",
                    "partial_json": &arguments[..8]}}),
                ),
                anthropic(
                    "content_block_delta",
                    json!({"index": 1, "delta": {"type": "input_json_delta",
                    "partial_json": &arguments[8..]}}),
                ),
                anthropic("content_block_stop", json!({"index": 1})),
                anthropic(
                    "message_delta",
                    json!({"delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}),
                ),
                anthropic("message_stop", json!({})),
            ],
            whole_from: 10,
            whole: json!({"type": "message", "role": "assistant", "model": "m-1", "stop_reason": "tool_use",
                "content": [{"type": "text", "text": "Grüße 🦀"},
                    {"type": "tool_use", "id": "c1", "name": "files__read", "input": {"path": "grün/🦀"}}],
                "usage": {"input_tokens": 8, "cache_read_input_tokens": 3, "output_tokens": 5}}),
            error: |kind, message| json!({"type": "error", "error": {"type": kind, "message": message}}),
        },
    ]
}

/// Whoever adds a format adds it to [`formats`], and so to every test of a fault.
#[test]
fn every_provider_is_tested_with_every_fault() {
    let tested: Vec<&str> = formats().iter().map(|format| format.provider).collect();
    for provider in crate::wire::PROVIDERS {
        assert!(tested.contains(&provider.name), "{}", provider.name);
        // One line beside its file makes it known everywhere.
        let found = crate::find(&format!("{}:m", provider.name), &std::collections::BTreeMap::new()).unwrap();
        assert_eq!((found.provider.as_str(), found.model.as_str()), (provider.name, "m"));
        assert_eq!(crate::key_variable(&found), Some(provider.key_env));
        assert!(crate::key_variables().any(|variable| variable == provider.key_env));
        assert!(provider.base_url.starts_with("https://"));
    }
}

/// The connection that plays the right answer.
fn sound(format: &Format) -> Vec<Act> {
    vec![Act::Send(stream(format.events.concat()))]
}

fn check(asked: &Asked, what: &str) {
    let answer = asked.outcome.as_ref().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(answer.message.text, "Grüße 🦀", "{what}");
    assert_eq!(asked.shown, "Grüße 🦀", "{what}");
    assert_eq!(answer.message.calls.len(), 1, "{what}");
    let call = &answer.message.calls[0];
    assert_eq!((call.id.as_str(), call.name.as_str()), ("c1", "files.read"), "{what}");
    assert_eq!(call.arguments.to_value(), json!({"path": "grün/🦀"}), "{what}");
    assert!(matches!(call.arguments, Arguments::Object(_)), "{what}");
    assert_eq!(answer.finish, Finish::ToolCalls, "{what}");
}

fn check_usage(asked: &Asked, what: &str) {
    let usage = asked.outcome.as_ref().unwrap().usage;
    assert_eq!(
        (usage.input_tokens, usage.output_tokens, usage.cached_tokens),
        (11, 5, 3),
        "{what}"
    );
}
