//! Sound answers, however they come, and what becomes of the request around them.

use std::time::Duration;

use fief_core::port::ModelErrorKind;

use super::{check, check_usage, formats, sound};
use crate::fake::{Act, Fake, ask, ask_at, config, error, options, request, stream, whole};
use crate::{ModelConfigError, client};

#[tokio::test]
async fn a_sound_answer_is_read_streamed_and_whole() {
    for format in formats() {
        let what = format.provider;
        let fake = Fake::start(vec![sound(&format)]).await;
        let asked = ask_at(format.provider, &fake).await;
        check(&asked, what);
        check_usage(&asked, what);
        assert!(asked.retries.is_empty());
        // The server decides the form, whatever was asked for.
        for streamed in [true, false] {
            let fake = Fake::answering(if streamed {
                stream(format.events.concat())
            } else {
                whole(&format.whole)
            })
            .await;
            let mut config = config(format.provider, &fake.origin);
            config.stream = Some(!streamed);
            let model = client("local", &config, None, &options()).unwrap();
            let asked = ask(&*model, request()).await;
            check(&asked, what);
            check_usage(&asked, what);
            assert_eq!(fake.received()[0].body["stream"], !streamed);
        }
    }
}

#[tokio::test]
async fn bytes_may_be_split_anywhere_and_lines_end_as_they_like() {
    for format in formats() {
        let text = format.events.concat();
        for ending in ["\n", "\r\n", "\r"] {
            let body = stream(text.replace('\n', ending));
            let head = stream("").len();
            // Every position once: each connection splits at every fortieth byte, from another one on.
            let connections = (0..40).map(|offset| {
                let mut acts = vec![Act::Send(body[..head].to_vec())];
                let (first, rest) = body[head..].split_at(offset);
                for piece in std::iter::once(first).chain(rest.chunks(40)) {
                    acts.push(Act::Send(piece.to_vec()));
                    acts.push(Act::Pause(Duration::from_millis(1)));
                }
                let (provider, what) = (format.provider, format!("{} {ending:?} {offset}", format.provider));
                async move {
                    let asked = ask_at(provider, &Fake::start(vec![acts]).await).await;
                    check(&asked, &what);
                    assert!(asked.retries.is_empty());
                }
            });
            futures::future::join_all(connections).await;
        }
    }
}

#[tokio::test]
async fn comments_keep_alives_and_unknown_events_are_skipped() {
    for format in formats() {
        let noise = ": keep-alive\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\nid: 4\nretry: 1\n\ndata:\n\n\
                     event: later\ndata: {\"type\": \"later\", \"odd\": [1]}\n\n";
        let body: String = format.events.iter().map(|event| format!("{noise}{event}")).collect();
        let asked = ask_at(format.provider, &Fake::answering(stream(body)).await).await;
        check(&asked, format.provider);
    }
}

#[tokio::test]
async fn keys_go_to_their_origin_and_into_no_message() {
    for format in formats() {
        let body = (format.error)(
            "authentication_error",
            "no such key: sk-secret (x-team: team-secret-value)",
        );
        let fake = Fake::answering(error("401 Unauthorized", &body)).await;
        let mut config = config(format.provider, &fake.origin);
        config.headers.insert("x-team".into(), "team-secret-value".into());
        let model = client("local", &config, Some("sk-secret\n".into()), &options()).unwrap();
        let failed = ask(&*model, request()).await.outcome.unwrap_err();
        assert!(
            failed.message.contains("no such key: [redacted] (x-team: [redacted])"),
            "{failed}"
        );
        let head = &fake.received()[0].head;
        assert!(
            head.contains("sk-secret") && head.contains("x-team: team-secret-value"),
            "{head}"
        );
        assert!(!format!("{:?}", fake.received()[0].body).contains("secret"));
    }
    let bad = client(
        "local",
        &config("openai", "http://127.0.0.1:1"),
        Some("a\nb".into()),
        &options(),
    );
    let Err(ModelConfigError::BadKey { .. }) = bad else {
        panic!("a key with a line break was taken")
    };
}

#[tokio::test]
async fn a_hundred_thousand_deltas_and_ten_megabytes_in_one_line_are_read_in_linear_time() {
    for format in formats() {
        let delta = &format.events[if format.provider == "openai" { 2 } else { 3 }];
        let (before, after) = format.events.split_at(if format.provider == "openai" { 3 } else { 4 });
        let body = format!("{}{}{}", before.concat(), delta.repeat(100_000), after.concat());
        let asked = ask_at(format.provider, &Fake::answering(stream(body)).await).await;
        assert_eq!(asked.outcome.unwrap().message.text.chars().count(), 100_007);
        let long = delta.replace('🦀', &"x".repeat(10 << 20));
        let body = format!("{}{long}{}", before.concat(), after.concat());
        let asked = ask_at(format.provider, &Fake::answering(stream(body)).await).await;
        assert_eq!(asked.outcome.unwrap().message.text.len(), (10 << 20) + "Grüße 🦀".len());
    }
}

#[tokio::test]
async fn compressed_answers_are_read() {
    // `gzip -9` of the OpenAI answer "ok", as one event and `[DONE]`.
    let plain = "data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"ok\"}, \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n";
    let body = gzip_stored(plain.as_bytes());
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n";
    let mut bytes = head.as_bytes().to_vec();
    bytes.extend_from_slice(&body);
    let asked = ask_at("openai", &Fake::answering(bytes.clone()).await).await;
    assert_eq!(asked.outcome.unwrap().message.text, "ok");
    bytes.truncate(bytes.len() - 60);
    let asked = ask_at("openai", &Fake::answering(bytes).await).await;
    assert_eq!(asked.outcome.unwrap_err().kind, ModelErrorKind::Unavailable);
}

/// A gzip file of one stored block.
pub(super) fn gzip_stored(data: &[u8]) -> Vec<u8> {
    let mut crc = !0_u32;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (0_u32.wrapping_sub(crc & 1)));
        }
    }
    let length = u16::try_from(data.len()).unwrap();
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&(!length).to_le_bytes());
    bytes.extend_from_slice(data);
    bytes.extend_from_slice(&(!crc).to_le_bytes());
    bytes.extend_from_slice(&u32::from(length).to_le_bytes());
    bytes
}

#[tokio::test]
async fn dropping_the_stream_ends_the_request() {
    use futures::StreamExt as _;
    for format in formats() {
        let fake = Fake::start(vec![vec![Act::Send(stream(format.events[..4].concat())), Act::Hang]]).await;
        let model = client("local", &config(format.provider, &fake.origin), None, &options()).unwrap();
        let asked = request();
        let history = std::sync::Arc::downgrade(&asked.history);
        let mut stream = model.ask(asked);
        assert!(stream.next().await.is_some());
        drop(stream);
        assert!(history.upgrade().is_none(), "the history is released");
    }
}

#[tokio::test]
async fn the_history_is_free_again_once_the_answer_is_out() {
    use fief_core::port::ModelEvent;
    use futures::StreamExt as _;
    for format in formats() {
        let fake = Fake::start(vec![sound(&format)]).await;
        let model = client("local", &config(format.provider, &fake.origin), None, &options()).unwrap();
        let asked = request();
        let mut history = asked.history.clone();
        let mut stream = model.ask(asked);
        while let Some(event) = stream.next().await {
            if let ModelEvent::Done(_) = event {
                assert!(
                    std::sync::Arc::get_mut(&mut history).is_some(),
                    "no copy is needed to append"
                );
            }
        }
    }
}
