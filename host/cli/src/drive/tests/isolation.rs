//! What an agent keeps to itself: its history, its model, its filters, its account.

use super::*;
use fief_core::manifest::archetype::{Generation, GrantRequest, ToolGrant};

fn watched_by(plugin: &str) -> Option<Vec<ToolGrant>> {
    Some(vec![ToolGrant {
        plugin: plugin.parse().unwrap(),
        digest: None,
        allow: None,
        grant: GrantRequest::Policy,
    }])
}

/// Every request that was made, in order.
type Seen = Arc<Mutex<Vec<Request>>>;

fn noting(script: impl Fn(&Request) -> Vec<ModelEvent> + Send + Sync + 'static) -> (Scene, Seen) {
    let seen = Seen::default();
    let notes = seen.clone();
    let scene = scene(move |request| {
        notes.lock().unwrap().push(request.clone());
        script(request)
    });
    (scene, seen)
}

fn of<'a>(seen: &'a [Request], session: &str) -> Vec<&'a Request> {
    seen.iter().filter(|one| one.session.as_str() == session).collect()
}

#[tokio::test]
async fn b57_the_parents_next_request_differs_by_one_call_and_one_result_only() {
    let (scene, seen) = noting(|request| match (request.session.as_str(), news(request).as_str()) {
        ("main", "go") => calls(&[spawn("look")]),
        ("explore_1", task) if task.starts_with("look") => answer(
            "thinking aloud",
            &[("echo.say", json!({ "text": "something found on the way" }))],
        ),
        ("explore_1", _) => says("the report"),
        _ => says("done"),
    });
    scene.run().await;
    let seen = seen.lock().unwrap();
    let [before, after] = of(&seen, "main")[..] else {
        panic!("{} requests", seen.len())
    };
    assert_eq!(after.history[..before.history.len()], before.history[..]);
    assert_eq!(after.history.len(), before.history.len() + 2);
    assert_eq!((&after.system, &after.generation), (&before.system, &before.generation));
    assert!(
        Arc::ptr_eq(&after.tools, &before.tools),
        "tool definitions are made once for an agent"
    );
}

