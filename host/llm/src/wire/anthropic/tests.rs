#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

use std::sync::Arc;

use fief_core::manifest::archetype::Generation;
use fief_core::message::{
    Answer, Arguments, Assistant, Blob, CallResult, Content, Finish, Message, Reasoning, ToolCall, Usage,
};
use serde_json::json;

use super::super::Progress;
use super::*;
use crate::fake;
use crate::names::Names;
use crate::sse::SseEvent;

fn read(events: &[Value]) -> Result<(Answer, Progress), Fault> {
    let mut reader: Box<dyn Reader> = Box::new(read::StreamReader::default());
    let mut progress = Progress::Open;
    for event in events {
        // One half of the servers repeats the type as the event's name; the type alone must do.
        let event = SseEvent { name: String::new(), data: event.to_string() };
        progress = reader.take(&event, &mut String::new())?;
    }
    let names = Names::of(&fake::request().tools);
    Ok((reader.into_draft().into_answer(&names, None, Usage::default()), progress))
}

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, kind: &str, key: &str, piece: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}})
}

#[test]
fn thoughts_are_kept_with_their_signatures() {
    let (answer, _) = read(&[
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, "thinking_delta", "thinking", "let me "),
        delta(0, "thinking_delta", "thinking", "see"),
        delta(0, "signature_delta", "signature", "abc"),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "xyz"})),
        stop(1),
        start(2, json!({"type": "thinking", "thinking": "unsigned"})),
        stop(2),
        start(3, json!({"type": "text", "text": "he"})),
        delta(3, "text_delta", "text", "llo"),
        stop(3),
        end("end_turn"),
    ])
    .unwrap();
    assert_eq!(answer.message.text, "hello");
    assert_eq!(answer.finish, Finish::Stop);
    assert_eq!(answer.message.reasoning, [
        Reasoning {
            text: "let me see".into(),
            block: Some(json!({"anthropic": {"type": "thinking", "thinking": "let me see", "signature": "abc"}})),
        },
        Reasoning {
            text: String::new(),
            block: Some(json!({"anthropic": {"type": "redacted_thinking", "data": "xyz"}})),
        },
        Reasoning { text: "unsigned".into(), block: None },
    ]);
}

#[test]
fn odd_streams_are_read() {
    let call = json!({"type": "tool_use", "id": "t1", "name": "files__read", "input": {}});
    let sound = json!({"path": "a"});
    for (what, events, arguments, finish) in [
        ("no pieces", vec![start(0, call.clone()), stop(0), end("tool_use")], Ok(json!({})), Finish::ToolCalls),
        ("an empty piece", vec![start(0, call.clone()), delta(0, "input_json_delta", "partial_json", ""), stop(0),
            end("tool_use")], Ok(json!({})), Finish::ToolCalls),
        ("whole input at the start", vec![start(0, json!({"type": "tool_use", "id": "t1", "name": "files__read",
            "input": sound})), stop(0), end("tool_use")], Ok(sound.clone()), Finish::ToolCalls),
        ("end_turn with a call", vec![start(0, call.clone()),
            delta(0, "input_json_delta", "partial_json", "{\"path\":\"a\"}"), end("end_turn")], Ok(sound.clone()),
            Finish::ToolCalls),
        ("cut by the output limit", vec![start(0, call.clone()),
            delta(0, "input_json_delta", "partial_json", "{\"path\":"), end("max_tokens")],
            Err("the output limit cut the call"), Finish::Length),
        ("cut before its arguments", vec![start(0, call.clone()), end("max_tokens")],
            Err("the output limit cut the call"), Finish::Length),
        ("not JSON", vec![start(0, call.clone()), delta(0, "input_json_delta", "partial_json", "{path}"),
            end("tool_use")], Err("not JSON"), Finish::ToolCalls),
        ("blocks between each other", vec![start(0, json!({"type": "text", "text": ""})), start(1, call.clone()),
            delta(1, "input_json_delta", "partial_json", "{\"path\":"), delta(0, "text_delta", "text", "x"),
            delta(1, "input_json_delta", "partial_json", "\"a\"}"), stop(0), stop(1), end("tool_use")],
            Ok(sound.clone()), Finish::ToolCalls),
        ("a server's own tool beside", vec![start(0, json!({"type": "server_tool_use", "id": "s", "name": "web_search",
            "input": {}})), delta(0, "input_json_delta", "partial_json", "{\"q\":1}"), stop(0), start(1, call),
            delta(1, "input_json_delta", "partial_json", "{\"path\":\"a\"}"), stop(1), end("tool_use")],
            Ok(sound), Finish::ToolCalls),
    ] {
        let (answer, progress) = read(&events).unwrap_or_else(|fault| panic!("{what}: {fault:?}"));
        assert_eq!((answer.finish, progress), (finish, Progress::Whole), "{what}");
        assert_eq!(answer.message.calls.len(), 1, "{what}");
        match (&answer.message.calls[0].arguments, arguments) {
            (Arguments::Object(map), Ok(expected)) => assert_eq!(Value::Object(map.clone()), expected, "{what}"),
            (Arguments::Malformed { why, .. }, Err(part)) => assert!(why.contains(part), "{what}: {why}"),
            (other, expected) => panic!("{what}: {other:?}, {expected:?}"),
        }
    }
}

