use super::*;
use crate::plan::{PlanErrorKind, child, main};

fn planned(world: &World, archetype: &Archetype) -> AgentSpec {
    main(world, archetype).unwrap().spec
}

#[test]
fn b12_a_child_whose_archetype_is_silent_holds_exactly_what_its_parent_holds() {
    let world = with(world(), [archetype("default")]);
    let boss = Archetype {
        tools: Some(vec![allowing("files", &["read"])]),
        ..boss()
    };
    let parent = planned(&world, &boss);
    let child = child(&world, &parent, &spawn("default")).unwrap().spec;
    assert_eq!(child.holdings, parent.holdings);
    assert_eq!(names(&child), ["files.read"]);
    assert_eq!((child.depth, child.label.as_str()), (1, "default"));
}

#[test]
fn b54_an_archetypes_own_tools_may_exceed_its_parents() {
    let own = Archetype {
        tools: Some(vec![wide("web")]),
        ..archetype("fetcher")
    };
    let mut world = with(world(), [own]);
    let parent = planned(
        &world,
        &Archetype {
            tools: Some(Vec::new()),
            ..boss()
        },
    );
    let fetcher = child(&world, &parent, &spawn("fetcher")).unwrap();
    assert_eq!(names(&fetcher.spec), ["web.fetch"]);
    // Capped by policy all the same.
    world.policy.net.clear();
    let fetcher = child(&world, &parent, &spawn("fetcher")).unwrap();
    assert!(fetcher.spec.tools.is_empty() && fetcher.left_out.len() == 1);
}

#[test]
fn b51_ways_to_a_child_are_removed_unless_the_archetype_names_them() {
    let nested = Archetype {
        agents: Some(Agents::All),
        ..archetype("nested")
    };
    let mut world = with(world(), [archetype("plain"), nested, archetype("agent-worker")]);
    world.policy.max_depth = 2;
    let boss = Archetype {
        agent_tools: Some(vec!["agent-worker".parse().unwrap()]),
        ..boss()
    };
    let parent = planned(&world, &boss);
    assert_eq!(
        declared(&parent)[6..],
        ["spawn_subagent", "agent-worker", "dynamic_subagent"],
        "after the plugins' tools, in this order"
    );
    for (request, ways) in [
        (spawn("plain"), vec![]),
        (spawn("agent-worker"), vec![]),
        (make_up(None), vec![]),
        (spawn("nested"), vec!["spawn_subagent"]),
    ] {
        let child = child(&world, &parent, &request).unwrap().spec;
        assert_eq!(declared(&child)[6..], ways, "{request:?}");
    }
}

/// A way is known by what it does: another name, or an archetype's, hides none.
#[test]
fn b51_a_renamed_way_is_removed_as_well() {
    let dynamic = Dynamic {
        name: "make_expert".into(),
        ..Dynamic::default()
    };
    let mut world = with(world(), [archetype("plain")]);
    world.policy.max_depth = 5;
    let parent = planned(
        &world,
        &Archetype {
            dynamic: Some(dynamic),
            ..boss()
        },
    );
    assert!(declared(&parent).contains(&"make_expert"));
    for request in [spawn("plain"), make_up(None)] {
        let child = child(&world, &parent, &request).unwrap().spec;
        assert_eq!(declared(&child).len(), 6, "the plugins' tools alone: {request:?}");
    }
    let named = refused(child(&world, &parent, &make_up(Some(&["make_expert"]))));
    assert_eq!(named.kind, PlanErrorKind::Request);
}

