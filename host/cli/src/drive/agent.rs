//! One agent: its machine, and what it waits for.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use fief_core::agent::instruction::{self, Variables};
use fief_core::agent::state::closing_time;
use fief_core::agent::{Action, Agent, Input, Start, step};
use fief_core::event::EventKind;
use fief_core::message::{Message, Request, Usage};
use fief_core::port::{BoxStream, Model, ModelError, ModelErrorKind, ModelEvent};
use fief_core::report::{Report, Status};
use fief_core::tool::{Invocation, Outcome};
use futures::{FutureExt as _, StreamExt as _};
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::call::{Call, panic_text, unpanicked};
use super::child::Spawned;
use super::kit::Kit;
use super::slot::Slot;
use super::stream::Emitter;
use super::{Run, Supplied};
use crate::clock;
use crate::telemetry::{Note, Profile};

/// How long a cancelled agent waits for what its children cost, before it ends without.
const GRACE: Duration = Duration::from_secs(5);

/// What one agent's calls and children need. Shared by them all.
pub struct Body {
    pub(crate) run: Arc<Run>,
    pub(crate) kit: Arc<Kit>,
    pub(crate) emitter: Emitter,
    pub(crate) supplied: Supplied,
    pub(crate) slot: Slot,
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body")
            .field("session", &self.emitter.source().session)
            .finish_non_exhaustive()
    }
}

impl Body {
    /// What an agent of this kind needs, nothing of it started.
    pub(crate) fn new(run: Arc<Run>, kit: Arc<Kit>, supplied: Supplied, emitter: Emitter, slot: Slot) -> Arc<Self> {
        Arc::new(Self {
            run,
            kit,
            emitter,
            supplied,
            slot,
        })
    }

    /// What calls without a model need.
    pub(crate) fn without_model(run: Arc<Run>, kit: Arc<Kit>, emitter: Emitter) -> Arc<Self> {
        let supplied = Supplied {
            model: Arc::new(NoModel),
            context: None,
            prices: None,
            identity: Arc::default(),
        };
        Self::new(run, kit, supplied, emitter, Slot::default())
    }

    /// One call, its arguments valid, to its one outcome.
    pub(crate) async fn call(self: Arc<Self>, invocation: Invocation) -> Outcome {
        unpanicked(Call::of_model(self, invocation).outcome()).await
    }

    /// The system prompt: by Rust code where an embedder gave some, else from the template.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn system(&self, parent_task: &str, made_up: bool) -> Result<String, String> {
        let variables = Variables {
            date: clock::now()[..10].to_owned(),
            working_directory: "/work".into(),
            parent_task: parent_task.to_owned(),
            archetype: self.kit.spec.label.clone(),
            session: self.emitter.source().session.to_string(),
        };
        // One that a model made up is nobody's archetype, whatever it is called.
        let written = self.run.instructions.get(&self.kit.spec.label.to_ascii_lowercase());
        if let Some(instruct) = written.filter(|_| !made_up) {
            return instruct(variables).await;
        }
        instruction::render(&self.kit.spec.instruction, &variables).map_err(|error| error.to_string())
    }
}

/// A machine with its body. Between tasks it rests, and its history stays.
#[derive(Debug)]
pub struct Course {
    body: Arc<Body>,
    /// Taken for the time of a step.
    agent: Option<Agent>,
    /// Its request, and its calls.
    work: JoinSet<Input>,
    /// What its request has cost so far without an answer: told at once, so that it counts also if the request is
    /// dropped.
    spent: (UnboundedSender<Usage>, UnboundedReceiver<Usage>),
    /// What ended, until all is told that it cost.
    ended: Option<Input>,
    children: JoinSet<Input>,
    /// Cancels its children, and nothing else.
    children_token: CancellationToken,
    token: CancellationToken,
    told: u8,
    told_at: Instant,
    deadlines: Vec<Instant>,
    /// Whether a task runs that has not ended yet.
    open: bool,
}

/// Whatever drops an agent in the middle of its task, its watcher and its record learn that it ended.
impl Drop for Course {
    fn drop(&mut self) {
        self.close(
            Status::Cancelled,
            "[not finished: it was stopped before it could report]",
        );
    }
}

impl Course {
    /// An agent at rest, before its first task.
    pub(crate) fn new(body: Arc<Body>) -> Self {
        Self {
            body,
            agent: None,
            work: JoinSet::new(),
            spent: unbounded_channel(),
            ended: None,
            children: JoinSet::new(),
            children_token: CancellationToken::new(),
            token: CancellationToken::new(),
            told: 0,
            told_at: Instant::now(),
            deadlines: Vec::new(),
            open: false,
        }
    }

    pub(crate) fn body(&self) -> &Arc<Body> {
        &self.body
    }

