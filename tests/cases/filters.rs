//! Filters: the real ones, in whole runs.

use serde_json::{Value, json};

use super::support::binary::{Finished, Workplace};
use super::support::{guests, plugins};

const KEY: &str = "AKIAIOSFODNN7EXAMPLE";

/// Runs a recorded model under the archetype `watched`, which is this and a name.
fn run(place: &Workplace, archetype: &str, lines: &[Value]) -> Finished {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write("model.jsonl", text);
    place.write(
        "agents/watched.toml",
        format!("name = \"watched\"\ndescription = \"Is watched.\"\ninstruction = \"Work.\"\n{archetype}\n"),
    );
    let mut command = place.fief([
        "run",
        "--json",
        "--model",
        "script:model.jsonl",
        "--archetypes",
        "agents",
        "--archetype",
        "watched",
        "--allow-write",
        ".",
    ]);
    command.arg("--plugins").arg(plugins::directory());
    if place.work().join("guests").is_dir() {
        command.args(["--plugins", "guests"]);
    }
    command.arg("Go.");
    Finished::of(command)
}

fn call(session: &str, tool: &str, arguments: &Value) -> Value {
    json!({ "session": session, "calls": [{ "tool": tool, "arguments": arguments }] })
}

fn read(session: &str) -> Value {
    call(session, "files.read", &json!({ "path": "key.txt" }))
}

fn write(session: &str) -> Value {
    call(session, "files.write", &json!({ "path": "new.txt", "content": "x" }))
}

fn ended(events: &[Value], tool: &str) -> Vec<(String, String)> {
    events
        .iter()
        .filter(|event| event["event"] == "tool_finished" && event["tool"] == tool)
        .map(|event| {
            let text = |key: &str| event[key].as_str().unwrap().to_owned();
            (text("outcome"), text("content"))
        })
        .collect()
}

fn place() -> Workplace {
    let place = Workplace::new();
    place.write("key.txt", format!("the key is {KEY}\n"));
    place
}

#[test]
fn a_filter_changes_what_a_model_sees() {
    let lines = [
        read("main"),
        json!({ "session": "main", "expect": "[redacted", "absent": KEY, "text": "hidden" }),
    ];
    let events = run(&place(), "filters = [\"redact\"]", &lines).expect_code(0).lines();
    let (outcome, content) = &ended(&events, "files.read")[0];
    assert_eq!(outcome, "ok");
    assert!(!content.contains(KEY) && content.contains("the key is"), "{content}");
}

#[test]
fn a_filter_refuses_with_its_reason_and_nobody_there_is_no() {
    let place = place();
    let lines = [
        write("main"),
        json!({ "session": "main", "expect": ["refused by filter `confirm`", "did not allow"], "text": "refused" }),
    ];
    let archetype = "filters = [{ plugin = \"confirm\", grant = { person = true } }]";
    let config = place.home().join("config/fief/fief.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[policy]\nperson = true\n").unwrap();
    let events = run(&place, archetype, &lines).expect_code(0).lines();
    assert_eq!(ended(&events, "files.write")[0].0, "denied");
    assert!(!place.work().join("new.txt").exists());
}

#[test]
fn a_chain_keeps_its_order_and_the_first_refusal_ends_it() {
    let place = place();
    let config = place.home().join("config/fief/fief.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[policy]\nperson = true\n").unwrap();
    let confirm = "{ plugin = \"confirm\", grant = { person = true } }";
    for filters in [format!("[\"redact\", {confirm}]"), format!("[{confirm}, \"redact\"]")] {
        let lines = [
            read("main"),
            json!({ "session": "main", "expect": "[redacted", "absent": KEY, "calls": [
                { "tool": "files.write", "arguments": { "path": "new.txt", "content": "x" } }] }),
            json!({ "session": "main", "expect": "refused by filter `confirm`", "text": "done" }),
        ];
        run(&place, &format!("filters = {filters}"), &lines).expect_code(0);
        assert!(!place.work().join("new.txt").exists());
    }
}

#[test]
fn a_filter_of_spawn_and_of_dynamic_sees_the_call_the_report_and_the_childs_calls() {
    let archetype = |way: &str| {
        format!(
            "agents = [\"default\"]\n[spawn]\nfilters = {0}\n[dynamic]\nfilters = {1}\n",
            if way == "spawn_subagent" { "[\"redact\"]" } else { "[]" },
            if way == "spawn_subagent" { "[]" } else { "[\"redact\"]" }
        )
    };
    for (way, session, arguments) in [
        (
            "spawn_subagent",
            "default_1",
            json!({ "subagent_type": "default", "prompt": "Read it." }),
        ),
        (
            "dynamic_subagent",
            "dynamic_1",
            json!({ "instruction": "You read.", "prompt": "Read it." }),
        ),
    ] {
        let lines = [
            call("main", way, &arguments),
            read(session),
            json!({ "session": session, "expect": "[redacted", "text": format!("it is {KEY}") }),
            json!({ "session": "main", "expect": "[redacted", "absent": KEY, "text": "done" }),
        ];
        let events = run(&place(), &archetype(way), &lines).expect_code(0).lines();
        assert!(!ended(&events, way)[0].1.contains(KEY), "{way}");
    }
}

#[test]
fn a_filter_that_traps_or_runs_out_refuses_the_call() {
    let place = place();
    std::fs::create_dir(place.work().join("guests")).unwrap();
    for (name, says) in [
        ("filter_traps", "crashed"),
        ("filter_spins", "computed for longer than its limit of 50 ms"),
    ] {
        let file = name.replace('_', "-");
        std::fs::copy(
            guests::component(&format!("examples/{name}")),
            place.work().join(format!("guests/{file}.wasm")),
        )
        .unwrap();
        let lines = [
            write("main"),
            json!({ "session": "main", "expect": "refused by filter", "text": "refused" }),
        ];
        let archetype = format!("filters = [{{ plugin = \"{file}\", grant = {{ limits = {{ cpu = \"50ms\" }} }} }}]");
        let events = run(&place, &archetype, &lines).expect_code(0).lines();
        let (outcome, content) = &ended(&events, "files.write")[0];
        assert_eq!(outcome, "denied");
        assert!(content.contains(says), "{name}: {content}");
        assert!(!place.work().join("new.txt").exists(), "{name}");
    }
}

#[test]
fn changed_arguments_are_checked_again() {
    let place = place();
    std::fs::create_dir(place.work().join("guests")).unwrap();
    std::fs::copy(
        guests::component("examples/filter_changes"),
        place.work().join("guests/filter-changes.wasm"),
    )
    .unwrap();
    // It moves every path to `moved.txt`, and spoils a call whose content is `spoil`.
    let lines = [
        json!({ "session": "main", "calls": [
            { "tool": "files.write", "arguments": { "path": "new.txt", "content": "x" } },
            { "tool": "files.write", "arguments": { "path": "new.txt", "content": "spoil" } },
        ] }),
        json!({ "session": "main", "text": "done" }),
    ];
    let events = run(&place, "filters = [\"filter-changes\"]", &lines)
        .expect_code(0)
        .lines();
    let ended = ended(&events, "files.write");
    let spoilt = ended.iter().find(|(outcome, _)| outcome == "denied").unwrap();
    assert!(
        spoilt.1.contains("changed the arguments, and they are not valid"),
        "{spoilt:?}"
    );
    assert!(place.work().join("moved.txt").exists() && !place.work().join("new.txt").exists());
}
