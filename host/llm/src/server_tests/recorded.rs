//! What a real llama.cpp server sent, byte for byte (`checks/llama-server` records it), read again.

use std::time::Duration;

use fief_core::message::Finish;
use fief_core::port::ModelErrorKind;
use serde_json::json;

use crate::client;
use crate::fake::{Act, Fake, ask, config, options, request};

/// A recording, and the beginning of the text, the city of the call, the end and the tokens in and out that it must be
/// read as.
type Recorded = (
    &'static str,
    &'static [u8],
    &'static str,
    Option<&'static str>,
    Finish,
    u64,
    u64,
);

#[rustfmt::skip]
const RECORDED: &[Recorded] = &[
    (
        "text",
        include_bytes!("recorded/text.http"),
        "Write one sentence about a crab",
        None,
        Finish::Length,
        34,
        40,
    ),
    (
        "whole",
        include_bytes!("recorded/whole.http"),
        "Write one sentence about a crab",
        None,
        Finish::Length,
        34,
        40,
    ),
    // The model went on after its call until the limit cut it: the call itself is whole.
    (
        "call",
        include_bytes!("recorded/call.http"),
        "",
        Some("Rome"),
        Finish::Length,
        423,
        40,
    ),
    (
        "call, whole",
        include_bytes!("recorded/call-whole.http"),
        "",
        Some("Rome"),
        Finish::Length,
        423,
        40,
    ),
];

#[tokio::test]
async fn recordings_of_a_real_server_are_read() {
    for (what, bytes, text, city, finish, input, output) in RECORDED {
        // In one piece, and in pieces of which none is a whole chunk or event.
        let pieces = |size: usize| -> Vec<Act> {
            let sent = bytes.chunks(size).map(|piece| Act::Send(piece.to_vec()));
            sent.flat_map(|act| [act, Act::Pause(Duration::from_millis(1))])
                .collect()
        };
        for size in [bytes.len(), 61] {
            let fake = Fake::start(vec![pieces(size)]).await;
            let model = client("real", &config("openai", &fake.origin), None, &options()).unwrap();
            let asked = ask(&*model, request()).await;
            let answer = asked.outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(asked.retries.is_empty(), "{what}");
            assert!(answer.message.text.starts_with(text), "{what}: {}", answer.message.text);
            assert_eq!(answer.message.text, asked.shown, "{what}");
            let called: Vec<_> = answer
                .message
                .calls
                .iter()
                .map(|call| call.arguments.to_value())
                .collect();
            let expected: Vec<_> = city.iter().map(|city| json!({"city": city})).collect();
            assert_eq!(called, expected, "{what}");
            assert_eq!(answer.finish, *finish, "{what}");
            assert_eq!(
                (answer.usage.input_tokens, answer.usage.output_tokens),
                (*input, *output),
                "{what}"
            );
        }
        // Cut before its last chunk but two, a stream is not whole.
        if bytes.windows(17).any(|piece| piece == b"text/event-stream") {
            let fake = Fake::start(vec![
                vec![Act::Send(bytes[..bytes.len() - 1200].to_vec())],
                pieces(bytes.len()),
            ])
            .await;
            let model = client("real", &config("openai", &fake.origin), None, &options()).unwrap();
            let asked = ask(&*model, request()).await;
            assert!(asked.outcome.is_ok() && asked.retries.len() == 1, "{what}: {asked:?}");
        }
    }
}

#[tokio::test]
async fn a_recorded_overflow_is_one() {
    let fake = Fake::answering(include_bytes!("recorded/overflow.http").to_vec()).await;
    let model = client("real", &config("openai", &fake.origin), None, &options()).unwrap();
    let failed = ask(&*model, request()).await.outcome.unwrap_err();
    assert_eq!(failed.kind, ModelErrorKind::ContextOverflow);
    assert!(
        failed
            .message
            .contains("request (4024 tokens) exceeds the available context size (2048 tokens)"),
        "{failed}"
    );
}
