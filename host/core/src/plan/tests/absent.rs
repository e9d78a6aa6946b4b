//! What an absent key means, row by row.

use std::time::Duration;

use super::*;
use crate::agent::spec::Bounds;
use crate::manifest::archetype::{BudgetRequest, Generation, Summary};
use crate::plan::{child, main};

/// A parent set to everything that can be inherited.
fn parent(world: &World) -> AgentSpec {
    let generation = Generation {
        temperature: Some(0.1),
        seed: Some(7),
        ..Generation::default()
    };
    let config = AgentConfig {
        model: Some("other".into()),
        generation,
        parallel_tool_calls: Some(false),
        max_turns: Some(3),
        max_tool_calls_per_turn: Some(3),
        keep_tool_results: Some(3),
        include_parent_history: Some(true),
        max_parent_history_turns: Some(3),
        forward_events: Some(true),
        summary: Some(Summary::Always),
        summary_instruction: Some("short".into()),
        task_suffix: Some("Thanks.".into()),
        budget: BudgetRequest {
            tokens: Some(10),
            wall: Some(Duration::from_secs(1)),
            children: Some(2),
            cost: Some(1.0),
        },
        ..AgentConfig::default()
    };
    main(world, &Archetype { config, ..boss() }).unwrap().spec
}

/// The three kinds of children: silent, configured by `[agents.config]`, configured by their own manifest too.
fn children(defaults: AgentConfig, own: AgentConfig) -> [AgentSpec; 3] {
    let silent = with(world(), [archetype("child")]);
    let defaulted = World {
        defaults,
        ..silent.clone()
    };
    let owning = with(
        defaulted.clone(),
        [Archetype {
            config: own,
            ..archetype("child")
        }],
    );
    [&silent, &defaulted, &owning].map(|world| child(world, &parent(world), &spawn("child")).unwrap().spec)
}

fn model(name: &str) -> AgentConfig {
    AgentConfig {
        model: Some(name.into()),
        ..AgentConfig::default()
    }
}

#[test]
fn b63_an_archetypes_own_model_is_used() {
    let [silent, _, owning] = children(AgentConfig::default(), model("script:a.jsonl")).map(|child| child.model);
    assert_eq!((silent.as_str(), owning.as_str()), ("other", "script:a.jsonl"));
}

#[test]
fn b64_the_model_is_the_archetypes_then_the_configurations_then_the_parents_else_an_error() {
    let models = children(model("test"), model("script:a.jsonl")).map(|child| child.model);
    assert_eq!(models, ["other", "test", "script:a.jsonl"]);
    // Main: its archetype's, else what the host was told, else an error that says what to set.
    let mut world = World {
        defaults: model("other"),
        ..world()
    };
    assert_eq!(main(&world, &archetype("main")).unwrap().spec.model, "test");
    let own = Archetype {
        config: model("other"),
        ..archetype("main")
    };
    assert_eq!(main(&world, &own).unwrap().spec.model, "other");
    world.model = None;
    let error = refused(main(&world, &archetype("main")));
    assert!(
        error.message.contains("no model is configured\nhint: pass `--model"),
        "{error}"
    );
}

#[test]
fn a_model_that_is_not_configured_is_an_error_and_in_markdown_a_warning() {
    let config = AgentConfig {
        model: Some("tset".into()),
        ..AgentConfig::default()
    };
    let named = |origin: &str| Archetype {
        config: config.clone(),
        origin: origin.into(),
        ..archetype("child")
    };
    let world = with(
        world(),
        [
            named("archetypes/child.toml"),
            Archetype {
                name: "note".parse().unwrap(),
                ..named("child.md")
            },
        ],
    );
    let parent = parent(&world);
    let error = refused(child(&world, &parent, &spawn("child")));
    assert!(error.message.contains("model `tset` is not configured"), "{error}");
    assert!(error.message.ends_with("hint: did you mean `test`?"), "{error}");
    let note = child(&world, &parent, &spawn("note")).unwrap();
    assert_eq!(note.spec.model, "other");
    assert!(
        note.warnings[0].contains("model `tset` is not configured"),
        "{:?}",
        note.warnings
    );
    for bad in ["openai:", "nobody:x", ""] {
        let config = AgentConfig {
            model: Some(bad.into()),
            ..AgentConfig::default()
        };
        refused(main(
            &world,
            &Archetype {
                config,
                ..archetype("main")
            },
        ));
    }
}

