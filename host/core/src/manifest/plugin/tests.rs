#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::manifest::error::{Source, misfit};

#[test]
fn every_key_is_read() {
    let text = r#"
[plugin]
name = "web"
version = "0.1.0"
description = "Fetch pages from allowed hosts."
build = { lang = "rust" }
[docs]
fetch = "Fetches a page."
[[examples]]
tool = "fetch"
arguments = { url = "https://x", depth = 1, tags = ["a"] }
text = "page"
[[examples]]
tool = "fetch"
structured = { n = 1.5 }
[[examples]]
tool = "fetch"
error = "no such"
[needs]
http = ["*", "https://api.github.com"]
files = "read"
env = ["LANG"]
secrets = [{ name = "GITHUB_TOKEN", for = "https://api.github.com" }]
toolbox = false
person = true
"#;
    let parsed = parse(Source::new("plugin.toml", text)).unwrap();
    let manifest = parsed.value;
    assert_eq!(manifest.name, Some("web".parse().unwrap()));
    assert_eq!(manifest.build, Some(Build { lang: Lang::Rust }));
    assert_eq!(manifest.docs["fetch"], "Fetches a page.");
    assert_eq!(
        manifest.examples[0].arguments,
        json!({"url": "https://x", "depth": 1, "tags": ["a"]})
    );
    assert_eq!(manifest.examples[0].expect, Expectation::Text("page".into()));
    assert_eq!(manifest.examples[1].arguments, json!({}));
    assert_eq!(manifest.examples[1].expect, Expectation::Structured(json!({"n": 1.5})));
    assert_eq!(manifest.examples[2].expect, Expectation::Error("no such".into()));
    let needs = manifest.needs;
    assert_eq!(needs.http.len(), 2);
    assert_eq!(needs.files, Some(FileMode::Read));
    assert_eq!(needs.env, ["LANG"]);
    assert_eq!(
        (needs.secrets[0].name.as_str(), &needs.secrets[0].header),
        ("GITHUB_TOKEN", &None)
    );
    assert!(needs.person && !needs.toolbox);
}

#[test]
fn nothing_is_needed_where_nothing_is_said() {
    assert_eq!(
        parse(Source::new("p.toml", "")).unwrap().value,
        PluginManifest::default()
    );
}

#[test]
fn each_fault_names_its_line_its_key_and_what_would_be_right() {
    let cases = [
        (
            "[needs]\nsockets = true",
            2,
            "needs.sockets",
            "unknown key `sockets` in `needs`",
            "sockets",
        ),
        ("[needs]\nnetwork = []", 2, "needs.network", "unknown key", "`http`"),
        ("[needs]\nfile = \"read\"", 2, "needs.file", "unknown key", "`files`"),
        ("[needs]\nlimits = {}", 2, "needs.limits", "unknown key", "granted"),
        (
            "[needs]\nfiles = \"rw\"",
            2,
            "needs.files",
            "cannot be `rw`",
            "`read`, `write`",
        ),
        ("[needs]\nfiles = true", 2, "needs.files", "a text, not a boolean", ""),
        ("[needs]\nhttp = true", 2, "needs.http", "a list", ""),
        ("[needs]\nhttp = [\"ftp://x\"]", 2, "needs.http[0]", "not an origin", ""),
        ("[needs]\nenv = [\"A B\"]", 2, "needs.env[0]", "not the name", ""),
        ("[needs]\nenv = [\"A\", \"A\"]", 2, "needs.env[1]", "twice", ""),
        (
            "[needs]\ntoolbox = \"yes\"",
            2,
            "needs.toolbox",
            "`true` or `false`",
            "",
        ),
        (
            "[plugin]\nname = \"fief\"",
            2,
            "plugin.name",
            "not a plugin name",
            "reserved",
        ),
        (
            "[plugin]\nname = \"agents\"",
            2,
            "plugin.name",
            "not a plugin name",
            "reserved",
        ),
        (
            "[plugin]\nname = \"agent-x\"",
            2,
            "plugin.name",
            "not a plugin name",
            "reserved",
        ),
        (
            "[plugin]\nname = \"My_Plugin\"",
            2,
            "plugin.name",
            "not a plugin name",
            "a-z",
        ),
        (
            "[plugin]\nbuild = { lang = \"cobol\" }",
            2,
            "plugin.build.lang",
            "cannot be `cobol`",
            "`rust`",
        ),
        (
            "[plugin]\nneeds = {}",
            2,
            "plugin.needs",
            "unknown key",
            "table of its own",
        ),
        ("name = \"web\"", 1, "name", "unknown key", "[plugin]"),
        ("http = []", 1, "http", "unknown key", "[needs]"),
        ("[docs]\n\"a b\" = \"x\"", 2, "docs.a b", "not a tool name", ""),
        (
            "[docs]\nagent-x = \"x\"",
            2,
            "docs.agent-x",
            "not a tool name",
            "reserved",
        ),
        (
            "[[examples]]\ntool = \"x\"",
            1,
            "examples[0].text",
            "missing",
            "`structured`",
        ),
        (
            "[[examples]]\ntool = \"x\"\ntext = \"a\"\nerror = \"b\"",
            1,
            "examples[0]",
            "more than one",
            "",
        ),
        ("[[examples]]\ntext = \"a\"", 1, "examples[0].tool", "missing", ""),
        (
            "[[examples]]\ntool = \"x\"\ntext = \"a\"\narguments = 3",
            4,
            "examples[0].arguments",
            "a table",
            "",
        ),
        (
            "[[examples]]\ntool = \"x\"\nstructured = { a = inf }",
            3,
            "examples[0].structured",
            "not JSON",
            "",
        ),
    ];
    let read = |text: &str| parse(Source::new("plugin.toml", text));
    let misfits: Vec<String> = cases
        .iter()
        .filter_map(|&(text, line, key, message, hint)| misfit(text, &read(text), (line, key, message, hint)))
        .collect();
    assert!(misfits.is_empty(), "{}", misfits.join("\n\n"));
}
