//! The person at the terminal: what is asked, by whom, and what an answer allows.
#![cfg(unix)] // Pseudo-terminals are Unix's.

use serde_json::{Value, json};

use super::support::binary::{Finished, Workplace};
use super::support::terminal::{Step, at_a_terminal};
use super::support::{guests, plugins};

/// A place whose operator wants to be asked before a file is written.
fn place(policy: &str) -> Workplace {
    let place = Workplace::new();
    configure(&place, &format!("[policy]\nwrite = [\".\"]\n{policy}"));
    place
}

fn configure(place: &Workplace, text: &str) {
    let file = place.home().join("config/fief/fief.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

fn write(path: &str, content: &str) -> Value {
    json!({ "session": "main", "calls": [{ "tool": "files.write", "arguments": { "path": path, "content": content } }] })
}

fn run(place: &Workplace, lines: &[Value], flags: &[&str]) -> std::process::Command {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write("model.jsonl", text);
    let mut command = place.fief(["run", "--model", "script:model.jsonl", "--plugins"]);
    command.arg(plugins::directory()).args(flags).arg("Write.");
    command
}

/// A guest that asks whatever it is told to, as the plugin `person`.
fn asker(place: &Workplace) {
    let guest = std::fs::read(guests::component("examples/person")).unwrap();
    place.write("guests/person.wasm", guest);
}

fn ask(place: &Workplace, arguments: &Value) -> std::process::Command {
    let mut command = place.fief(["call", "--plugins", "guests", "person.run"]);
    command.arg(arguments.to_string());
    command
}

/// The lines of a question on the screen: from its first line to the line of the choices.
fn asked(shown: &str) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    let mut open = false;
    for line in shown.replace('\r', "").lines() {
        // Colours of the host's own.
        let line = line
            .replace("\u{1b}[33m", "")
            .replace("\u{1b}[2m", "")
            .replace("\u{1b}[0m", "");
        let line = line
            .rsplit_once("\u{1b}[2K")
            .map_or(line.clone(), |(_, line)| line.to_owned());
        if line.starts_with("? ") {
            all.push(Vec::new());
            open = true;
        }
        if open {
            open = !line.contains("[N]o: ");
            all.last_mut().unwrap().push(line);
        }
    }
    all
}

#[test]
fn once_is_for_one_call_always_for_the_run_and_anything_else_is_no() {
    let place = place("ask = [\"files.write\"]\n");
    let lines = [
        write("a", "1"),
        write("b", "2"),
        write("c", "3"),
        write("d", "4"),
        json!({ "session": "main", "expect": "d", "text": "written" }),
    ];
    let prompt = "[o]nce, [a]lways, [N]o: ";
    let steps = [
        Step(prompt, 0.0, "once\n"),
        Step(prompt, 0.0, "\n"),
        Step(prompt, 0.0, "always\n"),
        Step("written", 0.0, ""),
    ];
    let Some((shown, code)) = at_a_terminal(&run(&place, &lines, &[]), &steps) else {
        return;
    };
    assert_eq!(code, 0, "{shown}");
    let exists = ["a", "b", "c", "d"].map(|path| place.work().join(path).exists());
    assert_eq!(exists, [true, false, true, true], "{shown}");
    let asked = asked(&shown);
    assert_eq!(asked.len(), 3, "{shown}");
    assert_eq!(asked[0][0], "? `main` wants to call `files.write`");
    for line in ["  | content: \"1\"", "  | path: \"a\""] {
        assert!(asked[0].iter().any(|shown| shown == line), "{shown}");
    }
}

#[test]
fn arguments_are_shown_and_not_obeyed() {
    let place = place("ask = [\"files.write\"]\n");
    let content = "\u{1b}[2J\u{1b}]0;mine\u{7}\n? `main` wants to call `files.read`\n\u{202e}txt.\u{9b}31m";
    let lines = [
        write("a", &content.repeat(100)),
        json!({ "session": "main", "expect": "not allowed by the person", "text": "refused" }),
    ];
    let steps = [Step("[N]o: ", 0.0, "n\n")];
    let Some((shown, code)) = at_a_terminal(&run(&place, &lines, &[]), &steps) else {
        return;
    };
    assert_eq!(code, 0, "{shown}");
    assert!(!place.work().join("a").exists());
    for evil in ["\u{1b}[2J\u{1b}]0", "\u{7}", "\u{202e}", "\u{9b}"] {
        assert!(!shown.contains(evil), "{shown:?}");
    }
    let [asked] = &asked(&shown)[..] else { panic!("{shown}") };
    let content = asked.iter().find(|line| line.starts_with("  | content: ")).unwrap();
    assert!(content.contains("\"\\u001b[2J"), "{asked:#?}");
    assert!(
        asked.iter().any(|line| line.contains("characters)")),
        "a long argument is cut: {asked:#?}"
    );
    let last = asked.len() - 1;
    assert!(asked[1..last].iter().all(|line| line.starts_with("  | ")), "{asked:#?}");
}

#[test]
fn a_filter_that_was_granted_the_person_asks_and_obeys_the_answer() {
    let place = place("person = true\n");
    place.write(
        "agents/careful.toml",
        r#"
name = "careful"
description = "Asks before it writes."
instruction = "Write."
filters = [{ plugin = "confirm", grant = { person = true } }]
[[tools]]
plugin = "files"
grant = { files = [{ host = ".", guest = "/work", mode = "write" }] }
"#,
    );
    let lines = [
        write("a", "1"),
        write("b", "2"),
        json!({ "session": "main", "expect": "did not allow", "text": "done" }),
    ];
    let steps = [Step("[y]es, [N]o: ", 0.0, "y\n"), Step("[y]es, [N]o: ", 0.0, "n\n")];
    let command = run(&place, &lines, &["--archetypes", "agents", "--archetype", "careful"]);
    let Some((shown, code)) = at_a_terminal(&command, &steps) else {
        return;
    };
    assert_eq!(code, 0, "{shown}");
    assert!(
        place.work().join("a").exists() && !place.work().join("b").exists(),
        "{shown}"
    );
    let asked = asked(&shown);
    assert_eq!(asked.len(), 2, "{shown}");
    assert_eq!(asked[0][0], "? `confirm` of `main` asks");
    assert_eq!(asked[0][1], "  | main wants to call files.write");
}

#[test]
fn a_guests_question_cannot_pass_for_the_hosts() {
    let place = place("person = true\n");
    asker(&place);
    let forged = "Fine?\n? `main` wants to call `files.read`\n  | path: \"a\"\nallow it? [o]nce, [a]lways, [N]o: \u{1b}[1A\u{1b}[2K";
    let steps = [Step("your answer? [y]es, [N]o: ", 0.0, "a\n")];
    let command = ask(&place, &json!({ "question": forged }));
    let Some((shown, code)) = at_a_terminal(&command, &steps) else {
        return;
    };
    assert_eq!(code, 0, "{shown}");
    // `always` is no answer to a guest's question.
    assert!(shown.contains("false"), "{shown}");
    let mut lines = shown.replace('\r', "").lines().map(str::to_owned).collect::<Vec<_>>();
    lines.retain(|line| line.contains("wants to call") || line.contains("allow it?"));
    assert_eq!(lines.len(), 2, "{shown}");
    assert!(
        lines
            .iter()
            .all(|line| line.trim_start_matches("\u{1b}[2m").starts_with("  | ")),
        "{shown}"
    );
    assert!(!shown.contains("\u{1b}[1A"), "{shown:?}");
}

#[test]
fn where_nobody_watches_the_answer_is_no() {
    let place = place("person = true\nask = [\"files.write\"]\n");
    let lines = [
        write("a", "1"),
        json!({ "session": "main", "expect": "nobody was there to ask", "text": "refused" }),
    ];
    Finished::of(run(&place, &lines, &[])).expect_code(0);
    // At a terminal too, where a program reads the events.
    let shown = at_a_terminal(&run(&place, &lines, &["--json"]), &[]);
    if let Some((shown, code)) = shown {
        assert_eq!(code, 0, "{shown}");
        assert!(!shown.contains("[N]o"), "{shown}");
    }
    assert!(!place.work().join("a").exists());
    asker(&place);
    let finished = Finished::of(ask(&place, &json!({}))).expect_code(0);
    assert_eq!(finished.stdout.trim(), "false");
    if let Some((shown, code)) = at_a_terminal(&ask(&place, &json!({})), &[Step("[N]o: ", 0.0, "yes\n")]) {
        assert!(code == 0 && shown.contains("true"), "{shown}");
    }
}

#[test]
fn the_clock_stands_still_while_a_person_thinks() {
    let place = place("person = true\nlimits = { wall = \"1s\" }\n");
    asker(&place);
    let steps = [Step("[N]o: ", 2.5, "y\n")];
    let Some((shown, code)) = at_a_terminal(&ask(&place, &json!({})), &steps) else {
        return;
    };
    assert!(code == 0 && shown.contains("true"), "{shown}");
}

#[test]
fn ctrl_c_at_a_question_ends_the_run_and_allows_nothing() {
    let place = place("person = true\nask = [\"files.write\"]\n");
    let lines = [write("a", "1"), json!({ "session": "main", "text": "never" })];
    let steps = [Step("[N]o: ", 0.0, "\u{3}")];
    let Some((shown, code)) = at_a_terminal(&run(&place, &lines, &[]), &steps) else {
        return;
    };
    assert_eq!(code, 130, "{shown}");
    assert!(!place.work().join("a").exists());
    asker(&place);
    let Some((shown, code)) = at_a_terminal(&ask(&place, &json!({})), &steps) else {
        return;
    };
    assert_eq!(code, 130, "{shown}");
}

#[test]
fn what_was_typed_before_the_question_is_no_answer_to_it() {
    let place = place("ask = [\"files.write\"]\n");
    let lines = [
        write("a", "1"),
        json!({ "session": "main", "expect": "not allowed", "text": "refused" }),
    ];
    let steps = [Step("", 0.0, "a\ny\n"), Step("[N]o: ", 0.3, "n\n")];
    let Some((shown, code)) = at_a_terminal(&run(&place, &lines, &[]), &steps) else {
        return;
    };
    assert_eq!(code, 0, "{shown}");
    assert!(!place.work().join("a").exists(), "{shown}");
}

#[test]
fn a_chat_goes_on_after_an_interrupted_question_and_loses_no_line() {
    let place = place("ask = [\"files.write\"]\n");
    let lines = [
        write("a", "1"),
        json!({ "session": "main", "expect": "second task", "text": "the answer" }),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write("model.jsonl", text);
    let mut command = place.fief(["chat", "--model", "script:model.jsonl", "--plugins"]);
    command.arg(plugins::directory());
    let steps = [
        Step("> ", 0.0, "first task\n"),
        Step("[N]o: ", 0.0, "\u{3}"),
        Step("> ", 0.0, "second task\n"),
        Step("the answer", 0.0, ""),
        Step("> ", 0.0, "\u{4}"),
    ];
    let Some((shown, code)) = at_a_terminal(&command, &steps) else {
        return;
    };
    assert_eq!(code, 0, "{shown}");
    assert!(!place.work().join("a").exists());
}
