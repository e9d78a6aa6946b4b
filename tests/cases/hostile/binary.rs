//! Hostile guests through the program itself: what a person sees, and what the program obeys.

use serde_json::Value;

use crate::support::binary::{Finished, Workplace};
use crate::support::guests;

/// A place with one plugin in its `plugins`, under this manifest.
fn place(guest: &str, needs: &str) -> Workplace {
    let place = Workplace::new();
    place.write(
        &format!("plugins/{guest}.wasm"),
        std::fs::read(guests::component(guest)).unwrap(),
    );
    let manifest =
        format!("[plugin]\nname = \"{guest}\"\nversion = \"0.1.0\"\ndescription = \"A guest.\"\n[needs]\n{needs}\n");
    place.write(&format!("plugins/{guest}.toml"), manifest);
    place
}

fn call(place: &Workplace, arguments: &[&str]) -> Finished {
    Finished::of(place.fief(["call", "--plugins", "plugins"].iter().chain(arguments)))
}

/// What could move a cursor, name a window, or change what stands on the screen.
fn speaks_to_the_terminal(text: &str) -> bool {
    let harmless = |c: char| c == '\n' || c == '\t';
    text.chars()
        .any(|c| (c.is_control() && !harmless(c)) || matches!(c, '\u{202a}'..='\u{202e}'))
}

#[test]
fn what_a_guest_says_reaches_no_terminal_as_it_is() {
    let place = place("tricks", "");
    let finished = call(&place, &["tricks.terminal_escapes", "{}"]).expect_code(0);
    assert!(!speaks_to_the_terminal(&finished.stderr), "{:?}", finished.stderr);
    // The JSON of a script is JSON, whatever the guest put into it.
    let finished = call(&place, &["--json", "tricks.terminal_escapes", "{}"]).expect_code(0);
    let line: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(line["outcome"], "ok", "{line}");
    let text = finished.stdout.trim_end();
    assert!(!text.contains(|c: char| c.is_ascii_control()), "{text:?}");
    let finished = call(&place, &["tricks.panic_with_words", "{}"]).expect_code(1);
    assert!(finished.stderr.contains("the anchor dragged"), "{}", finished.stderr);
}

#[test]
fn no_grant_covers_what_the_program_obeys() {
    let place = place("tricks", "files = \"write\"");
    let before = "[run]\narchetype = \"main\"\n";
    let config = place.write("fief.toml", before);
    place.write("plugins/files/files.wasm", "no component");
    place.write("inner/note", "x");
    std::fs::hard_link(&config, place.work().join("second")).unwrap();
    let finished = call(&place, &["--allow-write", ".", "tricks.write_protected", "{}"]).expect_code(0);
    let mut lines = finished
        .stdout
        .lines()
        .filter(|line| !line.trim().is_empty())
        .peekable();
    assert!(lines.peek().is_some(), "{}", finished.stderr);
    for line in lines {
        assert!(line.starts_with("held "), "{line}\n{}", finished.stdout);
    }
    assert_eq!(std::fs::read_to_string(config).unwrap(), before);
    assert!(!place.work().join("plugins/evil").exists());
    assert!(!place.work().join("plugins/planted.wasm").exists());
}

#[test]
fn without_a_flag_nothing_is_written() {
    let place = place("tricks", "files = \"write\"");
    place.write("inner/deep/file", "x");
    place.write("mine", "mine");
    let finished = call(&place, &["--json", "tricks.climb_out", "{}"]).expect_code(0);
    let line: Value = serde_json::from_str(&finished.stdout).unwrap();
    let text = line["content"].as_str().unwrap();
    assert!(
        text.lines().count() > 30 && text.lines().all(|line| line.starts_with("held ")),
        "{text}"
    );
    assert!(place.work().join("mine").exists());
}

#[test]
fn a_plugin_that_may_not_reach_the_network_is_denied_by_name() {
    let place = place("egress", "http = [\"*\"]");
    let finished = call(&place, &["egress.metadata", "{}"]).expect_code(4);
    assert!(finished.stderr.contains("--allow-net"), "{}", finished.stderr);
}

