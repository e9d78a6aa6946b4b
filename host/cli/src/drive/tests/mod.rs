#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use fief_core::event::{Event, EventKind};
use fief_core::grant::policy::Policy;
use fief_core::manifest::archetype::{Agents, Archetype, Dynamic};
use fief_core::message::{Answer, Arguments, Assistant, Finish, Message, Request, Served, ToolCall, Usage};
use fief_core::plan;
use fief_core::port::{BoxStream, CallContext, CallVerdict, ModelEvent, OutcomeVerdict, Subject};
use fief_core::report::{Report, Status};
use fief_core::tool::{Invocation, Outcome, OutcomeKind};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::agent::{Body, Course};
use super::stream::{Emitter, Source};
use super::*;
use crate::NativePlugin;

mod faults;
mod isolation;

type Script = Arc<dyn Fn(&Request) -> Vec<ModelEvent> + Send + Sync>;
type Calls = Arc<dyn Fn(Invocation, CallContext) -> BoxFuture<'static, Outcome> + Send + Sync>;

struct Fake {
    script: Script,
    calls: Calls,
    filter: Option<Arc<dyn Filter>>,
}

impl Supply for Fake {
    fn model(&self, _: &str) -> Result<Supplied, String> {
        Ok(Supplied {
            model: Arc::new(FakeModel(self.script.clone())),
            context: None,
            prices: None,
            identity: Arc::default(),
        })
    }
    fn tools(&self, _: Arc<Holdings>) -> BoxFuture<'_, Result<Arc<dyn Tools>, String>> {
        let tools: Arc<dyn Tools> = Arc::new(FakeTools(self.calls.clone()));
        Box::pin(async move { Ok(tools) })
    }
    fn filter(&self, _: PluginName, _: Holding) -> BoxFuture<'_, Result<Arc<dyn Filter>, String>> {
        Box::pin(async move { self.filter.clone().ok_or_else(|| "there is none".to_owned()) })
    }
}

struct FakeModel(Script);
impl Model for FakeModel {
    fn ask(&self, request: Request) -> BoxStream<'static, ModelEvent> {
        let script = self.0.clone();
        Box::pin(
            futures::stream::once(async move { script(&request) }).flat_map(|events| {
                // No event at all stands for a model that never answers.
                if events.is_empty() {
                    futures::stream::pending().left_stream()
                } else {
                    futures::stream::iter(events).right_stream()
                }
            }),
        )
    }
}
use futures::StreamExt as _;

struct FakeTools(Calls);
impl Tools for FakeTools {
    fn call(&self, invocation: Invocation, context: CallContext) -> BoxFuture<'static, Outcome> {
        (self.0)(invocation, context)
    }
}

fn says(text: &str) -> Vec<ModelEvent> {
    answer(text, &[])
}

fn calls(calls: &[(&str, Value)]) -> Vec<ModelEvent> {
    answer("", calls)
}

fn answer(text: &str, calls: &[(&str, Value)]) -> Vec<ModelEvent> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let calls: Vec<ToolCall> = calls
        .iter()
        .map(|(name, arguments)| ToolCall {
            id: format!("c{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            name: (*name).into(),
            arguments: Arguments::Object(arguments.as_object().unwrap().clone()),
        })
        .collect();
    let finish = if calls.is_empty() {
        Finish::Stop
    } else {
        Finish::ToolCalls
    };
    let message = Assistant {
        text: text.into(),
        calls,
        ..Assistant::default()
    };
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 1,
        ..Usage::default()
    };
    vec![ModelEvent::Done(Answer {
        message,
        finish,
        usage,
        served: Served::default(),
    })]
}

/// What came since the last answer, as one text.
fn news(request: &Request) -> String {
    match request.history.last() {
        Some(Message::Results { results }) => results
            .iter()
            .map(|result| fief_core::message::to_text(&result.content))
            .collect::<Vec<_>>()
            .join("\n"),
        Some(Message::User { content }) => fief_core::message::to_text(content),
        _ => String::new(),
    }
}

struct Scene {
    script: Script,
    calls: Calls,
    filter: Option<Arc<dyn Filter>>,
    policy: Policy,
    main: Archetype,
    others: Vec<Archetype>,
    /// Configured models.
    models: Vec<String>,
    record: Option<Arc<crate::record::Record>>,
    instructions: HashMap<String, Instruct>,
}

fn echo() -> Calls {
    Arc::new(|invocation, _| {
        Box::pin(async move { Outcome::ok(invocation.arguments["text"].as_str().unwrap().to_owned()) })
    })
}

fn scene(script: impl Fn(&Request) -> Vec<ModelEvent> + Send + Sync + 'static) -> Scene {
    let mut main = Archetype::new("main".parse().unwrap(), "The main agent.", "You are main.");
    main.agents = Some(Agents::All);
    Scene {
        script: Arc::new(script),
        calls: echo(),
        filter: None,
        policy: Policy::default(),
        main,
        others: vec![Archetype::new("explore".parse().unwrap(), "Explores.", "You explore.")],
        models: Vec::new(),
        record: None,
        instructions: HashMap::new(),
    }
}

