use super::*;
use crate::plan::{PlanErrorKind, main};

#[test]
fn main_without_tools_gets_every_plugin_as_wide_as_policy() {
    let planned = main(&world(), &archetype("main")).unwrap();
    assert_eq!(
        declared(&planned.spec),
        [
            "count.words",
            "files.read",
            "files.write",
            "files.grep",
            "relay.run",
            "web.fetch"
        ]
    );
    let files = &planned.spec.holdings[&"files".parse().unwrap()].grant.files[0];
    assert_eq!((files.guest.as_str(), files.mode), ("/work", FileMode::Read));
    assert!(planned.warnings.is_empty(), "{:?}", planned.warnings);
}

#[test]
fn b13_no_tools_is_none() {
    let archetype = Archetype {
        tools: Some(Vec::new()),
        ..archetype("bare")
    };
    let planned = main(&world(), &archetype).unwrap();
    assert!(planned.spec.holdings.is_empty() && planned.spec.declarations.is_empty());
}

#[test]
fn b11_an_unknown_plugin_or_tool_is_an_error_that_lists_the_choices() {
    for (entry, says) in [
        (
            wide("file"),
            "there is no plugin `file`; found are `count`, `files`, `relay`, `watch`, `web`\nhint: did you mean `files`?",
        ),
        (
            wide("calculator"),
            "there is no plugin `calculator`; found are `count`, `files`, `relay`, `watch`, `web`\n\
             hint: in a checkout of Fief, `fief plugin install plugins/calculator` installs it",
        ),
        (
            wide("zzzz"),
            "there is no plugin `zzzz`; found are `count`, `files`, `relay`, `watch`, `web`\n\
             hint: `fief plugin install PATH` installs a plugin",
        ),
        (
            allowing("files", &["raed"]),
            "plugin `files` has no tool `raed`; it has `read`, `write`, `grep`\nhint: did you mean `read`?",
        ),
    ] {
        let archetype = Archetype {
            tools: Some(vec![entry]),
            ..archetype("a")
        };
        let error = refused(main(&world(), &archetype));
        assert_eq!(error.kind, PlanErrorKind::Configuration);
        assert_eq!(
            error.message,
            format!("archetype `a` (archetypes/a.toml), `tools`: {says}")
        );
    }
}

#[test]
fn another_build_than_the_pinned_one_is_refused() {
    let pinned = |digest| ToolGrant {
        digest: Some(digest),
        ..wide("count")
    };
    let archetype = |digest| Archetype {
        tools: Some(vec![pinned(digest)]),
        ..archetype("a")
    };
    assert!(main(&world(), &archetype(Digest::of(b"count"))).is_ok());
    let error = refused(main(&world(), &archetype(Digest::of(b"other"))));
    assert_eq!(error.kind, PlanErrorKind::Configuration);
    assert!(error.message.contains("is pinned to `sha256:"), "{error}");
}

#[test]
fn b47_what_is_not_granted_is_absent_from_the_declarations() {
    let archetype = Archetype {
        tools: Some(vec![allowing("files", &["grep", "read"])]),
        ..archetype("a")
    };
    let planned = main(&world(), &archetype).unwrap();
    // In the plugin's own order, whatever the manifest's.
    assert_eq!(declared(&planned.spec), ["files.read", "files.grep"]);
    assert_eq!(names(&planned.spec), ["files.grep", "files.read"]);
}

#[test]
fn b50_narrowing_reaches_inside_a_plugin() {
    let archetype = Archetype {
        tools: Some(vec![allowing("files", &["read"])]),
        ..archetype("a")
    };
    let planned = main(&world(), &archetype).unwrap();
    let holding = &planned.spec.holdings[&"files".parse().unwrap()];
    assert_eq!(holding.tools, ["read".parse().unwrap()].into());
}

