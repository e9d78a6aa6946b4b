//! Two hundred children over four levels, on real components, with failures at random and a cancellation in the middle.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fief::core::event::{Event, EventKind};
use fief::core::id::SessionId;
use fief::core::manifest::archetype::{Agents, Archetype, GrantRequest, ToolGrant};
use fief::core::message::{Answer, Arguments, Assistant, Finish, Message, Request, Served, ToolCall, Usage, to_text};
use fief::core::port::{BoxStream, Model, ModelError, ModelErrorKind, ModelEvent};
use fief::core::report::Status;
use fief::{Host, HostOptions, SessionOptions};
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::support::{guests, plugins};

/// How many children each level starts: 8, 24, 72 and 144 are 248 in all.
const BROOD: [usize; 4] = [8, 3, 3, 2];

/// The same for the same numbers, so that a failure can be repeated with its seed.
fn dice(seed: u64, text: &str, sides: u64) -> u64 {
    let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
    for byte in text.bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        state ^= state >> 29;
    }
    (state.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) % sides
}

/// A model that hands the task on to a brood of children, and at the leaves calls tools that work, fail, crash or spin.
struct Foreman(u64);

impl Foreman {
    fn answer(&self, request: &Request) -> Result<Answer, ModelError> {
        let Some(Message::User { content }) = request.history.first() else {
            return Ok(answer("no task", Vec::new()));
        };
        let task = to_text(content);
        let path = task.split_whitespace().next().unwrap_or_default().to_owned();
        let depth = path.matches('.').count();
        let asked = request.history.len() > 1;
        if asked {
            return match dice(self.0, &path, 6) {
                0 => Err(ModelError {
                    kind: ModelErrorKind::Unavailable,
                    message: "the server is away".into(),
                }),
                1 => Ok(answer(" ", Vec::new())),
                _ => Ok(answer(&format!("{path} is done"), Vec::new())),
            };
        }
        if let Some(brood) = BROOD.get(depth) {
            let child = |at: usize| {
                (
                    "spawn_subagent",
                    json!({ "subagent_type": "foreman", "prompt": format!("{path}.{at}") }),
                )
            };
            return Ok(answer("", (0..*brood).map(child).collect()));
        }
        let work = match dice(self.0, &format!("{path} works"), 5) {
            0 => ("tricks.panic_with_words", json!({})),
            1 => ("calculator.evaluate", json!({ "expression": "1 / 0" })),
            2 => ("nobody.knows", json!({})),
            3 => ("word-count.count", json!({ "text": "one two" })),
            _ => ("tricks.sleep_forever", json!({ "ms": 30 })),
        };
        Ok(answer(
            "",
            vec![work, ("calculator.evaluate", json!({ "expression": "2 + 2" }))],
        ))
    }
}

fn answer(text: &str, calls: Vec<(&str, Value)>) -> Answer {
    let calls: Vec<ToolCall> = calls
        .into_iter()
        .enumerate()
        .map(|(at, (name, arguments))| ToolCall {
            id: format!("call_{at}"),
            name: name.into(),
            arguments: Arguments::Object(arguments.as_object().cloned().unwrap_or_default()),
        })
        .collect();
    Answer {
        finish: if calls.is_empty() {
            Finish::Stop
        } else {
            Finish::ToolCalls
        },
        message: Assistant {
            text: text.into(),
            calls,
            ..Assistant::default()
        },
        usage: Usage {
            input_tokens: 10,
            output_tokens: 1,
            ..Usage::default()
        },
        served: Served::default(),
    }
}

impl Model for Foreman {
    fn ask(&self, request: Request) -> BoxStream<'static, ModelEvent> {
        let event = match self.answer(&request) {
            Ok(answer) => ModelEvent::Done(answer),
            Err(error) => ModelEvent::Failed(error),
        };
        futures::stream::iter([event]).boxed()
    }
}

struct Ended {
    status: Status,
    events: Vec<Event>,
    usage: Usage,
    runs: tempfile::TempDir,
}