impl Scene {
    fn start(self) -> (Course, UnboundedReceiver<Event>, fief_core::agent::Start) {
        let supply = Arc::new(Fake {
            script: self.script.clone(),
            calls: self.calls.clone(),
            filter: self.filter.clone(),
        });
        self.start_on(supply)
    }

    fn start_on(self, supply: Arc<dyn Supply>) -> (Course, UnboundedReceiver<Event>, fief_core::agent::Start) {
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
        let mut plugin = NativePlugin::new("echo").unwrap();
        for tool in ["say", "shout"] {
            plugin = plugin
                .tool(tool, "Says it.", schema.clone(), |_| async { Ok(String::new()) })
                .unwrap();
        }
        let info = fief_core::tool::PluginInfo {
            filter: true,
            ..plugin.info()
        };
        let registered = self.others.iter().map(|one| one.name.clone()).collect();
        let all = std::iter::once(self.main.clone()).chain(self.others.clone());
        let world = World {
            archetypes: all
                .map(|one| (one.name.key(), Arc::new(one)))
                .collect::<BTreeMap<_, _>>(),
            registered,
            plugins: BTreeMap::from([(info.name.clone(), Arc::new(info))]),
            policy: self.policy,
            model: Some("fake".into()),
            models: self.models,
            forward_events: true,
            ..World::default()
        };
        let spec = plan::main(&world, &self.main).unwrap().spec;
        let (sender, events) = tokio::sync::mpsc::unbounded_channel();
        let stream = EventStream::new(
            "r".into(),
            Arc::new(fief_sandbox::redact::Redactor::new([])),
            self.record,
            0,
            Some(sender),
        );
        let run = Run::new(
            Arc::new(world),
            supply,
            stream.clone(),
            Asker::new(None),
            Arc::new(self.instructions),
            Arc::default(),
            0,
        );
        let kit = futures::executor::block_on(kit::Kit::new(&*run.supply, spec, Vec::new())).unwrap();
        let supplied = run.supply.model("fake").unwrap();
        let emitter = Emitter::new(stream, Source::default());
        let body = Body::new(run, kit, supplied, emitter, Slot::default());
        let start = fief_core::agent::Start {
            task: "go".into(),
            system: "You are main.".into(),
            ..Default::default()
        };
        (Course::new(body), events, start)
    }

    async fn run(self) -> (Report, Vec<Event>) {
        let (mut course, mut events, start) = self.start();
        let report = course.start(start, CancellationToken::new()).await;
        let seen = std::iter::from_fn(|| events.try_recv().ok()).collect();
        (report, seen)
    }
}

fn spawn(prompt: &str) -> (&'static str, Value) {
    (
        "spawn_subagent",
        json!({ "subagent_type": "explore", "prompt": prompt }),
    )
}