#[test]
fn entries_that_differ_in_tools_alone_are_one_and_others_are_refused() {
    let entries = vec![allowing("files", &["read"]), allowing("files", &["grep"])];
    let planned = main(
        &world(),
        &Archetype {
            tools: Some(entries),
            ..archetype("a")
        },
    )
    .unwrap();
    assert_eq!(names(&planned.spec), ["files.grep", "files.read"]);
    let entries = vec![wide("web"), exactly("web", to_origin("https://a.com"))];
    let error = refused(main(
        &world(),
        &Archetype {
            tools: Some(entries),
            ..archetype("a")
        },
    ));
    assert!(error.message.contains("twice with different grants"), "{error}");
}

#[test]
fn a_plugin_whose_manifest_grants_not_what_it_imports_stops_the_agent() {
    let entries = vec![exactly("web", GrantTable::default())];
    let error = refused(main(
        &world(),
        &Archetype {
            tools: Some(entries),
            ..archetype("a")
        },
    ));
    assert_eq!(error.kind, PlanErrorKind::Configuration);
    assert_eq!(
        error.message,
        "archetype `a` (archetypes/a.toml), `tools`: plugin `web` cannot link what it imports:\n  \
         `wasi:http/outgoing-handler@0.2.6`: not granted; `[tools.grant] http = [\"ORIGIN\"]` would grant it"
    );
}

#[test]
fn a_plugin_that_lost_to_policy_is_left_out_and_under_strict_refuses() {
    for entry in [wide("web"), exactly("web", to_origin("https://b.com"))] {
        let archetype = Archetype {
            tools: Some(vec![wide("count"), entry]),
            ..archetype("a")
        };
        let mut world = world();
        world.policy.net.clear();
        let web = world.plugins.values_mut().find(|plugin| plugin.name.as_str() == "web");
        Arc::make_mut(web.unwrap())
            .imports
            .insert(0, "wasi:http/types@0.2.6".into());
        let planned = main(&world, &archetype).unwrap();
        assert_eq!(names(&planned.spec), ["count.words"]);
        assert_eq!(planned.left_out.len(), 1);
        let flag = planned.left_out[0].flag.clone().unwrap();
        assert!(flag.starts_with("--allow-net "), "{flag}");
        // Once, however many interfaces it would allow.
        let said = planned.warnings.join("\n");
        assert_eq!(said.matches(&flag).count(), 1, "{said}");
        assert!(!planned.left_out[0].why.contains(&flag), "{:?}", planned.left_out);
        world.policy.strict = true;
        let error = refused(main(&world, &archetype));
        assert_eq!(error.kind, PlanErrorKind::Strict);
        assert!(error.message.contains(&flag), "{error}");
    }
}

#[test]
fn a_plugin_that_merely_lies_there_is_left_out_whatever_it_lacks() {
    let mut world = world();
    let odd = plugin("odd", &["x"], &["wasi:sockets/tcp@0.2.6"], Needs::default());
    world.plugins.insert(odd.name.clone(), Arc::new(odd));
    let planned = main(&world, &archetype("main")).unwrap();
    assert!(!planned.spec.tools.contains_key("odd.x"));
    assert_eq!(planned.left_out[0].flag, None);
    assert!(
        planned.left_out[0]
            .why
            .contains("`wasi:sockets/tcp@0.2.6`: never granted")
    );
    // Listed by a manifest, it is the manifest's fault.
    let listing = Archetype {
        tools: Some(vec![wide("odd")]),
        ..archetype("a")
    };
    assert_eq!(refused(main(&world, &listing)).kind, PlanErrorKind::Configuration);
}

#[test]
fn what_policy_narrows_is_a_warning_and_under_strict_refuses() {
    let entries = vec![exactly("web", to_origin("https://*.com"))];
    let archetype = Archetype {
        tools: Some(entries),
        ..archetype("a")
    };
    let mut world = world();
    let planned = main(&world, &archetype).unwrap();
    assert_eq!(names(&planned.spec), ["web.fetch"]);
    assert!(
        planned.warnings[0].contains("policy allows only `https://a.com`"),
        "{:?}",
        planned.warnings
    );
    world.policy.strict = true;
    assert_eq!(refused(main(&world, &archetype)).kind, PlanErrorKind::Strict);
}

