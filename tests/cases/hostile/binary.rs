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
