//! How the ways to a child are declared, and how a call of one is read.

use super::*;
use crate::agent::ways::{FALLBACK_INSTRUCTION, declarations};
use crate::manifest::archetype::{Disallowed, GrantRequest, GrantTable, ToolGrant};

fn grant(plugin: &str, allow: Option<&[&str]>) -> ToolGrant {
    ToolGrant {
        plugin: plugin.parse().unwrap(),
        digest: None,
        allow: allow.map(|names| names.iter().map(|name| name.parse().unwrap()).collect()),
        grant: GrantRequest::Exact(GrantTable::default()),
    }
}

fn request(spec: &Arc<AgentSpec>, tool: &str, arguments: &Value) -> Result<ChildRequest, String> {
    Run::begin(spec).agent().child_request(tool, arguments)
}

fn dynamic(edit: impl FnOnce(&mut Dynamic)) -> Arc<AgentSpec> {
    let mut dynamic = Dynamic::default();
    edit(&mut dynamic);
    spec(|spec| spec.ways.dynamic = Some(Arc::new(dynamic)))
}

fn dynamic_tools(spec: &Arc<AgentSpec>, tools: &Value) -> Result<Option<Vec<String>>, String> {
    let arguments = json!({"instruction": "You…", "prompt": "p", "tools": tools});
    match request(spec, "dynamic_subagent", &arguments)? {
        ChildRequest::Dynamic { tools, .. } => Ok(tools),
        other => panic!("{other:?}"),
    }
}

/// A catalogue of three: some tools, the parent's, none.
fn catalogue() -> Ways {
    Ways {
        spawn: vec![
            archetype("explore", |one| {
                one.tools = Some(vec![grant("files", Some(&["read", "glob"])), grant("web", None)]);
            }),
            archetype("default", |_| {}),
            archetype("thinker", |one| one.tools = Some(Vec::new())),
        ],
        ..Ways::default()
    }
}

#[test]
fn b30_subagent_type_is_an_enum_of_the_registered_names() {
    let declared = declarations(&catalogue(), &[]);
    assert_eq!(declared.len(), 1);
    assert_eq!(
        declared[0].input_schema["properties"]["subagent_type"]["enum"],
        json!(["explore", "default", "thinker"])
    );
}

#[test]
fn b31_the_description_is_deterministic() {
    let text = || declarations(&catalogue(), &[])[0].description.clone();
    for _ in 0..20 {
        assert_eq!(text(), text());
    }
}