#[test]
fn strict_refuses_also_what_main_could_come_to_start() {
    let child = Archetype {
        tools: Some(vec![exactly("web", to_origin("https://b.com"))]),
        ..archetype("child")
    };
    let grandchild = Archetype {
        agents: Some(Agents::Named(vec!["child".parse().unwrap()])),
        ..archetype("middle")
    };
    let mut world = with(world(), [child, grandchild]);
    world.policy.strict = true;
    let boss = Archetype {
        agents: Some(Agents::Named(vec!["middle".parse().unwrap()])),
        ..archetype("boss")
    };
    assert!(main(&world, &boss).is_ok(), "out of reach at depth 1");
    world.policy.max_depth = 2;
    let error = refused(main(&world, &boss));
    assert_eq!(error.kind, PlanErrorKind::Strict);
    assert!(error.message.contains("archetype `child`"), "{error}");
}

#[test]
fn a_filter_that_cannot_run_refuses_the_agent() {
    let filtered = |entry: ToolGrant| Archetype {
        tools: Some(Vec::new()),
        config: AgentConfig {
            filters: Some(vec![entry]),
            ..AgentConfig::default()
        },
        ..archetype("a")
    };
    let mut world = world();
    let planned = main(&world, &filtered(wide("watch"))).unwrap();
    assert_eq!(planned.spec.filters.len(), 1);
    assert_eq!(planned.spec.filters[0].0.as_str(), "watch");
    assert!(planned.spec.tools.is_empty());

    let error = refused(main(&world, &filtered(wide("count"))));
    assert!(error.message.contains("exports no `fief:plugin/filter`"), "{error}");
    let error = refused(main(&world, &filtered(wide("watcher"))));
    assert!(error.message.contains("there is no plugin `watcher`"), "{error}");

    let mut watch = plugin(
        "watch",
        &[],
        &["fief:plugin/person@0.1.0"],
        Needs {
            person: true,
            ..Needs::default()
        },
    );
    watch.filter = true;
    world.plugins.insert(watch.name.clone(), Arc::new(watch));
    let error = refused(main(&world, &filtered(wide("watch"))));
    assert_eq!(error.kind, PlanErrorKind::Configuration);
    assert!(
        error.message.contains("no agent runs without it") && error.message.contains("[policy] person = true"),
        "{error}"
    );
    world.policy.strict = true;
    assert_eq!(
        refused(main(&world, &filtered(wide("watch")))).kind,
        PlanErrorKind::Strict
    );
}

#[test]
fn filters_of_the_ways_to_a_child_are_checked_with_the_parent() {
    let boss = Archetype {
        spawn: SpawnConfig {
            filters: Some(vec![wide("count")]),
            skip_summarization: None,
        },
        ..boss()
    };
    let error = refused(main(&world(), &boss));
    assert!(
        error.message.contains("`[spawn] filters`: plugin `count` exports no"),
        "{error}"
    );
}

#[test]
fn a_links_target_is_what_is_compared_with_policy() {
    let table = GrantTable {
        files: vec![crate::manifest::archetype::FileRequest {
            host: "link".into(),
            guest: "/work".into(),
            mode: FileMode::Read,
        }],
        ..GrantTable::default()
    };
    let mut world = with(
        world(),
        [Archetype {
            tools: Some(vec![exactly("files", table)]),
            ..archetype("a")
        }],
    );
    world.canonicalise(|path| {
        assert_eq!(path, std::path::Path::new("/project/link"));
        "/home/me/.ssh".into()
    });
    let archetype = Arc::clone(&world.archetypes["a"]);
    let planned = main(&world, &archetype).unwrap();
    assert!(planned.spec.holdings[&"files".parse().unwrap()].grant.files.is_empty());
}