#[test]
fn a_manifests_link_is_held_to_what_it_leads_to() {
    let place = place("tricks", "files = \"read\"");
    let outside = place.home().join("private");
    std::fs::create_dir(&outside).unwrap();
    place.write("data/mine", "x");
    std::os::unix::fs::symlink(&outside, place.work().join("away")).unwrap();
    std::os::unix::fs::symlink("data", place.work().join("near")).unwrap();
    place.write(
        "agents/linked.toml",
        r#"
name = "linked"
description = "Is granted two links."
instruction = "Look."
[[tools]]
plugin = "tricks"
[tools.grant]
files = [
    { host = "near", guest = "/near", mode = "read" },
    { host = "away", guest = "/away", mode = "read" },
    { host = "away/not/there/yet", guest = "/later", mode = "read" },
]
"#,
    );
    let arguments = [
        "tools",
        "--json",
        "--plugins",
        "plugins",
        "--archetypes",
        "agents",
        "--archetype",
        "linked",
    ];
    let finished = Finished::of(place.fief(arguments)).expect_code(0);
    assert!(
        finished.stderr.contains("policy does not allow it"),
        "{}",
        finished.stderr
    );
    let shown: Value = serde_json::from_str(&finished.stdout).unwrap();
    let reach: Vec<&Value> = shown["reach"].as_array().unwrap().iter().collect();
    let effective = |path: &std::path::Path| {
        let target = path.display().to_string();
        let found = reach.iter().find(|reach| reach["target"] == target.as_str());
        found.unwrap_or_else(|| panic!("{target}: {reach:#?}"))["effective"].clone()
    };
    let real = |path: std::path::PathBuf| path.canonicalize().unwrap();
    assert_eq!(effective(&real(place.work().join("data"))), "read at /near");
    assert_eq!(effective(&real(outside.clone())), Value::Null);
    assert_eq!(effective(&real(outside).join("not/there/yet")), Value::Null);
}

#[test]
fn a_directory_below_one_that_can_be_entered_and_not_listed_is_granted() {
    let place = place("tricks", "files = \"write\"");
    place.write("closed/open/fief.toml", "");
    place.write("closed/open/inner/note", "x");
    let closed = place.work().join("closed");
    let mode = |mode| {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&closed, permissions).unwrap();
    };
    mode(0o311);
    let fief = place.fief([
        "call",
        "--plugins",
        "plugins",
        "--allow-write",
        "closed/open=/open",
        "tricks.climb_out",
        "{}",
    ]);
    // The administrator may list everything; without that right he is as anybody.
    let root = std::fs::read_dir(&closed).is_ok();
    let mut command = std::process::Command::new(if root { "setpriv".as_ref() } else { fief.get_program() });
    if root {
        command
            .arg("--bounding-set=-dac_override,-dac_read_search")
            .arg(fief.get_program());
    }
    command.args(fief.get_args()).current_dir(place.work()).env_clear();
    command.envs(fief.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output();
    mode(0o755);
    let output = match output {
        Ok(output) => output,
        Err(error) if root => {
            return crate::support::skip("a directory that cannot be listed", &format!("setpriv: {error}"));
        }
        Err(error) => panic!("{error}"),
    };
    let finished = Finished::from(output).expect_code(0);
    assert!(finished.stdout.lines().count() > 30, "{}", finished.stdout);
    assert!(!finished.stderr.contains("cannot be opened"), "{}", finished.stderr);
}

#[test]
fn the_record_of_a_run_cannot_be_written_wherever_it_is_kept() {
    let place = place("tricks", "files = \"write\"");
    let lines = [
        serde_json::json!({ "session": "main", "calls": [{ "tool": "tricks.say_anything", "arguments": {} }] }),
        serde_json::json!({ "session": "main", "text": "done" }),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write("model.jsonl", text);
    let arguments = [
        "run",
        "--plugins",
        "plugins",
        "--record",
        "records",
        "--allow-write",
        ".",
        "--json",
    ];
    let command = place.fief(arguments.iter().chain(&["--model", "script:model.jsonl", "Go."]));
    Finished::of(command).expect_code(0);
    let host = fief::HostOptions {
        protect: vec!["records".into()],
        ..fief::HostOptions::embedded(place.work())
    };
    let host = tokio::runtime::Runtime::new()
        .unwrap()
        .block_on(fief::Host::open(host))
        .unwrap();
    let records = place.work().canonicalize().unwrap().join("records");
    assert!(host.world().policy.protected.contains(&records));
}

#[test]
fn a_python_plugin_with_sockets_is_told_how_to_be_built() {
    let place = Workplace::new();
    place.write(
        "plugins/py.wasm",
        std::fs::read(guests::component("examples/sockets")).unwrap(),
    );
    let hint = "componentize-py --stub-wasi";
    let inspected = Finished::of(place.fief(["plugin", "inspect", "plugins/py.wasm"])).expect_code(2);
    assert!(
        inspected.stderr.contains("hint: sockets are never linked"),
        "{}",
        inspected.stderr
    );
    assert!(inspected.stderr.contains(hint), "{}", inspected.stderr);
    let scanned = Finished::of(place.fief(["tools", "--plugins", "plugins"])).expect_code(0);
    assert!(scanned.stderr.contains(hint), "{}", scanned.stderr);
}
