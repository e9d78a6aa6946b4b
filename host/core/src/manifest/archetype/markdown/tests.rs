#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use super::*;
use crate::agent::instruction::{Variables, render};

const TOOLS: [&str; 7] = [
    "calculator.add",
    "files.edit",
    "files.glob",
    "files.grep",
    "files.read",
    "files.write",
    "web.fetch",
];

fn tools() -> BTreeSet<String> {
    TOOLS.map(str::to_owned).into()
}

fn read(text: &str) -> Result<Parsed<Archetype>, ManifestErrors> {
    let models = ["local".to_owned()].into();
    let known = Known {
        mapping: &ToolMapping::default(),
        tools: Some(&tools()),
        models: Some(&models),
    };
    parse(Source::new("agents/a.md", text))?.resolve(known)
}

/// Front matter of three lines and more, then a body.
fn with(more: &str) -> String {
    format!("---\nname: a\ndescription: d\n{more}\n---\nbody\n")
}

/// What an archetype may use, as `plugin` or `plugin.tool`; absent if it inherits.
fn held(archetype: &Archetype) -> Option<Vec<String>> {
    let entry = |entry: &ToolGrant| {
        assert_eq!(entry.grant, GrantRequest::Policy);
        let tools = entry
            .allow
            .as_ref()
            .map(|tools| tools.iter().map(|tool| format!("{}.{tool}", entry.plugin)).collect());
        tools.unwrap_or_else(|| vec![entry.plugin.to_string()])
    };
    Some(archetype.tools.as_ref()?.iter().flat_map(entry).collect())
}

fn held_by(more: &str) -> Option<Vec<String>> {
    held(
        &read(&with(more))
            .unwrap_or_else(|errors| panic!("{more}: {errors:#?}"))
            .value,
    )
}

fn error(text: &str) -> ManifestError {
    let mut errors = read(text).expect_err(text);
    assert_eq!(errors.len(), 1, "{text}\n{errors:#?}");
    errors.remove(0)
}

#[test]
fn a_whole_file_is_read() {
    let text = "---\nname: security-auditor\ndescription: Use for security code audit.\ntools:\n  - Read\n  - Glob\n  - Grep\n---\n\nYou are a security auditor...\n";
    let archetype = read(text).unwrap().value;
    assert_eq!(archetype.name.as_str(), "security-auditor");
    assert_eq!(archetype.description, "Use for security code audit.");
    assert_eq!(&*archetype.instruction, "You are a security auditor...");
    assert_eq!(archetype.origin, "agents/a.md");
    assert_eq!(held(&archetype).unwrap(), ["files.read", "files.glob", "files.grep"]);
}

#[test]
fn b1_no_front_matter_is_an_error_with_the_path() {
    for text in ["", "body", "# Title\n---\nname: a\n---\n", " ---\nname: a\n"] {
        let error = error(text);
        assert_eq!(error.message, "there is no front matter");
        assert!(error.to_string().starts_with("agents/a.md"));
        assert!(error.hint.unwrap().contains("---"));
    }
}

#[test]
fn b2_unclosed_front_matter_is_an_error_with_the_path() {
    for text in ["---", "---\nname: a\ndescription: d\nbody", "---\nname: a\n----\nbody"] {
        let error = error(text);
        assert!(error.message.contains("not closed"), "{error:?}");
        assert!(error.to_string().starts_with("agents/a.md"));
    }
}

#[test]
fn b3_invalid_yaml_is_an_error_with_its_line() {
    for (text, line) in [
        ("---\nname: a\ndescription: [d\n---\nbody", 3),
        ("---\nname: a\ndescription: Use it when: always\n---\nbody", 3),
        ("---\nname: a\nname: b\ndescription: d\n---\nbody", 3),
        ("---\nname: a\n\tdescription: d\n---\nbody", 3),
        ("---\nname: *b\ndescription: d\n---\nbody", 2),
    ] {
        let error = error(text);
        assert!(error.message.contains("not valid YAML"), "{error:?}");
        assert!(error.line().abs_diff(line) <= 1, "{text}: {error:?}");
    }
}

