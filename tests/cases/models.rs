//! Configured models: every key of theirs on its way to a server, which key goes where, and what `fief doctor` finds.

use std::process::Command;

use serde_json::{Value, json};

use super::support::binary::{Finished, Workplace};
use super::support::plugins;
use super::support::server::Server;

fn configure(place: &Workplace, text: &str) {
    let config = place.home().join("config/fief/fief.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, text).unwrap();
}

fn openai(text: &str) -> Value {
    json!({"id": "x", "model": "m-1", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 500_000,
            "prompt_tokens_details": {"cached_tokens": 400_000}}})
}

fn anthropic(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "model": "c-1", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 3, "output_tokens": 2}})
}

fn refusing() -> Value {
    json!({"error": {"type": "authentication_error", "message": "no such key: a-key-0123456789"}})
}

/// `fief run`, with two keys in its environment.
fn run(place: &Workplace, flags: &[&str]) -> Command {
    let mut command = place.fief(["run", "--json", "--plugins"]);
    command
        .arg(plugins::directory())
        .args(flags)
        .arg("Say it.")
        .env("A_KEY", "a-key-0123456789")
        .env("B_KEY", "b-key-0123456789");
    command
}

#[test]
fn every_key_of_a_model_reaches_its_server_and_no_key_another() {
    let place = Workplace::new();
    let a = Server::start(vec![
        ("200 OK", "", openai("from a")),
        ("401 Unauthorized", "", refusing()),
    ]);
    let b = Server::answering(anthropic("from b"));
    configure(
        &place,
        &format!(
            r#"
[run]
model = "b"
[models.a]
provider = "openai"
model = "m"
base_url = "{}/v1"
key_env = "A_KEY"
headers = {{ x-team = "red" }}
stream = false
native_tools = false
generation = {{ temperature = 0.25, top_p = 0.5, max_output_tokens = 7, stop = ["END"], seed = 3 }}
prices = {{ input = 1.0, cached = 0.5, output = 4.0 }}
fallback = ["b"]
[models.b]
provider = "anthropic"
model = "c"
base_url = "{}"
key_env = "B_KEY"
"#,
            a.origin, b.origin
        ),
    );
    let finished = Finished::of(run(&place, &["--model", "a"])).expect_code(0);
    let last = finished.lines().pop().unwrap();
    assert_eq!(last["report"], "from a");
    let cost = last["usage"]["cost"].as_f64().unwrap();
    assert!((cost - (0.6 + 0.2 + 2.0)).abs() < 1e-9, "{cost}");
    let asked = a.asked()[0].clone();
    assert!(asked.head.starts_with("post /v1/chat/completions "), "{}", asked.head);
    for header in ["authorization: bearer a-key-0123456789", "x-team: red"] {
        assert!(asked.head.contains(header), "{header}: {}", asked.head);
    }
    for (key, value) in [
        ("model", json!("m")),
        ("stream", json!(false)),
        ("temperature", json!(0.25)),
        ("top_p", json!(0.5)),
        ("max_tokens", json!(7)),
        ("stop", json!(["END"])),
        ("seed", json!(3)),
    ] {
        assert_eq!(asked.body[key], value, "{key}");
    }
    // Without native calls the tools stand in the system prompt.
    assert!(asked.body.get("tools").is_none());
    let system = asked.body["messages"][0]["content"].as_str().unwrap();
    assert!(
        system.contains("<use_mcp_tool>") && system.contains("Server name: files"),
        "{system}"
    );
    assert!(b.asked().is_empty());

    // The second time `a` refuses, and `b` is asked in its place, with its own key and in its own format.
    let finished = Finished::of(run(&place, &["--model", "a"])).expect_code(0);
    let events = finished.lines();
    assert_eq!(events.last().unwrap()["report"], "from b");
    let retry = events.iter().find(|event| event["event"] == "model_retry").unwrap();
    let why = retry["error"].as_str().unwrap();
    assert!(
        why.contains("no such key: [redacted]") && why.ends_with("`b` is asked instead"),
        "{why}"
    );
    let asked = b.asked()[0].clone();
    assert!(asked.head.starts_with("post /v1/messages "), "{}", asked.head);
    assert!(asked.head.contains("x-api-key: b-key-0123456789") && asked.head.contains("anthropic-version: 2023-06-01"));
    let crossed = |asked: &[super::support::server::Asked], key: &str| asked.iter().any(|one| one.head.contains(key));
    assert!(!crossed(&a.asked(), "b-key") && !crossed(&b.asked(), "a-key"));
    assert!(!crossed(&b.asked(), "x-team"), "a header is for its own server too");

    // Without a flag the configured model answers; keys stand in nothing that is shown or kept.
    let finished = Finished::of(run(&place, &[])).expect_code(0);
    assert_eq!(finished.lines().pop().unwrap()["report"], "from b");
    assert_eq!(b.asked().len(), 2);
    let state = place.home().join("state");
    assert!(state.is_dir());
    for key in ["a-key-0123456789", "b-key-0123456789"] {
        assert!(!finished.stdout.contains(key) && !holds(&state, key), "{key}");
    }
}

