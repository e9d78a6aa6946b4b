//! What goes wrong in an agent, what its filters say, and many children at once.

use super::*;

#[tokio::test]
async fn b79_a_crash_in_one_call_is_that_calls_failure() {
    let mut scene = scene(|request| match news(request).as_str() {
        "go" => calls(&[
            ("echo.say", json!({ "text": "panic" })),
            ("echo.shout", json!({ "text": "fine" })),
        ]),
        results => {
            assert!(
                results.contains("the host failed while it ran this call") && results.contains("fine"),
                "{results}"
            );
            says("went on")
        }
    });
    scene.calls = Arc::new(|invocation, _| {
        Box::pin(async move {
            assert_ne!(invocation.arguments["text"], "panic", "on purpose");
            Outcome::ok("fine")
        })
    });
    let (report, events) = scene.run().await;
    assert_eq!(report.text, "went on");
    assert_eq!(finished(&events, "main")[0].1, OutcomeKind::Trap);
}

#[tokio::test]
async fn b79_a_crash_of_a_child_is_an_error_and_everything_is_released() {
    let runs = tempfile::tempdir().unwrap();
    let info = crate::record::RunInfo {
        run: "r".into(),
        ..Default::default()
    };
    for in_model in [true, false] {
        let record = Arc::new(crate::record::Record::open(runs.path(), info.clone()).unwrap());
        let mut scene = scene(
            move |request| match (request.session.as_str(), news(request).as_str()) {
                ("main", "go") => calls(&[spawn("look")]),
                ("explore_1", _) => panic!("on purpose"),
                (_, result) => says(result),
            },
        );
        scene.record = Some(record);
        if !in_model {
            let panics: Instruct = Arc::new(|_| Box::pin(async { panic!("on purpose") }));
            scene.instructions.insert("explore".into(), panics);
        }
        let (mut course, mut events, start) = scene.start();
        let slots = course.body().run.slots.clone();
        let free = slots.available_permits();
        let report = course.start(start, CancellationToken::new()).await;
        assert_eq!(report.status, Status::Done, "the parent went on: {}", report.text);
        assert!(report.text.contains("the host failed while it"), "{}", report.text);
        assert_eq!(slots.available_permits(), free);
        let seen: Vec<Event> = std::iter::from_fn(|| events.try_recv().ok()).collect();
        let count = |started: bool| {
            let is = |event: &&Event| match event.kind {
                EventKind::AgentStarted { .. } => started,
                EventKind::AgentFinished { status, .. } => !started && status == Status::Failed,
                _ => false,
            };
            seen.iter().filter(is).count()
        };
        assert_eq!((count(true), count(false)), if in_model { (1, 1) } else { (0, 0) });
    }
}