/// Runs the crowd, cancelled once so many children have ended.
async fn run(seed: u64, cancel_after: usize) -> Ended {
    let (work, runs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let guest = work.path().join("guests");
    std::fs::create_dir(&guest).unwrap();
    std::fs::copy(guests::component("tricks"), guest.join("tricks.wasm")).unwrap();
    std::fs::write(
        work.path().join("fief.toml"),
        "[policy]\nmax_depth = 4\nmax_children = 1000\n",
    )
    .unwrap();
    let held = |plugin: &str| ToolGrant {
        plugin: plugin.parse().unwrap(),
        digest: None,
        allow: None,
        grant: GrantRequest::Policy,
    };
    let mut foreman = Archetype::new("foreman".parse().unwrap(), "Hands work on.", "You hand work on.");
    foreman.agents = Some(Agents::All);
    foreman.tools = Some(["calculator", "word-count", "tricks"].map(held).to_vec());
    let mut options = HostOptions::embedded(work.path().to_owned())
        .plugins_in(plugins::directory().join("calculator"))
        .plugins_in(plugins::directory().join("word-count"))
        .plugins_in(guest)
        .archetype(foreman)
        .model_made("foreman", Arc::new(Foreman(seed)));
    options.configured = true;
    options.config = Some(work.path().join("fief.toml"));
    options.builtin = Some(Vec::new());
    options.forward_events = true;
    options.folders = fief::folders::Folders {
        config: work.path().join("config"),
        data: work.path().join("data"),
        state: work.path().join("state"),
        cache: std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("crowd-cache"),
    };
    let host = Host::open(options).await.unwrap();
    let mut session = host
        .session(SessionOptions {
            archetype: Some("foreman".into()),
            record: Some(runs.path().to_owned()),
            ..SessionOptions::default()
        })
        .await
        .unwrap();
    let (mut stream, handle) = (session.events(), session.handle());
    let watcher = tokio::spawn(async move {
        let (mut events, mut ended) = (Vec::new(), 0);
        while let Some(event) = stream.recv().await {
            ended += usize::from(matches!(event.kind, EventKind::AgentFinished { .. }));
            if ended == cancel_after {
                handle.cancel();
            }
            events.push(event);
        }
        events
    });
    let report = tokio::time::timeout(Duration::from_secs(120), session.task("root"))
        .await
        .unwrap_or_else(|_| panic!("seed {seed}: it does not end"));
    drop(session);
    let mut events = watcher.await.unwrap();
    // A cancelled run leaves what its children wrote last on its way to the watcher; nothing more may follow.
    events.retain(|event| event.seq > 0);
    Ended {
        status: report.status,
        events,
        usage: report.usage,
        runs,
    }
}

fn check(seed: u64, ended: &Ended) {
    let events = &ended.events;
    assert!(
        matches!(events.last().unwrap().kind, EventKind::RunFinished { .. }),
        "seed {seed}: something follows the end"
    );
    let (mut open, mut closed): (BTreeSet<&SessionId>, BTreeSet<&SessionId>) = Default::default();
    let mut calls: BTreeMap<(&SessionId, &str), usize> = BTreeMap::new();
    let (mut tokens, mut tree) = (0, 0);
    for event in events {
        match &event.kind {
            EventKind::AgentStarted { .. } | EventKind::RunStarted { .. } => {
                assert!(
                    open.insert(&event.session),
                    "seed {seed}: {} starts twice",
                    event.session
                );
                if let Some(parent) = &event.parent {
                    assert!(
                        open.contains(parent) && !closed.contains(parent),
                        "seed {seed}: an orphan"
                    );
                }
            }
            EventKind::AgentFinished { own_usage, .. } | EventKind::RunFinished { own_usage, .. } => {
                assert!(
                    closed.insert(&event.session),
                    "seed {seed}: {} ends twice",
                    event.session
                );
                tokens += own_usage.tokens();
                tree += 1;
            }
            EventKind::ModelMessage { tool_calls, .. } => {
                for call in tool_calls {
                    calls.insert((&event.session, &call.call), 0);
                }
            }
            EventKind::ToolFinished { call, .. } => {
                *calls.get_mut(&(&event.session, call.as_str())).unwrap() += 1;
            }
            _ => {}
        }
    }
    assert_eq!(open, closed, "seed {seed}: every session that started has ended");
    assert_eq!(tree, open.len());
    assert_eq!(tokens, ended.usage.tokens(), "seed {seed}: the tree's usage is the sum");
    for (call, results) in calls {
        assert_eq!(results, 1, "seed {seed}: {call:?} has {results} results");
    }
    check_record(seed, ended, &open);
}

/// Every session is a file that starts, holds a history in which each call has its result, and ends.
fn check_record(seed: u64, ended: &Ended, sessions: &BTreeSet<&SessionId>) {
    let past = fief::record::find(ended.runs.path(), "last").unwrap();
    assert_eq!(past.info.status, Some(ended.status));
    assert_eq!(past.info.usage.map(|usage| usage.tokens()), Some(ended.usage.tokens()));
    assert_eq!(past.events().unwrap().len(), ended.events.len());
    for session in sessions {
        let text = std::fs::read_to_string(past.folder.join(format!("sessions/{session}.jsonl"))).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(
            lines[0].get("start").is_some() && lines.last().unwrap().get("end").is_some(),
            "seed {seed}: the record of {session} is open: {text}"
        );
        let history = past.history(session).unwrap();
        for (at, message) in history.iter().enumerate() {
            let Message::Assistant(one) = message else { continue };
            let called: Vec<_> = one.calls.iter().map(|call| &call.id).collect();
            let results: Vec<_> = match history.get(at + 1) {
                Some(Message::Results { results }) => results.iter().map(|result| &result.call).collect(),
                _ => Vec::new(),
            };
            assert_eq!(called, results, "seed {seed}: {session}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b98_two_hundred_children_over_four_levels_with_failures_end_clean() {
    let ended = run(11, usize::MAX).await;
    check(11, &ended);
    let children = ended
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::AgentStarted { .. }));
    assert_eq!(children.count(), 8 + 24 + 72 + 144);
    let deepest = ended.events.iter().map(|event| event.depth).max();
    assert_eq!(deepest, Some(4));
    let statuses: BTreeSet<&str> = ended
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::AgentFinished { status, .. } => Some(status.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        statuses,
        BTreeSet::from(["done", "empty", "failed"]),
        "each kind occurs"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b98_two_hundred_children_cancelled_in_the_middle_end_clean() {
    let seed = std::env::var("FIEF_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        u64::from(now.unwrap().subsec_nanos())
    });
    // Printed with a failure: `FIEF_SEED=N` repeats it.
    eprintln!("FIEF_SEED={seed}");
    let ended = run(seed, 60).await;
    check(seed, &ended);
    assert_eq!(ended.status, Status::Cancelled, "seed {seed}");
}