/// Whether a text stands in any file below a folder.
fn holds(folder: &std::path::Path, text: &str) -> bool {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .any(|path| {
            if path.is_dir() {
                return holds(&path, text);
            }
            std::fs::read(&path)
                .unwrap()
                .windows(text.len())
                .any(|window| window == text.as_bytes())
        })
}

#[test]
fn a_redirect_is_followed_by_neither_key_nor_conversation() {
    let place = Workplace::new();
    let elsewhere = Server::answering(openai("stolen"));
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let location = format!("location: {}/v1/chat/completions\r\n", elsewhere.origin);
        let first = Server::start(vec![(status, &location, Value::Null)]);
        for provider in ["openai", "anthropic"] {
            configure(
                &place,
                &format!(
                    "[models.a]\nprovider = \"{provider}\"\nmodel = \"m\"\nbase_url = \"{}\"\nkey_env = \"A_KEY\"\n",
                    first.origin
                ),
            );
            let finished = Finished::of(run(&place, &["--model", "a"])).expect_code(3);
            assert!(finished.stderr.contains("which is not followed"), "{}", finished.stderr);
        }
        assert_eq!(first.asked().len(), 2, "{status}");
    }
    assert!(elsewhere.asked().is_empty());
}

#[test]
fn the_doctor_asks_each_model_and_says_what_it_found() {
    let place = Workplace::new();
    let refusal = json!({"error": {"message": "m does not support tools"}});
    let (good, claude) = (Server::answering(openai("yes")), Server::answering(anthropic("yes")));
    let toolless = Server::start(vec![("400 Bad Request", "", refusal), ("200 OK", "", openai("yes"))]);
    let closed = Server::start(vec![("401 Unauthorized", "", refusing())]);
    place.write("model.jsonl", "{\"session\": \"main\", \"text\": \"x\"}\n");
    let model = |name: &str, provider: &str, server: &Server| {
        format!(
            "[models.{name}]\nprovider = \"{provider}\"\nmodel = \"m\"\nbase_url = \"{}\"\nkey_env = \"A_KEY\"\n",
            server.origin
        )
    };
    let sound = format!(
        "[run]\nmodel = \"good\"\n{}{}[models.tape]\nprovider = \"script\"\nmodel = \"model.jsonl\"\n",
        model("good", "openai", &good),
        model("claude", "anthropic", &claude)
    );
    let doctor = |flags: &[&str]| {
        let mut command = place.fief(["doctor", "--plugins"]);
        command
            .arg(plugins::directory())
            .args(flags)
            .env("A_KEY", "a-key-0123456789");
        Finished::of(command)
    };
    configure(&place, &sound);
    let told = doctor(&[]).expect_code(0).stdout;
    for part in [
        format!("✓ model good: {} answered in ", good.origin),
        " as m-1, 1000000 tokens in, 500000 out, not streamed, takes tools".into(),
        format!("✓ model claude: {} answered in ", claude.origin),
        " as c-1, 3 tokens in, 2 out".into(),
        "✓ model tape: ".into(),
    ] {
        assert!(told.contains(&part), "{part} in {told}");
    }
    let asked = good.asked();
    assert_eq!(
        (asked.len(), &asked[0].body["max_tokens"]),
        (1, &json!(1)),
        "one token, once"
    );

    let ill = format!(
        "{sound}{}{}[models.gone]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9\"\n\
         [models.lost]\nprovider = \"script\"\nmodel = \"none.jsonl\"\n[models.keyless]\nprovider = \"anthropic\"\n\
         model = \"m\"\n",
        model("toolless", "openai", &toolless),
        model("closed", "openai", &closed)
    );
    configure(&place, &ill);
    let told = doctor(&[]).expect_code(1).stdout;
    for part in [
        "✗ model closed: ",
        "no such key: [redacted]",
        "✗ model gone: ",
        "cannot connect",
        "✗ model keyless: model `keyless`: the variable `ANTHROPIC_API_KEY` is not set",
        "✗ model lost: ",
        "none.jsonl",
        "✓ model toolless: ",
        "mend: the server refuses requests with tools: set `native_tools = false`",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert!(!told.contains("a-key-0123456789"), "{told}");
    // Offline nobody is asked.
    let before = good.asked().len();
    let told = doctor(&["--offline"]).stdout;
    assert!(
        told.contains("· model good: openai m") && good.asked().len() == before,
        "{told}"
    );
}

#[cfg(unix)]
#[test]
fn a_secrets_file_that_never_ends_is_refused() {
    let place = Workplace::new();
    configure(&place, "[secrets]\nfile = \"/dev/zero\"\n");
    let refused = Finished::of(run(&place, &["--model", "script:model.jsonl"])).expect_code(2);
    assert!(
        refused.stderr.contains("/dev/zero: it is not a regular file"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_call_of_a_stream_that_was_cut_never_runs_and_the_retry_is_shown() {
    let place = Workplace::new();
    place.write("out/kept.txt", "");
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let write = json!({"path": "/work/out/found.txt", "content": "x"});
    let function = json!({"name": "files__write", "arguments": write.to_string()});
    let call = json!({"choices": [{"index": 0, "delta": {"content": "I write.",
        "tool_calls": [{"index": 0, "id": "c1", "function": function}]}}]});
    let end = |reason: &str| json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
    let said = json!({"choices": [{"index": 0, "delta": {"content": "done"}}]});
    let cut = format!("{head}data: {call}\n\n");
    let whole = format!("{head}data: {call}\n\ndata: {}\n\n", end("tool_calls"));
    let last = format!("{head}data: {said}\n\ndata: {}\n\n", end("stop"));
    for (first, calls) in [(&cut, 0), (&whole, 1)] {
        let server = Server::playing([first, &last].map(|text| text.clone().into_bytes()).to_vec());
        configure(
            &place,
            &format!(
                "[models.a]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{}\"\n",
                server.origin
            ),
        );
        let finished = Finished::of(run(&place, &["--model", "a", "--allow-write", "out"])).expect_code(0);
        let events = finished.lines();
        let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).collect::<Vec<_>>();
        assert_eq!(of("tool_started").len(), calls, "{}", finished.stdout);
        assert_eq!(place.work().join("out/found.txt").exists(), calls == 1);
        let retries = of("model_retry");
        assert_eq!(retries.len(), 1 - calls);
        for retry in retries {
            assert!(
                retry["attempt"] == 1 && retry["wait_ms"].as_u64().unwrap() >= 500,
                "{retry}"
            );
            assert!(
                retry["error"].as_str().unwrap().contains("before the answer was whole"),
                "{retry}"
            );
        }
        assert_eq!(events.last().unwrap()["report"], "done");
    }
}