#[tokio::test]
async fn b93_progress_never_enters_the_parents_context() {
    let (scene, seen) = noting(|request| match (request.session.as_str(), news(request).as_str()) {
        ("main", "go") => calls(&[spawn("look")]),
        ("explore_1", task) if task.starts_with("look") => answer(
            "thinking aloud",
            &[("echo.say", json!({ "text": "something found on the way" }))],
        ),
        ("explore_1", _) => says("the report"),
        _ => says("done"),
    });
    let (_, events) = scene.run().await;
    assert!(
        events
            .iter()
            .any(|event| event.depth == 1 && matches!(event.kind, EventKind::ToolFinished { .. })),
        "the watcher was told of it"
    );
    for request in of(&seen.lock().unwrap(), "main") {
        let text = format!("{:?}", request.history);
        assert!(
            !text.contains("thinking aloud") && !text.contains("found on the way"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn b55_a_child_starts_with_its_task_alone() {
    let (mut scene, seen) = noting(|request| match (request.session.as_str(), news(request).as_str()) {
        ("main", "go") => answer("a plan of mine", &[spawn("look")]),
        ("explore_1", _) => says("the report"),
        _ => says("done"),
    });
    scene.others[0].config.task_suffix = Some(String::new());
    scene.run().await;
    let seen = seen.lock().unwrap();
    let child = of(&seen, "explore_1")[0];
    assert_eq!(child.history.len(), 1);
    assert_eq!(news(child), "look");
    assert_eq!(&*child.system, "You explore.");
}

#[tokio::test]
async fn b62_siblings_of_one_archetype_see_nothing_of_each_other() {
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let (mut scene, seen) = noting(|request| match (request.session.as_str(), news(request).as_str()) {
        ("main", "go") => calls(&[spawn("the left half"), spawn("the right half")]),
        ("main", _) => says("done"),
        (_, task) if task.starts_with("the") => {
            calls(&[("echo.say", json!({ "text": format!("found in {}", &task[..9]) }))])
        }
        (_, found) => says(found),
    });
    scene.calls = Arc::new(move |invocation, _| {
        let both = both.clone();
        Box::pin(async move {
            both.wait().await; // Both are in the middle of their work.
            Outcome::ok(invocation.arguments["text"].as_str().unwrap().to_owned())
        })
    });
    tokio::time::timeout(Duration::from_secs(20), scene.run())
        .await
        .expect("they run at once");
    let seen = seen.lock().unwrap();
    let text = |session: &str| format!("{:?}", of(&seen, session).last().unwrap().history);
    let (one, two) = (text("explore_1"), text("explore_2"));
    assert!(one.contains("left") != two.contains("left"), "{one}\n{two}");
    assert!(one.contains("right") != two.contains("right"), "{one}\n{two}");
}

struct Noting(Arc<Mutex<Vec<(String, String)>>>);
impl Filter for Noting {
    fn before_call(&self, subject: Subject, _: CallContext) -> BoxFuture<'static, CallVerdict> {
        self.0
            .lock()
            .unwrap()
            .push((subject.session.to_string(), subject.tool.clone()));
        Box::pin(async { CallVerdict::Pass })
    }
    fn after_call(&self, _: Subject, _: Outcome, _: CallContext) -> BoxFuture<'static, OutcomeVerdict> {
        Box::pin(async { OutcomeVerdict::Pass })
    }
}

/// What a filter sees of a run in which main makes a call and starts one child of each kind, which make one each.
async fn watched(edit: impl FnOnce(&mut Scene)) -> Vec<String> {
    let notes: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
    let mut scene = scene(|request| match (request.session.as_str(), news(request).as_str()) {
        ("main", "go") => calls(&[("echo.shout", json!({ "text": "main" }))]),
        ("main", "main") => calls(&[spawn("look")]),
        ("main", report) if report.contains("explore_1") => calls(&[(
            "dynamic_subagent",
            json!({ "instruction": "You look.", "prompt": "look" }),
        )]),
        ("main", _) => says("done"),
        (_, task) if task.starts_with("look") => calls(&[("echo.say", json!({ "text": "child" }))]),
        _ => says("report"),
    });
    scene.main.dynamic = Some(Dynamic::default());
    scene.filter = Some(Arc::new(Noting(notes.clone())));
    edit(&mut scene);
    let (report, _) = scene.run().await;
    assert_eq!(report.text, "done");
    let seen = notes.lock().unwrap();
    seen.iter().map(|(session, tool)| format!("{session} {tool}")).collect()
}

#[tokio::test]
async fn b56_the_parents_filters_do_not_run_in_the_child_unless_the_archetype_names_them() {
    let main = ["main echo.shout", "main spawn_subagent", "main dynamic_subagent"];
    assert_eq!(
        watched(|scene| scene.main.config.filters = watched_by("echo")).await,
        main
    );
    assert_eq!(
        watched(|scene| scene.others[0].config.filters = watched_by("echo")).await,
        ["explore_1 echo.say"]
    );
}

#[tokio::test]
async fn filters_of_a_way_see_the_call_that_starts_a_child_and_all_that_it_does() {
    assert_eq!(
        watched(|scene| scene.main.spawn.filters = watched_by("echo")).await,
        ["main spawn_subagent", "explore_1 echo.say"]
    );
    assert_eq!(
        watched(|scene| scene.main.dynamic.as_mut().unwrap().config.filters = watched_by("echo")).await,
        ["main dynamic_subagent", "dynamic_2 echo.say"]
    );
    assert_eq!(
        watched(|scene| {
            scene.main.config.filters = watched_by("echo");
            scene.main.spawn.filters = watched_by("echo");
        })
        .await,
        [
            "main echo.shout",
            "main spawn_subagent",
            "explore_1 echo.say",
            "main dynamic_subagent"
        ],
        "one filter sees a call once"
    );
}

/// Models by name, each of which says who it is; how often each was made.
struct Named(Mutex<Vec<String>>);
impl Supply for Named {
    fn model(&self, name: &str) -> Result<Supplied, String> {
        self.0.lock().unwrap().push(name.to_owned());
        let name = name.to_owned();
        let script: Script = Arc::new(move |request| {
            let told = format!("{name} at {:?}", request.generation.temperature);
            match (request.session.as_str(), request.history.len()) {
                ("main", 1) => calls(&[spawn("look")]),
                ("main", 3) => calls(&[("spawn_subagent", json!({ "subagent_type": "other", "prompt": "look" }))]),
                _ => says(&told),
            }
        });
        Ok(Supplied {
            model: Arc::new(FakeModel(script)),
            context: None,
            prices: None,
            identity: Arc::default(),
        })
    }
    fn tools(&self, _: Arc<Holdings>) -> BoxFuture<'_, Result<Arc<dyn Tools>, String>> {
        Box::pin(async { Ok(Arc::new(FakeTools(echo())) as Arc<dyn Tools>) })
    }
    fn filter(&self, _: PluginName, _: Holding) -> BoxFuture<'_, Result<Arc<dyn Filter>, String>> {
        Box::pin(async { Err("there is none".to_owned()) })
    }
}

