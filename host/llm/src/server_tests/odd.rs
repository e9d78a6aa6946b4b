//! Answers that are odd and sound: each from a socket, for every format, streamed and whole.

use std::time::Duration;

use fief_core::message::{Answer, Finish};
use serde_json::{Value, json};

use super::reading::gzip_stored;
use super::{check, check_usage, formats, sound};
use crate::fake::{Act, Fake, ask_at, response, stream, whole};

/// What an answer holds, in no format.
#[derive(Clone, Default)]
struct Odd {
    role: Option<&'static str>,
    text: Value,
    refusal: Option<&'static str>,
    thought: Option<&'static str>,
    /// The ids of its calls of `files.read`.
    ids: Vec<Value>,
}

impl Odd {
    /// As the provider streams it, and as it sends it whole.
    fn responses(&self, provider: &str) -> [Vec<u8>; 2] {
        let role = self.role.unwrap_or("assistant");
        if provider == "openai" {
            let calls = self.ids.iter().enumerate().map(|(index, id)| {
                let function = json!({"name": "files__read", "arguments": format!("{{\"path\": \"{index}\"}}")});
                json!({"index": index, "id": id, "type": "function", "function": function})
            });
            let calls: Vec<Value> = calls.collect();
            let mut message = json!({"role": role, "content": self.text, "refusal": self.refusal,
                "reasoning_content": self.thought});
            if !calls.is_empty() {
                message["tool_calls"] = calls.into();
            }
            let reason = if self.ids.is_empty() { "stop" } else { "tool_calls" };
            let choice =
                |key: &str, reason: Value| json!({"choices": [{"index": 0, key: message, "finish_reason": reason}]});
            let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
            let events = format!("data: {}\n\ndata: {end}\n\n", choice("delta", Value::Null));
            return [stream(events), whole(&choice("message", reason.into()))];
        }
        let mut blocks = Vec::new();
        if let Some(thought) = self.thought {
            blocks.push(json!({"type": "thinking", "thinking": thought, "signature": "s"}));
        }
        let text = self.refusal.map_or(self.text.clone(), Value::from);
        blocks.push(json!({"type": "text", "text": text}));
        blocks.push(json!({"type": "of_tomorrow", "odd": 1}));
        blocks.extend(self.ids.iter().enumerate().map(|(index, id)| {
            json!({"type": "tool_use", "id": id, "name": "files__read", "input": {"path": index.to_string()}})
        }));
        let reason = match (self.refusal, self.ids.is_empty()) {
            (Some(_), _) => "refusal",
            (None, true) => "end_turn",
            (None, false) => "tool_use",
        };
        let mut events = format!(
            "data: {}\n\n",
            json!({"type": "message_start", "message": {"role": role}})
        );
        for (index, block) in blocks.iter().enumerate() {
            let start = json!({"type": "content_block_start", "index": index, "content_block": block});
            let stop = json!({"type": "content_block_stop", "index": index});
            events.push_str(&format!("data: {start}\n\ndata: {stop}\n\n"));
        }
        let end = json!({"type": "message_delta", "delta": {"stop_reason": reason}});
        events.push_str(&format!("data: {end}\n\ndata: {}\n\n", json!({"type": "message_stop"})));
        let body = json!({"type": "message", "role": role, "content": blocks, "stop_reason": reason});
        [stream(events), whole(&body)]
    }
}

/// The answer of each format, streamed and whole.
async fn answers(odd: Odd) -> Vec<(String, Answer)> {
    let mut answers = Vec::new();
    for format in formats() {
        for (how, bytes) in ["streamed", "whole"].into_iter().zip(odd.responses(format.provider)) {
            let what = format!("{} {how}", format.provider);
            let asked = ask_at(format.provider, &Fake::answering(bytes).await).await;
            assert!(asked.retries.is_empty(), "{what}: {:?}", asked.retries);
            let answer = asked.outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(asked.shown, answer.message.text, "{what}");
            answers.push((what, answer));
        }
    }
    answers
}

#[tokio::test]
async fn missing_null_and_repeated_ids_become_unique() {
    for ids in [
        [json!("x"), json!("x")],
        [json!(""), json!("")],
        [Value::Null, Value::Null],
    ] {
        for (what, answer) in answers(Odd {
            ids: ids.to_vec(),
            ..Odd::default()
        })
        .await
        {
            let [first, second] = answer.message.calls.as_slice() else {
                panic!("{what}: {answer:?}")
            };
            assert!(
                first.id != second.id && !first.id.is_empty() && !second.id.is_empty(),
                "{what}"
            );
            for (call, path) in [(first, "0"), (second, "1")] {
                assert_eq!(
                    (call.name.as_str(), call.arguments.to_value()),
                    ("files.read", json!({"path": path})),
                    "{what}"
                );
            }
            assert_eq!(
                (answer.message.text.as_str(), answer.finish),
                ("", Finish::ToolCalls),
                "{what}"
            );
        }
    }
}

