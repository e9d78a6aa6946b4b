//! The loop's behaviour, through one harness: inputs go in, the actions are compared as lines.
#![allow(clippy::unwrap_used)]

mod calls;
mod children;
mod endings;
mod property;
mod ways;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::spec::{AgentSpec, Bounds, ChildRequest, Ways};
use super::{Action, Agent, Input, Start, step, ways as declared};
use crate::event::EventKind;
use crate::grant::Holdings;
use crate::id::{ArchetypeName, SessionId, ToolRef};
use crate::manifest::archetype::{Archetype, Dynamic, Generation, Summary};
use crate::message::{Answer, Arguments, Assistant, Finish, Message, Request, Served, ToolCall, Usage, to_text};
use crate::port::{ModelError, ModelErrorKind};
use crate::report::{Report, Status};
use crate::tool::{Declaration, Hints, Outcome, OutcomeKind, ToolSpec};

/// An agent with the tools `files.read {path}` and `files.write {path}`, and no way to a child.
pub(super) fn spec(edit: impl FnOnce(&mut AgentSpec)) -> Arc<AgentSpec> {
    let schema = Arc::new(json!({
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    }));
    let tools: BTreeMap<_, _> = ["files.read", "files.write"]
        .into_iter()
        .map(|name| {
            let tool: ToolRef = name.parse().unwrap();
            let spec = ToolSpec {
                name: tool.tool.clone(),
                title: None,
                description: "…".into(),
                input_schema: Arc::clone(&schema),
                output_schema: None,
                hints: Hints::default(),
            };
            (name.to_owned(), (tool, Arc::new(spec)))
        })
        .collect();
    let mut spec = AgentSpec {
        label: "main".into(),
        depth: 0,
        instruction: "".into(),
        model: "local".into(),
        generation: Generation::default(),
        parallel_tool_calls: None,
        holdings: Arc::new(Holdings::new()),
        tools: Arc::new(tools),
        declarations: Arc::new([]),
        filters: Vec::new(),
        ways: Ways::default(),
        bounds: Bounds::default(),
        parent_history: None,
        forward_events: false,
        summary: Summary::AtLimit,
        summary_instruction: None,
        task_suffix: None,
        report_schema: None,
    };
    edit(&mut spec);
    let own: Vec<String> = spec.tools.keys().cloned().collect();
    let plugins = spec.tools.iter().map(|(name, (_, tool))| Declaration {
        name: name.clone(),
        description: tool.description.clone(),
        input_schema: Arc::clone(&tool.input_schema),
    });
    spec.declarations = plugins.chain(declared::declarations(&spec.ways, &own)).collect();
    Arc::new(spec)
}

pub(super) fn archetype(name: &str, edit: impl FnOnce(&mut Archetype)) -> Arc<Archetype> {
    let mut archetype = Archetype::new(ArchetypeName::new(name).unwrap(), format!("Does {name}."), "You…");
    edit(&mut archetype);
    Arc::new(archetype)
}

/// With `spawn_subagent` (`explore`, `plan`), `agent-worker` and `dynamic_subagent`.
pub(super) fn parent(edit: impl FnOnce(&mut AgentSpec)) -> Arc<AgentSpec> {
    spec(|spec| {
        spec.ways = Ways {
            spawn: vec![archetype("explore", |_| {}), archetype("plan", |_| {})],
            agent_tools: vec![archetype("agent-worker", |_| {})],
            dynamic: Some(Arc::new(Dynamic::default())),
            ..Ways::default()
        };
        edit(spec);
    })
}

/// One agent under test.
pub(super) struct Run {
    agent: Option<Agent>,
    pub(super) report: Option<Report>,
    pub(super) request: Option<Request>,
    pub(super) recorded: Vec<Message>,
    pub(super) events: Vec<EventKind>,
    pub(super) spawned: Vec<(String, ChildRequest, crate::budget::Allowance)>,
}

impl Run {
    pub(super) fn new(spec: &Arc<AgentSpec>, start: Start) -> (Self, Vec<String>) {
        let (agent, actions) = Agent::start(Arc::clone(spec), start);
        let mut run = Self {
            agent: Some(agent),
            report: None,
            request: None,
            recorded: Vec::new(),
            events: Vec::new(),
            spawned: Vec::new(),
        };
        let lines = run.take(actions);
        (run, lines)
    }

    /// Starts with the task `T` and expects the first turn.
    pub(super) fn begin(spec: &Arc<AgentSpec>) -> Self {
        let (run, lines) = Self::new(
            spec,
            Start {
                task: "T".into(),
                ..Start::default()
            },
        );
        assert_eq!(lines, ["run_started", "turn 1", "ask"]);
        run
    }

    pub(super) fn agent(&self) -> &Agent {
        self.agent.as_ref().unwrap()
    }

    pub(super) fn feed(&mut self, input: Input) -> Vec<String> {
        // A driver drops the request before it feeds the answer.
        self.request = None;
        let (agent, actions) = step(self.agent.take().unwrap(), input);
        self.agent = Some(agent);
        self.take(actions)
    }

