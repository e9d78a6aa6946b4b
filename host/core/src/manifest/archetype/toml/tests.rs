#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::*;
use crate::grant::FileMode;
use crate::manifest::archetype::{GrantRequest, LimitRequest, Summary};
use crate::manifest::files::tests::Pretend;

const FULL: &str = r#"
name = "auditor"
version = "1.0.0"
description = "Audits source code for security faults. Read-only."
instruction = { file = "instruction.md" }
model = "inherit"
agents = ["explore"]
agent_tools = ["agent-worker"]
filters = ["redact", { plugin = "ask", grant = { person = true } }]
max_turns = 30
max_tool_calls_per_turn = 10
parallel_tool_calls = true
keep_tool_results = -1
include_parent_history = false
max_parent_history_turns = 8
forward_events = true
summary = "at-limit"
summary_instruction = "Quote sources."
task_suffix = "Be exact."
input_schema = "input.json"
report_schema = { file = "report.json" }
[generation]
temperature = 0.2
top_p = 1
max_output_tokens = 4_096
stop = ["END"]
seed = 7
[budget]
tokens = 200_000
wall = "10m"
children = 8
cost = 1.50
[spawn]
skip_summarization = true
filters = []
[dynamic]
name = "make_expert"
description = "Makes an expert."
expose_tool_selection = false
fallback_instruction = "You are an expert."
skip_summarization = true
max_turns = 5
filters = ["redact"]
[[dynamic.tools]]
plugin = "calculator"
[[tools]]
plugin = "files"
digest = "sha256:0000000000000000000000000000000000000000000000000000000000000001"
allow = ["read", "files.glob", "grep"]
[tools.grant]
files = [{ host = ".", guest = "/work/", mode = "read" }, { host = "out", guest = "/out", mode = "write" }]
http = ["https://api.github.com", { origin = "https://wiki.corp.example", private = true }]
env = { LANG = "C" }
secrets = [{ name = "GITHUB_TOKEN", for = "https://api.github.com", header = "X-Token", format = "token {}" }]
toolbox = false
person = true
limits = { memory = "64MiB", cpu = "2s", wall = "10s", output = "256KiB", requests = 3 }
[[tools]]
plugin = "web"
grant = "policy"
[[tools]]
plugin = "calculator"
"#;