    /// Runs the first task to its end. `token` cancels it.
    pub(crate) async fn start(&mut self, mut start: Start, token: CancellationToken) -> Report {
        start.context = self.body.supplied.context;
        start.prices = self.body.supplied.prices;
        start.validators = self.body.run.validators.clone();
        self.body.emitter.tell(&Note::Agent(&self.profile(&start)));
        let stream = self.body.emitter.stream();
        if let Some(record) = stream.record() {
            let source = self.body.emitter.source();
            let tools: Vec<_> = self
                .body
                .kit
                .spec
                .declarations
                .iter()
                .map(
                    |one| json!({ "name": one.name, "description": one.description, "input_schema": one.input_schema }),
                )
                .collect();
            let head = stream.redact_json(json!({
                "session": source.session,
                "parent": source.parent,
                "depth": source.depth,
                "archetype": self.body.kit.spec.label,
                "model": self.body.kit.spec.model,
                "task": start.task,
                "system": start.system,
                "tools": tools,
            }));
            stream.check_record(record.session_start(&source.session, head));
        }
        let (agent, actions) = Agent::start(self.body.kit.spec.clone(), start);
        self.agent = Some(agent);
        self.go(actions, token).await
    }

    /// What a collector is told of it.
    fn profile(&self, start: &Start) -> Profile {
        let (spec, run) = (&self.body.kit.spec, &self.body.run);
        let archetype = run.world.archetypes.get(&spec.label.to_ascii_lowercase());
        Profile {
            description: archetype.map(|archetype| archetype.description.clone()),
            model: self.body.supplied.identity.clone(),
            system: start.system.as_str().into(),
            declarations: spec.declarations.clone(),
        }
    }

    /// Runs a further task, in the same history, to its end.
    pub(crate) async fn go_on(&mut self, task: String, token: CancellationToken) -> Report {
        let actions = self.step(Input::NewTask(task));
        self.go(actions, token).await
    }

    /// Ends a task that its machine cannot end any more: it crashed, or is dropped. What it cost so far is told.
    pub(crate) fn close(&mut self, status: Status, text: &str) -> Report {
        while let Ok(usage) = self.spent.1.try_recv() {
            let _ = self.step(Input::Spent(usage));
        }
        let (usage, own_usage) = self.agent.as_ref().map(Agent::usage).unwrap_or_default();
        let report = Report {
            status,
            text: text.into(),
            usage,
            own_usage,
            failure: None,
            descendants: 0,
        };
        if std::mem::take(&mut self.open) {
            let report_text = report.text.clone();
            self.body.emitter.emit(if self.body.emitter.source().parent.is_some() {
                EventKind::AgentFinished {
                    status,
                    report: report_text,
                    usage,
                    own_usage,
                }
            } else {
                EventKind::RunFinished {
                    status,
                    report: report_text,
                    usage,
                    own_usage,
                }
            });
            self.record_end(&report);
        }
        report
    }

    async fn go(&mut self, mut actions: Vec<Action>, token: CancellationToken) -> Report {
        self.open = true;
        self.children_token = token.child_token();
        self.token = token;
        self.told = 0;
        let now = Instant::now();
        self.deadlines = self
            .body
            .kit
            .spec
            .bounds
            .wall
            .map(|wall| vec![now + wall, now + wall.saturating_sub(closing_time(wall))])
            .unwrap_or_default();
        loop {
            for action in actions {
                if let Some(report) = self.carry_out(action).await {
                    return report;
                }
            }
            if self.work.is_empty() && !self.children.is_empty() {
                self.body.slot.lend();
            }
            let input = self.next_input().await;
            actions = self.step(input);
        }
    }

    fn step(&mut self, input: Input) -> Vec<Action> {
        let Some(agent) = self.agent.take() else {
            return Vec::new();
        };
        let (agent, actions) = step(agent, input);
        self.agent = Some(agent);
        actions
    }

    async fn carry_out(&mut self, action: Action) -> Option<Report> {
        match action {
            Action::Ask(request) => {
                self.work.spawn(asked(self.body.clone(), request, self.spent.0.clone()));
            }
            Action::Call(invocation) => {
                self.work.spawn(Call::of_model(self.body.clone(), invocation).run());
            }
            Action::Spawn {
                call,
                tool,
                arguments,
                request,
                allowance,
                parent_history,
            } => {
                let task = self
                    .agent
                    .as_ref()
                    .map(|agent| agent.task().to_owned())
                    .unwrap_or_default();
                let spawned = Spawned {
                    // Numbered here, so that the numbers of one turn's children follow its calls.
                    number: self.body.run.next_child(),
                    parent: self.body.clone(),
                    parent_task: task,
                    call,
                    tool,
                    arguments,
                    request,
                    allowance,
                    parent_history,
                    token: self.children_token.clone(),
                };
                self.children.spawn(spawned.run());
            }
            Action::Record(message) => self.record(&message),
            Action::Emit(kind) => self.body.emitter.emit(kind),
            Action::StopCalls => {
                // Waits until they have stopped, so that none of them says anything after its end.
                self.work.shutdown().await;
                self.children_token.cancel();
                self.children_token = self.token.child_token();
            }
            Action::AbandonChildren => self.children.shutdown().await,
            Action::Finish(report) => {
                self.finish(&report).await;
                return Some(report);
            }
        }
        None
    }