#[tokio::test]
async fn b97_a_session_is_closed_also_where_its_agent_is_dropped() {
    let runs = tempfile::tempdir().unwrap();
    let info = crate::record::RunInfo {
        run: "r".into(),
        ..Default::default()
    };
    let record = Arc::new(crate::record::Record::open(runs.path(), info).unwrap());
    let waiting = Arc::new(tokio::sync::Notify::new());
    let mut scene = scene(|request| match (request.session.as_str(), news(request).as_str()) {
        ("main", "go") => calls(&[spawn("look")]),
        _ => calls(&[("echo.say", json!({ "text": "x" }))]),
    });
    scene.record = Some(record.clone());
    let begun = waiting.clone();
    scene.calls = Arc::new(move |_, _| {
        begun.notify_one();
        Box::pin(std::future::pending())
    });
    let (mut course, mut events, start) = scene.start();
    tokio::select! {
        _ = course.start(start, CancellationToken::new()) => panic!("it cannot end"),
        () = waiting.notified() => {}
    }
    drop(course);
    let mut ends = Vec::new();
    while ends.len() < 2 {
        let event = events.recv().await.expect("both are told");
        if let EventKind::AgentFinished { status, .. } | EventKind::RunFinished { status, .. } = event.kind {
            assert_eq!(status, Status::Cancelled);
            ends.push(event.session.to_string());
        }
    }
    ends.sort();
    assert_eq!(ends, ["explore_1", "main"]);
    for session in ends {
        let text = std::fs::read_to_string(record.folder().join(format!("sessions/{session}.jsonl"))).unwrap();
        assert!(text.lines().last().unwrap().contains("\"end\""), "{session}: {text}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn b85_a_record_that_cannot_be_written_does_not_change_the_result() {
    let runs = tempfile::tempdir().unwrap();
    let info = crate::record::RunInfo {
        run: "r".into(),
        ..Default::default()
    };
    let record = Arc::new(crate::record::Record::open(runs.path(), info).unwrap());
    std::fs::remove_dir_all(record.folder()).unwrap();
    let mut scene = scene(|request| match (request.session.as_str(), news(request).as_str()) {
        ("main", "go") => calls(&[spawn("look")]),
        ("explore_1", _) => says("the report"),
        _ => says("done"),
    });
    scene.record = Some(record);
    let (report, events) = scene.run().await;
    assert_eq!((report.status, report.text.as_str()), (Status::Done, "done"));
    let warned = |event: &&Event| matches!(&event.kind, EventKind::Warning { message } if message.contains("the record of this run cannot be written"));
    assert_eq!(events.iter().filter(warned).count(), 1, "it is said once");
}

#[tokio::test]
async fn never_a_parent_that_hangs_when_its_child_fails_inside() {
    for broken in [
        vec![ModelEvent::Delta("half".into())],
        vec![ModelEvent::Failed(fief_core::port::ModelError {
            kind: fief_core::port::ModelErrorKind::Unavailable,
            message: "the server is gone".into(),
        })],
    ] {
        let scene = scene(
            move |request| match (request.session.as_str(), news(request).as_str()) {
                ("main", "go") => calls(&[spawn("one"), spawn("two")]),
                ("main", _) => says("went on"),
                _ => broken.clone(),
            },
        );
        let (report, _) = tokio::time::timeout(Duration::from_secs(20), scene.run())
            .await
            .expect("it goes on");
        assert_eq!(report.text, "went on");
    }
}

#[tokio::test]
async fn a_model_that_stops_in_the_middle_fails_the_agent() {
    let scene = scene(|_| vec![ModelEvent::Delta("half of".into())]);
    let (report, _) = scene.run().await;
    assert_eq!(report.status, Status::Failed);
    assert!(report.failure.unwrap().message.contains("ended before it was whole"));
}

#[tokio::test]
async fn what_broken_attempts_cost_counts_with_and_without_an_answer() {
    let spent = |tokens| {
        ModelEvent::Spent(Usage {
            input_tokens: tokens,
            cost: Some(0.5),
            ..Usage::default()
        })
    };
    let (report, _) = scene(move |_| [vec![spent(7), spent(3)], says("done")].concat())
        .run()
        .await;
    assert_eq!((report.status, report.usage.input_tokens), (Status::Done, 20));
    assert_eq!((report.usage.cost, report.own_usage.input_tokens), (Some(1.0), 20));
    // The last word of a model that fails, of one that breaks off, and of one that is cancelled.
    let failed = ModelEvent::Failed(fief_core::port::ModelError {
        kind: fief_core::port::ModelErrorKind::Unavailable,
        message: "gone".into(),
    });
    for events in [vec![spent(7), failed], vec![spent(7)]] {
        let (report, _) = scene(move |_| events.clone()).run().await;
        assert_eq!((report.status, report.usage.input_tokens), (Status::Failed, 7));
    }
}

struct Watcher;
impl Filter for Watcher {
    fn before_call(&self, subject: Subject, _: CallContext) -> BoxFuture<'static, CallVerdict> {
        Box::pin(async move {
            match subject.arguments["text"]
                .as_str()
                .or(subject.arguments["prompt"].as_str())
            {
                Some("refuse") => CallVerdict::Refuse("not today".into()),
                Some("change") => CallVerdict::Change(json!({ "text": "changed" })),
                Some("spoil") => CallVerdict::Change(json!({ "text": 1 })),
                _ => CallVerdict::Pass,
            }
        })
    }
    fn after_call(&self, _: Subject, outcome: Outcome, _: CallContext) -> BoxFuture<'static, OutcomeVerdict> {
        Box::pin(async move {
            match outcome.text().as_str() {
                "secret" => OutcomeVerdict::Refuse("it is private".into()),
                "long" => OutcomeVerdict::Change(Outcome::ok("short")),
                _ => OutcomeVerdict::Pass,
            }
        })
    }
}

#[tokio::test]
async fn filters_see_change_and_refuse_calls_and_children() {
    let mut scene = scene(|request| match news(request).as_str() {
        "go" => {
            let say = |text: &str| ("echo.say", json!({ "text": text }));
            calls(&[
                say("plain"),
                say("refuse"),
                say("change"),
                say("spoil"),
                say("secret"),
                say("long"),
                spawn("refuse"),
            ])
        }
        _ => says("done"),
    });
    scene.filter = Some(Arc::new(Watcher));
    scene.main.config.filters = Some(vec![fief_core::manifest::archetype::ToolGrant {
        plugin: "echo".parse().unwrap(),
        digest: None,
        allow: None,
        grant: fief_core::manifest::archetype::GrantRequest::Policy,
    }]);
    let (_, events) = scene.run().await;
    let mut results = finished(&events, "main");
    results.sort_by(|one, other| one.2.cmp(&other.2));
    let find = |says: &str| {
        results
            .iter()
            .find(|(.., text)| text.contains(says))
            .unwrap_or_else(|| panic!("{says}: {results:?}"))
    };
    assert_eq!(find("plain").1, OutcomeKind::Ok);
    assert_eq!(find("changed").1, OutcomeKind::Ok);
    assert_eq!(find("and they are not valid").1, OutcomeKind::Denied);
    assert_eq!(find("withholds its result: it is private").1, OutcomeKind::Denied);
    assert_eq!(find("short").1, OutcomeKind::Ok);
    assert_eq!(
        results.iter().filter(|(.., text)| text.contains("not today")).count(),
        2,
        "a call and a child"
    );
    assert!(
        !events
            .iter()
            .any(|event| matches!(event.kind, EventKind::AgentStarted { .. }))
    );
}

