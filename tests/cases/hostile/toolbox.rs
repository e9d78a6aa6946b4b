//! Plugins that call an agent's other tools, and themselves, in whole runs of the program.

use serde_json::{Value, json};

use crate::support::binary::{Finished, Workplace};
use crate::support::{guests, plugins};

/// A place with the orchestrator under each of these names, in which policy allows the toolbox and writing.
fn place(names: &[&str]) -> Workplace {
    let place = Workplace::new();
    let config = place.home().join("config/fief/fief.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(config, "[policy]\ntoolbox = true\nwrite = [\".\"]\n").unwrap();
    for name in names {
        let guest = std::fs::read(guests::component("examples/toolbox")).unwrap();
        place.write(&format!("guests/{name}.wasm"), guest);
    }
    place
}

fn run(place: &Workplace, lines: &[Value], flags: &[&str]) -> Vec<Value> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write("model.jsonl", text);
    let mut command = place.fief([
        "run",
        "--json",
        "--model",
        "script:model.jsonl",
        "--plugins",
        "guests",
        "--plugins",
    ]);
    command.arg(plugins::directory()).args(flags).arg("Go.");
    Finished::of(command).expect_code(0).lines()
}

/// What each call of a tool came to, in the order in which they ended.
fn ended<'a>(events: &'a [Value], tool: &str) -> Vec<(&'a str, &'a str)> {
    let of = |event: &&Value| event["event"] == "tool_finished" && event["tool"] == tool;
    let text = |value: &'a Value| value.as_str().unwrap();
    events
        .iter()
        .filter(of)
        .map(|event| (text(&event["outcome"]), text(&event["content"])))
        .collect()
}

#[test]
fn a_plugin_that_calls_itself_is_stopped_and_reported_and_other_calls_go_on() {
    let place = place(&["toolbox"]);
    place.write("a.txt", "one\n");
    let before = "[run]\nrecord = true\n";
    place.write("fief.toml", before);
    let lines = [
        json!({ "session": "main", "calls": [
            { "tool": "toolbox.run", "arguments": {} },
            { "tool": "files.read", "arguments": { "path": "a.txt" } },
        ] }),
        json!({ "session": "main", "expect": ["held call toolbox.run", "is what led to this call", "one"],
            "calls": [{ "tool": "files.read", "arguments": { "path": "a.txt" } }] }),
        json!({ "session": "main", "expect": "one", "text": "done" }),
    ];
    let events = run(&place, &lines, &[]);
    let outer = ended(&events, "toolbox.run");
    // Itself, twice with arguments that are none: those do not get as far as a call.
    assert_eq!(outer[0].0, "denied", "{outer:#?}");
    assert!(
        outer[0]
            .1
            .contains("is what led to this call: it cannot be called from inside"),
        "{outer:#?}"
    );
    let (kind, text) = outer.last().unwrap();
    assert_eq!(*kind, "ok", "{text}");
    assert!(
        text.lines().filter(|line| line.starts_with("held call ")).count() >= 4,
        "{text}"
    );
    assert!(
        text.contains("held see files.read") && !text.contains("see toolbox.run"),
        "{text}"
    );
    // A way to a child is none of its tools, and what it changed nothing of is as it was.
    assert_eq!(ended(&events, "spawn_subagent")[0].0, "denied");
    assert_eq!(std::fs::read_to_string(place.work().join("fief.toml")).unwrap(), before);
    assert_eq!(
        ended(&events, "files.read")
            .iter()
            .filter(|(kind, _)| *kind == "ok")
            .count(),
        2
    );
    let refused =
        |event: &&Value| event["event"] == "capability" && event["kind"] == "toolbox" && event["allowed"] == false;
    let refused: Vec<&str> = events
        .iter()
        .filter(refused)
        .map(|event| event["target"].as_str().unwrap())
        .collect();
    assert!(
        refused.contains(&"toolbox.run") && refused.contains(&"spawn_subagent"),
        "{refused:?}"
    );
    assert_eq!(events.last().unwrap()["report"], "done");
}