    /// Feeds inputs and compares the lines that each leads to.
    #[track_caller]
    pub(super) fn check<const N: usize>(&mut self, script: [(Input, &[&str]); N]) {
        for (input, expected) in script {
            let shown = format!("{input:?}");
            let lines = self.feed(input);
            let fits = lines.len() == expected.len()
                && lines
                    .iter()
                    .zip(expected)
                    .all(|(line, expected)| match expected.strip_suffix('…') {
                        Some(start) => line.starts_with(start),
                        None => line == expected,
                    });
            assert!(fits, "after {shown}\nexpected {expected:#?}\nfound {lines:#?}");
        }
    }

    fn take(&mut self, actions: Vec<Action>) -> Vec<String> {
        let mut lines = Vec::new();
        for action in actions {
            match action {
                Action::Ask(request) => {
                    lines.push(if request.tools.is_empty() { "ask closing" } else { "ask" }.to_owned());
                    self.request = Some(request);
                }
                Action::Call(call) => lines.push(format!("call {} {} {}", call.call, call.tool, call.arguments)),
                Action::Spawn {
                    call,
                    request,
                    allowance,
                    ..
                } => {
                    lines.push(match &request {
                        ChildRequest::Archetype { name, task, .. } => format!("spawn {call} {name} {task}"),
                        ChildRequest::Dynamic { task, .. } => format!("spawn {call} dynamic {task}"),
                    });
                    self.spawned.push((call, request, allowance));
                }
                Action::Record(message) => self.recorded.push(message),
                Action::StopCalls => lines.push("stop".into()),
                Action::AbandonChildren => lines.push("abandon".into()),
                Action::Finish(report) => {
                    lines.push(format!("finish {}: {}", report.status.as_str(), report.text));
                    self.report = Some(report);
                }
                Action::Emit(event) => {
                    match &event {
                        EventKind::RunStarted { .. } => lines.push("run_started".into()),
                        EventKind::AgentStarted { .. } => lines.push("agent_started".into()),
                        EventKind::TurnStarted { turn } => lines.push(format!("turn {turn}")),
                        EventKind::ToolFinished {
                            call, outcome, content, ..
                        } => {
                            let kind = serde_json::to_value(outcome).unwrap();
                            lines.push(format!("result {call} {}: {content}", kind.as_str().unwrap()));
                        }
                        EventKind::Warning { message } => lines.push(format!("warning {message}")),
                        _ => {}
                    }
                    self.events.push(event);
                }
            }
        }
        lines
    }

    /// The history as lines, one a message.
    pub(super) fn history(&self) -> Vec<String> {
        self.agent().history().iter().map(line).collect()
    }
}

fn line(message: &Message) -> String {
    match message {
        Message::User { content } => format!("user: {}", to_text(content)),
        Message::Assistant(one) => {
            let calls: Vec<String> = one
                .calls
                .iter()
                .map(|call| format!(" [{} {} {}]", call.id, call.name, call.arguments.to_value()))
                .collect();
            format!("assistant: {}{}", one.text, calls.concat())
        }
        Message::Results { results } => {
            let all: Vec<String> = results
                .iter()
                .map(|one| format!("{}={}", one.call, to_text(&one.content)))
                .collect();
            format!("results: {}", all.join(" | "))
        }
    }
}

pub(super) fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input_tokens: input,
        output_tokens: output,
        ..Usage::default()
    }
}

pub(super) fn answer(text: &str, calls: Vec<ToolCall>) -> Answer {
    Answer {
        finish: if calls.is_empty() {
            Finish::Stop
        } else {
            Finish::ToolCalls
        },
        message: Assistant {
            text: text.into(),
            reasoning: Vec::new(),
            calls,
        },
        usage: usage(10, 5),
        served: Served::default(),
    }
}

pub(super) fn says(text: &str) -> Input {
    Input::Answered(answer(text, Vec::new()))
}

pub(super) fn call(id: &str, name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: match arguments {
            Value::Object(map) => Arguments::Object(map),
            other => Arguments::Malformed {
                raw: other.as_str().unwrap().to_owned(),
                why: "expected `}`".into(),
            },
        },
    }
}

pub(super) fn read(id: &str) -> ToolCall {
    call(id, "files.read", json!({"path": "a"}))
}

pub(super) fn calls(calls: Vec<ToolCall>) -> Input {
    Input::Answered(answer("", calls))
}

pub(super) fn ended(call: &str, text: &str) -> Input {
    Input::CallFinished {
        call: call.into(),
        outcome: Outcome::ok(text),
        ms: 1,
    }
}

pub(super) fn fails(kind: ModelErrorKind) -> Input {
    Input::ModelFailed(ModelError {
        kind,
        message: "the server says no".into(),
    })
}

pub(super) fn spawn(id: &str, kind: &str) -> ToolCall {
    call(id, "spawn_subagent", json!({"subagent_type": kind, "prompt": "look"}))
}

pub(super) fn reported(call: &str, status: Status, text: &str) -> Input {
    Input::ChildFinished {
        call: call.into(),
        report: Report {
            status,
            text: text.into(),
            usage: usage(100, 50),
            own_usage: usage(60, 30),
            failure: None,
            descendants: 1,
        },
        session: SessionId::new("explore_1").unwrap(),
        ms: 1,
    }
}

pub(super) fn refused(call: &str) -> Input {
    Input::ChildRefused {
        call: call.into(),
        outcome: Outcome::refused(OutcomeKind::ToolError, "no agent was started: `web` cannot be linked"),
        ms: 1,
    }
}