#[test]
fn b4_front_matter_that_is_a_list_or_a_scalar() {
    for (text, kind) in [
        ("---\n- a\n- b\n---\nbody", "a list"),
        ("---\njust text\n---\nbody", "a text"),
        ("---\n3\n---\nbody", "an integer"),
        ("---\n---\nbody", "nothing"),
    ] {
        let error = error(text);
        assert!(
            error.message.contains("keys and values") && error.message.contains(kind),
            "{error:?}"
        );
    }
}

/// Each text has one error, about this key, at this line, that says this.
fn refuses(table: &[(&str, &str, &str, u32)]) {
    for (text, key, message, line) in table {
        let error = error(text);
        assert_eq!(error.key.as_deref().unwrap_or_default(), *key, "{error:?}");
        assert!(error.message.contains(message), "{error:?}");
        assert_eq!(error.line(), *line, "{text}: {error:?}");
    }
}

#[test]
fn b5_no_name() {
    refuses(&[
        ("---\ndescription: d\n---\nbody", "name", "`name` is missing", 2),
        (
            "---\nname:\ndescription: d\n---\nbody",
            "name",
            "must be a text, not nothing",
            2,
        ),
    ]);
}

#[test]
fn b6_no_description() {
    refuses(&[
        ("---\nname: a\n---\nbody", "description", "`description` is missing", 2),
        ("---\nname: a\ndescription: ' '\n---\nbody", "description", "blank", 3),
    ]);
}

#[test]
fn b7_a_blank_body() {
    refuses(&[
        ("---\nname: a\ndescription: d\n---\n \n\n", "", "blank", 5),
        ("---\nname: a\ndescription: d\n---", "", "blank", 4),
    ]);
}

#[test]
fn b8_bad_characters_in_the_name() {
    refuses(&[
        (
            "---\nname: 'a b'\ndescription: d\n---\nbody",
            "name",
            "`a b` is not an archetype name",
            2,
        ),
        ("---\nname: 9a\ndescription: d\n---\nbody", "name", "`9a` is not", 2),
        ("---\nname: a.b\ndescription: d\n---\nbody", "name", "`a.b` is not", 2),
        ("---\nname: ../a\ndescription: d\n---\nbody", "name", "`../a` is not", 2),
        (
            "---\nname: [a]\ndescription: d\n---\nbody",
            "name",
            "must be a text, not a list",
            2,
        ),
    ]);
    for name in ["a", "A9", "security-auditor", "x_y"] {
        assert!(
            read(&format!("---\nname: {name}\ndescription: d\n---\nbody")).is_ok(),
            "{name}"
        );
    }
}

#[test]
fn b9_tools_that_is_no_list() {
    assert_eq!(
        held_by("tools: Read, Grep , Glob").unwrap(),
        ["files.read", "files.grep", "files.glob"]
    );
    for tools in ["3", "{ Read: true }", "true", ""] {
        let error = error(&with(&format!("tools: {tools}")));
        assert!(error.message.contains("must be a list of names"), "{error:?}");
        assert_eq!((error.line(), error.key.as_deref()), (4, Some("tools")));
    }
}

#[test]
fn b10_an_entry_that_is_no_string() {
    let error = error(&with("tools:\n  - Read\n  - 3"));
    assert!(error.message.contains("a text, not an integer"), "{error:?}");
    assert_eq!((error.line(), error.key.as_deref()), (6, Some("tools[1]")));
}