#[test]
fn plugins_that_call_each_other_end_at_a_depth_or_where_the_circle_closes() {
    let place = place(&["t1", "t2", "t3", "t4", "t5"]);
    let nest = |names: &[&str]| {
        names.iter().rev().fold(
            json!({ "call": "files.glob", "with": { "pattern": "*" } }),
            |with, name| json!({ "call": format!("{name}.run"), "with": with }),
        )
    };
    let call = |with: Value, expect: &str, next: Value| {
        let mut line = next;
        line["session"] = "main".into();
        if !expect.is_empty() {
            line["expect"] = expect.into();
        }
        if with != Value::Null {
            line["calls"] = json!([{ "tool": "t1.run", "arguments": with }]);
        }
        line
    };
    let lines = [
        call(nest(&["t2", "t1"]), "", json!({})),
        call(
            nest(&["t2", "t3", "t4", "t5"]),
            "`t1.run` is what led to this call",
            json!({}),
        ),
        call(nest(&["t2", "t3"]), "calls stand 4 deep inside one another", json!({})),
        call(Value::Null, "model.jsonl", json!({ "text": "done" })),
    ];
    let events = run(&place, &lines, &[]);
    let deepest = events
        .iter()
        .filter_map(|event| event["call"].as_str())
        .map(|call| call.matches('/').count());
    assert_eq!(deepest.max(), Some(4), "a call at the limit is refused before it runs");
    assert_eq!(
        ended(&events, "t5.run"),
        [(
            "denied",
            "calls stand 4 deep inside one another: that is as deep as it goes"
        )]
    );
}

#[test]
fn a_call_through_the_toolbox_has_the_grants_of_the_agents_tool_and_no_more() {
    let place = place(&["toolbox"]);
    place.write("a.txt", "one\n");
    place.write("inner/b.txt", "two\n");
    place.write(
        "agents/narrow.toml",
        r#"
name = "narrow"
description = "Reads one directory, itself or through another tool."
instruction = "Read."
[[tools]]
plugin = "toolbox"
grant = { toolbox = true }
[[tools]]
plugin = "files"
allow = ["read"]
grant = { files = [{ host = "inner", guest = "/work", mode = "read" }] }
"#,
    );
    let through = |tool: &str, with: Value, expect: &str| {
        json!({ "session": "main", "expect": expect, "calls": [{ "tool": "toolbox.run",
            "arguments": { "call": tool, "with": with } }] })
    };
    let lines = [
        // The orchestrator has no files of its own; the agent's reader has.
        through("files.read", json!({ "path": "b.txt" }), "Go."),
        through("files.read", json!({ "path": "../a.txt" }), "two"),
        through("files.read", json!({ "path": 1 }), "a.txt"),
        // Policy would allow writing, and the plugin could; this agent was not granted the tool.
        through("files.write", json!({ "path": "c.txt", "content": "x" }), "path"),
        json!({ "session": "main", "expect": "`files.write` is not among this agent's tools", "text": "done" }),
    ];
    let events = run(&place, &lines, &["--archetypes", "agents", "--archetype", "narrow"]);
    let reads = ended(&events, "files.read");
    let kinds: Vec<&str> = reads.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, ["ok", "tool-error", "tool-error"], "{reads:#?}");
    assert!(!reads.iter().any(|(_, text)| text.contains("one")), "{reads:#?}");
    assert_eq!(ended(&events, "files.write")[0].0, "denied");
    assert!(!place.work().join("inner/c.txt").exists() && !place.work().join("c.txt").exists());
    let rule = events
        .iter()
        .find(|event| event["event"] == "capability" && event["kind"] == "file")
        .unwrap();
    assert!(rule["rule"].as_str().unwrap().contains("narrow"), "{rule}");
}