    fn record(&self, message: &Message) {
        let stream = self.body.emitter.stream();
        let Some(record) = stream.record() else { return };
        let session = &self.body.emitter.source().session;
        let written = serde_json::to_value(message)
            .map_err(std::io::Error::from)
            .and_then(|value| record.message(session, stream.redact_json(value)));
        stream.check_record(written);
    }

    /// Nothing outlives its parent: what still runs is dropped, and with it what it runs itself.
    async fn finish(&mut self, report: &Report) {
        self.work.shutdown().await;
        self.children.shutdown().await;
        self.open = false;
        self.record_end(report);
    }

    fn record_end(&self, report: &Report) {
        let stream = self.body.emitter.stream();
        let Some(record) = stream.record() else { return };
        let end = stream.redact_json(json!({
            "status": report.status,
            "report": report.text,
            "usage": report.usage,
            "own_usage": report.own_usage,
        }));
        stream.check_record(record.session_end(&self.body.emitter.source().session, end));
    }

    async fn next_input(&mut self) -> Input {
        loop {
            if let Ok(usage) = self.spent.1.try_recv() {
                return Input::Spent(usage);
            }
            if let Some(input) = self.ended.take() {
                return input;
            }
            let deadline = self.deadlines.last().copied();
            tokio::select! {
                biased;
                Some(usage) = self.spent.1.recv(), if !self.work.is_empty() => return Input::Spent(usage),
                () = self.token.cancelled(), if self.told == 0 => {
                    self.told = 1;
                    self.told_at = Instant::now();
                    return Input::Cancel;
                }
                () = tokio::time::sleep_until(self.told_at + GRACE), if self.told == 1 => {
                    self.told = 2;
                    return Input::Cancel;
                }
                () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.deadlines.pop();
                    return Input::Deadline;
                }
                // A task that was stopped ends without an input; a bug that ends one is caught inside it.
                Some(done) = self.work.join_next(), if !self.work.is_empty() => self.ended = done.ok(),
                Some(done) = self.children.join_next(), if !self.children.is_empty() => {
                    if let Ok(input) = done {
                        return input;
                    }
                }
                else => return Input::Cancel,
            }
        }
    }
}

/// Asks the model; a bug in its client is the model's failure.
async fn asked(body: Arc<Body>, request: Request, spent: UnboundedSender<Usage>) -> Input {
    let asking = AssertUnwindSafe(ask(body, request, spent)).catch_unwind();
    asking.await.unwrap_or_else(|panic| {
        let message = format!("the host failed while it asked the model: {}", panic_text(&*panic));
        tracing::error!("{message}");
        Input::ModelFailed(ModelError {
            kind: ModelErrorKind::Refused,
            message,
        })
    })
}

/// Asks the model, and lets the watcher see what comes of it.
async fn ask(body: Arc<Body>, request: Request, spent: UnboundedSender<Usage>) -> Input {
    body.slot.hold().await;
    let model: Arc<dyn Model> = body.supplied.model.clone();
    body.emitter.tell(&Note::Asked(&request));
    let failed = |error: ModelError| {
        body.emitter.tell(&Note::Failed(&error));
        Input::ModelFailed(error)
    };
    let mut answer = model.ask(request);
    while let Some(event) = answer.next().await {
        match event {
            ModelEvent::Delta(content) => body.emitter.emit(EventKind::ModelDelta { content }),
            ModelEvent::Retry {
                attempt,
                wait_ms,
                error,
            } => {
                body.emitter.emit(EventKind::ModelRetry {
                    attempt,
                    wait_ms,
                    error,
                });
            }
            ModelEvent::Spent(usage) => drop(spent.send(usage)),
            ModelEvent::Done(answer) => {
                body.emitter.tell(&Note::Answered(&answer));
                return Input::Answered(answer);
            }
            ModelEvent::Failed(error) => return failed(error),
        }
    }
    failed(ModelError {
        kind: ModelErrorKind::Unavailable,
        message: "the model's answer ended before it was whole".into(),
    })
}

/// Stands where no model is ever asked.
struct NoModel;

impl Model for NoModel {
    fn ask(&self, _: Request) -> BoxStream<'static, ModelEvent> {
        let message = "no model is configured".into();
        let failed = ModelEvent::Failed(ModelError {
            kind: ModelErrorKind::Refused,
            message,
        });
        Box::pin(futures::stream::iter([failed]))
    }
}