#[test]
fn at_the_depth_limit_no_way_is_offered_and_a_warning_names_the_key() {
    let nested = Archetype {
        agents: Some(Agents::All),
        ..archetype("nested")
    };
    let mut world = with(world(), [archetype("plain"), nested]);
    let parent = planned(&world, &boss());
    let nested = child(&world, &parent, &spawn("nested")).unwrap();
    assert!(nested.spec.ways.spawn.is_empty());
    assert!(
        nested.warnings[0].contains("`[policy] max_depth` is 1"),
        "{:?}",
        nested.warnings
    );
    let plain = child(&world, &parent, &spawn("plain")).unwrap();
    assert!(plain.warnings.is_empty(), "{:?}", plain.warnings);
    // Nor can one be had by asking.
    assert_eq!(
        refused(child(&world, &nested.spec, &spawn("plain"))).kind,
        PlanErrorKind::Request
    );
    assert_eq!(
        refused(child(&world, &nested.spec, &make_up(None))).kind,
        PlanErrorKind::Request
    );
    world.policy.max_depth = 0;
    let parent = main(&world, &boss()).unwrap();
    assert!(!declared(&parent.spec).iter().any(|name| name.contains("subagent")));
    assert_eq!(parent.warnings.len(), 1);
}

#[test]
fn never_a_child_twenty_deep_a_cycle_runs_into_the_depth() {
    let cyclic = Archetype {
        agents: Some(Agents::All),
        ..archetype("cyclic")
    };
    let mut world = with(world(), [cyclic]);
    world.policy.max_depth = 4;
    let mut agent = planned(&world, &boss());
    for depth in 1..=4 {
        agent = child(&world, &agent, &spawn("cyclic")).unwrap().spec;
        assert_eq!(agent.depth, depth);
    }
    assert_eq!(
        refused(child(&world, &agent, &spawn("cyclic"))).kind,
        PlanErrorKind::Request
    );
}

#[test]
fn main_is_never_spawned_and_an_empty_catalogue_declares_nothing() {
    let world = with(world(), [archetype("main")]);
    let boss = Archetype {
        dynamic: None,
        ..boss()
    };
    let parent = planned(&world, &boss);
    assert!(!declared(&parent).contains(&"spawn_subagent"));
    assert_eq!(
        refused(child(&world, &parent, &spawn("MAIN"))).kind,
        PlanErrorKind::Request
    );
    let named = Archetype {
        agents: Some(Agents::Named(vec!["Main".parse().unwrap()])),
        ..boss
    };
    let error = refused(main(&world, &named));
    assert!(error.message.contains("`Main` is the main agent's"), "{error}");
}

#[test]
fn b30_the_catalogue_is_the_registered_names_in_their_order() {
    let world = with(world(), [archetype("zebra"), archetype("main"), archetype("ant")]);
    let parent = planned(&world, &boss());
    let spawn = parent.declarations.iter().find(|d| d.name == "spawn_subagent").unwrap();
    assert_eq!(
        spawn.input_schema["properties"]["subagent_type"]["enum"],
        json!(["zebra", "ant"])
    );
}

#[test]
fn b31_the_declarations_are_deterministic() {
    let world = with(world(), [archetype("zebra"), archetype("ant")]);
    let shown = || format!("{:?}", planned(&world, &boss()).declarations);
    assert_eq!(shown(), shown());
}

#[test]
fn b34_a_catalogue_without_default_is_allowed() {
    let world = with(world(), [archetype("ant")]);
    let parent = planned(&world, &boss());
    assert_eq!(parent.ways.spawn.len(), 1);
}

#[test]
fn an_unknown_archetype_in_a_manifest_is_an_error_with_the_nearest() {
    let world = with(world(), [archetype("explore"), archetype("plan")]);
    let boss = Archetype {
        agents: Some(Agents::Named(vec!["explor".parse().unwrap()])),
        ..archetype("boss")
    };
    assert_eq!(
        refused(main(&world, &boss)).message,
        "archetype `boss` (archetypes/boss.toml), `agents`: there is no archetype `explor`; found are `explore`, `plan`\n\
         hint: did you mean `explore`?"
    );
    let boss = Archetype {
        agent_tools: Some(vec!["plan".parse().unwrap()]),
        ..archetype("boss")
    };
    let error = refused(main(&world, &boss));
    assert!(error.message.contains("`plan` does not start with `agent-`"), "{error}");
}

