//! `fief run`, `runs`, `show`, `call`, `tools`, `trust`: the binary with real plugins and a recorded model.

use std::path::Path;

use serde_json::{Value, json};

use super::support::binary::{Finished, Workplace};
use super::support::plugins;

/// Writes a recorded model's lines and returns its name.
fn script(place: &Workplace, lines: &[Value]) -> String {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write("model.jsonl", text);
    "script:model.jsonl".into()
}

fn explore(place: &Workplace) {
    let config = place.home().join("config/fief/fief.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[agents]\nbuiltin = [\"default\", \"explore\"]\n").unwrap();
}

fn run(place: &Workplace, lines: &[Value], flags: &[&str], task: &str) -> Finished {
    let model = script(place, lines);
    let mut command = place.fief(["run", "--model", &model, "--plugins"]);
    command.arg(plugins::directory()).args(flags).arg(task);
    Finished::of(command)
}

fn kinds<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

#[test]
fn a_child_works_through_the_sandbox_and_what_it_was_not_granted_is_refused() {
    let place = Workplace::new();
    explore(&place);
    place.write("notes.txt", "sea\nharbour\n");
    let lines = [
        json!({ "session": "main", "calls": [{ "tool": "spawn_subagent", "arguments": { "subagent_type": "explore", "prompt": "Where is the harbour?" } }] }),
        json!({ "session": "explore", "calls": [{ "tool": "files.grep", "arguments": { "pattern": "harbour" } }] }),
        json!({ "session": "explore", "expect": "notes.txt", "calls": [{ "tool": "files.write", "arguments": { "path": "found.txt", "content": "x" } }] }),
        json!({ "session": "explore", "expect": ["files.write", "files.grep"], "text": "notes.txt, line 2" }),
        json!({ "session": "main", "expect": ["notes.txt, line 2", "explore_1"], "text": "It is in notes.txt." }),
    ];
    let finished = run(&place, &lines, &["--json"], "Find the harbour.").expect_code(0);
    let events = finished.lines();
    let ended = kinds(&events, "tool_finished");
    let outcome = |tool: &str| ended.iter().find(|event| event["tool"] == tool).unwrap()["outcome"].clone();
    assert_eq!(
        (outcome("files.grep"), outcome("files.write")),
        (json!("ok"), json!("denied"))
    );
    assert!(!place.work().join("found.txt").exists());
    assert_eq!(events.last().unwrap()["report"], "It is in notes.txt.");
    assert_eq!(kinds(&events, "agent_finished")[0]["status"], "done");
}

#[test]
fn the_report_goes_to_standard_output_and_the_rest_to_standard_error() {
    let place = Workplace::new();
    let finished = run(
        &place,
        &[json!({ "session": "main", "text": "the answer" })],
        &[],
        "Say it.",
    )
    .expect_code(0);
    assert_eq!(finished.stdout, "the answer\n");
    assert!(finished.stderr.contains("main done"), "{}", finished.stderr);
    assert!(!finished.stderr.contains('\u{1b}'), "no colours into a pipe");
    let quiet = run(
        &place,
        &[json!({ "session": "main", "text": "the answer" })],
        &["--quiet"],
        "Say it.",
    )
    .expect_code(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("the answer\n", ""));
}