#[test]
fn generation_is_inherited_key_by_key() {
    let generation = |temperature, top_p| AgentConfig {
        generation: Generation {
            temperature,
            top_p,
            ..Generation::default()
        },
        ..AgentConfig::default()
    };
    let [silent, defaulted, owning] = children(generation(Some(0.2), Some(0.9)), generation(Some(0.3), None));
    let shown = |child: &AgentSpec| {
        (
            child.generation.temperature,
            child.generation.top_p,
            child.generation.seed,
        )
    };
    assert_eq!(shown(&silent), (Some(0.1), None, Some(7)));
    assert_eq!(shown(&defaulted), (Some(0.2), Some(0.9), Some(7)));
    assert_eq!(shown(&owning), (Some(0.3), Some(0.9), Some(7)));
    let main = main(&world(), &archetype("main")).unwrap().spec;
    assert_eq!(main.generation, Generation::default(), "the model's own");
}

#[test]
fn parallel_tool_calls_are_the_parents_and_mains_the_models_own() {
    let parallel = |on| AgentConfig {
        parallel_tool_calls: Some(on),
        ..AgentConfig::default()
    };
    let children = children(parallel(true), parallel(false)).map(|child| child.parallel_tool_calls);
    assert_eq!(children, [Some(false), Some(true), Some(false)]);
    assert_eq!(
        main(&world(), &archetype("main")).unwrap().spec.parallel_tool_calls,
        None
    );
}

#[test]
fn tools_are_the_parents_and_mains_every_plugin() {
    let world = with(world(), [archetype("child")]);
    let bare = main(
        &world,
        &Archetype {
            tools: Some(vec![wide("count")]),
            ..boss()
        },
    )
    .unwrap()
    .spec;
    assert_eq!(
        names(&child(&world, &bare, &spawn("child")).unwrap().spec),
        ["count.words"]
    );
    assert_eq!(main(&world, &boss()).unwrap().spec.tools.len(), 6);
}

#[test]
fn agents_agent_tools_and_filters_are_none() {
    let mut world = with(world(), [archetype("child")]);
    world.policy.max_depth = 5;
    let child = child(&world, &parent(&world), &spawn("child")).unwrap().spec;
    assert!(child.ways.spawn.is_empty() && child.ways.agent_tools.is_empty() && child.ways.dynamic.is_none());
    assert!(child.filters.is_empty());
    let main = main(&world, &archetype("main")).unwrap().spec;
    assert!(main.ways.spawn.is_empty() && main.filters.is_empty());
}

#[test]
fn counts_are_without_limit() {
    let counts = |count| AgentConfig {
        max_turns: Some(count),
        max_tool_calls_per_turn: Some(count),
        keep_tool_results: Some(count),
        ..AgentConfig::default()
    };
    let shown = |child: AgentSpec| {
        [
            child.bounds.max_turns,
            child.bounds.max_tool_calls_per_turn,
            child.bounds.keep_tool_results,
        ]
    };
    assert_eq!(
        children(counts(9), counts(4)).map(shown),
        [[None; 3], [Some(9); 3], [Some(4); 3]]
    );
    assert_eq!(
        children(counts(9), counts(-1)).map(shown)[2],
        [None; 3],
        "-1 lifts what is configured"
    );
    let main = main(&world(), &archetype("main")).unwrap().spec;
    assert_eq!(
        main.bounds,
        Bounds {
            children: Some(64),
            ..Bounds::default()
        }
    );
}

#[test]
fn b69_no_turns_at_all_is_refused_also_when_made_in_rust() {
    for count in [0, -2, i64::MIN] {
        let config = AgentConfig {
            max_turns: Some(count),
            ..AgentConfig::default()
        };
        let error = refused(main(
            &world(),
            &Archetype {
                config,
                ..archetype("main")
            },
        ));
        assert!(
            error
                .message
                .contains(&format!("`max_turns` is {count}; write a count from 1, or -1")),
            "{error}"
        );
    }
}

#[test]
fn parent_history_is_not_shown() {
    let history = |turns| AgentConfig {
        include_parent_history: Some(true),
        max_parent_history_turns: turns,
        ..AgentConfig::default()
    };
    let shown = children(history(None), history(Some(2))).map(|child| child.parent_history);
    assert_eq!(shown, [None, Some(None), Some(Some(2))]);
    // b58: 0 means none.
    assert_eq!(children(history(None), history(Some(0)))[2].parent_history, None);
    assert_eq!(parent(&world()).parent_history, None, "main has no parent");
}