#[tokio::test]
async fn unknown_roles_null_content_refusals_and_thoughts_are_read() {
    for (what, answer) in answers(Odd {
        role: Some("narrator"),
        text: "a".into(),
        ..Odd::default()
    })
    .await
    {
        assert_eq!(
            (answer.message.text.as_str(), answer.finish),
            ("a", Finish::Stop),
            "{what}"
        );
    }
    for (what, answer) in answers(Odd {
        refusal: Some("I will not"),
        ..Odd::default()
    })
    .await
    {
        assert_eq!(
            (answer.message.text.as_str(), answer.finish),
            ("I will not", Finish::Filter),
            "{what}"
        );
    }
    // Null content beside a call; what is thought goes back as it came.
    for (what, answer) in answers(Odd {
        thought: Some("hm"),
        ids: vec![json!("c")],
        ..Odd::default()
    })
    .await
    {
        assert_eq!(
            (answer.message.text.as_str(), answer.message.calls.len()),
            ("", 1),
            "{what}"
        );
        let [thought] = answer.message.reasoning.as_slice() else {
            panic!("{what}: {answer:?}")
        };
        assert!(thought.text == "hm" && thought.block.is_some(), "{what}");
    }
}

#[tokio::test]
async fn an_end_that_comes_twice_is_one() {
    for format in formats() {
        let last = format.events.last().unwrap();
        for more in [last.clone(), "data: [DONE]\n\n".into(), "data: {oops\n\n".into()] {
            let body = format!("{}{more}", format.events.concat());
            let asked = ask_at(format.provider, &Fake::answering(stream(body)).await).await;
            check(&asked, format.provider);
            assert!(asked.retries.is_empty());
        }
    }
}

#[tokio::test]
async fn answers_come_compressed_in_pieces_and_large_in_either_form() {
    for format in formats() {
        let forms = [
            ("text/event-stream", format.events.concat().into_bytes()),
            ("application/json", format.whole.to_string().into_bytes()),
        ];
        for (kind, body) in forms {
            let what = format!("{} {kind}", format.provider);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n"
            );
            let packed = [head.into_bytes(), gzip_stored(&body)].concat();
            let asked = ask_at(format.provider, &Fake::answering(packed.clone()).await).await;
            check(&asked, &what);
            check_usage(&asked, &what);
            // Cut within what is compressed, and reset within it.
            let half = packed[..packed.len() - 60].to_vec();
            for end in [Act::Pause(Duration::ZERO), Act::Reset] {
                let acts = vec![Act::Send(half.clone()), Act::Pause(Duration::from_millis(5)), end];
                let asked = ask_at(format.provider, &Fake::start(vec![acts, sound(&format)]).await).await;
                check(&asked, &what);
            }
            // Each byte by itself: no character, no line and no number comes in one piece.
            let plain = response("200 OK", kind, &body);
            let head = plain.len() - body.len();
            let mut acts = vec![Act::Send(plain[..head].to_vec())];
            acts.extend(plain[head..].iter().map(|byte| Act::Send(vec![*byte])));
            check(&ask_at(format.provider, &Fake::start(vec![acts]).await).await, &what);
            // Reset in the middle.
            let acts = vec![
                Act::Send(plain[..head + body.len() / 2].to_vec()),
                Act::Pause(Duration::from_millis(5)),
                Act::Reset,
            ];
            let asked = ask_at(format.provider, &Fake::start(vec![acts, sound(&format)]).await).await;
            check(&asked, &what);
            assert_eq!(asked.retries.len(), 1, "{what}");
        }
        let long = format.whole.to_string().replace('🦀', &"x".repeat(10 << 20));
        let asked = ask_at(
            format.provider,
            &Fake::answering(response("200 OK", "application/json", long)).await,
        )
        .await;
        let answer = asked.outcome.unwrap();
        assert_eq!(
            answer.message.text.len(),
            (10 << 20) + "Grüße ".len(),
            "{}",
            format.provider
        );
    }
}

#[tokio::test]
async fn every_status_that_asks_to_wait_is_waited_for() {
    for format in formats() {
        let body = (format.error)("overloaded_error", "slow down").to_string();
        for status in ["429 Too Many Requests", "503 Service Unavailable", "529 Overloaded"] {
            for after in ["0", "0.01", "Thu, 01 Jan 2015 00:00:00 GMT"] {
                let busy = format!(
                    "HTTP/1.1 {status}\r\nretry-after: {after}\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                let fake = Fake::start(vec![vec![Act::Send(busy.into_bytes())], sound(&format)]).await;
                let asked = ask_at(format.provider, &fake).await;
                check(&asked, status);
                assert_eq!(asked.retries.len(), 1, "{status}");
            }
        }
    }
}