#[tokio::test]
async fn what_policy_asks_for_is_refused_where_nobody_is_there() {
    let mut scene = scene(|request| match news(request).as_str() {
        "go" => calls(&[("echo.say", json!({ "text": "hello" }))]),
        other => says(other),
    });
    scene.policy.ask = vec!["echo.*".into()];
    let (_, events) = scene.run().await;
    let (tool, outcome, _) = &finished(&events, "main")[0];
    assert_eq!((tool.as_str(), *outcome), ("echo.say", OutcomeKind::Denied));
}

#[tokio::test]
async fn a_dynamic_childs_instruction_is_text_and_no_template() {
    let mut scene = scene(|request| match (request.session.as_str(), news(request).as_str()) {
        ("main", "go") => calls(&[(
            "dynamic_subagent",
            json!({ "instruction": "Obey {{ nothing }}", "prompt": "go on" }),
        )]),
        ("dynamic_1", _) => says(&request.system),
        (_, report) => says(report),
    });
    scene.main.dynamic = Some(Dynamic::default());
    let (report, _) = scene.run().await;
    assert!(report.text.contains("Obey {{ nothing }}"), "{}", report.text);
}

/// Hundreds of children over four levels, some of whose models fail, some of whose calls crash, cancelled in the middle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b98_many_children_with_failures_and_a_cancellation_end_clean() {
    let mut scene = scene(|request| {
        let task = news(request);
        let depth = task
            .strip_prefix("level ")
            .and_then(|rest| rest.split_whitespace().next()?.parse::<u32>().ok());
        match (request.session.as_str(), depth) {
            ("main", _) if task == "go" => calls(&vec![spawn("level 1"); 10]),
            (_, Some(depth @ 1..=3)) => calls(&vec![spawn(&format!("level {}", depth + 1)); 3]),
            (session, Some(_)) => match session.len() % 3 {
                0 => vec![ModelEvent::Delta("half".into())],
                1 => calls(&[("echo.say", json!({ "text": "panic" }))]),
                _ => calls(&[("echo.say", json!({ "text": "slow" }))]),
            },
            _ => says("done"),
        }
    });
    scene.policy.max_depth = 4;
    scene.policy.max_children = 1_000;
    scene.others[0].agents = Some(Agents::All);
    scene.calls = Arc::new(|invocation, _| {
        Box::pin(async move {
            assert_ne!(invocation.arguments["text"], "panic", "on purpose");
            tokio::time::sleep(Duration::from_millis(5)).await;
            Outcome::ok("slow")
        })
    });
    let (mut course, mut events, start) = scene.start();
    let slots = course.body().run.slots.clone();
    let free = slots.available_permits();
    let token = CancellationToken::new();
    let cancel = token.clone();
    let watcher = tokio::spawn(async move {
        let mut seen = Vec::new();
        while let Some(event) = events.recv().await {
            let ended = matches!(event.kind, EventKind::RunFinished { .. });
            seen.push(event);
            if seen
                .iter()
                .filter(|event| matches!(event.kind, EventKind::AgentFinished { .. }))
                .count()
                == 120
            {
                cancel.cancel();
            }
            if ended {
                break;
            }
        }
        // Nothing may come after the end.
        tokio::time::sleep(Duration::from_millis(100)).await;
        while let Ok(event) = events.try_recv() {
            seen.push(event);
        }
        seen
    });
    let report = tokio::time::timeout(Duration::from_secs(60), course.start(start, token))
        .await
        .expect("it ends");
    let seen = watcher.await.unwrap();
    assert!(
        matches!(seen.last().unwrap().kind, EventKind::RunFinished { .. }),
        "no event after the end"
    );
    let count = |started: bool| {
        let is = |event: &&Event| match &event.kind {
            EventKind::AgentStarted { .. } => started,
            EventKind::AgentFinished { .. } => !started,
            _ => false,
        };
        let mut sessions: Vec<String> = seen.iter().filter(is).map(|event| event.session.to_string()).collect();
        sessions.sort();
        sessions
    };
    assert_eq!(count(true), count(false), "each child that started has ended, once");
    assert!(count(true).len() >= 120);
    let own: u64 = seen
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::AgentFinished { own_usage, .. } | EventKind::RunFinished { own_usage, .. } => {
                Some(own_usage.tokens())
            }
            _ => None,
        })
        .sum();
    assert_eq!(report.usage.tokens(), own, "b96: the tree's usage is the sum");
    assert_eq!(slots.available_permits(), free, "every place is given back");
}