#[tokio::test]
async fn b65_each_archetype_has_its_own_model_client_and_its_own_accounts() {
    let mut scene = scene(|_| Vec::new());
    scene.models = vec!["fake".into(), "small".into(), "large".into()];
    let mut other = Archetype::new("other".parse().unwrap(), "Differs.", "You differ.");
    for (archetype, model, temperature) in [(&mut scene.others[0], "small", 0.1), (&mut other, "large", 0.9)] {
        archetype.config.model = Some(model.into());
        archetype.config.generation = Generation {
            temperature: Some(temperature),
            ..Generation::default()
        };
    }
    scene.others.push(other);
    let supply = Arc::new(Named(Mutex::default()));
    let (mut course, mut events, start) = scene.start_on(supply.clone());
    let report = course.start(start, CancellationToken::new()).await;
    assert_eq!(*supply.0.lock().unwrap(), ["fake", "small", "large"]);
    assert_eq!(report.text, "fake at None");
    let mut own = Vec::new();
    let mut reports = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let EventKind::AgentFinished { report, own_usage, .. } = event.kind {
            reports.push(report);
            own.push(own_usage.input_tokens);
        }
    }
    assert_eq!(reports, ["small at Some(0.1)", "large at Some(0.9)"]);
    assert_eq!(own, [10, 10], "each counts its own");
    assert_eq!(
        (report.own_usage.input_tokens, report.usage.input_tokens),
        (30, 50),
        "no child's start wipes the main totals"
    );
}

#[tokio::test]
async fn b53_a_child_closes_nothing_of_its_parents_and_a_second_spawn_works_like_the_first() {
    let scene = scene(|request| match (request.session.as_str(), news(request).as_str()) {
        ("main", "go") => calls(&[spawn("look")]),
        ("main", report) if report.contains("explore_1") => calls(&[("echo.say", json!({ "text": "mine" }))]),
        ("main", "mine") => calls(&[spawn("look")]),
        ("main", _) => says("done"),
        (_, task) if task.starts_with("look") => calls(&[("echo.say", json!({ "text": "its own" }))]),
        (_, said) => says(said),
    });
    let (report, events) = scene.run().await;
    assert_eq!(report.text, "done");
    let texts: Vec<String> = ["explore_1", "explore_2"]
        .iter()
        .map(|session| finished(&events, session)[0].2.clone())
        .collect();
    assert_eq!(texts, ["its own", "its own"]);
}
