//! Every fault: told as what it is, retried if that can help, never taken for an answer.

use std::time::{Duration, Instant};

use fief_core::port::ModelErrorKind;
use serde_json::json;

use super::{check, formats, sound};
use crate::client;
use crate::fake::{Act, Fake, ask, ask_at, chunk, chunked, config, error, options, request, response, stream, whole};

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_is_retried_and_never_trusted() {
    for format in formats() {
        for count in 0..format.whole_from {
            let cut = format.events[..count].concat();
            // The connection ends, is reset, or ends within a chunked body.
            let mut half = chunked();
            half.extend(chunk(&cut));
            for (how, acts) in [
                ("end", vec![Act::Send(stream(&cut))]),
                (
                    "reset",
                    vec![
                        Act::Send(stream(&cut)),
                        Act::Pause(Duration::from_millis(5)),
                        Act::Reset,
                    ],
                ),
                ("chunked", vec![Act::Send(half)]),
                ("in an event", vec![Act::Send(stream(format!("{cut}data: {{\"choi")))]),
            ] {
                let what = format!("{} {how} {count}", format.provider);
                let fake = Fake::start(vec![acts, sound(&format)]).await;
                let asked = ask_at(format.provider, &fake).await;
                check(&asked, &what);
                assert_eq!(asked.retries.len(), 1, "{what}");
            }
        }
        // From there on it is whole, whatever becomes of the connection.
        for count in format.whole_from..format.events.len() {
            for end in [Act::Pause(Duration::ZERO), Act::Reset, Act::Hang] {
                let what = format!("{} {count} {end:?}", format.provider);
                let acts = vec![
                    Act::Send(stream(format.events[..count].concat())),
                    Act::Pause(Duration::from_millis(5)),
                    end,
                ];
                let asked = ask_at(format.provider, &Fake::start(vec![acts]).await).await;
                check(&asked, &what);
                assert!(asked.retries.is_empty(), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn a_whole_answer_that_breaks_off_is_retried() {
    for format in formats() {
        let text = format.whole.to_string();
        let full = response("200 OK", "application/json", &text);
        let promised = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
            text.len(),
            &text[..text.len() / 3]
        );
        for first in [
            full[..full.len() - 5].to_vec(),
            promised.into_bytes(),
            response("200 OK", "application/json", ""),
        ] {
            let fake = Fake::start(vec![vec![Act::Send(first)], vec![Act::Send(full.clone())]]).await;
            let asked = ask_at(format.provider, &fake).await;
            check(&asked, format.provider);
            assert_eq!(asked.retries.len(), 1);
        }
    }
}

#[tokio::test]
async fn a_reset_at_any_phase_is_retried() {
    for format in formats() {
        let head = stream("");
        for acts in [
            vec![Act::ResetAtOnce],
            vec![Act::Reset],
            vec![
                Act::Send(head[..20].to_vec()),
                Act::Pause(Duration::from_millis(5)),
                Act::Reset,
            ],
            vec![
                Act::Send(head.clone()),
                Act::Pause(Duration::from_millis(5)),
                Act::Reset,
            ],
            vec![],
        ] {
            let fake = Fake::start(vec![acts, sound(&format)]).await;
            let asked = ask_at(format.provider, &fake).await;
            check(&asked, format.provider);
            // The HTTP client may have mended what broke before anything was sent.
            assert!(asked.retries.len() <= 1);
        }
        // It goes on failing: the error says so, and where.
        let fake = Fake::start(vec![vec![Act::Send(stream(""))]]).await;
        let asked = ask_at(format.provider, &fake).await;
        let failed = asked.outcome.unwrap_err();
        assert_eq!(failed.kind, ModelErrorKind::Unavailable);
        assert!(
            failed
                .message
                .starts_with(&format!("model `local` at {}: ", fake.origin)),
            "{failed}"
        );
        assert!(failed.message.ends_with("(after 2 attempts)"), "{failed}");
    }
}

#[tokio::test]
async fn nobody_there_is_unavailable() {
    let mut config = config("openai", "http://127.0.0.1:9");
    config.generation.temperature = Some(0.1);
    let model = client("local", &config, None, &options()).unwrap();
    let asked = ask(&*model, request()).await;
    let failed = asked.outcome.unwrap_err();
    assert_eq!(failed.kind, ModelErrorKind::Unavailable);
    assert!(failed.message.contains("cannot connect"), "{failed}");
    assert_eq!(asked.retries.len(), 1);
}

#[tokio::test]
async fn slow_headers_and_an_idle_stream_time_out() {
    let mut options = options();
    options.retry.retries = 0;
    options.timeouts.answer = Duration::from_millis(300);
    options.timeouts.idle = Duration::from_millis(300);
    for format in formats() {
        for (acts, words) in [
            (vec![Act::Hang], "no answer began"),
            (vec![Act::Send(stream("")[..20].to_vec()), Act::Hang], "no answer began"),
            (vec![Act::Send(stream(&format.events[0])), Act::Hang], "nothing came"),
            (
                vec![Act::Send(whole(&format.whole)[..120].to_vec()), Act::Hang],
                "nothing came",
            ),
        ] {
            let fake = Fake::start(vec![acts]).await;
            let model = client("local", &config(format.provider, &fake.origin), None, &options).unwrap();
            let failed = ask(&*model, request()).await.outcome.unwrap_err();
            assert_eq!(failed.kind, ModelErrorKind::Unavailable);
            assert!(failed.message.contains(words), "{failed}");
        }
        // A comment is a sign of life.
        let mut acts = vec![Act::Send(stream(""))];
        for event in &format.events {
            acts.push(Act::Pause(Duration::from_millis(60)));
            acts.push(Act::Send(format!(": alive\n\n{event}").into_bytes()));
        }
        let fake = Fake::start(vec![acts]).await;
        let model = client("local", &config(format.provider, &fake.origin), None, &options).unwrap();
        check(&ask(&*model, request()).await, format.provider);
    }
}

#[tokio::test]
async fn pages_redirects_and_garbage_are_told_as_what_they_are() {
    for format in formats() {
        let redirect =
            b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/other\r\ncontent-length: 0\r\n\r\n";
        for (bytes, kind, words, tries) in [
            (
                response("200 OK", "text/html", "<html>hello</html>"),
                ModelErrorKind::Refused,
                "web page",
                0,
            ),
            (
                response("200 OK", "text/plain", "\n <!doctype html>"),
                ModelErrorKind::Refused,
                "web page",
                0,
            ),
            (
                response("502 Bad Gateway", "text/html", "<html>bad</html>"),
                ModelErrorKind::Unavailable,
                "502",
                1,
            ),
            (
                redirect.to_vec(),
                ModelErrorKind::Refused,
                "redirects (307) to `http://127.0.0.1:1/other`",
                0,
            ),
            (stream("data: {oops\n\n"), ModelErrorKind::Unavailable, "not JSON", 1),
            (stream("data: \u{1}\n\n"), ModelErrorKind::Unavailable, "not JSON", 1),
            (
                stream(b"data: {\"a\": \"\xff\"}\n\n"),
                ModelErrorKind::Unavailable,
                "not UTF-8",
                1,
            ),
            (whole(&json!({"odd": 1})), ModelErrorKind::Unavailable, "holds no", 1),
            (
                response("200 OK", "application/json", "{]"),
                ModelErrorKind::Unavailable,
                "not JSON",
                1,
            ),
            (
                response("404 Not Found", "text/plain", "404 page not found"),
                ModelErrorKind::Refused,
                "404 (not found): 404 page not found",
                0,
            ),
        ] {
            let fake = Fake::answering(bytes).await;
            let asked = ask_at(format.provider, &fake).await;
            let failed = asked.outcome.unwrap_err();
            assert_eq!(failed.kind, kind, "{failed}");
            assert!(failed.message.contains(words), "{failed}");
            assert_eq!(asked.retries.len(), tries, "{failed}");
        }
    }
}

#[tokio::test]
async fn errors_in_a_stream_or_in_place_of_one_are_faults() {
    for format in formats() {
        let frame = (format.error)("server_error", "engine died");
        for first in [
            stream(format!("{}data: {frame}\n\n", format.events[..3].concat())),
            stream(format!(
                "{}event: error\ndata: {frame}\n\n",
                format.events[..3].concat()
            )),
            stream(format!("{}{frame}\n", format.events[..3].concat())),
            stream(format!(
                "{}error: {{\"code\": 500, \"message\": \"engine died\"}}\n\n",
                format.events[..3].concat()
            )),
            stream(format!("data: {frame}\n\ndata: [DONE]\n\n")),
            whole(&frame),
            error("500 Internal Server Error", &frame),
        ] {
            let fake = Fake::start(vec![vec![Act::Send(first)], sound(&format)]).await;
            let asked = ask_at(format.provider, &fake).await;
            check(&asked, format.provider);
            assert!(asked.retries[0].contains("engine died"), "{:?}", asked.retries);
        }
        // One that no retry mends, and one that is an overflow.
        for (kind, message, expected) in [
            ("authentication_error", "bad key", ModelErrorKind::Refused),
            (
                "invalid_request_error",
                "prompt is too long: 9 tokens > 8 maximum",
                ModelErrorKind::ContextOverflow,
            ),
        ] {
            let frame = (format.error)(kind, message);
            for first in [
                stream(format!("data: {frame}\n\n")),
                whole(&frame),
                error("400 Bad Request", &frame),
            ] {
                let asked = ask_at(format.provider, &Fake::answering(first).await).await;
                let failed = asked.outcome.unwrap_err();
                assert_eq!(failed.kind, expected, "{failed}");
                assert!(failed.message.contains(message), "{failed}");
                assert!(asked.retries.is_empty());
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_asks_to_wait_is_obeyed_within_bounds() {
    for format in formats() {
        let busy = |after: &str| {
            let body = (format.error)("rate_limit_error", "slow down").to_string();
            format!(
                "HTTP/1.1 429 Too Many Requests\r\nretry-after: {after}\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
            .into_bytes()
        };
        let fake = Fake::start(vec![vec![Act::Send(busy("0.3"))], sound(&format)]).await;
        let started = Instant::now();
        let asked = ask_at(format.provider, &fake).await;
        check(&asked, format.provider);
        assert!(started.elapsed() >= Duration::from_millis(300));
        assert!(asked.retries[0].contains("slow down"));
        assert_eq!(asked.waits, [300], "the watcher is told how long");
        // A date long past is no wait, and one far off is no use.
        let fake = Fake::start(vec![
            vec![Act::Send(busy("Thu, 01 Jan 2015 00:00:00 GMT"))],
            sound(&format),
        ])
        .await;
        check(&ask_at(format.provider, &fake).await, format.provider);
        let asked = ask_at(format.provider, &Fake::answering(busy("3600")).await).await;
        let failed = asked.outcome.unwrap_err();
        assert_eq!(failed.kind, ModelErrorKind::Unavailable);
        assert!(failed.message.ends_with("; the server asks to wait 3600 s"), "{failed}");
        assert!(asked.retries.is_empty());
    }
}

#[tokio::test]
async fn retries_end_by_number_and_by_time() {
    for format in formats() {
        let body = (format.error)("overloaded_error", "busy").to_string();
        let busy = |after: &str| {
            let length = body.len();
            format!("HTTP/1.1 503 Busy\r\n{after}content-length: {length}\r\n\r\n{body}").into_bytes()
        };
        let mut options = options();
        options.retry.retries = 4;
        let fake = Fake::answering(busy("")).await;
        let model = client("local", &config(format.provider, &fake.origin), None, &options).unwrap();
        let asked = ask(&*model, request()).await;
        assert_eq!(
            (asked.retries.len(), fake.received().len()),
            (4, 5),
            "{}",
            format.provider
        );
        assert!(asked.waits.iter().all(|wait| *wait <= 5), "{:?}", asked.waits);
        assert!(asked.outcome.unwrap_err().message.ends_with("(after 5 attempts)"));
        // Each wait that the server asks for is allowed, all of them together are not.
        options.retry.retries = 100;
        options.retry.total = Duration::from_millis(250);
        let fake = Fake::answering(busy("retry-after: 0.1\r\n")).await;
        let model = client("local", &config(format.provider, &fake.origin), None, &options).unwrap();
        let asked = ask(&*model, request()).await;
        assert_eq!(asked.outcome.unwrap_err().kind, ModelErrorKind::Unavailable);
        assert!(asked.retries.len() <= 2, "{:?}", asked.waits);
    }
}

#[tokio::test]
async fn what_a_broken_attempt_had_cost_is_told() {
    for format in formats() {
        let what = format.provider;
        // Anthropic counts at the start; servers of the other format that count early do it like this (vLLM).
        let counted = match what {
            "anthropic" => format.events[0].clone(),
            _ => format!(
                "data: {}\n\n",
                json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 1}})
            ),
        };
        let begun = format!("{counted}{}", format.events[1..3].concat());
        let frame = (format.error)("server_error", "engine died");
        for (how, acts) in [
            ("end", vec![Act::Send(stream(&begun))]),
            (
                "reset",
                vec![
                    Act::Send(stream(&begun)),
                    Act::Pause(Duration::from_millis(20)),
                    Act::Reset,
                ],
            ),
            ("garbage", vec![Act::Send(stream(format!("{begun}data: {{oops\n\n")))]),
            ("error", vec![Act::Send(stream(format!("{begun}data: {frame}\n\n")))]),
        ] {
            let asked = ask_at(what, &Fake::start(vec![acts, sound(&format)]).await).await;
            check(&asked, how);
            let spent: Vec<_> = asked
                .spent
                .iter()
                .map(|usage| (usage.input_tokens, usage.output_tokens))
                .collect();
            assert_eq!(spent, [(11, 1)], "{what} {how}");
        }
        // A whole answer that is an error, and counts.
        let mut body = frame.clone();
        body["usage"] = format.whole["usage"].clone();
        let asked = ask_at(
            what,
            &Fake::start(vec![vec![Act::Send(whole(&body))], sound(&format)]).await,
        )
        .await;
        check(&asked, what);
        assert_eq!(
            (asked.spent[0].input_tokens, asked.spent[0].output_tokens),
            (11, 5),
            "{what}"
        );
        // One that no attempt mends is told too, with its price, and one that counted nothing tells nothing.
        let fatal = (format.error)("authentication_error", "bad key");
        let fake = Fake::answering(stream(format!("{begun}data: {fatal}\n\n"))).await;
        let mut priced = config(what, &fake.origin);
        priced.prices = Some(fief_core::manifest::config::Prices {
            input: 1e6,
            cached: Some(0.0),
            output: 1e6,
        });
        let asked = ask(&*client("local", &priced, None, &options()).unwrap(), request()).await;
        assert!(asked.outcome.is_err());
        let cost = asked.spent[0].cost.unwrap();
        assert!(
            (cost - if what == "anthropic" { 9.0 } else { 12.0 }).abs() < 1e-9,
            "{what}: {cost}"
        );
        let fake = Fake::start(vec![vec![Act::Send(stream(format.events[1].as_str()))], sound(&format)]).await;
        assert!(ask_at(what, &fake).await.spent.is_empty(), "{what}");
    }
}