#[test]
fn the_parents_model_is_asked_again() {
    let skipping = |skip| AgentConfig {
        skip_summarization: skip,
        ..AgentConfig::default()
    };
    let both = |defaults, spawn, dynamic| {
        let world = World {
            defaults: skipping(defaults),
            ..world()
        };
        let boss = Archetype {
            spawn: SpawnConfig {
                skip_summarization: spawn,
                filters: None,
            },
            dynamic: Some(Dynamic {
                config: skipping(dynamic),
                ..Dynamic::default()
            }),
            ..boss()
        };
        let ways = main(&world, &boss).unwrap().spec.ways;
        (ways.skip_summarization, ways.dynamic_skip_summarization)
    };
    assert_eq!(both(None, None, None), (false, false));
    assert_eq!(both(Some(true), None, None), (true, true));
    assert_eq!(both(Some(true), Some(false), None), (false, true));
    assert_eq!(both(None, Some(true), Some(false)), (true, false));
}

#[test]
fn events_are_forwarded_as_the_host_says() {
    for host in [false, true] {
        let world = World {
            forward_events: host,
            ..with(world(), [archetype("child")])
        };
        assert_eq!(
            child(&world, &parent(&world), &spawn("child"))
                .unwrap()
                .spec
                .forward_events,
            host
        );
    }
    let forward = |on| AgentConfig {
        forward_events: Some(on),
        ..AgentConfig::default()
    };
    assert_eq!(
        children(forward(true), forward(false)).map(|child| child.forward_events),
        [false, true, false]
    );
}

#[test]
fn summaries_suffix_and_budget_are_never_the_parents() {
    let config = |text: &str, summary, tokens| AgentConfig {
        summary: Some(summary),
        summary_instruction: Some(text.into()),
        task_suffix: Some(text.into()),
        budget: BudgetRequest {
            tokens: Some(tokens),
            ..BudgetRequest::default()
        },
        ..AgentConfig::default()
    };
    let [silent, defaulted, owning] = children(config("d", Summary::Always, 5), config("o", Summary::AtLimit, 6));
    assert_eq!(
        (silent.summary, silent.summary_instruction, silent.task_suffix),
        (Summary::AtLimit, None, None)
    );
    assert_eq!(silent.bounds, Bounds::default());
    assert_eq!(
        (defaulted.summary, defaulted.task_suffix.as_deref()),
        (Summary::Always, Some("d"))
    );
    assert_eq!(defaulted.bounds.tokens, Some(5));
    assert_eq!(
        (owning.summary, owning.summary_instruction.as_deref()),
        (Summary::AtLimit, Some("o"))
    );
    assert_eq!(owning.bounds.tokens, Some(6));
}

#[test]
fn made_up_children_are_configured_by_dynamic_then_configuration_then_parent() {
    let world = World {
        defaults: AgentConfig {
            max_turns: Some(9),
            model: Some("test".into()),
            ..AgentConfig::default()
        },
        ..world()
    };
    let made = |config: AgentConfig| {
        let boss = Archetype {
            config: AgentConfig {
                model: Some("other".into()),
                ..AgentConfig::default()
            },
            dynamic: Some(Dynamic {
                config,
                ..Dynamic::default()
            }),
            ..boss()
        };
        let parent = main(&world, &boss).unwrap().spec;
        child(&world, &parent, &make_up(None)).unwrap().spec
    };
    let plain = made(AgentConfig::default());
    assert_eq!((plain.model.as_str(), plain.bounds.max_turns), ("test", Some(9)));
    let own = made(AgentConfig {
        model: Some("other".into()),
        max_turns: Some(-1),
        ..AgentConfig::default()
    });
    assert_eq!((own.model.as_str(), own.bounds.max_turns), ("other", None));
}

#[test]
fn the_runs_cap_on_children_bounds_main() {
    let config = |children| AgentConfig {
        budget: BudgetRequest {
            children,
            ..BudgetRequest::default()
        },
        ..AgentConfig::default()
    };
    for (own, expected) in [(None, 64), (Some(8), 8), (Some(1000), 64)] {
        let main = main(
            &world(),
            &Archetype {
                config: config(own),
                ..archetype("main")
            },
        )
        .unwrap()
        .spec;
        assert_eq!(main.bounds.children, Some(expected));
    }
}
