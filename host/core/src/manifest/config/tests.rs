#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::manifest::error::{Source, misfit};

const FULL: &str = r#"
[run]
archetype = "main"
model = "local"
record = true
[directories]
plugins = ["plugins", "/opt/plugins"]
archetypes = ["archetypes"]
[models.local]
provider = "openai"
model = "qwen3"
base_url = "http://127.0.0.1:8080/v1"
key_env = "LOCAL_KEY"
headers = { X-Team = "a" }
context = 32_768
native_tools = true
stream = false
generation = { temperature = 0.2 }
prices = { input = 0.25, cached = 0.025, output = 2 }
fallback = ["other"]
[policy]
read = ["."]
write = ["out"]
net = ["https://api.github.com", { origin = "https://wiki.corp.example", private = true }]
secrets = ["GITHUB_TOKEN@https://api.github.com"]
env = ["LANG"]
toolbox = false
person = true
strict = false
max_depth = 2
max_children = 64
parallel_children = 8
ask = ["files.write", "web.*"]
limits = { memory = "256MiB", cpu = "10s", wall = "60s", output = "1MiB" }
[agents]
builtin = ["default", "explore"]
tool_mapping = { Fetch = "web.fetch" }
[agents.config]
model = "local"
max_turns = 20
skip_summarization = true
[agents.config.generation]
temperature = 0.1
[secrets]
file = "secrets.env"
[sandbox]
pagemap_scan = true
[telemetry]
endpoint = "http://127.0.0.1:4318"
content = true
"#;

fn read(text: &str) -> Result<ConfigFile, crate::manifest::error::ManifestErrors> {
    parse(Source::new("/w/conf/fief.toml", text)).map(|parsed| parsed.value)
}

#[test]
fn every_key_is_read() {
    let file = read(FULL).unwrap();
    let config = &file.config;
    assert_eq!(file.directory, Path::new("/w/conf"));
    assert_eq!(
        (config.archetype.as_deref(), config.model.as_deref()),
        (Some("main"), Some("local"))
    );
    assert_eq!(config.record, Some(true));
    let plugins = [PathBuf::from("/w/conf/plugins"), PathBuf::from("/opt/plugins")];
    assert_eq!(config.plugins.as_deref(), Some(&plugins[..]));
    let model = &config.models["local"];
    assert_eq!((model.provider.as_str(), model.model.as_str()), ("openai", "qwen3"));
    assert_eq!(model.headers["x-team"], "a");
    assert_eq!(
        (model.context, model.native_tools, model.stream),
        (Some(32_768), Some(true), Some(false))
    );
    assert_eq!(model.prices.unwrap().cached, Some(0.025));
    assert_eq!(model.fallback, ["other"]);
    let policy = &config.policy;
    assert_eq!(
        policy.write.as_deref(),
        Some(&[PathBuf::from("out")][..]),
        "relative to where a run starts"
    );
    assert!(policy.net.as_ref().unwrap()[1].private);
    assert_eq!(
        (policy.max_depth, policy.person, policy.toolbox),
        (Some(2), Some(true), Some(false))
    );
    assert_eq!(policy.limits.wall, Some(Duration::from_secs(60)));
    assert_eq!(policy.ask.as_ref().unwrap().len(), 2);
    assert_eq!(config.builtin.as_ref().unwrap(), &["default", "explore"]);
    assert_eq!(config.tool_mapping["Fetch"].to_string(), "web.fetch");
    assert_eq!(config.agents.max_turns, Some(20));
    assert_eq!(config.agents.generation.temperature, Some(0.1));
    assert_eq!(config.agents.skip_summarization, Some(true));
    assert_eq!(config.secrets_file.as_deref(), Some(Path::new("/w/conf/secrets.env")));
    assert!(config.pagemap_scan && config.telemetry.content);
    assert_eq!(file.places["policy.net"].line, 24);
}