#[test]
fn stop_reasons_map_to_the_closed_set() {
    for (reason, finish) in [
        ("end_turn", Finish::Stop),
        ("stop_sequence", Finish::Stop),
        ("max_tokens", Finish::Length),
        ("model_context_window_exceeded", Finish::Length),
        ("refusal", Finish::Filter),
        ("pause_turn", Finish::Other),
        ("tomorrow", Finish::Other),
        ("tool_use", Finish::Stop),
    ] {
        let events = [start(0, json!({"type": "text", "text": "x"})), end(reason)];
        assert_eq!(read(&events).unwrap().0.finish, finish, "{reason}");
    }
    let stopped = [json!({"type": "message_start", "message": {}}), json!({"type": "message_stop"})];
    assert!(read(&stopped).unwrap_err().message.contains("without an answer"));
}

#[test]
fn a_history_is_written_as_the_format_demands() {
    let call = |id: &str, arguments| ToolCall { id: id.into(), name: "files.read".into(), arguments };
    let image = Content::Image(Blob { media_type: "image/png".into(), data: vec![1, 2, 3] });
    let result = |call: &str, content, is_error| CallResult { call: call.into(), name: "files.read".into(), content, is_error };
    let history = vec![
        Message::User { content: vec![Content::Text("look".into()), Content::Text(String::new())] },
        Message::Assistant(Assistant {
            text: "I look. \n".into(),
            reasoning: vec![
                Reasoning {
                    text: "t".into(),
                    block: Some(json!({"anthropic": {"type": "thinking", "thinking": "t", "signature": "s"}})),
                },
                Reasoning { text: "o".into(), block: Some(json!({"openai": {"reasoning_content": "o"}})) },
            ],
            calls: vec![
                call("c1", Arguments::Object(json!({"path": "a"}).as_object().unwrap().clone())),
                call("c 2", Arguments::Malformed { raw: "{".into(), why: "cut".into() }),
            ],
        }),
        Message::Results {
            results: vec![
                result("c1", vec![Content::Text("seen".into()), image], false),
                result("c 2", vec![Content::Text("bad arguments".into())], true),
            ],
        },
        Message::User { content: vec![Content::Text("sum up".into())] },
        Message::Assistant(Assistant::default()),
        Message::User { content: vec![Content::Text("well?".into())] },
    ];
    let mut request = fake::request();
    request.history = Arc::new(history);
    request.parallel_tool_calls = Some(false);
    let generation = Generation {
        temperature: Some(0.5),
        stop: Some(vec!["END".into()]),
        ..Generation::default()
    };
    let question = Question { model: "m", request: &request, generation: generation.clone(), stream: true };
    let body = Messages::default().body(&question);
    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap());
    // The closing request: the tools of the history are declared, and none may be called.
    request.tools = Arc::new([]);
    let question = Question { model: "m", request: &request, generation, stream: true };
    let body = Messages::default().body(&question);
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
    assert_eq!(body["tools"][0]["name"], "files__read");
}

#[test]
fn tokens_are_counted_streamed_and_whole() {
    let first = json!({"input_tokens": 5, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 11,
        "output_tokens": 1});
    let last = json!({"output_tokens": 41, "output_tokens_details": {"thinking_tokens": 34}});
    let text = json!({"type": "text", "text": "x"});
    let (streamed, _) = read(&[
        json!({"type": "message_start", "message": {"usage": first}}),
        start(0, text.clone()),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last}),
    ])
    .unwrap();
    let mut usage = first.as_object().unwrap().clone();
    usage.extend(last.as_object().unwrap().clone());
    let body = json!({"content": [text], "stop_reason": "end_turn", "usage": usage});
    let whole = Messages::default().whole(body).unwrap().usage.unwrap();
    for usage in [streamed.usage, whole] {
        assert_eq!((usage.input_tokens, usage.cached_tokens), (23, 11), "what is read and written is input too");
        assert_eq!((usage.output_tokens, usage.reasoning_tokens), (41, 34));
    }
}

#[test]
fn addresses_are_completed() {
    for (base, expected) in [
        ("https://api.anthropic.com/v1", "https://api.anthropic.com/v1/messages"),
        ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
        ("http://127.0.0.1:1/proxy/", "http://127.0.0.1:1/proxy/v1/messages"),
        ("http://127.0.0.1:1/v1/messages", "http://127.0.0.1:1/v1/messages"),
    ] {
        assert_eq!(Messages::default().endpoint(&base.parse().unwrap()).as_str(), expected);
    }
    let mut headers = HeaderMap::new();
    Messages::default().headers(Some(&"sk-key".into()), &mut headers);
    assert_eq!(headers["x-api-key"].to_str().unwrap(), "sk-key");
    assert!(!format!("{headers:?}").contains("sk-key"), "keys are not printed");
}

#[tokio::test]
async fn the_output_limit_of_a_small_model_is_learnt() {
    use crate::fake::{Act, Fake, error, whole};
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error", "message":
        "max_tokens: 16000 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku"}});
    let sound = json!({"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"});
    let fake = Fake::start(vec![vec![Act::Send(error("400 Bad Request", &refusal))], vec![Act::Send(whole(&sound))]]).await;
    let asked = fake::ask_at("anthropic", &fake).await;
    assert_eq!(asked.outcome.unwrap().message.text, "ok");
    let limits: Vec<Value> = fake.received().iter().map(|request| request.body["max_tokens"].clone()).collect();
    assert_eq!(limits, [16_000, 4096]);
    // What a person configures is sent, however large.
    let generation = Generation {
        max_output_tokens: Some(64_000),
        ..Generation::default()
    };
    let request = fake::request();
    let question = Question { model: "m", request: &request, generation, stream: true };
    assert_eq!(Messages::default().body(&question)["max_tokens"], 64_000);
}
