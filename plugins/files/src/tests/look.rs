//! `read` and `list`.

use std::fs;

use fief_plugin::{Content, ToolError};
use serde_json::json;

use super::Desk;

#[test]
fn lines_are_numbered() {
    let desk = Desk::new(&[("a.txt", "one\ntwo\r\nthree")]);
    assert_eq!(
        desk.text("read", json!({"path": "a.txt"})),
        "     1\tone\n     2\ttwo\n     3\tthree\n"
    );
    assert_eq!(
        desk.text("read", json!({"path": "/work/./x/../a.txt", "offset": 3})),
        "     3\tthree\n"
    );
}

#[test]
fn a_cut_says_how_to_go_on() {
    let desk = Desk::new(&[("a.txt", &"x\n".repeat(5_000)), ("exact.txt", &"x\n".repeat(2_000))]);
    let text = desk.text("read", json!({"path": "a.txt"}));
    assert!(
        text.ends_with("  2000\tx\n(lines 1-2000 of 5000; to go on: `offset` 2001)\n"),
        "{}",
        &text[text.len() - 90..]
    );
    let text = desk.text("read", json!({"path": "a.txt", "offset": 4_999, "limit": 1}));
    assert_eq!(text, "  4999\tx\n(lines 4999-4999 of 5000; to go on: `offset` 5000)\n");
    assert_eq!(
        desk.text("read", json!({"path": "a.txt", "offset": 5_000})),
        "  5000\tx\n"
    );
    assert!(desk.text("read", json!({"path": "exact.txt"})).ends_with("  2000\tx\n"));
}

#[test]
fn a_result_is_bounded_in_bytes_too() {
    let desk = Desk::new(&[("a.txt", &format!("{}\n", "y".repeat(1_000)).repeat(1_000))]);
    let text = desk.text("read", json!({"path": "a.txt"}));
    assert!(
        text.len() < 70_000 && text.contains("of 1000; to go on: `offset` "),
        "{}",
        text.len()
    );
}

#[test]
fn long_lines_are_cut_between_characters() {
    let desk = Desk::new(&[(
        "a.txt",
        &format!("{}é{}\nnext\n", "x".repeat(1_999), "z".repeat(900_000)),
    )]);
    let text = desk.text("read", json!({"path": "a.txt"}));
    let expected = format!(
        "     1\t{}… (+900002 bytes)\n     2\tnext\n(lines longer than 2000 bytes are cut)\n",
        "x".repeat(1_999)
    );
    assert_eq!(text, expected);
}

#[test]
fn empty_and_past_the_end() {
    let desk = Desk::new(&[("empty", ""), ("one", "x"), ("blank", "\n")]);
    assert_eq!(desk.text("read", json!({"path": "empty"})), "(`empty` is empty)");
    assert_eq!(desk.text("read", json!({"path": "blank"})), "     1\t\n");
    assert_eq!(
        desk.error("read", json!({"path": "one", "offset": 2})),
        "`one` has 1 line: line 2 is past its end"
    );
    assert_eq!(
        desk.error("read", json!({"path": "one", "offset": 9})),
        "`one` has 1 line: line 9 is past its end"
    );
    assert_eq!(
        desk.error("read", json!({"path": "one", "offset": 0})),
        "`offset` is 0: lines are counted from 1"
    );
}