#[test]
fn b11_an_unknown_tool_is_an_error_and_a_foreign_one_a_warning() {
    for (name, hint) in [
        ("files.raed", "`files.read`"),
        ("Raed", "`Read`"),
        ("zzzzzz", "`calculator.add`, `files.edit`"),
    ] {
        let error = error(&with(&format!("tools: [Read, {name}]")));
        assert_eq!(error.message, format!("unknown tool `{name}`"));
        assert!(error.hint.as_deref().unwrap().contains(hint), "{error:?}");
        assert_eq!((error.line(), error.key.as_deref()), (4, Some("tools[1]")));
    }
    let foreign = [
        "Bash",
        "Task",
        "TodoWrite",
        "WebSearch",
        "NotebookEdit",
        "Bash(git log:*)",
        "mcp__github__issues",
    ];
    for name in foreign {
        let parsed = read(&with(&format!("tools:\n  - Read\n  - {name}"))).unwrap();
        assert_eq!(held(&parsed.value).unwrap(), ["files.read"]);
        assert_eq!(parsed.warnings.len(), 1);
        assert!(
            parsed.warnings[0].message.contains(&format!("`{name}` is left out")),
            "{:?}",
            parsed.warnings
        );
        assert_eq!(parsed.warnings[0].line(), 6);
    }
    assert_eq!(
        held_by("tools: Bash").unwrap(),
        [""; 0],
        "what is emptied so is none, not all"
    );
    assert_eq!(held_by("tools: Task(a, b), Read").unwrap(), ["files.read"]);
}

#[test]
fn a_name_whose_plugin_is_not_there_is_left_out() {
    let parsed = read(&with("tools: LS, Read")).unwrap();
    assert_eq!(held(&parsed.value).unwrap(), ["files.read"]);
    assert!(
        parsed.warnings[0].message.contains("`files.list`"),
        "{:?}",
        parsed.warnings
    );
}

#[test]
fn a_restricted_tool_is_refused_not_widened() {
    for tools in ["Read(src/**)", "files.read(src)", "Read()"] {
        let error = error(&with(&format!("tools: [\"{tools}\"]")));
        assert!(error.message.contains("restricts"), "{error:?}");
        assert!(error.hint.unwrap().contains("TOML"));
    }
}

#[test]
fn b12_tools_omitted_inherits() {
    assert_eq!(held_by("version: 1.0"), None);
    assert_eq!(held_by("tools: '*'"), None);
}

#[test]
fn b13_an_empty_list_is_none() {
    assert_eq!(held_by("tools: []").unwrap(), [""; 0]);
}

#[test]
fn a_list_with_a_hole_is_an_error() {
    assert!(error(&with("tools: ['*', Read]")).message.contains("stands alone"));
    assert!(error(&with("tools: 'Read,,Grep'")).message.contains("empty name"));
    assert!(error(&with("tools: ','")).message.contains("empty name"));
}

#[test]
fn b14_unknown_keys_are_errors_with_the_nearest() {
    for (key, hint) in [
        ("allowed-tools", "`tools`"),
        ("allowedTools", "`tools`"),
        ("tool", "`tools`"),
        ("disallowed-tools", "`disallowedTools`"),
        ("disalowedTools", "`disallowedTools`"),
        ("max-turn", "`maxTurns`"),
        ("prompt", "under the front matter"),
        ("agents", "TOML"),
        ("zzzz", "the keys are"),
    ] {
        let error = error(&with(&format!("{key}: Read")));
        assert_eq!(error.message, format!("unknown key `{key}`"));
        assert!(error.hint.as_deref().unwrap().contains(hint), "{error:?}");
        assert_eq!((error.line(), error.key.as_deref()), (4, Some(key)));
    }
}

#[test]
fn b14_harmless_keys_of_other_products_warn() {
    for key in ["color", "background", "memory", "effort", "skills", "mode"] {
        let parsed = read(&with(&format!("{key}: blue"))).unwrap();
        assert_eq!(parsed.warnings.len(), 1);
        assert_eq!(
            (parsed.warnings[0].line(), parsed.warnings[0].key.as_deref()),
            (4, Some(key))
        );
    }
}