#[test]
fn b36_a_child_out_of_bounds_is_an_error_that_lists_the_choices() {
    let world = with(world(), [archetype("explore"), archetype("plan")]);
    let boss = Archetype {
        agents: Some(Agents::Named(vec!["explore".parse().unwrap()])),
        ..archetype("boss")
    };
    let parent = planned(&world, &boss);
    let error = refused(child(&world, &parent, &spawn("plan")));
    assert_eq!(error.kind, PlanErrorKind::Request);
    assert_eq!(
        error.message,
        "`plan` is none of the agents that may be started here: `explore`"
    );
    assert!(
        child(&world, &parent, &spawn("EXPLORE")).is_ok(),
        "names match without regard to case"
    );
}

#[test]
fn b43_a_made_up_child_holds_its_parents_tools_narrowed_by_name() {
    let world = world();
    let parent = planned(&world, &boss());
    for (wanted, expected) in [
        (
            None,
            vec![
                "count.words",
                "files.grep",
                "files.read",
                "files.write",
                "relay.run",
                "web.fetch",
            ],
        ),
        // b43: an empty list from a model counts as absent.
        (
            Some(vec![]),
            vec![
                "count.words",
                "files.grep",
                "files.read",
                "files.write",
                "relay.run",
                "web.fetch",
            ],
        ),
        (Some(vec!["files.read"]), vec!["files.read"]),
        (Some(vec!["files__read"]), vec!["files.read"]),
        (Some(vec!["files"]), vec!["files.grep", "files.read", "files.write"]),
        (Some(vec!["files.*"]), vec!["files.grep", "files.read", "files.write"]),
        // b42: duplicates collapse.
        (Some(vec!["web.fetch", "web.fetch", "web"]), vec!["web.fetch"]),
    ] {
        let made = child(&world, &parent, &make_up(wanted.as_deref())).unwrap().spec;
        assert_eq!(names(&made), expected, "{wanted:?}");
        assert_eq!(made.label, "dynamic");
        assert_eq!(&*made.instruction, "You are an expert.");
    }
}

#[test]
fn b41_a_name_out_of_bounds_is_an_error_that_lists_what_is_in_bounds() {
    let world = with(world(), [archetype("explore")]);
    let boss = Archetype {
        tools: Some(vec![allowing("files", &["read"]), wide("count")]),
        ..boss()
    };
    let parent = planned(&world, &boss);
    for name in [
        "files.write",
        "web.fetch",
        "web",
        "spawn_subagent",
        "dynamic_subagent",
        "explore",
        "*",
        "",
        "files.",
        ".",
    ] {
        let error = refused(child(&world, &parent, &make_up(Some(&["files.read", name]))));
        assert_eq!(error.kind, PlanErrorKind::Request, "{name}");
        let start = format!("`{name}` cannot be given to this sub-agent; in bounds are `count.words`, `files.read`");
        assert!(error.message.starts_with(&start), "{error}");
    }
}

#[test]
fn b35_a_wildcard_never_grants_a_way_to_a_child() {
    let world = with(world(), [archetype("explore")]);
    let parent = planned(&world, &boss());
    let made = child(&world, &parent, &make_up(Some(&["files.*"]))).unwrap().spec;
    assert_eq!(declared(&made), ["files.read", "files.write", "files.grep"]);
    assert_eq!(
        refused(child(&world, &parent, &make_up(Some(&["spawn_subagent.*"])))).kind,
        PlanErrorKind::Request
    );
}

#[test]
fn b44_with_selection_off_the_argument_is_ignored() {
    let world = world();
    let dynamic = Dynamic {
        expose_tool_selection: false,
        ..Dynamic::default()
    };
    let parent = planned(
        &world,
        &Archetype {
            dynamic: Some(dynamic),
            ..boss()
        },
    );
    let made = child(&world, &parent, &make_up(Some(&["nonsense", "files.read"])))
        .unwrap()
        .spec;
    assert_eq!(made.holdings, parent.holdings);
}

