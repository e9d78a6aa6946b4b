//! `glob` and `grep`.

use std::fs;

use serde_json::{Value, json};

use super::Desk;

fn project() -> Desk {
    Desk::new(&[
        (".gitignore", "/target\n*.log\n"),
        (".github/ci.yml", "on: push\n"),
        (".git/config", "needle\n"),
        ("src/main.rs", "fn main() {\n    needle();\n}\n"),
        ("src/deep/lib.rs", "// a Needle\npub fn lib() {}\n"),
        ("src/noise.log", "needle\n"),
        ("target/out.rs", "needle\n"),
        ("README.md", "read me\n"),
    ])
}

#[test]
fn glob_finds_by_name_and_leaves_out_what_is_ignored() {
    let desk = project();
    let table = [
        (json!({"pattern": "*.rs"}), "src/deep/lib.rs\nsrc/main.rs"),
        (json!({"pattern": "src/*.rs"}), "src/main.rs"),
        (json!({"pattern": "./src/**/*.rs"}), "src/deep/lib.rs\nsrc/main.rs"),
        (json!({"pattern": "/work/src/**/lib.*"}), "src/deep/lib.rs"),
        (json!({"pattern": "*.{md,yml}"}), ".github/ci.yml\nREADME.md"),
        (json!({"pattern": "*.rs", "path": "src/deep"}), "src/deep/lib.rs"),
        (
            json!({"pattern": "*.log", "path": "src"}),
            "(no file matches `*.log` in `src`)",
        ),
        (json!({"pattern": "*.rs", "path": "target"}), "target/out.rs"),
        (json!({"pattern": "config"}), "(no file matches `config` in `.`)"),
    ];
    for (arguments, expected) in table {
        assert_eq!(desk.text("glob", arguments.clone()), expected, "{arguments}");
    }
}

#[test]
fn glob_refuses_what_it_cannot_read() {
    let desk = project();
    let table = [
        (
            json!({"pattern": "a["}),
            "`pattern`: unclosed character class; missing ']'",
        ),
        (
            json!({"pattern": " "}),
            "`pattern` is blank: give a pattern such as `*.rs`",
        ),
        (
            json!({"pattern": "../*"}),
            "`pattern` holds `..`: name the directory by `path` instead",
        ),
        (
            json!({"pattern": "*", "path": "README.md"}),
            "`README.md` is a file: `path` is a directory to look in",
        ),
    ];
    for (arguments, expected) in table {
        assert_eq!(desk.error("glob", arguments.clone()), expected, "{arguments}");
    }
    assert!(
        desk.error("glob", json!({"pattern": "/etc/*"}))
            .contains("outside what this agent may reach")
    );
}

#[test]
fn glob_says_when_it_cuts() {
    let desk = Desk::new(&[]);
    for number in 0..501 {
        fs::write(desk.path().join(format!("f{number:03}")), "").unwrap();
    }
    let text = desk.text("glob", json!({"pattern": "f*"}));
    assert!(
        text.starts_with("f000\nf001\n") && text.contains("\nf499\n(the first 500, there are more"),
        "{text}"
    );
    fs::remove_file(desk.path().join("f500")).unwrap();
    assert!(desk.text("glob", json!({"pattern": "f*"})).ends_with("f499"));
}

#[test]
fn grep_finds_lines() {
    let desk = project();
    let table = [
        (json!({"pattern": "needle"}), "src/main.rs:2:     needle();\n"),
        (
            json!({"pattern": "needle", "ignore_case": true}),
            "src/deep/lib.rs:1: // a Needle\nsrc/main.rs:2:     needle();\n",
        ),
        (
            json!({"pattern": "^fn \\w+", "glob": "*.rs"}),
            "src/main.rs:1: fn main() {\n",
        ),
        (
            json!({"pattern": "needle", "path": "src/noise.log"}),
            "src/noise.log:1: needle\n",
        ),
        (
            json!({"pattern": "needle", "path": "target"}),
            "target/out.rs:1: needle\n",
        ),
        (
            json!({"pattern": "read", "glob": "*.rs"}),
            "(no line matches `read` in `.`; 2 files searched)\n",
        ),
        (
            json!({"pattern": "needle", "context": 1}),
            "src/main.rs-1- fn main() {\nsrc/main.rs:2:     needle();\nsrc/main.rs-3- }\n",
        ),
    ];
    for (arguments, expected) in table {
        assert_eq!(desk.text("grep", arguments.clone()), expected, "{arguments}");
    }
}

