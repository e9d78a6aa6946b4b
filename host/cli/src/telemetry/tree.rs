//! What happens in a run, as a tree of spans after OpenTelemetry's GenAI conventions. Pure: notes in, spans out.
//!
//! `invoke_agent` is an agent at one task. Below it stand its `chat`, one for each answer of its model, retries
//! included, and its `execute_tool`, one for each call. A child's `invoke_agent` stands below the call that started it,
//! and a call that a plugin makes through its toolbox below the plugin's own. Each task of a main agent is a trace.
//!
//! It does *not* decide what leaves the host (`settings`), nor how (`otlp`, `export`).

use std::collections::HashMap;
use std::sync::Arc;

use fief_core::event::{Event, EventKind};
use fief_core::id::{Digest, SessionId};
use fief_core::message::{Answer, Finish, ModelIdentity, Request, Usage};
use fief_core::port::{ModelError, ModelErrorKind};
use fief_core::report::Status;
use fief_core::tool::{Declaration, OutcomeKind};
use serde_json::Value;

use super::content::Author;
use super::span::{Attributes, Failure, Kind, Mark, Span};

/// What an agent is, told before its first event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profile {
    pub(crate) description: Option<String>,
    pub(crate) model: Arc<ModelIdentity>,
    pub(crate) system: Arc<str>,
    pub(crate) declarations: Arc<[Declaration]>,
}