#[test]
fn everything_is_optional_and_absent_is_not_empty() {
    assert_eq!(read("").unwrap().config, Config::default());
    let empty = read("[agents]\nbuiltin = []\n[policy]\nread = []\n[directories]\nplugins = []")
        .unwrap()
        .config;
    assert_eq!(
        (empty.builtin, empty.policy.read, empty.plugins),
        (Some(vec![]), Some(vec![]), Some(vec![]))
    );
}

#[test]
fn each_fault_names_its_line_its_key_and_what_would_be_right() {
    let model = |line: &str| format!("[models.m]\nprovider = \"openai\"\nmodel = \"x\"\n{line}");
    let cases: Vec<(String, u32, &str, &str, &str)> = vec![
        ("[polcy]".into(), 1, "polcy", "unknown key", "`policy`"),
        ("read = []".into(), 1, "read", "unknown key", "[policy]"),
        ("model = \"m\"".into(), 1, "model", "unknown key", "[run]"),
        ("[run]\nmodle = \"m\"".into(), 2, "run.modle", "unknown key", "`model`"),
        (
            "[run]\narchetype = \"a b\"".into(),
            2,
            "run.archetype",
            "not an archetype name",
            "",
        ),
        (
            "[run]\nrecord = \"no\"".into(),
            2,
            "run.record",
            "`true` or `false`",
            "",
        ),
        ("run = 1".into(), 1, "run", "a table", ""),
        (
            "[directories]\nplugins = \"x\"".into(),
            2,
            "directories.plugins",
            "a list",
            "",
        ),
        (
            "[directories]\nplugins = [\"\"]".into(),
            2,
            "directories.plugins[0]",
            "blank",
            "",
        ),
        (
            "[models.m]\nmodel = \"x\"".into(),
            1,
            "models.m.provider",
            "missing",
            "anthropic",
        ),
        (
            "[models.m]\nprovider = \"openai\"".into(),
            1,
            "models.m.model",
            "missing",
            "",
        ),
        (
            "[models.m]\nprovider = \"opnai\"\nmodel = \"x\"".into(),
            2,
            "models.m.provider",
            "cannot be `opnai`",
            "`openai`",
        ),
        (
            "[models.\"a:b\"]\nprovider = \"openai\"\nmodel = \"x\"".into(),
            1,
            "models.a:b",
            "not a model's name",
            "",
        ),
        (
            "[models.inherit]\nprovider = \"openai\"\nmodel = \"x\"".into(),
            1,
            "models.inherit",
            "not a model's name",
            "",
        ),
        (
            model("base_url = \"127.0.0.1\""),
            4,
            "models.m.base_url",
            "not a URL",
            "http://",
        ),
        (
            model("base_url = \"http://u:p@x/v1\""),
            4,
            "models.m.base_url",
            "credentials",
            "key_env",
        ),
        (
            model("url = \"http://x\""),
            4,
            "models.m.url",
            "unknown key",
            "`base_url`",
        ),
        (
            model("key = \"sk-1234\""),
            4,
            "models.m.key",
            "no manifest does",
            "key_env",
        ),
        (
            model("api_key = \"sk-1234\""),
            4,
            "models.m.api_key",
            "no manifest does",
            "key_env",
        ),
        (
            model("key_env = \"sk-1234\""),
            4,
            "models.m.key_env",
            "name of a variable",
            "key_env",
        ),
        (
            model("headers = { Authorization = \"Bearer sk-1234\" }"),
            4,
            "models.m.headers.Authorization",
            "no manifest",
            "",
        ),
        (
            model("headers = { \"a b\" = \"x\" }"),
            4,
            "models.m.headers.a b",
            "not a header",
            "",
        ),
        (
            model("headers = { x = \"a\\nb\" }"),
            4,
            "models.m.headers.x",
            "control character",
            "",
        ),
        (
            model("context = 0"),
            4,
            "models.m.context",
            "cannot be `0`",
            "1 or more",
        ),
        (
            model("prices = { input = 1 }"),
            4,
            "models.m.prices.output",
            "missing",
            "million",
        ),
        (
            model("prices = { input = -1, output = 1 }"),
            4,
            "models.m.prices.input",
            "cannot be `-1`",
            "0 or more",
        ),
        (model("fallback = [\"m\"]"), 4, "models.m.fallback[0]", "for itself", ""),
        (
            model("native_tool = true"),
            4,
            "models.m.native_tool",
            "unknown key",
            "`native_tools`",
        ),
        ("[policy]\nhttp = []".into(), 2, "policy.http", "unknown key", "`net`"),
        (
            "[policy]\nnet = [\"nonsense://x\"]".into(),
            2,
            "policy.net[0]",
            "not an origin",
            "",
        ),
        (
            "[policy]\nsecrets = [\"TOKEN\"]".into(),
            2,
            "policy.secrets[0]",
            "name and origin",
            "@https",
        ),
        (
            "[policy]\nenv = [\"1A\"]".into(),
            2,
            "policy.env[0]",
            "not the name",
            "",
        ),
        (
            "[policy]\nask = [\"files\"]".into(),
            2,
            "policy.ask[0]",
            "names no tool",
            "files.write",
        ),
        (
            "[policy]\nmax_depth = -1".into(),
            2,
            "policy.max_depth",
            "cannot be `-1`",
            "0 or more",
        ),
        (
            "[policy]\nparallel_children = 0".into(),
            2,
            "policy.parallel_children",
            "cannot be `0`",
            "1 or more",
        ),
        (
            "[policy]\nlimits = { memry = 1 }".into(),
            2,
            "policy.limits.memry",
            "unknown key",
            "`memory`",
        ),
        (
            "[agents]\nbuiltin = [\"auditor\"]".into(),
            2,
            "agents.builtin[0]",
            "cannot be `auditor`",
            "`default`",
        ),
        (
            "[agents]\nbuiltin = [\"plan\", \"plan\"]".into(),
            2,
            "agents.builtin[1]",
            "twice",
            "",
        ),
        (
            "[agents]\ntool_mapping = { Fetch = \"fetch\" }".into(),
            2,
            "agents.tool_mapping.Fetch",
            "not a tool",
            "files.read",
        ),
        (
            "[agents.tool_mapping]\nA = \"a.b\"\na = \"a.c\"".into(),
            3,
            "agents.tool_mapping.a",
            "twice",
            "case",
        ),
        (
            "[agents]\nmax_turns = 3".into(),
            2,
            "agents.max_turns",
            "unknown key",
            "[agents.config]",
        ),
        (
            "[agents.config]\ntools = []".into(),
            2,
            "agents.config.tools",
            "unknown key",
            "archetype",
        ),
        (
            "[agents.config]\nmax_turns = 0".into(),
            2,
            "agents.config.max_turns",
            "cannot be `0`",
            "-1",
        ),
        (
            "[secrets]\nTOKEN = \"x\"".into(),
            2,
            "secrets.TOKEN",
            "unknown key",
            "never here",
        ),
        ("[sandbox]\nscan = true".into(), 2, "sandbox.scan", "unknown key", ""),
        (
            "[telemetry]\nendpoint = \"x\"".into(),
            2,
            "telemetry.endpoint",
            "not a URL",
            "",
        ),
    ];
    let mut misfits = Vec::new();
    for (text, line, key, message, hint) in cases {
        let result = read(&text);
        misfits.extend(misfit(&text, &result, (line, key, message, hint)));
        let errors = result.err().unwrap_or_default();
        let shown: String = errors
            .iter()
            .map(|error| format!("{error:?}{}", error.place.source.text))
            .collect();
        assert!(
            !shown.contains("sk-1234") && !shown.contains("u:p@"),
            "a key is repeated: {shown}"
        );
    }
    assert!(misfits.is_empty(), "{}", misfits.join("\n\n"));
}
