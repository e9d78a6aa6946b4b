use super::*;
use crate::plan::{PlanErrorKind, check, why};

fn messages(world: &World, archetype: &Archetype) -> Vec<String> {
    check(world, archetype)
        .into_iter()
        .map(|finding| finding.message)
        .collect()
}

#[test]
fn a_clean_archetype_has_no_findings() {
    let archetype = Archetype {
        tools: Some(vec![
            exactly("web", to_origin("https://a.com")),
            allowing("files", &["read"]),
            wide("count"),
        ]),
        ..boss()
    };
    assert_eq!(messages(&world(), &archetype), Vec::<String>::new());
    assert_eq!(messages(&world(), &archetype), Vec::<String>::new());
}

#[test]
fn every_fault_is_found_not_only_the_first() {
    let dynamic = Dynamic {
        tools: Some(vec![wide("cuont")]),
        ..Dynamic::default()
    };
    let archetype = Archetype {
        tools: Some(vec![
            wide("fils"),
            allowing("files", &["reed"]),
            exactly("web", to_origin("https://b.com")),
            exactly("count", to_origin("https://a.com")),
            exactly("files", GrantTable::default()),
            exactly("relay", GrantTable::default()),
        ]),
        agents: Some(Agents::Named(vec![
            "x1".parse().unwrap(),
            "x2".parse().unwrap(),
            "main".parse().unwrap(),
        ])),
        agent_tools: Some(vec!["agent-x".parse().unwrap(), "plain".parse().unwrap()]),
        config: AgentConfig {
            model: Some("nope".into()),
            filters: Some(vec![wide("count")]),
            ..AgentConfig::default()
        },
        dynamic: Some(dynamic),
        ..archetype("bad")
    };
    let world = with(world(), [super::archetype("plain")]);
    let messages = messages(&world, &archetype);
    for part in [
        "there is no plugin `fils`",
        "there is no plugin `cuont`",
        "no tool `reed`",
        "`--allow-net https://b.com` would allow it",
        "grants plugin `count` http `https://a.com`, which the plugin does not need",
        "plugin `files` needs files `write`, and nothing grants it",
        "plugin `relay` cannot link",
        "there is no archetype `x1`",
        "there is no archetype `x2`",
        "`main` is the main agent's",
        "there is no archetype `agent-x`",
        "`plain` does not start with `agent-`",
        "model `nope` is not configured",
        "exports no `fief:plugin/filter`",
    ] {
        assert!(
            messages.iter().any(|message| message.contains(part)),
            "{part}: {messages:#?}"
        );
    }
    let mut unique = messages.clone();
    unique.dedup();
    assert_eq!(unique, messages);
}

#[test]
fn why_a_tool_can_be_called_shows_all_three_sides() {
    let text = why(&world(), &archetype("main"), "web__fetch").unwrap();
    assert!(
        text.starts_with("`web.fetch` can be called: archetype `main` is silent about tools"),
        "{text}"
    );
    assert!(
        text.contains("need *, archetype as wide as policy, policy --allow-net https://a.com: has https://a.com"),
        "{text}"
    );
}

#[test]
fn a_tool_that_can_be_called_with_less_than_it_needs_is_told_with_the_flag_that_gives_more() {
    let mut poor = world();
    poor.policy.files.truncate(1);
    poor.policy.files[0].mode = FileMode::Read;
    let text = why(&poor, &archetype("main"), "files.write").unwrap();
    let directory = poor.policy.files[0].host.display();
    assert!(
        text.contains(&format!("  file `{directory}`: need write"))
            && text.ends_with(&format!("hint: `--allow-write {directory}` would give it more")),
        "{text}"
    );
    poor.policy.files[0].mode = FileMode::Write;
    let text = why(&poor, &archetype("main"), "files.write").unwrap();
    assert!(!text.contains("hint"), "{text}");
}

#[test]
fn why_a_tool_cannot_be_called_says_what_would_change_that() {
    let mut poor = with(world(), [archetype("agent-worker")]);
    poor.policy.net.clear();
    let narrow = Archetype {
        tools: Some(vec![allowing("files", &["read"]), wide("web")]),
        ..archetype("narrow")
    };
    for (archetype, tool, says) in [
        (&narrow, "files.write", "its `allow` holds only `read`"),
        (
            &narrow,
            "count.words",
            "does not list plugin `count`\nhint: `[[tools]] plugin = \"count\"`",
        ),
        (&narrow, "web.fetch", "hint: `--allow-net ORIGIN` would allow it"),
        (&narrow, "spawn_subagent", "names no `agents`"),
        (&narrow, "dynamic_subagent", "has no `[dynamic]` table"),
        (&narrow, "agent-worker", "does not name it in `agent_tools`"),
        (
            &archetype("main"),
            "web.fetch",
            "hint: `--allow-net ORIGIN` would allow it",
        ),
    ] {
        let text = why(&poor, archetype, tool).unwrap();
        assert!(
            text.starts_with(&format!("`{tool}` cannot be called: ")) && text.contains(says),
            "{tool}: {text}"
        );
    }
    poor.policy.max_depth = 0;
    for tool in ["spawn_subagent", "dynamic_subagent"] {
        let text = why(&poor, &boss(), tool).unwrap();
        assert!(text.ends_with("`[policy] max_depth` is 0"), "{text}");
    }
    let broken = Archetype {
        tools: Some(vec![wide("nothing")]),
        ..archetype("broken")
    };
    let text = why(&poor, &broken, "files.read").unwrap();
    assert!(text.contains("since the agent does not start"), "{text}");
}

#[test]
fn why_of_a_tool_that_does_not_exist_is_an_error_with_the_nearest_name() {
    let world = with(world(), [archetype("agent-worker")]);
    let broken = Archetype {
        tools: Some(vec![wide("nothing")]),
        ..archetype("broken")
    };
    for archetype in [&archetype("main"), &broken] {
        for (tool, says) in [
            ("fils.read", "there is no plugin `fils`"),
            ("fils.read", "hint: did you mean `files.read`?"),
            (
                "files.reed",
                "plugin `files` has no tool `reed`; it has `read`, `write`, `grep`",
            ),
            ("files__reed", "hint: did you mean `files.read`?"),
            ("files", "`files` is a plugin; its tools are `read`, `write`, `grep`"),
            ("agent-nobody", "there is no archetype `agent-nobody`"),
            ("agent-worked", "hint: did you mean `agent-worker`?"),
            ("spawn_subagents", "hint: did you mean `spawn_subagent`?"),
            ("", "there is no plugin ``"),
        ] {
            let error = why(&world, archetype, tool).unwrap_err();
            assert_eq!(error.kind, PlanErrorKind::Configuration);
            assert!(error.message.contains(says), "{tool}: {error}");
        }
    }
}

#[test]
fn what_policy_does_not_allow_is_no_fault_of_a_manifest_unless_policy_is_strict() {
    let archetype = Archetype {
        tools: Some(vec![wide("web"), exactly("count", to_origin("https://a.com"))]),
        ..archetype("a")
    };
    let mut world = world();
    world.policy.net.clear();
    for strict in [false, true] {
        world.policy.strict = strict;
        let found = check(&world, &archetype);
        let [fault, loss] = &found[..] else {
            panic!("{found:#?}")
        };
        assert!(
            !fault.policy && fault.message.contains("which the plugin does not need"),
            "{fault:?}"
        );
        assert_eq!(loss.policy, !strict);
        assert_eq!(loss.message.matches("--allow-net").count(), 1, "{loss:?}");
    }
}