/// What is told of a run.
pub(crate) enum Note<'a> {
    /// An agent is about to start.
    Agent(&'a Profile),
    /// An event, redacted.
    Event(&'a Event),
    /// Its model is asked.
    Asked(&'a Request),
    /// Its model answered.
    Answered(&'a Answer),
    /// Its model did not.
    Failed(&'a ModelError),
}

/// The spans of one run that are not over.
pub(super) struct Tree {
    run: String,
    /// Present where content is asked for.
    author: Option<Author>,
    sessions: HashMap<SessionId, Session>,
    trace: [u8; 16],
    count: u64,
}

#[derive(Default)]
struct Session {
    profile: Profile,
    agent: Option<Open>,
    chat: Option<Open>,
    /// By the call's id.
    tools: HashMap<String, Open>,
}

struct Open(Span);

impl Open {
    fn end(self, at: u64, error: Option<Failure>) -> Span {
        let mut span = self.0;
        span.end = at.max(span.start);
        if let Some(error) = &error {
            span.attributes.name("error.type", error.kind);
        }
        span.error = error;
        span
    }
}

impl Tree {
    pub(super) fn new(run: &str, author: Option<Author>) -> Self {
        Self {
            run: run.to_owned(),
            author,
            sessions: HashMap::new(),
            trace: [0; 16],
            count: 0,
        }
    }

    /// Takes what happened in `session` at `at`, in nanoseconds since 1970, and gives the spans that are over by it.
    pub(super) fn take(&mut self, session: &SessionId, at: u64, note: &Note<'_>) -> Vec<Span> {
        match note {
            Note::Agent(profile) => {
                self.session(session).profile = (*profile).clone();
                Vec::new()
            }
            Note::Event(event) => self.event(session, at, event),
            Note::Asked(request) => self.asked(session, at, request),
            Note::Answered(answer) => self.answered(session, at, answer).into_iter().collect(),
            Note::Failed(error) => {
                let words = self.author.as_ref().map(|author| author.text(&error.message));
                let kind = match error.kind {
                    ModelErrorKind::ContextOverflow => "context-overflow",
                    ModelErrorKind::Unavailable => "unavailable",
                    ModelErrorKind::Refused => "refused",
                    ModelErrorKind::Script => "script",
                };
                let chat = self.session(session).chat.take();
                chat.map(|chat| chat.end(at, Some(Failure { kind, words })))
                    .into_iter()
                    .collect()
            }
        }
    }

    fn event(&mut self, session: &SessionId, at: u64, event: &Event) -> Vec<Span> {
        match &event.kind {
            EventKind::RunStarted { task, archetype, .. } => {
                self.begin(at);
                self.agent(session, None, archetype, task, at);
                Vec::new()
            }
            EventKind::AgentStarted {
                call, archetype, task, ..
            } => {
                let parent = event.parent.as_ref().and_then(|parent| self.sessions.get(parent));
                let parent = parent.and_then(|parent| parent.below(call)).map(|open| open.0.id);
                self.agent(session, parent, archetype, task, at);
                Vec::new()
            }
            EventKind::ModelRetry {
                attempt,
                wait_ms,
                error,
            } => {
                let words = self.author.as_ref().map(|author| author.text(error));
                if let Some(Open(chat)) = &mut self.session(session).chat {
                    let mut attributes = Attributes::default();
                    attributes.value("fief.attempt", *attempt);
                    attributes.value("fief.wait_ms", *wait_ms);
                    attributes.value("fief.error", words);
                    chat.events.push(Mark {
                        name: "fief.retry",
                        at,
                        attributes,
                    });
                }
                Vec::new()
            }
            EventKind::ToolStarted {
                call,
                plugin,
                tool,
                arguments,
            } => {
                let mut open = self.tool(session, call, plugin.as_deref(), tool, at);
                if let Some(author) = &self.author {
                    open.0
                        .attributes
                        .value("gen_ai.tool.call.arguments", author.json(arguments));
                }
                self.session(session).tools.insert(call.clone(), open);
                Vec::new()
            }
            EventKind::ToolFinished {
                call,
                plugin,
                tool,
                outcome,
                content,
                error,
                ms,
            } => {
                // A call that was refused at once has no beginning of its own.
                let mut open = self.session(session).tools.remove(call).unwrap_or_else(|| {
                    let start = at.saturating_sub(ms.saturating_mul(1_000_000));
                    self.tool(session, call, plugin.as_deref(), tool, start)
                });
                open.0.attributes.name("fief.outcome", outcome_name(*outcome));
                let mut words = None;
                if let Some(author) = &self.author {
                    open.0.attributes.value("gen_ai.tool.call.result", author.text(content));
                    words = Some(author.text(error.as_ref().unwrap_or(content)));
                }
                let kind = outcome_name(*outcome);
                let failure = (*outcome != OutcomeKind::Ok).then_some(Failure { kind, words });
                vec![open.end(at, failure)]
            }
            EventKind::AgentFinished {
                status,
                report,
                own_usage,
                ..
            }
            | EventKind::RunFinished {
                status,
                report,
                own_usage,
                ..
            } => self.finish(session, at, *status, report, own_usage),
            EventKind::TurnStarted { .. }
            | EventKind::ModelDelta { .. }
            | EventKind::ModelMessage { .. }
            | EventKind::ToolUpdate { .. }
            | EventKind::Capability { .. }
            | EventKind::Warning { .. } => Vec::new(),
        }
    }

    /// Begins a trace.
    fn begin(&mut self, at: u64) {
        let unique = Digest::of(format!("{}\n{at}", self.run).as_bytes());
        self.trace.copy_from_slice(&unique.bytes()[..16]);
    }

    fn session(&mut self, session: &SessionId) -> &mut Session {
        self.sessions.entry(session.clone()).or_default()
    }

    fn open(&mut self, parent: Option<[u8; 8]>, operation: &'static str, of: &str, kind: Kind, start: u64) -> Open {
        self.count += 1;
        let mut seed = self.trace.to_vec();
        seed.extend(self.count.to_be_bytes());
        let mut id = [0; 8];
        id.copy_from_slice(&Digest::of(&seed).bytes()[..8]);
        let mut attributes = Attributes::default();
        attributes.name("gen_ai.operation.name", operation);
        attributes.name("gen_ai.conversation.id", &self.run);
        let mut name = format!("{operation} {of}");
        name.truncate(name.floor_char_boundary(256));
        Open(Span {
            trace: self.trace,
            id,
            parent,
            name,
            kind,
            start,
            end: start,
            attributes,
            events: Vec::new(),
            error: None,
        })
    }

    fn agent(&mut self, session: &SessionId, parent: Option<[u8; 8]>, archetype: &str, task: &str, at: u64) {
        let mut open = self.open(parent, "invoke_agent", archetype, Kind::Internal, at);
        let profile = self.session(session).profile.clone();
        let attributes = &mut open.0.attributes;
        attributes.name("gen_ai.provider.name", &profile.model.provider);
        attributes.name("gen_ai.request.model", &profile.model.model);
        attributes.name("gen_ai.agent.name", archetype);
        attributes.name_if("gen_ai.agent.description", profile.description.as_deref());
        attributes.name("fief.session", session.as_str());
        if let Some(author) = &self.author {
            attributes.value("gen_ai.system_instructions", author.system(&profile.system));
            attributes.value("gen_ai.input.messages", author.task(task));
        }
        self.session(session).agent = Some(open);
    }

    fn tool(&mut self, session: &SessionId, call: &str, plugin: Option<&str>, tool: &str, start: u64) -> Open {
        if self.trace == [0; 16] {
            // One call of a person's, above which no agent stands, is a trace of its own.
            self.begin(start);
        }
        let parent = self
            .sessions
            .get(session)
            .and_then(|session| session.above(call))
            .map(|open| open.0.id);
        let mut open = self.open(parent, "execute_tool", tool, Kind::Internal, start);
        let attributes = &mut open.0.attributes;
        attributes.name("gen_ai.tool.name", tool);
        attributes.name("gen_ai.tool.type", "function");
        attributes.name("gen_ai.tool.call.id", call);
        let declarations = self.sessions.get(session).map(|session| &session.profile.declarations);
        let declared = declarations.and_then(|all| all.iter().find(|one| one.name == tool));
        attributes.name_if("gen_ai.tool.description", declared.map(|one| one.description.as_str()));
        attributes.name_if("fief.plugin", plugin);
        attributes.name("fief.session", session.as_str());
        open
    }

    /// A request to the model. One that was dropped without an end ends here.
    fn asked(&mut self, session: &SessionId, at: u64, request: &Request) -> Vec<Span> {
        let entry = self.session(session);
        let left = entry.chat.take().map(|chat| chat.end(at, Some(cancelled())));
        let parent = entry.agent.as_ref().map(|open| open.0.id);
        let model = entry.profile.model.clone();
        let mut open = self.open(parent, "chat", &model.model, side(&model), at);
        let attributes = &mut open.0.attributes;
        identify(attributes, &model);
        let sampling = request.generation.or(&model.generation);
        attributes.value("gen_ai.request.temperature", sampling.temperature);
        attributes.value("gen_ai.request.top_p", sampling.top_p);
        attributes.value("gen_ai.request.max_tokens", sampling.max_output_tokens);
        attributes.value("gen_ai.request.seed", sampling.seed);
        attributes.value("gen_ai.request.stop_sequences", sampling.stop);
        attributes.name("fief.session", session.as_str());
        if let Some(author) = &self.author {
            attributes.value("gen_ai.system_instructions", author.system(&request.system));
            let (messages, omitted) = author.input(request);
            attributes.value("gen_ai.input.messages", messages);
            if omitted > 0 {
                attributes.value("fief.input_messages.omitted", omitted);
            }
        }
        self.session(session).chat = Some(open);
        left.into_iter().collect()
    }

    fn answered(&mut self, session: &SessionId, at: u64, answer: &Answer) -> Option<Span> {
        let mut open = self.session(session).chat.take()?;
        let span = &mut open.0;
        if let Some(by) = &answer.served.by {
            // Another model than the one that was asked first may have stood in for it.
            let told = [
                "gen_ai.provider.name",
                "gen_ai.request.model",
                "server.address",
                "server.port",
            ];
            span.attributes.0.retain(|(key, _)| !told.contains(key));
            identify(&mut span.attributes, by);
            span.kind = side(by);
            span.name = format!("chat {}", by.model);
            span.name.truncate(span.name.floor_char_boundary(256));
        }
        let attributes = &mut span.attributes;
        attributes.name_if("gen_ai.response.id", answer.served.id.as_deref());
        attributes.name_if("gen_ai.response.model", answer.served.model.as_deref());
        attributes.value("gen_ai.response.finish_reasons", vec![finish_name(answer.finish)]);
        spend(attributes, &answer.usage);
        if let Some(author) = &self.author {
            attributes.value("gen_ai.output.messages", author.output(answer));
        }
        Some(open.end(at, None))
    }

    /// The end of an agent's task: what is still open below it was cancelled with it.
    fn finish(&mut self, session: &SessionId, at: u64, status: Status, report: &str, usage: &Usage) -> Vec<Span> {
        let entry = self.session(session);
        let left = entry
            .chat
            .take()
            .into_iter()
            .chain(entry.tools.drain().map(|(_, open)| open));
        let mut ended: Vec<Span> = left.map(|open| open.end(at, Some(cancelled()))).collect();
        if let Some(mut open) = entry.agent.take() {
            let attributes = &mut open.0.attributes;
            attributes.name("fief.status", status.as_str());
            spend(attributes, usage);
            let mut words = None;
            if let Some(author) = &self.author {
                attributes.value("gen_ai.output.messages", author.report(report));
                words = Some(author.text(report));
            }
            let failure = (status != Status::Done).then_some(Failure {
                kind: status.as_str(),
                words,
            });
            ended.push(open.end(at, failure));
        }
        if session.as_str() != "main" {
            self.sessions.remove(session);
        }
        ended
    }
}

impl Session {
    /// What a child stands below that `call` started.
    fn below(&self, call: &str) -> Option<&Open> {
        self.tools.get(call).or(self.agent.as_ref())
    }

    /// What `call` itself stands below: calls through a toolbox are numbered below the call that holds it.
    fn above(&self, call: &str) -> Option<&Open> {
        let holder = call.rsplit_once('/').and_then(|(holder, _)| self.tools.get(holder));
        holder.or(self.agent.as_ref())
    }
}

/// A model that is a file stands in this process.
fn side(model: &ModelIdentity) -> Kind {
    if model.address.is_some() {
        Kind::Client
    } else {
        Kind::Internal
    }
}

fn identify(attributes: &mut Attributes, model: &ModelIdentity) {
    attributes.name("gen_ai.provider.name", &model.provider);
    attributes.name("gen_ai.request.model", &model.model);
    attributes.name_if("server.address", model.address.as_deref());
    attributes.value("server.port", model.port);
}

fn spend(attributes: &mut Attributes, usage: &Usage) {
    attributes.value("gen_ai.usage.input_tokens", usage.input_tokens);
    attributes.value("gen_ai.usage.output_tokens", usage.output_tokens);
    let some = |count: u64| if count > 0 { Value::from(count) } else { Value::Null };
    attributes.value("gen_ai.usage.cache_read.input_tokens", some(usage.cached_tokens));
    attributes.value("gen_ai.usage.reasoning.output_tokens", some(usage.reasoning_tokens));
    attributes.value("fief.usage.cost", usage.cost);
}

fn cancelled() -> Failure {
    Failure {
        kind: "cancelled",
        words: None,
    }
}

/// The conventions' words for how an answer ended.
pub(super) fn finish_name(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_call",
        Finish::Length => "length",
        Finish::Filter => "content_filter",
        Finish::Other => "other",
    }
}

fn outcome_name(outcome: OutcomeKind) -> &'static str {
    match outcome {
        OutcomeKind::Ok => "ok",
        OutcomeKind::ToolError => "tool-error",
        OutcomeKind::Denied => "denied",
        OutcomeKind::Limit => "limit",
        OutcomeKind::Trap => "trap",
        OutcomeKind::Cancelled => "cancelled",
    }
}