fn finished(events: &[Event], session: &str) -> Vec<(String, OutcomeKind, String)> {
    events
        .iter()
        .filter(|event| event.session.as_str() == session)
        .filter_map(|event| match &event.kind {
            EventKind::ToolFinished {
                tool, outcome, content, ..
            } => Some((tool.clone(), *outcome, content.clone())),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_task_a_call_and_an_answer() {
    let scene = scene(|request| match news(request).as_str() {
        "go" => calls(&[("echo.say", json!({ "text": "hello" }))]),
        other => says(&format!("it said {other}")),
    });
    let (report, events) = scene.run().await;
    assert_eq!((report.status, report.text.as_str()), (Status::Done, "it said hello"));
    assert_eq!(report.usage.input_tokens, 20);
    assert_eq!(
        events.iter().map(|event| event.seq).collect::<Vec<_>>(),
        (1..=events.len() as u64).collect::<Vec<_>>()
    );
    assert!(matches!(events.first().unwrap().kind, EventKind::RunStarted { .. }));
    assert!(matches!(events.last().unwrap().kind, EventKind::RunFinished { .. }));
}

#[tokio::test]
async fn a_child_runs_under_its_archetype_and_its_usage_counts() {
    let scene = scene(|request| match (request.session.as_str(), news(request).as_str()) {
        ("main", "go") => calls(&[spawn("find it")]),
        ("explore_1", _) => {
            assert_eq!(&*request.system, "You explore.");
            assert!(
                request.tools.iter().all(|tool| tool.name != "spawn_subagent"),
                "no way to a child"
            );
            says("it is in a.txt")
        }
        (_, report) => {
            assert!(
                report.contains("it is in a.txt") && report.contains("explore_1"),
                "{report}"
            );
            says("found")
        }
    });
    let (report, events) = scene.run().await;
    assert_eq!(
        (report.status, report.usage.input_tokens, report.own_usage.input_tokens),
        (Status::Done, 30, 20)
    );
    let child: Vec<_> = events
        .iter()
        .filter(|event| event.session.as_str() == "explore_1")
        .collect();
    assert!(matches!(child[0].kind, EventKind::AgentStarted { .. }));
    assert!(child.iter().all(|event| event.depth == 1 && event.forwarded.is_some()));
}

#[tokio::test]
async fn b95_children_of_one_turn_run_at_once_and_results_keep_their_order() {
    let waiting = Arc::new(tokio::sync::Barrier::new(3));
    let mut scene = scene(|request| match (request.session.as_str(), news(request)) {
        ("main", task) if task == "go" => calls(&[spawn("one"), spawn("two"), spawn("three")]),
        ("main", results) => {
            let at = |text: &str| results.find(text).unwrap();
            assert!(
                at("did one") < at("did two") && at("did two") < at("did three"),
                "{results}"
            );
            says("all done")
        }
        (_, task) if task.contains("Give the answer") || !task.starts_with("did") => calls(&[(
            "echo.say",
            json!({ "text": format!("did {}", task.split('\n').next().unwrap()) }),
        )]),
        (_, said) => says(&said),
    });
    scene.calls = Arc::new(move |invocation, _| {
        let waiting = waiting.clone();
        Box::pin(async move {
            waiting.wait().await; // Only if all three are here does any go on.
            Outcome::ok(invocation.arguments["text"].as_str().unwrap().to_owned())
        })
    });
    let (report, _) = tokio::time::timeout(Duration::from_secs(20), scene.run())
        .await
        .expect("they run at once");
    assert_eq!(report.text, "all done");
}

#[tokio::test]
async fn b97_session_ids_are_unique_and_children_that_wait_for_children_give_their_place_up() {
    let mut scene = scene(|request| match (request.session.as_str(), news(request)) {
        ("main", task) if task == "go" => calls(&[spawn("deep"), spawn("deep")]),
        (session, task) if session != "main" && task.starts_with("deep") => calls(&[spawn("leaf")]),
        _ => says("done"),
    });
    scene.policy.parallel_children = 1;
    scene.policy.max_depth = 2;
    scene.others[0].agents = Some(Agents::All);
    let (report, events) = tokio::time::timeout(Duration::from_secs(20), scene.run())
        .await
        .expect("no deadlock");
    assert_eq!(report.status, Status::Done);
    assert_eq!(report.descendants, 4);
    let sessions: std::collections::BTreeSet<_> = events.iter().map(|event| event.session.clone()).collect();
    assert_eq!(sessions.len(), 5, "b97: each session has a name of its own");
}

#[tokio::test]
async fn b90_cancellation_stops_requests_and_guests_of_all_descendants_promptly() {
    let mut scene = scene(|request| match (request.session.as_str(), news(request).as_str()) {
        ("main", "go") => calls(&[spawn("stay")]),
        ("explore_1", task) if task.starts_with("stay") => calls(&[("echo.say", json!({ "text": "x" }))]),
        _ => Vec::new(),
    });
    let dropped = Arc::new(Mutex::new(false));
    struct Dropped(Arc<Mutex<bool>>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = true;
        }
    }
    let (flag, (started, mut running)) = (dropped.clone(), tokio::sync::mpsc::unbounded_channel());
    scene.calls = Arc::new(move |_, _| {
        let guard = Dropped(flag.clone());
        let started = started.clone();
        Box::pin(async move {
            let _guard = guard;
            started.send(()).unwrap();
            std::future::pending().await
        })
    });
    let (mut course, mut events, start) = scene.start();
    let token = CancellationToken::new();
    let cancel = token.clone();
    tokio::spawn(async move {
        running.recv().await;
        cancel.cancel();
    });
    let asked = Instant::now();
    let report = course.start(start, token).await;
    assert!(
        asked.elapsed() < Duration::from_secs(4),
        "promptly, not at the end of the grace"
    );
    assert_eq!(report.status, Status::Cancelled);
    assert!(*dropped.lock().unwrap(), "the guest is gone");
    assert_eq!(report.usage.input_tokens, 20, "b96: what the child cost counts");
    let seen: Vec<Event> = std::iter::from_fn(|| events.try_recv().ok()).collect();
    let ends: Vec<_> = seen
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::AgentFinished { status, .. } | EventKind::RunFinished { status, .. } => {
                Some((event.session.to_string(), *status))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        ends,
        [
            ("explore_1".to_owned(), Status::Cancelled),
            ("main".to_owned(), Status::Cancelled)
        ]
    );
    assert_eq!(finished(&seen, "explore_1")[0].1, OutcomeKind::Cancelled);
}

#[tokio::test]
async fn b72_a_wall_clock_ends_an_agent_with_a_summary() {
    let mut scene = scene(|request| {
        if request.tools.is_empty() {
            says("so far nothing")
        } else {
            calls(&[("echo.say", json!({ "text": "x" }))])
        }
    });
    scene.calls = Arc::new(|_, _| Box::pin(std::future::pending()));
    scene.main.config.budget.wall = Some(Duration::from_millis(500));
    let (report, _) = tokio::time::timeout(Duration::from_secs(20), scene.run())
        .await
        .expect("it ends");
    assert_eq!(report.status, Status::Budget);
    assert!(report.text.contains("so far nothing"), "{}", report.text);
}