#[test]
fn every_run_leaves_a_record_that_can_be_shown_and_gone_on_with() {
    let place = Workplace::new();
    explore(&place);
    place.write("a.txt", "one\n");
    let lines = [
        json!({ "session": "main", "calls": [{ "tool": "spawn_subagent", "arguments": { "subagent_type": "explore", "prompt": "Read a.txt" } }] }),
        json!({ "session": "explore", "calls": [{ "tool": "files.read", "arguments": { "path": "a.txt" } }] }),
        json!({ "session": "explore", "text": "it says one" }),
        json!({ "session": "main", "text": "one" }),
    ];
    run(&place, &lines, &[], "What is in a.txt?").expect_code(0);
    let runs = Finished::of(place.fief(["runs"])).expect_code(0);
    assert!(
        runs.stdout.contains("done") && runs.stdout.contains("What is in a.txt?"),
        "{}",
        runs.stdout
    );
    let tree = Finished::of(place.fief(["show", "last"])).expect_code(0).stdout;
    for part in ["main done", "spawn_subagent → explore_1", "files.read", "ok"] {
        assert!(tree.contains(part), "{part} in {tree}");
    }
    let history = Finished::of(place.fief(["show", "last", "--session", "explore_1"])).expect_code(0);
    assert_eq!(history.lines().len(), 4, "{}", history.stdout);

    let again = [json!({ "session": "main", "expect": "And now?", "text": "still one" })];
    let model = script(&place, &again);
    let mut command = place.fief(["run", "--model", &model, "--continue", "last", "--plugins"]);
    command.arg(plugins::directory()).arg("And now?");
    Finished::of(command).expect_code(0);
    let runs = Finished::of(place.fief(["runs", "--json"])).expect_code(0);
    let runs: Vec<Value> = serde_json::from_str(&runs.stdout).unwrap();
    assert_eq!(runs.len(), 1, "it was added to the same run");
    let folder = place
        .home()
        .join("state/fief/runs")
        .join(runs[0]["run"].as_str().unwrap());
    let events = std::fs::read_to_string(folder.join("events.jsonl")).unwrap();
    let numbers: Vec<u64> = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}

#[test]
fn no_record_is_kept_where_none_is_wanted() {
    let place = Workplace::new();
    let line = [json!({ "session": "main", "text": "fine" })];
    run(&place, &line, &["--no-record"], "Say it.").expect_code(0);
    assert!(!place.home().join("state/fief/runs").exists());
    run(&place, &line, &["--record", "mine"], "Say it.").expect_code(0);
    assert_eq!(std::fs::read_dir(place.work().join("mine")).unwrap().count(), 1);
}