#[test]
fn a_bounded_child_holds_tools_that_its_parent_cannot_call() {
    let world = world();
    let dynamic = Dynamic {
        tools: Some(vec![wide("count"), allowing("files", &["read"])]),
        ..Dynamic::default()
    };
    let parent = planned(
        &world,
        &Archetype {
            tools: Some(Vec::new()),
            dynamic: Some(dynamic),
            ..boss()
        },
    );
    assert!(parent.tools.is_empty());
    assert_eq!(parent.ways.dynamic_tools, ["count.words", "files.read"]);
    assert_eq!(
        names(&child(&world, &parent, &make_up(None)).unwrap().spec),
        ["count.words", "files.read"]
    );
    assert_eq!(
        names(&child(&world, &parent, &make_up(Some(&["count"]))).unwrap().spec),
        ["count.words"]
    );
    assert_eq!(
        refused(child(&world, &parent, &make_up(Some(&["files.write"])))).kind,
        PlanErrorKind::Request
    );
}

#[test]
fn b53_a_second_spawn_works_like_the_first() {
    let world = with(world(), [archetype("default")]);
    let parent = planned(&world, &boss());
    let shown = || format!("{:?}", child(&world, &parent, &spawn("default")).unwrap().spec);
    assert_eq!(shown(), shown());
}

#[test]
fn b56_filters_are_the_childs_own_and_those_of_the_way_to_it() {
    let own = Archetype {
        config: AgentConfig {
            filters: Some(vec![wide("watch")]),
            ..AgentConfig::default()
        },
        ..archetype("own")
    };
    let world = with(world(), [archetype("plain"), own]);
    let watched = Archetype {
        config: AgentConfig {
            filters: Some(vec![wide("watch")]),
            ..AgentConfig::default()
        },
        ..boss()
    };
    let parent = planned(&world, &watched);
    assert_eq!(parent.filters.len(), 1);
    assert_eq!(child(&world, &parent, &spawn("plain")).unwrap().spec.filters.len(), 0);
    assert_eq!(child(&world, &parent, &spawn("own")).unwrap().spec.filters.len(), 1);
    assert_eq!(child(&world, &parent, &make_up(None)).unwrap().spec.filters.len(), 0);

    let spawning = Archetype {
        spawn: SpawnConfig {
            filters: Some(vec![wide("watch")]),
            skip_summarization: None,
        },
        dynamic: Some(Dynamic {
            config: AgentConfig {
                filters: Some(vec![wide("watch")]),
                ..AgentConfig::default()
            },
            ..Dynamic::default()
        }),
        ..boss()
    };
    let parent = planned(&world, &spawning);
    assert_eq!(parent.filters.len(), 0);
    assert_eq!(child(&world, &parent, &spawn("plain")).unwrap().spec.filters.len(), 1);
    assert_eq!(
        child(&world, &parent, &spawn("own")).unwrap().spec.filters.len(),
        1,
        "one filter runs once"
    );
    assert_eq!(child(&world, &parent, &make_up(None)).unwrap().spec.filters.len(), 1);
}

#[test]
fn what_an_archetype_refuses_itself_it_holds_from_nobody() {
    let disallow = vec![
        Disallowed::Plugin("web".parse().unwrap()),
        Disallowed::Tool("files.write".parse().unwrap()),
        Disallowed::Tool("count.words".parse().unwrap()),
    ];
    let listing = Archetype {
        tools: Some(vec![wide("web"), wide("files")]),
        ..archetype("listing")
    };
    let [inheriting, listing] = [archetype("inheriting"), listing].map(|archetype| Archetype {
        disallow: disallow.clone(),
        ..archetype
    });
    let world = with(world(), [inheriting.clone(), listing]);
    let parent = planned(&world, &boss());
    let inherited = child(&world, &parent, &spawn("inheriting")).unwrap().spec;
    assert_eq!(names(&inherited), ["files.grep", "files.read", "relay.run"]);
    assert!(
        !inherited.holdings.contains_key(&"web".parse().unwrap()),
        "nothing of it is linked"
    );
    let listed = child(&world, &parent, &spawn("listing")).unwrap().spec;
    assert_eq!(names(&listed), ["files.grep", "files.read"]);
    let main = planned(&world, &inheriting);
    assert_eq!(names(&main), names(&inherited));
    assert!(
        crate::plan::why(&world, &inheriting, "web.fetch")
            .unwrap()
            .contains("refuses it itself")
    );
}
