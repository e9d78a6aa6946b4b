//! `write` and `edit`.

use std::fs;

use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, prop_assume, proptest};
use serde_json::json;

use super::Desk;
use crate::edit::replaced;

#[test]
fn write_says_what_it_did() {
    let desk = Desk::new(&[("old.txt", "before")]);
    let text = desk.text("write", json!({"path": "a/b/new.txt", "content": "one\ntwo\n"}));
    assert_eq!(text, "created `a/b/new.txt`: 2 lines, 8 bytes");
    assert_eq!(desk.content("a/b/new.txt"), "one\ntwo\n");
    assert_eq!(fs::read_dir(desk.path().join("a/b")).unwrap().count(), 1);
    let text = desk.text("write", json!({"path": "old.txt", "content": "x"}));
    assert_eq!(text, "overwrote `old.txt`: 1 line, 1 byte (there were 6)");
    assert_eq!(desk.content("old.txt"), "x");
}

#[test]
fn write_refuses_what_is_no_file() {
    let desk = Desk::new(&[("d/x", "x")]);
    assert_eq!(
        desk.error("write", json!({"path": "d", "content": ""})),
        "`d` is a directory: name a file in it"
    );
    assert_eq!(
        desk.error("write", json!({"path": "d/", "content": ""})),
        "`d/` ends in a slash: name a file"
    );
    assert!(
        desk.error("write", json!({"path": "../x", "content": ""}))
            .contains("outside")
    );
    let error = desk.error("write", json!({"path": "d/x/y", "content": ""}));
    assert!(error.contains("is a file") || error.contains("`d/x/y`"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_script_stays_executable_and_a_link_a_link() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = Desk::new(&[("run.sh", "echo a")]);
    let script = desk.path().join("run.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("run.sh", desk.path().join("link")).unwrap();
    desk.text("write", json!({"path": "link", "content": "echo b"}));
    desk.text("edit", json!({"path": "link", "old": "b", "new": "c"}));
    assert_eq!(desk.content("run.sh"), "echo c");
    assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o755);
    assert!(fs::symlink_metadata(desk.path().join("link")).unwrap().is_symlink());
}

#[test]
fn edit_replaces_the_one_occurrence_and_shows_it() {
    let desk = Desk::new(&[("a.rs", "fn a() {\n    one();\n    two();\n}\n")]);
    let text = desk.text(
        "edit",
        json!({"path": "a.rs", "old": "one();", "new": "three();\n    four();"}),
    );
    assert_eq!(
        text,
        "edited `a.rs`: 1 replacement\n     1\tfn a() {\n     2\t    three();\n     3\t    four();\n     4\t    two();\n     5\t}"
    );
    assert_eq!(
        desk.content("a.rs"),
        "fn a() {\n    three();\n    four();\n    two();\n}\n"
    );
}

#[test]
fn edit_refuses_to_guess() {
    let source = "let a = 1;\nlet b = 2;\nlet a = 1;\n";
    let desk = Desk::new(&[("a.rs", source)]);
    let edit = |old: &str, new: &str| desk.error("edit", json!({"path": "a.rs", "old": old, "new": new}));
    assert_eq!(
        edit("let a = 1;", "x"),
        "`a.rs`: `old` occurs 2 times, on lines 1, 3: take in more of the lines around the one you mean, or pass \
         `all`; nothing was changed"
    );
    let error = edit("let c = 2;", "x");
    assert!(
        error.contains("`old` does not occur; the nearest text is on line 2:\n     2\tlet b = 2;"),
        "{error}"
    );
    let error = edit("  let b = 2;\n  let a = 1;", "x");
    assert!(
        error.contains("but for white space it does, on line 2:\n     2\tlet b = 2;\n     3\tlet a = 1;"),
        "{error}"
    );
    let error = edit("completely different", "x");
    assert!(error.contains("hint: read the file again"), "{error}");
    assert_eq!(edit("a", "a"), "`old` and `new` are the same: nothing would change");
    assert!(edit("", "a").starts_with("`old` is empty"));
    assert_eq!(desk.content("a.rs"), source);
    assert!(
        desk.error("edit", json!({"path": "b.rs", "old": "a", "new": "b"}))
            .contains("nearest: `a.rs`")
    );
}

#[test]
fn all_replaces_every_occurrence() {
    let desk = Desk::new(&[("a", "x y x y x")]);
    let text = desk.text("edit", json!({"path": "a", "old": "x", "new": "z", "all": true}));
    assert!(text.starts_with("edited `a`: 3 replacements"), "{text}");
    assert_eq!(desk.content("a"), "z y z y z");
}

#[test]
fn line_breaks_stay_as_they_are() {
    let table = [
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"),
        ("a\nb\r\nc\n", "b\nc", "x\ny", "a\nx\r\ny\n"),
        ("a\nb\nc\n", "b\nc", "x", "a\nx\n"),
    ];
    for (content, old, new, expected) in table {
        match replaced(content.as_bytes(), old, new, false) {
            Ok(change) => assert_eq!(String::from_utf8(change.content).unwrap(), expected, "{content:?}"),
            // In a file that mixes line breaks, a text over several lines is only found if it is written as it is.
            Err(error) => assert!(
                content == "a\nb\r\nc\n" && error.contains("does not occur"),
                "{content:?} {error}"
            ),
        }
    }
}

#[test]
fn bytes_that_are_no_text_survive_an_edit() {
    let change = replaced(b"caf\xe9 old \xff", "old", "new", false).unwrap();
    assert_eq!(change.content, b"caf\xe9 new \xff");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// An edit that is accepted changes exactly what it says, and the reverse edit brings the content back.
    #[test]
    fn an_edit_is_exact(before in "[ab\\n]{0,30}", old in "[ab\\n]{1,4}", new in "[cd\\n]{0,4}", after in "[ab\\n]{0,30}") {
        let content = format!("{before}{old}{after}");
        prop_assume!(old != new);
        match replaced(content.as_bytes(), &old, &new, false) {
            Ok(change) => {
                prop_assert_eq!(content.matches(&old).count(), 1);
                prop_assert_eq!(String::from_utf8(change.content).unwrap(), content.replacen(&old, &new, 1));
                prop_assert_eq!(change.lines.len(), 1);
            }
            Err(error) => prop_assert!(content.matches(&old).count() > 1, "{}", error),
        }
    }

    /// A file of CR LF lines stays one.
    #[test]
    fn crlf_is_kept(lines in proptest::collection::vec("[a-z]{1,5}", 2..10), new in "[A-Z\\n]{1,8}") {
        let content: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let old = format!("{}\n{}", lines[0], lines[1]);
        if let Ok(change) = replaced(content.as_bytes(), &old, &new, true) {
            let text = String::from_utf8(change.content).unwrap();
            prop_assert_eq!(text.matches("\r\n").count(), text.matches('\n').count());
        }
    }
}