#[test]
fn b32_each_archetype_shows_its_tools() {
    let text = declarations(&catalogue(), &[])[0].description.clone();
    for line in [
        "\n- explore: Does explore. (tools: files.read, files.glob, web.*)",
        "\n- default: Does default. (tools: all of yours)",
        "\n- thinker: Does thinker. (tools: none)",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let refusing = |tools: Option<Vec<ToolGrant>>| Ways {
        spawn: vec![archetype("careful", |one| {
            one.tools = tools;
            one.disallow = vec![Disallowed::Tool("files.write".parse().unwrap())];
        })],
        ..Ways::default()
    };
    let text = |ways: &Ways| declarations(ways, &[])[0].description.clone();
    assert!(text(&refusing(None)).contains("(tools: all of yours but files.write)"));
    assert!(text(&refusing(Some(vec![grant("files", Some(&["read", "write"]))]))).contains("(tools: files.read)"));
}

#[test]
fn b33_guidance_differs_with_and_without_parent_history() {
    let text = |history: &[bool]| {
        let spawn = history
            .iter()
            .enumerate()
            .map(|(at, sees)| archetype(&format!("a{at}"), |one| one.config.include_parent_history = Some(*sees)))
            .collect();
        declarations(
            &Ways {
                spawn,
                ..Ways::default()
            },
            &[],
        )[0]
        .description
        .clone()
    };
    assert!(text(&[false]).contains("It sees nothing of this conversation"));
    assert!(text(&[true]).contains("It sees the conversation so far"));
    let mixed = text(&[true, false]);
    assert!(
        mixed.contains("Unless marked below")
            && mixed.contains("a0: Does a0. (tools: all of yours; sees the conversation)")
    );
    let mut inherits = Ways {
        spawn: vec![archetype("a", |_| {})],
        ..Ways::default()
    };
    inherits.defaults.include_parent_history = Some(true);
    assert!(
        declarations(&inherits, &[])[0]
            .description
            .contains("It sees the conversation so far")
    );
    let described = |sees: bool| {
        let mut dynamic = Dynamic::default();
        dynamic.config.include_parent_history = Some(sees);
        declarations(
            &Ways {
                dynamic: Some(Arc::new(dynamic)),
                ..Ways::default()
            },
            &[],
        )[0]
        .description
        .clone()
    };
    assert_ne!(described(true), described(false));
}

#[test]
fn b34_a_catalogue_without_default_is_allowed() {
    let names: Vec<String> = parent(|_| {}).declarations.iter().map(|one| one.name.clone()).collect();
    assert_eq!(
        names,
        [
            "files.read",
            "files.write",
            "spawn_subagent",
            "agent-worker",
            "dynamic_subagent"
        ]
    );
}

#[test]
fn an_empty_catalogue_declares_nothing() {
    assert!(declarations(&Ways::default(), &["files.read".into()]).is_empty());
}

#[test]
fn b36_unknown_type_is_an_error_that_lists_the_choices() {
    let error = request(
        &parent(|_| {}),
        "spawn_subagent",
        &json!({"subagent_type": "admin", "prompt": "p"}),
    )
    .unwrap_err();
    assert_eq!(
        error,
        "`subagent_type` is `admin`, which is not a type\nthe types are `explore`, `plan`"
    );
    let found = request(
        &parent(|_| {}),
        "spawn_subagent",
        &json!({"subagent_type": "Explore", "prompt": "p"}),
    );
    assert!(found.is_ok(), "names match without regard to case");
}

/// Each call starts no child, and says why.
fn refuses(table: &[(&str, Value, &str)]) {
    let spec = parent(|_| {});
    for (tool, arguments, why) in table {
        let error = request(&spec, tool, arguments).unwrap_err();
        assert!(error.contains(why), "{tool} {arguments}: {error}");
    }
}

#[test]
fn b37_a_blank_prompt_is_an_error() {
    refuses(&[
        (
            "spawn_subagent",
            json!({"subagent_type": "plan", "prompt": " \n"}),
            "`prompt` is blank",
        ),
        ("agent-worker", json!({"subtask": ""}), "`subtask` is blank"),
        (
            "dynamic_subagent",
            json!({"instruction": "You…", "prompt": "\t"}),
            "`prompt` is blank",
        ),
    ]);
}

#[test]
fn b38_a_missing_required_field_is_an_error() {
    refuses(&[
        (
            "spawn_subagent",
            json!({"subagent_type": "plan"}),
            "`prompt` is missing",
        ),
        (
            "spawn_subagent",
            json!({"subagent_type": "plan", "prompt": 3}),
            "`prompt` is `3`: it must be a string",
        ),
        ("spawn_subagent", json!({"prompt": "p"}), "`subagent_type` is missing"),
        (
            "spawn_subagent",
            json!({"subagent_type": null, "prompt": "p"}),
            "`subagent_type` is missing",
        ),
        ("agent-worker", json!({"task": "p"}), "`subtask` is missing"),
        (
            "dynamic_subagent",
            json!({"instruction": "You…"}),
            "`prompt` is missing",
        ),
        (
            "dynamic_subagent",
            json!({"instruction": 1, "prompt": "p"}),
            "`instruction` is `1`",
        ),
        ("agent-other", json!({"subtask": "p"}), "starts no agent here"),
    ]);
}

#[test]
fn b40_dynamic_tools_that_is_no_list_is_an_error() {
    for tools in [
        json!("files.read"),
        json!({"a": 1}),
        json!([1]),
        json!(true),
        json!([null]),
    ] {
        refuses(&[(
            "dynamic_subagent",
            json!({"prompt": "p", "tools": tools}),
            "it must be a list of names",
        )]);
    }
}

#[test]
fn b39_a_blank_instruction_is_the_fallback() {
    let instruction = |spec: &Arc<AgentSpec>, arguments: &Value| match request(spec, "dynamic_subagent", arguments) {
        Ok(ChildRequest::Dynamic { instruction, .. }) => instruction,
        other => panic!("{other:?}"),
    };
    let configured = dynamic(|one| one.fallback_instruction = Some("You calculate.".into()));
    for arguments in [
        json!({"prompt": "p"}),
        json!({"prompt": "p", "instruction": " "}),
        json!({"prompt": "p", "instruction": null}),
    ] {
        assert_eq!(instruction(&configured, &arguments), "You calculate.");
        assert_eq!(instruction(&dynamic(|_| {}), &arguments), FALLBACK_INSTRUCTION);
    }
    assert_eq!(
        instruction(&configured, &json!({"prompt": "p", "instruction": "You {{ x }}"})),
        "You {{ x }}"
    );
}

#[test]
fn b41_an_unknown_or_ungranted_name_is_an_error_that_lists_what_is_in_bounds() {
    let spec = dynamic(|_| {});
    let error = dynamic_tools(&spec, &json!(["files.read", "web.fetch"])).unwrap_err();
    assert_eq!(
        error,
        "`tools` names `web.fetch`, which the sub-agent may not have\nit may have `files.read`, `files.write`"
    );
    for beyond in ["*", "files.*", "files", "spawn_subagent", "dynamic_subagent", ""] {
        assert!(dynamic_tools(&spec, &json!([beyond])).is_err(), "{beyond}");
    }
}

#[test]
fn b42_duplicates_collapse() {
    let twice = json!(["files.write", "files__write", "files.write"]);
    assert_eq!(
        dynamic_tools(&dynamic(|_| {}), &twice).unwrap(),
        Some(vec!["files.write".to_owned()])
    );
}

#[test]
fn b43_an_empty_list_from_a_model_counts_as_absent() {
    let spec = dynamic(|_| {});
    assert_eq!(dynamic_tools(&spec, &json!([])).unwrap(), None);
    assert_eq!(dynamic_tools(&spec, &json!(null)).unwrap(), None);
}

#[test]
fn a_fixed_set_is_the_bound_in_place_of_the_parents() {
    let fixed = |edit: fn(&mut Dynamic)| {
        let mut dynamic = Dynamic {
            tools: Some(vec![grant("calculator", None)]),
            ..Dynamic::default()
        };
        edit(&mut dynamic);
        spec(|spec| {
            spec.ways.dynamic = Some(Arc::new(dynamic));
            spec.ways.dynamic_tools = vec!["calculator.add".into()];
        })
    };
    let spec = fixed(|_| {});
    assert!(
        dynamic_tools(&spec, &json!(["files.read"])).is_err(),
        "what the parent holds is not in it"
    );
    assert_eq!(
        dynamic_tools(&spec, &json!(["calculator.add"])).unwrap().unwrap().len(),
        1
    );
    let declared = |spec: &Arc<AgentSpec>| spec.declarations.last().unwrap().input_schema["properties"].clone();
    assert_eq!(declared(&spec)["tools"]["items"]["enum"], json!(["calculator.add"]));
    let hidden = fixed(|dynamic| dynamic.expose_tool_selection = false);
    assert_eq!(declared(&hidden).get("tools"), None);
}

#[test]
fn b44_with_selection_off_the_argument_is_ignored() {
    let off = dynamic(|one| one.expose_tool_selection = false);
    for tools in [json!("anything"), json!(["files.read"]), json!([1]), json!([])] {
        assert_eq!(dynamic_tools(&off, &tools).unwrap(), None, "{tools}");
    }
}

#[test]
fn b45_extra_arguments_change_nothing() {
    let plain = json!({"subagent_type": "plan", "prompt": "p"});
    let mut extra = plain.clone();
    for (key, value) in [
        ("tools", json!(["*"])),
        ("model", json!("big")),
        ("instruction", json!("You are root")),
    ] {
        extra[key] = value;
    }
    let spec = parent(|_| {});
    assert_eq!(
        request(&spec, "spawn_subagent", &plain),
        request(&spec, "spawn_subagent", &extra)
    );
}

#[test]
fn a_label_is_one_short_line() {
    let labelled = |description: Value| {
        let arguments = json!({"subagent_type": "plan", "prompt": "p", "description": description});
        match request(&parent(|_| {}), "spawn_subagent", &arguments) {
            Ok(ChildRequest::Archetype { label, .. }) => label,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(labelled(json!(" find\n the  bug ")), Some("find the bug".into()));
    assert_eq!(labelled(json!(3)), None);
    assert_eq!(labelled(json!(" ")), None);
    assert_eq!(labelled(json!("x".repeat(500))).unwrap().len(), 100);
}

#[test]
fn a_richer_input_is_checked_against_its_schema() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let spec = parent(|spec| {
        spec.ways.agent_tools = vec![archetype("agent-sum", |one| {
            one.input_schema = Some(Arc::new(schema.clone()));
        })];
    });
    assert_eq!(*spec.declarations[3].input_schema, schema);
    assert!(
        request(&spec, "agent-sum", &json!({"n": "1"}))
            .unwrap_err()
            .contains("`/n`")
    );
    let Ok(ChildRequest::Archetype { task, .. }) = request(&spec, "agent-sum", &json!({"n": 1})) else {
        panic!("a valid input is read");
    };
    assert!(task.ends_with("{\n  \"n\": 1\n}"), "{task}");
}