#[test]
fn b14_keys_that_bear_on_rights_are_honoured_or_refused() {
    for line in [
        "permissionMode: bypassPermissions",
        "permissionMode: plan",
        "permissionMode: [default]",
        "mcpServers: [github]",
        "hooks: { PreToolUse: [] }",
        "permission: { edit: deny }",
        "sandbox_mode: read-only",
        "isolation: worktree",
        "disable: true",
    ] {
        let error = error(&with(line));
        assert!(error.message.contains("bears on rights"), "{error:?}");
        assert_eq!(error.line(), 4);
        assert!(error.hint.is_some());
    }
    for line in [
        "permissionMode: default",
        "mcpServers: []",
        "hooks: {}",
        "disable: false",
    ] {
        assert!(read(&with(line)).is_ok(), "{line}");
    }
    assert_eq!(
        held_by("tools: Read, Write\ndisallowedTools: Write").unwrap(),
        ["files.read"]
    );
    assert_eq!(
        held_by("tools: files.*, web.fetch\ndisallowedTools: files").unwrap(),
        ["web.fetch"]
    );
    assert_eq!(held_by("tools: Read\ndisallowedTools: '*'").unwrap(), [""; 0]);
    let inheriting = read(&with("disallowedTools: [Write, web.fetch, Bash]")).unwrap();
    assert!(inheriting.warnings.is_empty(), "what does not exist is not held");
    let archetype = inheriting.value;
    assert_eq!(archetype.tools, None);
    for tool in TOOLS {
        let name: ToolRef = tool.parse().unwrap();
        let refused = ["files.write", "web.fetch"].contains(&tool);
        assert_eq!(archetype.disallows(&name.plugin, &name.tool), refused, "{tool}");
    }
    assert_eq!(error(&with("disallowedTools: Wriet")).message, "unknown tool `Wriet`");
}

#[test]
fn a_part_of_a_whole_plugin_can_be_refused() {
    let archetype = read(&with("tools: files.*\ndisallowedTools: Write")).unwrap().value;
    assert_eq!(held(&archetype).unwrap(), ["files"]);
    let write: ToolRef = "files.write".parse().unwrap();
    assert!(
        archetype.disallows(&write.plugin, &write.tool),
        "the whole plugin is held but for this"
    );
}

#[test]
fn b24_a_custom_mapping_overrides_and_case_is_no_matter() {
    assert_eq!(held_by("tools: webfetch, READ").unwrap(), ["web.fetch", "files.read"]);
    let custom: BTreeMap<String, ToolRef> = [
        ("read".to_owned(), "files.grep".parse().unwrap()),
        ("Bash".to_owned(), "calculator.add".parse().unwrap()),
        ("Fetch".to_owned(), "web.fetch".parse().unwrap()),
    ]
    .into();
    let known = Known {
        mapping: &ToolMapping::new(&custom),
        tools: Some(&tools()),
        models: None,
    };
    let markdown = parse(Source::new("a.md", with("tools: Read, bash, FETCH"))).unwrap();
    let archetype = markdown.resolve(known).unwrap().value;
    assert_eq!(held(&archetype).unwrap(), ["files.grep", "calculator.add", "web.fetch"]);
}

#[test]
fn b29_the_first_and_the_last_entry_are_read() {
    for tools in [
        "[Read, Glob, Grep]",
        "Read, Glob, Grep",
        "Read, Glob, Grep,",
        "\n- Read\n- Glob\n- Grep",
    ] {
        assert_eq!(
            held_by(&format!("tools: {tools}")).unwrap(),
            ["files.read", "files.glob", "files.grep"],
            "{tools}"
        );
    }
}

/// The system prompt that a body comes to.
fn prompt(text: &str) -> String {
    let archetype = read(text).unwrap().value;
    render(&archetype.instruction, &Variables::default()).unwrap()
}

#[test]
fn b27_bodies_keep_their_lines_and_braces() {
    let body = "  one\r\n\n\n---\n{{ secrets.X }} {% if %} {# c #} {{{ {";
    let text = format!("---\r\nname: a\r\ndescription: d\r\n---\r\n\r\n{body}");
    assert_eq!(prompt(&text), body);
}

#[test]
fn b28_no_final_newline_is_fine() {
    let text = "---\nname: a\ndescription: d\n---\none\ntwo";
    assert_eq!(prompt(text), "one\ntwo");
    assert_eq!(prompt(&format!("{text}\n")).trim_end(), "one\ntwo");
}