#[test]
fn usage_and_configuration_are_exit_2_with_what_would_be_right() {
    let place = Workplace::new();
    for (arguments, says) in [
        (vec!["run", "--model", "script:none.jsonl", "x"], "none.jsonl"),
        (vec!["run", "x"], "no model is configured"),
        (vec!["run", "--model", "script:none.jsonl", "  "], "the task is empty"),
        (vec!["run", "--archetype", "explor", "x"], "did you mean `explore`?"),
        (vec!["run", "--modle", "x", "y"], "--model"),
        (vec!["rnu", "x"], "run"),
        (vec!["call", "fils.read", "{}"], "there is no plugin `fils`"),
        (vec!["call", "files.read", "not json"], "the arguments are not JSON"),
        (vec!["show", "nothing"], "there is no run `nothing`"),
        (vec!["run", "--allow-net", "ftp://x", "y"], "ftp"),
    ] {
        let finished = Finished::of(place.fief(&arguments)).expect_code(2);
        assert!(finished.stderr.contains(says), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_task_comes_from_standard_input_a_megabyte_too() {
    use std::io::Write as _;
    let place = Workplace::new();
    let model = script(
        &place,
        &[json!({ "session": "main", "expect": "the very end", "text": "read" })],
    );
    for (task, code) in [
        (format!("{}the very end", "word ".repeat(210_000)), 0),
        (" \n".to_owned(), 2),
    ] {
        let mut command = place.fief(["run", "--quiet", "--no-record", "--model", &model, "-"]);
        command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(task.as_bytes()).unwrap();
        let finished = Finished::from(child.wait_with_output().unwrap()).expect_code(code);
        assert_eq!(finished.stdout, if code == 0 { "read\n" } else { "" });
    }
}

#[test]
fn an_empty_answer_and_a_limit_are_exit_1() {
    let place = Workplace::new();
    run(
        &place,
        &[
            json!({ "session": "main", "text": "" }),
            json!({ "session": "main", "text": "" }),
        ],
        &[],
        "x",
    )
    .expect_code(1);
}

#[test]
fn a_call_says_how_it_ended() {
    let place = Workplace::new();
    place.write("a.txt", "hello\n");
    let call = |tool: &str, arguments: &str, flags: &[&str]| {
        let mut command = place.fief(["call", "--plugins"]);
        command.arg(plugins::directory()).args(flags).args([tool, arguments]);
        Finished::of(command)
    };
    let read = call("files.read", "{\"path\": \"a.txt\"}", &[]).expect_code(0);
    assert!(read.stdout.contains("hello"), "{}", read.stdout);
    assert!(
        call("files.read", "{\"path\": \"none.txt\"}", &[])
            .expect_code(1)
            .stderr
            .contains("none.txt")
    );
    assert!(
        call("files.read", "{\"paths\": 1}", &[])
            .expect_code(2)
            .stderr
            .contains("path")
    );
    call(
        "files.write",
        "{\"path\": \"b.txt\", \"content\": \"x\"}",
        &["--allow-write", "."],
    )
    .expect_code(0);
    assert_eq!(std::fs::read_to_string(place.work().join("b.txt")).unwrap(), "x");
    // Policy takes the network away: the plugin is not linked, and the message names the flag.
    let web = call("web.fetch", "{\"url\": \"https://example.com\"}", &[]).expect_code(4);
    assert!(web.stderr.contains("--allow-net"), "{}", web.stderr);
    let shown = call("files.read", "{\"path\": \"a.txt\"}", &["--json"]).expect_code(0);
    assert_eq!(shown.lines()[0]["outcome"], "ok");
}

#[test]
fn tools_say_what_could_be_called_and_why_not_more() {
    let place = Workplace::new();
    let tools = |flags: &[&str]| {
        let mut command = place.fief(["tools", "--plugins"]);
        command.arg(plugins::directory()).args(flags);
        Finished::of(command).expect_code(0)
    };
    let all = tools(&["--json"]);
    let all = &all.lines()[0];
    let names: Vec<&str> = all["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["tool"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"files.read") && !names.contains(&"web.fetch"),
        "{names:?}"
    );
    assert!(
        all["left_out"]
            .as_array()
            .unwrap()
            .iter()
            .any(|left| left["plugin"] == "web" && left["flag"].is_string())
    );
    assert!(
        all["reach"]
            .as_array()
            .unwrap()
            .iter()
            .any(|reach| reach["plugin"] == "files")
    );
    let explore = tools(&["--archetype", "explore"]);
    assert!(
        explore.stdout.contains("files.grep") && !explore.stdout.contains("files.write"),
        "{}",
        explore.stdout
    );
    let why = tools(&["--archetype", "explore", "--why", "files.write"]);
    assert!(
        why.stdout.contains("files.write") && why.stdout.contains("cannot be called"),
        "{}",
        why.stdout
    );
}

#[test]
fn why_of_a_tool_that_does_not_exist_is_exit_2_with_the_nearest_name() {
    let place = Workplace::new();
    let mut command = place.fief(["tools", "--why", "files.raed", "--plugins"]);
    command.arg(plugins::directory());
    let finished = Finished::of(command).expect_code(2);
    assert!(finished.stdout.is_empty(), "{}", finished.stdout);
    assert!(finished.stderr.contains("has no tool `raed`"), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("hint: did you mean `files.read`?"),
        "{}",
        finished.stderr
    );
}

#[test]
fn the_flag_that_a_plugin_lacks_is_named_once() {
    let place = Workplace::new();
    let mut command = place.fief(["tools", "--plugins"]);
    command.arg(plugins::directory());
    let finished = Finished::of(command).expect_code(0);
    assert_eq!(finished.stderr.matches("--allow-net").count(), 1, "{}", finished.stderr);
    assert_eq!(finished.stdout.matches("--allow-net").count(), 1, "{}", finished.stdout);
}

#[test]
fn shipped_archetypes_are_clean_though_policy_allows_no_network_unless_it_is_strict() {
    let place = Workplace::new();
    let archetypes = super::support::root().join("archetypes");
    let check = || {
        let mut command = place.fief(["agents", "check"]);
        command.arg(&archetypes).arg("--plugins").arg(plugins::directory());
        Finished::of(command)
    };
    let finished = check().expect_code(0);
    assert!(finished.stdout.contains("clean: "), "{}", finished.stdout);
    assert!(
        finished.stderr.contains("note: ") && finished.stderr.contains("--allow-net"),
        "{}",
        finished.stderr
    );
    place.write("fief.toml", "[policy]\nstrict = true\n");
    let finished = check().expect_code(1);
    assert!(
        finished.stderr.contains("warning: ") && finished.stderr.contains("--allow-net"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_strangers_configuration_widens_nothing_until_it_is_trusted() {
    let place = Workplace::new();
    place.write("fief.toml", "[policy]\nwrite = [\".\"]\n");
    let write = || {
        let mut command = place.fief(["call", "--plugins"]);
        command
            .arg(plugins::directory())
            .args(["files.write", "{\"path\": \"b.txt\", \"content\": \"x\"}"]);
        Finished::of(command)
    };
    let refused = write();
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("fief trust"), "{}", refused.stderr);
    assert!(!place.work().join("b.txt").exists());
    Finished::of(place.fief(["trust"])).expect_code(0);
    write().expect_code(0);
    place.write("fief.toml", "[policy]\nwrite = [\".\", \"..\"]\n");
    assert!(
        write().stderr.contains("fief trust"),
        "a changed file must be trusted again"
    );
}

#[test]
fn a_damaged_plugin_keeps_no_other_from_loading() {
    let place = Workplace::new();
    std::fs::create_dir(place.work().join("mine")).unwrap();
    place.write("mine/text.wasm", "not wasm at all");
    place.write("mine/core.wasm", b"\0asm\x01\0\0\0");
    let good = plugins::directory().join("files/files.wasm");
    let bytes = std::fs::read(&good).unwrap();
    place.write("mine/cut.wasm", &bytes[..bytes.len() / 2]);
    std::fs::create_dir(place.work().join("mine/files")).unwrap();
    for file in ["files.wasm", "plugin.toml"] {
        std::fs::copy(
            Path::new(plugins::directory()).join("files").join(file),
            place.work().join("mine/files").join(file),
        )
        .unwrap();
    }
    let finished = Finished::of(place.fief(["tools", "--plugins", "mine"])).expect_code(0);
    assert!(finished.stdout.contains("files.read"), "{}", finished.stdout);
    for name in ["text.wasm", "core.wasm", "cut.wasm"] {
        assert!(finished.stderr.contains(name), "{name}: {}", finished.stderr);
    }
}

#[test]
fn the_doctor_and_the_archetypes_answer() {
    let place = Workplace::new();
    let mut command = place.fief(["doctor", "--offline", "--plugins"]);
    command.arg(plugins::directory());
    let doctor = Finished::of(command).expect_code(1);
    assert!(
        doctor.stdout.contains("no model is configured") && doctor.stdout.contains("mend:"),
        "{}",
        doctor.stdout
    );
    assert!(
        doctor.stdout.contains("calls at once, a further one waits its turn ("),
        "{}",
        doctor.stdout
    );
    assert!(!doctor.stdout.contains("pagemap_scan"), "{}", doctor.stdout);
    // The operator's choice of speed over safety is told as what it is.
    let config = place.home().join("config/fief");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("fief.toml"), "[sandbox]\npagemap_scan = true\n").unwrap();
    let mut command = place.fief(["doctor", "--offline", "--plugins"]);
    command.arg(plugins::directory());
    let scanned = Finished::of(command).stdout;
    assert!(scanned.contains("`[sandbox] pagemap_scan`: a page that"), "{scanned}");
    let agents = Finished::of(place.fief(["agents", "--json"])).expect_code(0);
    let agents: Vec<Value> = serde_json::from_str(&agents.stdout).unwrap();
    let registered: Vec<&str> = agents
        .iter()
        .filter(|one| one["registered"] == true)
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(registered, ["default"]);
    place.write("bad.toml", "name = \"bad\"\ntool = []\n");
    let checked = Finished::of(place.fief(["agents", "check", "bad.toml"])).expect_code(1);
    assert!(checked.stderr.contains("bad.toml:2"), "{}", checked.stderr);
    Finished::of(place.fief(["agents", "check", "none.toml"])).expect_code(2);
}

#[cfg(unix)]
#[test]
fn an_interrupt_stops_cleanly_with_exit_130_and_a_record() {
    let place = Workplace::new();
    let model = script(
        &place,
        &[json!({ "session": "main", "text": "too late", "delay_ms": 60_000 })],
    );
    let mut command = place.fief(["run", "--json", "--model", &model, "Wait."]);
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let out = child.stdout.take().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(out));
    let mut seen = Vec::new();
    for line in lines.by_ref() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let turn = event["event"] == "turn_started";
        seen.push(event);
        if turn {
            break;
        }
    }
    let kill = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(kill.success());
    for line in lines {
        seen.push(serde_json::from_str(&line.unwrap()).unwrap());
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(seen.last().unwrap()["event"], "run_finished");
    assert_eq!(seen.last().unwrap()["status"], "cancelled");
    let shown = Finished::of(place.fief(["show", "last"])).expect_code(0);
    assert!(shown.stdout.contains("cancelled"), "{}", shown.stdout);
}

#[test]
fn a_chat_keeps_one_history_over_its_tasks() {
    use std::io::Write as _;
    let place = Workplace::new();
    let lines = [
        json!({ "session": "main", "expect": "my name is Ada", "text": "noted" }),
        json!({ "session": "main", "expect": "What is it?", "text": "Ada" }),
    ];
    let model = script(&place, &lines);
    let mut command = place.fief(["chat", "--model", &model]);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"my name is Ada\n\nWhat is it?\n")
        .unwrap();
    let finished = Finished::from(child.wait_with_output().unwrap()).expect_code(0);
    assert_eq!(finished.stdout, "noted\nAda\n");
    let history = Finished::of(place.fief(["show", "last", "--session", "main"])).expect_code(0);
    assert_eq!(history.lines().len(), 4, "{}", history.stdout);
}

#[cfg(unix)]
#[test]
fn a_killed_process_leaves_all_up_to_its_last_event() {
    let place = Workplace::new();
    place.write("a.txt", "one\n");
    let lines = [
        json!({ "session": "main", "calls": [{ "tool": "files.read", "arguments": { "path": "a.txt" } }] }),
        json!({ "session": "main", "text": "too late", "delay_ms": 60_000 }),
    ];
    let model = script(&place, &lines);
    let mut command = place.fief(["run", "--json", "--model", &model, "--plugins"]);
    command.arg(plugins::directory()).arg("Read it.");
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut seen = Vec::new();
    for line in std::io::BufRead::lines(out) {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let second = event["event"] == "turn_started" && event["turn"] == 2;
        seen.push(event);
        if second {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let runs: Vec<Value> = serde_json::from_str(&Finished::of(place.fief(["runs", "--json"])).stdout).unwrap();
    assert_eq!(runs[0]["status"], Value::Null);
    let folder = place
        .home()
        .join("state/fief/runs")
        .join(runs[0]["run"].as_str().unwrap());
    let kept = std::fs::read_to_string(folder.join("events.jsonl")).unwrap();
    let kept: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(kept, seen);
    // And the run can be gone on with: its history ends with a result.
    run(
        &place,
        &[json!({ "session": "main", "expect": "Go on.", "text": "done" })],
        &["--continue", "last"],
        "Go on.",
    )
    .expect_code(0);
    let shown = Finished::of(place.fief(["show", "last"])).expect_code(0);
    assert!(shown.stdout.contains("files.read"), "{}", shown.stdout);
}

#[test]
fn strict_policy_refuses_what_it_would_else_warn_of() {
    let place = Workplace::new();
    let config = place.home().join("config/fief/fief.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[policy]\nstrict = true\n").unwrap();
    let line = [json!({ "session": "main", "text": "never" })];
    let finished = run(&place, &line, &["--archetype", "explore"], "Look.").expect_code(4);
    assert!(finished.stderr.contains("web"), "{}", finished.stderr);
}

#[test]
fn what_policy_asks_for_is_refused_where_nobody_watches() {
    let place = Workplace::new();
    let config = place.home().join("config/fief/fief.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[policy]\nwrite = [\".\"]\nask = [\"files.write\"]\n").unwrap();
    let lines = [
        json!({ "session": "main", "calls": [{ "tool": "files.write", "arguments": { "path": "a.txt", "content": "x" } }] }),
        json!({ "session": "main", "expect": "not allowed by the person", "text": "I may not" }),
    ];
    run(&place, &lines, &[], "Write it.").expect_code(0);
    assert!(!place.work().join("a.txt").exists());
}