#[test]
fn grep_parts_groups_of_context() {
    let desk = Desk::new(&[("a", "x\n1\n2\n3\n4\nx\n"), ("b", "x\n")]);
    let text = desk.text("grep", json!({"pattern": "x", "context": 1}));
    assert_eq!(text, "a:1: x\na-2- 1\n--\na-5- 4\na:6: x\n--\nb:1: x\n");
}

#[test]
fn grep_says_when_it_cuts() {
    let desk = Desk::new(&[("a", &"x\ny\n".repeat(200))]);
    let text = desk.text("grep", json!({"pattern": "x", "limit": 2}));
    assert_eq!(
        text,
        "a:1: x\na:3: x\n(the first 2 matches, there are more: narrow `pattern`, `path` or `glob`, or raise `limit`)\n"
    );
    let with_context = desk.text("grep", json!({"pattern": "x", "limit": 1, "context": 1}));
    assert!(
        with_context.starts_with("a:1: x\na-2- y\n(the first 1 match,"),
        "{with_context}"
    );
    assert_eq!(desk.text("grep", json!({"pattern": "x"})).lines().count(), 101);
    assert_eq!(
        desk.text("grep", json!({"pattern": "x", "limit": 200})).lines().count(),
        200
    );
}

#[test]
fn grep_shows_the_match_of_a_long_line() {
    let desk = Desk::new(&[("a", &format!("{}needle{}\n", "é".repeat(500), "z".repeat(5_000)))]);
    let text = desk.text("grep", json!({"pattern": "needle"}));
    assert!(
        text.starts_with("a:1: …é") && text.contains("éneedlez") && text.contains("… (+"),
        "{text}"
    );
    assert!(text.len() < 400);
}

#[test]
fn grep_skips_binaries_and_reads_crlf() {
    let desk = Desk::new(&[("crlf", "needle\r\nx\r\n")]);
    fs::write(desk.path().join("binary"), b"\0\0needle\n").unwrap();
    let text = desk.text("grep", json!({"pattern": "needle$"}));
    assert_eq!(text, "crlf:1: needle\n(1 binary file skipped)\n");
}

#[test]
fn grep_refuses_what_it_cannot_search_for() {
    let desk = project();
    let error = |arguments: Value| desk.error("grep", arguments);
    assert!(error(json!({"pattern": "("})).starts_with("`pattern`: "));
    assert!(error(json!({"pattern": "a(?=b)"})).contains("look-around"));
    assert_eq!(
        error(json!({"pattern": ""})),
        "`pattern` is empty: every line would match"
    );
    assert_eq!(
        error(json!({"pattern": "x", "limit": 0})),
        "`limit` is 0: nothing would be shown"
    );
    assert!(error(json!({"pattern": "x", "glob": "["})).starts_with("`glob`: "));
    assert!(error(json!({"pattern": "x", "path": "REDME.md"})).contains("nearest: `README.md`"));
    assert!(error(json!({"pattern": "x", "path": "/etc"})).contains("outside"));
}

#[cfg(unix)]
#[test]
fn links_are_named_and_not_followed() {
    let desk = project();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.rs"), "needle\n").unwrap();
    std::os::unix::fs::symlink(outside.path(), desk.path().join("way-out")).unwrap();
    std::os::unix::fs::symlink(".", desk.path().join("circle")).unwrap();
    assert_eq!(
        desk.text("glob", json!({"pattern": "*.rs"})),
        "src/deep/lib.rs\nsrc/main.rs"
    );
    assert_eq!(
        desk.text("grep", json!({"pattern": "needle"})),
        "src/main.rs:2:     needle();\n"
    );
    assert!(desk.text("glob", json!({"pattern": "way*"})).starts_with("way-out"));
}