#[test]
fn words_that_users_bring_a_claude_code_file_loads_as_it_is() {
    let text = "---\nname: code-reviewer\ndescription: Reviews code.\ntools: Read, Grep, Glob, Bash\n\
                disallowedTools: Write\nmodel: sonnet\nmaxTurns: 20\ncolor: blue\n---\n\nYou review code.\n";
    let parsed = read(text).unwrap();
    assert_eq!(held(&parsed.value).unwrap(), ["files.read", "files.grep", "files.glob"]);
    assert_eq!(
        (parsed.value.config.model.as_deref(), parsed.value.config.max_turns),
        (None, Some(20))
    );
    let warned: Vec<&str> = parsed
        .warnings
        .iter()
        .filter_map(|warning| warning.key.as_deref())
        .collect();
    assert_eq!(warned, ["tools", "model", "color"], "{:?}", parsed.warnings);
}

#[test]
fn words_that_users_bring_keys_of_other_products_are_told_where_they_belong() {
    for (line, hint) in [
        ("permissions: { edit: deny }", ""),
        ("sandbox_mode: read-only", ""),
        ("instructions: You.", "under the front matter"),
        ("developer_instructions: You.", "under the front matter"),
        ("extensions: [x]", ""),
    ] {
        let error = error(&with(line));
        assert!(
            error.hint.as_deref().unwrap_or_default().contains(hint),
            "{line}: {error:?}"
        );
    }
    let config = read(&with(
        "max_turns: 5\ntemperature: 0.5\ntimeout_mins: 1\nmode: subagent\nsteps: 9",
    ))
    .unwrap();
    assert_eq!(config.value.config.max_turns, Some(5));
}

#[test]
fn words_that_users_bring_limits_of_other_products_are_honoured() {
    let config = |more: &str| read(&with(more)).unwrap().value.config;
    assert_eq!(config("maxTurns: 5").max_turns, Some(5));
    assert_eq!(config("max_turns: 7\nsteps: 3").max_turns, Some(3));
    assert_eq!(config("maxTurns: -1\nsteps: 3").max_turns, Some(3));
    assert_eq!(config("temperature: 0.5").generation.temperature, Some(0.5));
    assert_eq!(config("timeout_mins: 5").budget.wall, Some(Duration::from_secs(300)));
    for (line, message) in [
        ("maxTurns: 0", "cannot be `0`"),
        ("maxTurns: many", "an integer"),
        ("timeout_mins: 1e300", "cannot be"),
    ] {
        assert!(error(&with(line)).message.contains(message), "{line}");
    }
}

#[test]
fn words_that_users_bring_a_model_that_is_not_configured_warns_and_inherits() {
    let model = |name: &str| {
        let parsed = read(&with(&format!("model: {name}"))).unwrap();
        (parsed.value.config.model, parsed.warnings.len())
    };
    assert_eq!(model("local"), (Some("local".into()), 0));
    assert_eq!(model("openai:m"), (Some("openai:m".into()), 0));
    assert_eq!(model("inherit"), (None, 0));
    assert_eq!(model(""), (None, 0));
    assert_eq!(model("sonnet"), (None, 1));
}

#[test]
fn without_a_view_of_the_plugins_only_the_form_is_checked() {
    let known = Known {
        mapping: &ToolMapping::default(),
        tools: None,
        models: None,
    };
    let resolve = |tools: &str| {
        parse(Source::new("a.md", with(&format!("tools: [{tools}]"))))
            .unwrap()
            .resolve(known)
    };
    assert_eq!(
        held(&resolve("Read, files.anything, web.*").unwrap().value).unwrap(),
        ["files.read", "files.anything", "web"]
    );
    assert!(resolve("anything").is_err());
}

#[test]
fn all_errors_are_reported_together() {
    let errors = parse(Source::new(
        "a.md",
        "---\nname: 9\ndescription: ''\nspam: 1\ntools: 3\n---\n",
    ))
    .unwrap_err();
    let keys: Vec<&str> = errors
        .iter()
        .map(|error| error.key.as_deref().unwrap_or("body"))
        .collect();
    assert_eq!(keys, ["name", "description", "spam", "tools", "body"]);
    let errors = read(&with("tools: [one, two]")).unwrap_err();
    assert_eq!(errors.len(), 2);
}