#[test]
fn images_are_shown_and_other_binaries_described() {
    let desk = Desk::new(&[]);
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    fs::write(desk.path().join("a.png"), &png).unwrap();
    let output = desk.call("read", json!({"path": "a.png"})).unwrap();
    let [Content::Image(blob)] = output.content.as_slice() else {
        panic!("{output:?}")
    };
    assert_eq!((blob.media_type.as_str(), &blob.data), ("image/png", &png));
    for (magic, media_type) in [
        (b"\xff\xd8\xff\xe0".as_slice(), "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
    ] {
        fs::write(desk.path().join("image"), magic).unwrap();
        let output = desk.call("read", json!({"path": "image"})).unwrap();
        assert!(
            matches!(&output.content[0], Content::Image(blob) if blob.media_type == media_type),
            "{media_type}"
        );
    }
    fs::write(desk.path().join("a.wasm"), b"\0asm\x0d\0\x01\0").unwrap();
    let text = desk.text("read", json!({"path": "a.wasm"}));
    assert_eq!(text, "(`a.wasm` is a binary file (WebAssembly), 8 bytes; not shown)");
}

#[test]
fn other_encodings() {
    let desk = Desk::new(&[]);
    fs::write(desk.path().join("utf16"), b"\xff\xfeh\0i\0\n\0\xe9\0").unwrap();
    assert_eq!(desk.text("read", json!({"path": "utf16"})), "     1\thi\n     2\té\n");
    fs::write(desk.path().join("bom"), b"\xef\xbb\xbfhi").unwrap();
    assert_eq!(desk.text("read", json!({"path": "bom"})), "     1\thi\n");
    fs::write(desk.path().join("latin1"), b"caf\xe9\n").unwrap();
    let text = desk.text("read", json!({"path": "latin1"}));
    assert_eq!(text, "     1\tcaf\u{fffd}\n(what is no UTF-8 is shown as \u{fffd})\n");
}

#[test]
fn errors_name_what_is_there() {
    let desk = Desk::new(&[("src/main.rs", "x"), ("src/lib.rs", "x"), ("README.md", "x")]);
    assert_eq!(
        desk.error("read", json!({"path": "src/man.rs"})),
        "no file `src/man.rs`; nearest: `src/main.rs`"
    );
    let missing = desk.error("read", json!({"path": "scr/main.rs"}));
    assert_eq!(missing, "no file `scr/main.rs`; no directory `scr`; nearest: `src`");
    let nothing = desk.error("read", json!({"path": "src/zzz"}));
    assert_eq!(nothing, "no file `src/zzz`\nhint: list `src` to see what is there");
    assert_eq!(
        desk.error("read", json!({"path": "src"})),
        "`src` is a directory: use list to see what it holds"
    );
    let inside = desk.error("read", json!({"path": "README.md/x"}));
    assert!(
        inside.contains("a part of this path is a file") || inside.contains("no file"),
        "{inside}"
    );
    assert!(desk.error("read", json!({"path": " "})).contains("`path` is blank"));
}

#[test]
fn what_is_outside_is_refused_with_what_is_inside() {
    let desk = Desk::new(&[]);
    for path in ["/etc/passwd", "../secret", "/work/../etc/passwd", "/workshop", "/"] {
        let error = desk.call("read", json!({"path": path})).unwrap_err();
        let ToolError::Denied(text) = error else {
            panic!("{path}: {error:?}")
        };
        assert!(
            text.ends_with("granted are `/work` (relative paths start there)"),
            "{text}"
        );
    }
    let error = crate::tools()[0].call(r#"{"path":"a.txt"}"#).unwrap_err();
    assert_eq!(error.message(), "`a.txt`: no directory is granted to this agent");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_at_once() {
    let desk = Desk::new(&[]);
    let status = std::process::Command::new("mkfifo")
        .arg(desk.path().join("pipe"))
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(desk.error("read", json!({"path": "pipe"})), "`pipe` is no regular file");
    assert_eq!(
        desk.error("write", json!({"path": "pipe", "content": ""})),
        "`pipe` is no regular file"
    );
    assert_eq!(
        desk.text("list", json!({})),
        "`.`: 0 directories, 1 file\npipe (no regular file)\n"
    );
}

#[test]
fn directories_come_first_and_files_with_sizes() {
    let desk = Desk::new(&[("b/x", ""), ("a/x", ""), ("z.txt", "12345"), ("c.txt", "")]);
    let text = desk.text("list", json!({}));
    assert_eq!(
        text,
        "`.`: 2 directories, 2 files\na/\nb/\nc.txt (0 bytes)\nz.txt (5 bytes)\n"
    );
    assert_eq!(
        desk.text("list", json!({"path": "z.txt"})),
        "`z.txt` is a file of 5 bytes"
    );
    assert_eq!(
        desk.text("list", json!({"path": "a"})),
        "`a`: 0 directories, 1 file\nx (0 bytes)\n"
    );
    assert!(
        desk.error("list", json!({"path": "nowhere"}))
            .starts_with("no file `nowhere`")
    );
}

#[test]
fn a_crowded_directory_is_cut() {
    let desk = Desk::new(&[]);
    for number in 0..10_000 {
        fs::write(desk.path().join(format!("f{number:05}")), "").unwrap();
    }
    let text = desk.text("list", json!({}));
    assert!(text.starts_with("`.`: 0 directories, 10000 files\nf00000 (0 bytes)\n"));
    assert!(text.ends_with("f00999 (0 bytes)\n(the first 1000 of 10000: use glob with a pattern for the rest)\n"));
    assert!(desk.error("read", json!({"path": "f1000"})).contains("nearest: `f"));
}

#[test]
fn several_granted_directories() {
    let (work, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(work.path().join("a"), "in work").unwrap();
    fs::write(data.path().join("a"), "in data").unwrap();
    let directories = [
        (data.path().to_owned(), "/data".to_owned()),
        (work.path().to_owned(), "/work".to_owned()),
    ];
    let place = crate::place::Place::new(directories);
    let read = |path: &str| {
        let args = serde_json::from_value(json!({"path": path})).unwrap();
        crate::read::read(&place, &args).map(|output| output.as_text())
    };
    assert_eq!(read("a").unwrap(), "     1\tin work\n");
    assert_eq!(read("/data/a").unwrap(), "     1\tin data\n");
    assert_eq!(read("../data/a").unwrap(), "     1\tin data\n");
    let error = read("/other").unwrap_err();
    assert!(
        error
            .message()
            .ends_with("granted are `/data`, `/work` (relative paths start there)"),
        "{error:?}"
    );
    assert!(read("/data/b").unwrap_err().message().starts_with("no file `/data/b`"));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// Whatever part of a file is asked for, each line comes with its number, and none is missing.
    #[test]
    fn windows_add_up(lines in proptest::collection::vec("[a-z]{0,12}", 1..60), step in 1u64..25) {
        let desk = Desk::new(&[("a", &lines.iter().map(|line| format!("{line}\n")).collect::<String>())]);
        let (mut offset, mut got) = (1, Vec::new());
        while offset <= lines.len() as u64 {
            let text = desk.text("read", json!({"path": "a", "offset": offset, "limit": step}));
            for line in text.lines().filter(|line| !line.starts_with('(')) {
                let (number, line) = line.split_once('\t').unwrap();
                proptest::prop_assert_eq!(number.trim(), (got.len() + 1).to_string());
                got.push(line.to_owned());
            }
            offset += step;
        }
        proptest::prop_assert_eq!(got, lines);
    }
}