fn files() -> Pretend {
    Pretend(
        [
            ("/w/a/instruction.md", "You are an auditor.\n"),
            ("/w/a/blank.md", " \n"),
            ("/w/a/input.json", r#"{"type": "object"}"#),
            ("/w/a/report.json", r#"{"type": "string"}"#),
            ("/w/a/broken.json", "{\n  \"type\": nonsense\n}"),
            ("/w/a/wrong.json", r#"{"type": "objekt"}"#),
            ("/w/a/link.md", "-> /etc/passwd"),
            ("/etc/passwd", "root"),
        ]
        .into(),
    )
}

pub(super) fn read(text: &str) -> Result<Archetype, ManifestErrors> {
    parse(Source::new("/w/a/archetype.toml", text), &files()).map(|parsed| parsed.value)
}

#[test]
fn every_key_is_read() {
    let archetype = read(FULL).unwrap();
    assert_eq!(archetype.name.as_str(), "auditor");
    assert_eq!(archetype.version, "1.0.0");
    assert_eq!(&*archetype.instruction, "You are an auditor.\n");
    assert_eq!(archetype.origin, "/w/a/archetype.toml");
    assert_eq!(archetype.agents, Some(Agents::Named(vec!["explore".parse().unwrap()])));
    assert_eq!(archetype.agent_tools, Some(vec!["agent-worker".parse().unwrap()]));
    assert_eq!(
        archetype.input_schema.as_deref(),
        Some(&serde_json::json!({"type": "object"}))
    );
    assert_eq!(
        archetype.report_schema.as_deref(),
        Some(&serde_json::json!({"type": "string"}))
    );

    let config = &archetype.config;
    assert_eq!(config.model, None, "`inherit` is as if it were absent");
    let filters = config.filters.as_ref().unwrap();
    assert_eq!(
        filters[0].grant,
        GrantRequest::Exact(Default::default()),
        "a name grants nothing"
    );
    assert!(matches!(&filters[1].grant, GrantRequest::Exact(grant) if grant.person));
    assert_eq!((config.max_turns, config.max_tool_calls_per_turn), (Some(30), Some(10)));
    assert_eq!(
        (config.keep_tool_results, config.max_parent_history_turns),
        (Some(-1), Some(8))
    );
    assert_eq!(config.summary, Some(Summary::AtLimit));
    assert_eq!(config.generation.top_p, Some(1.0));
    assert_eq!(config.generation.max_output_tokens, Some(4096));
    assert_eq!(config.budget.wall, Some(Duration::from_secs(600)));
    assert_eq!((config.budget.children, config.budget.cost), (Some(8), Some(1.5)));
    assert_eq!(config.skip_summarization, None, "it is the parent's choice");
    assert_eq!(archetype.spawn.skip_summarization, Some(true));
    assert_eq!(archetype.spawn.filters, Some(vec![]));

    let dynamic = archetype.dynamic.as_ref().unwrap();
    assert_eq!(
        (dynamic.name.as_str(), dynamic.expose_tool_selection),
        ("make_expert", false)
    );
    assert_eq!(dynamic.config.max_turns, Some(5));
    assert_eq!(dynamic.config.skip_summarization, Some(true));
    assert_eq!(dynamic.tools.as_ref().unwrap()[0].plugin.as_str(), "calculator");

    let tools = archetype.tools.as_ref().unwrap();
    assert_eq!(tools.len(), 3);
    let allow: Vec<&str> = tools[0]
        .allow
        .as_ref()
        .unwrap()
        .iter()
        .map(crate::id::ToolName::as_str)
        .collect();
    assert_eq!(allow, ["read", "glob", "grep"]);
    assert!(tools[0].digest.is_some());
    let GrantRequest::Exact(grant) = &tools[0].grant else {
        panic!()
    };
    assert_eq!(grant.files[0].guest, "/work");
    assert_eq!(grant.files[1].mode, FileMode::Write);
    assert!(!grant.http[0].private && grant.http[1].private);
    assert_eq!(grant.env["LANG"], "C");
    assert_eq!(grant.secrets[0].header.as_deref(), Some("x-token"));
    assert!(grant.person && !grant.toolbox);
    let limits = LimitRequest {
        memory: Some(64 << 20),
        cpu: Some(Duration::from_secs(2)),
        wall: Some(Duration::from_secs(10)),
        output: Some(256 << 10),
        requests: Some(3),
        ..LimitRequest::default()
    };
    assert_eq!(grant.limits, limits);
    assert_eq!(tools[1].grant, GrantRequest::Policy);
    assert_eq!(
        tools[2].grant,
        GrantRequest::Exact(Default::default()),
        "no grant: it can only compute"
    );
    assert_eq!(tools[2].allow, None);
}

/// The least that an archetype is, on three lines, with more below.
pub(super) fn least(more: &str) -> String {
    format!("name = \"a\"\ndescription = \"d\"\ninstruction = \"i\"\n{more}")
}

#[test]
fn b12_tools_omitted_are_absent() {
    let absent = read(&least("")).unwrap();
    assert_eq!(
        (absent.tools, absent.agents, absent.agent_tools, absent.dynamic),
        (None, None, None, None)
    );
}

#[test]
fn b13_an_empty_list_is_none_and_not_absent() {
    let empty = read(&least(
        "tools = []\nagents = []\nagent_tools = []\nfilters = []\n[dynamic]\n",
    ))
    .unwrap();
    assert_eq!(empty.tools, Some(vec![]));
    assert_eq!(empty.agents, Some(Agents::Named(vec![])));
    assert_eq!(empty.agent_tools, Some(vec![]));
    assert_eq!(empty.config.filters, Some(vec![]));
    assert_eq!(empty.dynamic, Some(Dynamic::default()));
    assert_eq!(read(&least("agents = [\"*\"]")).unwrap().agents, Some(Agents::All));
    assert_eq!(read(&least("max_turns = -1")).unwrap().config.max_turns, Some(-1));
}

#[test]
fn b27_an_instruction_keeps_its_lines() {
    let text = "name = \"a\"\ndescription = \"d\"\ninstruction = \"\"\"\none\n  two\n\nthree\"\"\"";
    assert_eq!(&*read(text).unwrap().instruction, "one\n  two\n\nthree");
}

#[test]
fn an_instruction_comes_from_a_file_that_stays_beside_the_manifest() {
    for (instruction, message) in [
        ("{ file = \"../b.md\" }", "leads out"),
        ("{ file = \"/etc/passwd\" }", "leads out"),
        ("{ file = \"link.md\" }", "leads out"),
        ("{ file = \"none.md\" }", "no such file"),
        ("{ file = \"blank.md\" }", "blank"),
        ("{ file = 3 }", "a text"),
        ("{ path = \"instruction.md\" }", "missing"),
        ("3", "a text, or"),
        ("\"{% for x in y %}\"", "instruction"),
        ("\"{{ secret }}\"", "instruction"),
    ] {
        let text = format!("name = \"a\"\ndescription = \"d\"\ninstruction = {instruction}");
        let errors = read(&text).expect_err(&text);
        assert!(errors[0].message.contains(message), "{errors:#?}");
        assert_eq!(errors[0].line(), 3);
    }
}

#[test]
fn a_broken_schema_is_shown_in_its_own_file() {
    let errors = read(&least("report_schema = \"broken.json\"")).unwrap_err();
    assert_eq!((errors[0].file(), errors[0].line()), ("/w/a/broken.json", 2));
}

#[test]
fn all_errors_of_a_file_are_reported_in_its_order() {
    let errors = read("name = \"-\"\nmax_turns = 0\n[[tools]]\nplugin = 3\n[spam]\n").unwrap_err();
    let lines: Vec<u32> = errors.iter().map(ManifestError::line).collect();
    assert_eq!(lines, [1, 1, 1, 2, 4, 5]);
}

#[test]
fn syntax_errors_have_their_line() {
    for (text, line) in [
        ("name = \n", 1),
        ("a = 1\na = 2", 2),
        ("a = 1\n\n[b\n", 3),
        ("\u{feff}name = [", 1),
    ] {
        let errors = read(text).expect_err(text);
        assert_eq!(errors[0].line(), line, "{errors:?}");
        assert!(errors[0].hint.is_some());
    }
    assert!(
        read(&format!("\u{feff}{}", least(""))).is_ok(),
        "a byte-order mark is no part of the text"
    );
}

#[test]
fn a_secret_in_the_place_of_its_name_is_not_repeated() {
    let text =
        least("[[tools]]\nplugin = \"x\"\n[tools.grant]\nsecrets = [{ name = \"sk-12 34\", for = \"https://x\" }]");
    let error = read(&text).unwrap_err().remove(0);
    assert_eq!(error.line(), 7);
    assert!(!format!("{error:?}{error}{}", error.place.source.text).contains("sk-12"));
}
