//! Calls in every shape in which servers send them: from a socket, for every format, streamed and whole.

use fief_core::message::{Arguments, Finish};
use serde_json::{Value, json};

use super::{check, formats, sound};
use crate::fake::{Act, Asked, Fake, ask_at, stream, whole};

/// An answer that is calls alone.
struct Shape {
    what: &'static str,
    /// `tool_calls` of each chunk, of a whole message, and the reason.
    openai: (Vec<Value>, Value, &'static str),
    /// The events between start and end, the blocks of a whole message, and the reason.
    anthropic: (Vec<Value>, Value, &'static str),
    /// The path of each call, or why its arguments are none.
    expected: Vec<Result<&'static str, &'static str>>,
}

fn function(arguments: impl Into<Value>) -> Value {
    json!({"name": "files__read", "arguments": arguments.into()})
}

fn start(index: Option<u64>, id: &str, input: impl Into<Value>) -> Value {
    let block = json!({"type": "tool_use", "id": id, "name": "files__read", "input": input.into()});
    with_index(index, json!({"type": "content_block_start", "content_block": block}))
}

fn input(index: Option<u64>, piece: impl Into<Value>) -> Value {
    let delta = json!({"type": "input_json_delta", "partial_json": piece.into()});
    with_index(index, json!({"type": "content_block_delta", "delta": delta}))
}

fn with_index(index: Option<u64>, mut event: Value) -> Value {
    if let Some(index) = index {
        event["index"] = index.into();
    }
    event
}

fn block(id: &str, input: impl Into<Value>) -> Value {
    json!({"type": "tool_use", "id": id, "name": "files__read", "input": input.into()})
}

fn shapes() -> Vec<Shape> {
    let (one, two) = (r#"{"path":"1"}"#, r#"{"path":"2"}"#);
    let both = || json!([block("a", json!({"path": "1"})), block("b", json!({"path": "2"}))]);
    vec![
        Shape {
            what: "no index",
            openai: (
                vec![
                    json!([{"id": "a", "function": function(&one[..5])}]),
                    json!([{"function": {"arguments": &one[5..]}}]),
                    json!([{"id": "b", "function": function(two)}]),
                ],
                json!([{"id": "a", "function": function(one)}, {"id": "b", "function": function(two)}]),
                "tool_calls",
            ),
            anthropic: (
                vec![
                    start(None, "a", json!({})),
                    input(None, &one[..5]),
                    input(None, &one[5..]),
                    start(None, "b", json!({})),
                    input(None, two),
                ],
                both(),
                "tool_use",
            ),
            expected: vec![Ok("1"), Ok("2")],
        },
        Shape {
            what: "two under one index",
            openai: (
                vec![
                    json!([{"index": 0, "id": "a", "function": function(one)}]),
                    json!([{"index": 0, "id": "b", "function": function(&two[..5])}]),
                    json!([{"index": 0, "function": {"arguments": &two[5..]}}]),
                ],
                json!([{"index": 0, "id": "a", "function": function(one)},
                    {"index": 0, "id": "b", "function": function(two)}]),
                "tool_calls",
            ),
            anthropic: (
                vec![
                    start(Some(1), "a", json!({})),
                    input(Some(1), one),
                    start(Some(1), "b", json!({})),
                    input(Some(1), &two[..5]),
                    input(Some(1), &two[5..]),
                ],
                both(),
                "tool_use",
            ),
            expected: vec![Ok("1"), Ok("2")],
        },
        Shape {
            what: "arguments as an object, or as a text where an object belongs",
            openai: (
                vec![json!([{"index": 0, "id": "a", "function": function(json!({"path": "1"}))}])],
                json!([{"id": "a", "function": function(json!({"path": "1"}))}]),
                "tool_calls",
            ),
            anthropic: (
                vec![start(Some(0), "a", json!({})), input(Some(0), json!({"path": "1"}))],
                json!([block("a", one)]),
                "tool_use",
            ),
            expected: vec![Ok("1")],
        },
        Shape {
            what: "an ordinary end beside a call",
            openai: (
                vec![json!([{"index": 0, "id": "a", "function": function(one)}])],
                json!([{"id": "a", "function": function(one)}]),
                "stop",
            ),
            anthropic: (
                vec![start(Some(0), "a", json!({"path": "1"}))],
                json!([block("a", json!({"path": "1"}))]),
                "end_turn",
            ),
            expected: vec![Ok("1")],
        },
        Shape {
            what: "arguments that are not JSON, beside sound ones",
            openai: (
                vec![json!([{"index": 0, "id": "a", "function": function("{path: 1}")},
                    {"index": 1, "id": "b", "function": function(two)}])],
                json!([{"id": "a", "function": function("{path: 1}")}, {"id": "b", "function": function(two)}]),
                "tool_calls",
            ),
            anthropic: (
                vec![
                    start(Some(0), "a", json!({})),
                    input(Some(0), "{path: 1}"),
                    start(Some(1), "b", json!({})),
                    input(Some(1), two),
                ],
                json!([block("a", "{path: 1}"), block("b", json!({"path": "2"}))]),
                "tool_use",
            ),
            expected: vec![Err("not JSON"), Ok("2")],
        },
        Shape {
            what: "a key twice",
            openai: (
                vec![json!([{"index": 0, "id": "a", "function": function(r#"{"path":"1","path":"2"}"#)}])],
                json!([{"id": "a", "function": function(r#"{"path":"1","path":"2"}"#)}]),
                "tool_calls",
            ),
            anthropic: (
                vec![
                    start(Some(0), "a", json!({})),
                    input(Some(0), r#"{"path":"1","path":"2"}"#),
                ],
                json!([block("a", r#"{"path":"1","path":"2"}"#)]),
                "tool_use",
            ),
            expected: vec![Err("occurs twice")],
        },
        Shape {
            what: "cut by the output limit",
            openai: (
                vec![json!([{"index": 0, "id": "a", "function": function(&one[..8])}])],
                json!([{"id": "a", "function": function(&one[..8])}]),
                "length",
            ),
            anthropic: (
                vec![start(Some(0), "a", json!({})), input(Some(0), &one[..8])],
                json!([block("a", &one[..8])]),
                "max_tokens",
            ),
            expected: vec![Err("the output limit cut the call")],
        },
    ]
}

impl Shape {
    /// As the provider streams it, and as it sends it whole.
    fn responses(&self, provider: &str) -> [Vec<u8>; 2] {
        if provider == "openai" {
            let (pieces, message, reason) = &self.openai;
            let chunk = |delta: Value, reason: Value| {
                format!(
                    "data: {}\n\n",
                    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
                )
            };
            let mut events: String = pieces
                .iter()
                .map(|calls| chunk(json!({"tool_calls": calls}), Value::Null))
                .collect();
            events.push_str(&chunk(json!({}), (*reason).into()));
            let message = json!({"role": "assistant", "content": null, "tool_calls": message});
            let body = json!({"choices": [{"message": message, "finish_reason": reason}]});
            return [stream(events), whole(&body)];
        }
        let (events, blocks, reason) = &self.anthropic;
        let end = [
            json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
            json!({"type": "message_stop"}),
        ];
        let events: String = [json!({"type": "message_start", "message": {}})]
            .iter()
            .chain(events)
            .chain(&end)
            .map(|event| format!("data: {event}\n\n"))
            .collect();
        let body = json!({"type": "message", "content": blocks, "stop_reason": reason});
        [stream(events), whole(&body)]
    }
}

#[tokio::test]
async fn calls_of_every_shape_are_read_streamed_and_whole() {
    for format in formats() {
        for shape in shapes() {
            for (how, bytes) in ["streamed", "whole"].iter().zip(shape.responses(format.provider)) {
                let what = format!("{} {how}: {}", format.provider, shape.what);
                let asked = ask_at(format.provider, &Fake::answering(bytes).await).await;
                assert!(asked.retries.is_empty(), "{what}: {:?}", asked.retries);
                let answer = asked.outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
                let cut = shape.what.starts_with("cut");
                let finish = if cut { Finish::Length } else { Finish::ToolCalls };
                assert_eq!(answer.finish, finish, "{what}");
                let calls = &answer.message.calls;
                assert_eq!(calls.len(), shape.expected.len(), "{what}: {calls:?}");
                for ((call, expected), id) in calls.iter().zip(&shape.expected).zip(["a", "b"]) {
                    assert_eq!((call.id.as_str(), call.name.as_str()), (id, "files.read"), "{what}");
                    match (&call.arguments, expected) {
                        (Arguments::Object(map), Ok(path)) => {
                            assert_eq!(Value::Object(map.clone()), json!({"path": path}), "{what}");
                        }
                        (Arguments::Malformed { why, .. }, Err(part)) => assert!(why.contains(part), "{what}: {why}"),
                        (read, _) => panic!("{what}: {read:?}"),
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn an_error_beside_an_answer_is_an_error() {
    for format in formats() {
        // The error in the same object as a part of the answer, or as all of it.
        let mut frame = (format.error)("server_error", "engine died");
        let object = frame.as_object_mut().unwrap();
        object.extend(format.whole.as_object().unwrap().clone());
        object.insert("type".into(), "error".into());
        let begun = format.events[..3].concat();
        for first in [stream(format!("{begun}data: {frame}\n\n")), whole(&frame)] {
            let fake = Fake::start(vec![vec![Act::Send(first)], sound(&format)]).await;
            let asked = ask_at(format.provider, &fake).await;
            check(&asked, format.provider);
            assert!(asked.retries[0].contains("engine died"), "{:?}", asked.retries);
        }
    }
}

#[tokio::test]
async fn a_hundred_thousand_pieces_of_arguments_are_one_call() {
    let long = "x".repeat(100_000);
    for format in formats() {
        let mut pieces = vec![r#"{"path":""#.to_owned()];
        pieces.extend(long.chars().map(String::from));
        pieces.push("\"}".into());
        let pieces: Vec<Value> = pieces.into_iter().map(Value::from).collect();
        let shape = Shape {
            what: "many",
            openai: (
                // The worst of them repeat id and name in every piece.
                pieces
                    .iter()
                    .map(|piece| json!([{"index": 0, "id": "a", "function": function(piece.clone())}]))
                    .collect(),
                Value::Null,
                "tool_calls",
            ),
            anthropic: (
                std::iter::once(start(Some(0), "a", json!({})))
                    .chain(pieces.iter().map(|piece| input(Some(0), piece.clone())))
                    .collect(),
                Value::Null,
                "tool_use",
            ),
            expected: Vec::new(),
        };
        let [bytes, _] = shape.responses(format.provider);
        let asked: Asked = ask_at(format.provider, &Fake::answering(bytes).await).await;
        let answer = asked.outcome.unwrap();
        assert_eq!(answer.message.calls.len(), 1);
        assert_eq!(answer.message.calls[0].arguments.to_value(), json!({"path": long}));
    }
}
