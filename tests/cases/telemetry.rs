//! What a run tells a collector, received on a loopback port: the tree of spans, no content unless asked for, nothing at
//! all when off, and nothing changed by a collector that is not there.

use std::net::TcpListener;
use std::process::Command;

use serde_json::{Value, json};

use super::support::binary::{Finished, Workplace};
use super::support::collector::{Collector, Span};
use super::support::plugins;

/// The operator's configuration.
fn configure(place: &Workplace, telemetry: &str) {
    let config = place.home().join("config/fief/fief.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let text = format!("[agents]\nbuiltin = [\"default\", \"explore\"]\n{telemetry}");
    std::fs::write(&config, text).unwrap();
}

fn command(place: &Workplace, lines: &[Value], flags: &[&str]) -> Command {
    place.write("notes.txt", "sea\nharbour\n");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write("model.jsonl", text);
    let mut command = place.fief(["run", "--model", "script:model.jsonl", "--plugins"]);
    command.arg(plugins::directory()).args(flags).arg("Find the harbour.");
    command
}

/// A child, a call of its that works, and one that is refused.
fn lines() -> [Value; 5] {
    let usage = json!({ "input_tokens": 7, "output_tokens": 3, "cached_tokens": 2 });
    [
        json!({ "session": "main", "calls": [{ "tool": "spawn_subagent", "id": "spawn-1",
            "arguments": { "subagent_type": "explore", "prompt": "Where is the harbour?" } }] }),
        json!({ "session": "explore", "usage": usage,
            "calls": [{ "tool": "files.grep", "arguments": { "pattern": "harbour" } }] }),
        json!({ "session": "explore", "expect": "notes.txt",
            "calls": [{ "tool": "files.write", "arguments": { "path": "found.txt", "content": "x" } }] }),
        json!({ "session": "explore", "text": "notes.txt, line 2" }),
        json!({ "session": "main", "text": "It is in notes.txt." }),
    ]
}

fn plain() -> [Value; 1] {
    [json!({ "session": "main", "text": "the answer" })]
}

#[test]
fn a_run_with_a_child_and_a_failure_is_one_tree_of_spans() {
    let (place, collector) = (Workplace::new(), Collector::start());
    configure(&place, &format!("[telemetry]\nendpoint = \"{}\"\n", collector.origin));
    let finished = Finished::of(command(&place, &lines(), &["--json"])).expect_code(0);
    assert!(!finished.stderr.contains("warning"), "{}", finished.stderr);
    let run = finished.lines()[0]["run"].as_str().unwrap().to_owned();

    let head = collector.received()[0].head.clone();
    assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-type: application/x-protobuf"), "{head}");
    let spans = collector.spans();
    let named = |name: &str| -> Vec<&Span> { spans.iter().filter(|span| span.name == name).collect() };
    let one = |name: &str| match named(name).as_slice() {
        [span] => *span,
        other => panic!("{} of {name} among {spans:#?}", other.len()),
    };
    let chats = named("chat model.jsonl");
    let (main, spawn, child) = (
        one("invoke_agent main"),
        one("execute_tool spawn_subagent"),
        one("invoke_agent explore"),
    );
    let (grep, write) = (one("execute_tool files.grep"), one("execute_tool files.write"));
    assert_eq!((spans.len(), chats.len()), (10, 5));

    assert!(main.parent.is_empty());
    assert_eq!((&spawn.parent, &child.parent), (&main.id, &spawn.id));
    assert_eq!((&grep.parent, &write.parent), (&child.id, &child.id));
    let below = |span: &Span| chats.iter().filter(|chat| chat.parent == span.id).count();
    assert_eq!((below(main), below(child)), (2, 3));
    for span in &spans {
        assert_eq!((&span.trace, span.trace.len(), span.id.len()), (&main.trace, 16, 8));
        // A recorded model is no server: nothing here is a client's.
        assert_eq!(span.kind, 1, "{}", span.name);
        assert!(
            span.start <= span.end && span.start >= main.start && span.end <= main.end,
            "{}",
            span.name
        );
        assert_eq!(span.attributes["gen_ai.conversation.id"], run);
        assert_eq!(
            (
                &*span.resource["service.name"],
                span.resource.contains_key("service.version")
            ),
            ("fief", true)
        );
        assert_eq!(span.status == 2, span.attributes.contains_key("error.type"));
    }
    let told = |span: &Span, key: &str| span.attributes.get(key).cloned().unwrap_or_default();
    assert_eq!(told(main, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(
        (told(child, "gen_ai.agent.name"), told(child, "gen_ai.provider.name")),
        ("explore".into(), "script".into())
    );
    assert!(!told(child, "gen_ai.agent.description").is_empty());
    assert_eq!(
        (
            told(child, "gen_ai.usage.input_tokens"),
            told(main, "gen_ai.usage.input_tokens")
        ),
        ("7".into(), "0".into())
    );
    assert_eq!(
        (told(spawn, "gen_ai.tool.name"), told(spawn, "gen_ai.tool.call.id")),
        ("spawn_subagent".into(), "spawn-1".into())
    );
    assert_eq!(
        (told(grep, "gen_ai.operation.name"), told(grep, "fief.outcome")),
        ("execute_tool".into(), "ok".into())
    );
    assert!(!told(grep, "gen_ai.tool.description").is_empty());
    assert_eq!((write.status, told(write, "error.type")), (2, "denied".into()));
    let first = chats
        .iter()
        .find(|chat| told(chat, "gen_ai.usage.input_tokens") == "7")
        .unwrap();
    for (key, expected) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "script"),
        ("gen_ai.request.model", "model.jsonl"),
        ("gen_ai.response.finish_reasons", "[tool_call]"),
        ("gen_ai.usage.output_tokens", "3"),
        ("gen_ai.usage.cache_read.input_tokens", "2"),
        ("fief.session", "explore_1"),
    ] {
        assert_eq!(told(first, key), expected, "{key}");
    }
    assert!(
        spans.iter().filter(|span| span.status == 2).count() == 1,
        "only the refused call failed"
    );

    // Nothing that a person, a model or a tool said.
    for said in ["arbour", "notes.txt", "found.txt", "ead-only"] {
        let described = spans
            .iter()
            .any(|span| told(span, "gen_ai.agent.description").contains(said));
        assert!(described || !collector.holds(said), "{said}");
    }
    let content = [
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.system_instructions",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    ];
    assert!(
        spans
            .iter()
            .all(|span| content.iter().all(|key| !span.attributes.contains_key(*key)))
    );
}

#[test]
fn content_is_sent_when_asked_for_and_secrets_never() {
    const KEY: &str = "sk-0123456789-abcdefghij";
    let (place, collector) = (Workplace::new(), Collector::start());
    configure(&place, "[telemetry]\ncontent = true\n");
    let mut lines = lines();
    lines[4] = json!({ "session": "main", "text": format!("It is in notes.txt, and the key is {KEY}.") });
    let mut command = command(&place, &lines, &["--json"]);
    command
        .env("OPENAI_API_KEY", KEY)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.origin)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=collector-key-1")
        .env("OTEL_SERVICE_NAME", "mine");
    let finished = Finished::of(command).expect_code(0);
    let received = collector.received();
    assert!(
        received
            .iter()
            .all(|one| one.head.contains("x-api-key: collector-key-1"))
    );
    let spans = collector.spans();
    assert_eq!(spans.len(), 10);
    assert!(spans.iter().all(|span| span.resource["service.name"] == "mine"));
    let json = |name: &str, key: &str| -> Value {
        let span = spans.iter().find(|span| span.name == name).unwrap();
        serde_json::from_str(&span.attributes[key]).unwrap()
    };
    assert_eq!(
        json("invoke_agent main", "gen_ai.input.messages")[0]["parts"][0]["content"],
        "Find the harbour."
    );
    assert_eq!(
        json("invoke_agent main", "gen_ai.output.messages")[0]["parts"][0]["content"],
        "It is in notes.txt, and the key is [redacted]."
    );
    assert_eq!(
        json("execute_tool files.grep", "gen_ai.tool.call.arguments"),
        json!({ "pattern": "harbour" })
    );
    assert!(collector.holds("notes.txt") && !collector.holds(KEY));
    let in_bodies = |text: &str| {
        received
            .iter()
            .any(|one| one.body.windows(text.len()).any(|window| window == text.as_bytes()))
    };
    assert!(!in_bodies("collector-key-1"));
    assert!(!finished.stdout.contains(KEY) && !finished.stdout.contains("collector-key-1"));
}

#[test]
fn a_collector_that_is_not_there_is_one_warning_and_changes_nothing_else() {
    let place = Workplace::new();
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // This one takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let failing = json!({ "session": "main", "error": { "kind": "refused", "message": "no" } });
    for (lines, code) in [(plain(), 0), ([failing], 3)] {
        configure(&place, "");
        let off = Finished::of(command(&place, &lines, &["--quiet"])).expect_code(code);
        for (address, why) in [
            (unused, "refused"),
            (silent.local_addr().unwrap(), "no answer came within 5 s"),
        ] {
            configure(&place, &format!("[telemetry]\nendpoint = \"http://{address}\"\n"));
            let on = Finished::of(command(&place, &lines, &["--quiet"])).expect_code(code);
            assert_eq!(on.stdout, off.stdout);
            let (warnings, rest): (Vec<&str>, Vec<&str>) =
                on.stderr.lines().partition(|line| line.starts_with("warning: "));
            assert_eq!(rest.join("\n"), off.stderr.trim_end());
            let [warning] = warnings.as_slice() else {
                panic!("one warning: {warnings:?}")
            };
            assert!(
                warning.contains(&format!("2 spans could not be sent to http://{address}: ")) && warning.contains(why),
                "{warning}"
            );
        }
    }
}

#[test]
fn nothing_is_sent_when_off_nor_where_a_strangers_repository_says() {
    let (place, collector) = (Workplace::new(), Collector::start());
    let config = format!("[telemetry]\nendpoint = \"{}\"\ncontent = true\n", collector.origin);
    configure(&place, "");
    Finished::of(command(&place, &plain(), &[])).expect_code(0);
    // Content alone names no collector.
    configure(&place, "[telemetry]\ncontent = true\n");
    Finished::of(command(&place, &plain(), &[])).expect_code(0);
    place.write("fief.toml", &config);
    let finished = Finished::of(command(&place, &plain(), &[])).expect_code(0);
    assert!(
        finished.stderr.contains("`telemetry` is ignored"),
        "{}",
        finished.stderr
    );
    assert!(collector.received().is_empty());
    // The same beside an operator's own collector: his is used, and content stays out.
    let mine = Collector::start();
    configure(&place, &format!("[telemetry]\nendpoint = \"{}\"\n", mine.origin));
    Finished::of(command(&place, &plain(), &[])).expect_code(0);
    assert!(collector.received().is_empty() && mine.spans().len() == 2 && !mine.holds("the answer"));
    // Off by the standard's switch, whoever named a collector.
    let mut off = command(&place, &plain(), &[]);
    off.env("OTEL_SDK_DISABLED", "true");
    Finished::of(off).expect_code(0);
    assert_eq!(mine.spans().len(), 2);
    // Once trusted, it is the operator's word.
    Finished::of(place.fief(["trust"])).expect_code(0);
    Finished::of(command(&place, &plain(), &[])).expect_code(0);
    assert!(collector.spans().len() == 2 && collector.holds("the answer"));
}

#[test]
fn a_call_without_a_model_is_a_span_of_its_own() {
    let (place, collector) = (Workplace::new(), Collector::start());
    configure(&place, &format!("[telemetry]\nendpoint = \"{}\"\n", collector.origin));
    place.write("notes.txt", "sea\nharbour\n");
    let call = |tool: &str, arguments: &str| {
        let mut command = place.fief(["call", "--plugins"]);
        command.arg(plugins::directory()).args([tool, arguments]);
        Finished::of(command)
    };
    let quiet = call("files.grep", "{\"pattern\": \"harbour\"}").expect_code(0);
    assert!(quiet.stderr.is_empty(), "{}", quiet.stderr);
    call("files.read", "{\"path\": \"none.txt\"}").expect_code(1);
    call("web.fetch", "{\"url\": \"https://unreached.example/\"}").expect_code(4);
    // Nothing ran: nothing is told.
    call("files.grep", "{}").expect_code(2);
    let spans = collector.spans();
    let told: Vec<_> = spans
        .iter()
        .map(|span| {
            (
                span.name.as_str(),
                span.attributes["fief.outcome"].as_str(),
                span.status,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("execute_tool files.grep", "ok", 0),
            ("execute_tool files.read", "tool-error", 2),
            ("execute_tool web.fetch", "denied", 2),
        ]
    );
    for span in &spans {
        assert!(
            span.parent.is_empty() && span.trace.len() == 16 && span.trace != [0; 16],
            "{span:?}"
        );
        assert_eq!(span.attributes["gen_ai.operation.name"], "execute_tool");
        assert_eq!(span.attributes["gen_ai.tool.call.id"], "1");
        assert!(!span.attributes.contains_key("gen_ai.tool.call.arguments"));
    }
    assert!(!spans[0].attributes["gen_ai.tool.description"].is_empty());
    assert!(spans[0].trace != spans[1].trace);
    assert!(
        ["arbour", "none.txt", "unreached"]
            .iter()
            .all(|said| !collector.holds(said))
    );
    configure(
        &place,
        &format!("[telemetry]\nendpoint = \"{}\"\ncontent = true\n", collector.origin),
    );
    call("files.grep", "{\"pattern\": \"harbour\"}").expect_code(0);
    assert!(collector.spans()[3].attributes["gen_ai.tool.call.result"].contains("notes.txt"));
}

#[test]
fn a_demonstration_tells_the_operators_collector_and_waits_for_it() {
    plugins::directory();
    let (place, collector) = (Workplace::new(), Collector::start());
    let demo = |origin: Option<&str>| {
        let mut command = place.fief(["demo", "--json"]);
        command.current_dir(super::support::root());
        if let Some(origin) = origin {
            command.env("OTEL_EXPORTER_OTLP_ENDPOINT", origin);
        }
        Finished::of(command).expect_code(0)
    };
    demo(None);
    assert!(collector.received().is_empty());
    demo(Some(&collector.origin));
    let count = |name: &str| collector.spans().iter().filter(|span| span.name == name).count();
    assert_eq!((count("invoke_agent main"), count("invoke_agent explore")), (1, 1));
    configure(&place, &format!("[telemetry]\nendpoint = \"{}\"\n", collector.origin));
    demo(None);
    assert_eq!(count("invoke_agent main"), 2);
    // A configuration with a fault costs a demonstration its spans and a warning.
    configure(&place, "[telemetry]\nendpint = 1\n");
    assert!(demo(None).stderr.contains("endpint"));
    assert_eq!(count("invoke_agent main"), 2);
}
