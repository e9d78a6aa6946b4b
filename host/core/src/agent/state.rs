//! What an agent remembers, and how it starts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::action::Action;
use super::ending::Ending;
use super::entries::Calls;
use super::history::{HOST_MARK, History, estimate_bytes, size, transcript};
use super::request;
use super::spec::{AgentSpec, ChildRequest};
use crate::budget::{Account, Allowance};
use crate::event::EventKind;
use crate::id::SessionId;
use crate::manifest::config::Prices;
use crate::message::{Content, Message, Usage};
use crate::tool::Declaration;
use crate::tool::arguments::Validators;

/// The sentence that is added to a child's task where nothing else is configured.
pub const TASK_SUFFIX: &str =
    "Give the answer, with the details that support it: where you found it, and what you could not confirm.";

/// What an agent starts with, beside its [`AgentSpec`].
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Its session; absent: `main`.
    pub session: Option<SessionId>,
    /// The parent's call that starts it; absent: it is the main agent.
    pub call: Option<String>,
    /// A few words for the watcher.
    pub label: Option<String>,
    /// What it is asked.
    pub task: String,
    /// Its system prompt, rendered.
    pub system: String,
    /// The parent's history, as [`Action::Spawn`] gave it. Shown only if its spec says so.
    pub parent_history: Option<Arc<Vec<Message>>>,
    /// The history that it goes on from: that of a past run.
    pub history: Arc<Vec<Message>>,
    /// What its parent reserved for it, or what the run may spend.
    pub allowance: Allowance,
    /// Tokens that the model's context holds, where that is known.
    pub context: Option<u64>,
    /// What tokens cost, where that is known: without them a bound on money holds only after the fact.
    pub prices: Option<Prices>,
    /// Compiled schemas, shared by all agents of a run.
    pub validators: Arc<Validators>,
    /// What a person should know before it starts.
    pub warnings: Vec<String>,
}

/// One agent. Changed by [`super::step`] alone.
#[derive(Debug)]
pub struct Agent {
    pub(super) spec: Arc<AgentSpec>,
    pub(super) session: SessionId,
    pub(super) system: Arc<str>,
    pub(super) validators: Arc<Validators>,
    /// Names, as people write them, of what it may call itself.
    pub(super) own_tools: Vec<String>,
    pub(super) no_tools: Arc<[Declaration]>,
    pub(super) context: Option<u64>,
    pub(super) prices: Option<Prices>,
    pub(super) child: bool,
    pub(super) history: History,
    pub(super) account: Account,
    /// Of its whole tree.
    pub(super) usage: Usage,
    /// Of its own model alone.
    pub(super) own_usage: Usage,
    /// Children and their descendants that were started.
    pub(super) descendants: u32,
    pub(super) task: Task,
    pub(super) phase: Phase,
}

/// What belongs to one task, and begins anew with the next.
#[derive(Debug, Default)]
pub(super) struct Task {
    pub(super) text: String,
    pub(super) turn: u32,
    /// The last answer that held any text.
    pub(super) last_text: String,
    /// Why it cannot go on, once it cannot.
    pub(super) ending: Option<Ending>,
    /// Results dropped to make the closing request fit.
    pub(super) dropped: u64,
    /// Whether the report was already sent back once for not fitting its schema.
    pub(super) repaired: bool,
}

/// What it waits for.
#[derive(Debug)]
pub(super) enum Phase {
    /// The model's next answer.
    Asking,
    /// The answer to a request without tools.
    Closing(Closing),
    /// The calls of the last answer.
    Calling(Calls),
    /// Nothing; only a new task goes on.
    Ended,
}

/// What a request without tools asks for.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Closing {
    /// A summary at a limit.
    AtLimit,
    /// A summary after a normal end, whose text is kept.
    Summary(String),
    /// A report that fits its schema, in place of this one.
    Repair(String),
}

/// How long before the end of an agent's time the first [`super::Input::Deadline`] is due, so that the closing request
/// fits before the second: a fifth of it, half a minute at most.
#[must_use]
pub fn closing_time(wall: Duration) -> Duration {
    (wall / 5).min(Duration::from_secs(30))
}

impl Agent {
    /// Starts an agent: it asks its model at once.
    #[must_use]
    pub fn start(spec: Arc<AgentSpec>, start: Start) -> (Self, Vec<Action>) {
        let declared: usize = spec
            .declarations
            .iter()
            .map(|one| one.name.len() + one.description.len() + size(&one.input_schema))
            .sum();
        let fixed = estimate_bytes(start.system.len() + declared);
        let mut agent = Self {
            session: start.session.unwrap_or_else(SessionId::main),
            system: start.system.into(),
            validators: start.validators,
            own_tools: spec.tools.keys().cloned().collect(),
            no_tools: Arc::new([]),
            context: start.context,
            prices: start.prices,
            child: start.call.is_some(),
            history: History::new(start.history, fixed),
            account: Account::new(start.allowance.within(&spec.bounds)),
            usage: Usage::default(),
            own_usage: Usage::default(),
            descendants: 0,
            task: Task::default(),
            phase: Phase::Ended,
            spec,
        };
        let mut out = Vec::new();
        let tools = agent.spec.declarations.iter().map(|one| one.name.clone()).collect();
        out.push(Action::Emit(match start.call {
            None => agent.run_started(&start.task, tools),
            Some(call) => EventKind::AgentStarted {
                call,
                archetype: agent.spec.label.clone(),
                task: start.task.clone(),
                label: start.label,
                tools,
            },
        }));
        for message in start.warnings {
            out.push(Action::Emit(EventKind::Warning { message }));
        }
        let unanswered = agent.history.unanswered().to_vec();
        agent.interrupted(&unanswered, &mut out);
        if let (Some(turns), Some(parent)) = (agent.spec.parent_history, start.parent_history)
            && let Some(text) = transcript(&parent, turns)
        {
            agent.push(user(text), &mut out);
        }
        agent.begin(start.task, &mut out);
        (agent, out)
    }

    fn run_started(&self, task: &str, tools: Vec<String>) -> EventKind {
        EventKind::RunStarted {
            task: task.into(),
            archetype: self.spec.label.clone(),
            model: self.spec.model.clone(),
            tools,
        }
    }

    pub(super) fn new_task(&mut self, task: String, out: &mut Vec<Action>) {
        if !matches!(self.phase, Phase::Ended) {
            self.warn("a task is already running: the new one is not started".into(), out);
            return;
        }
        if !self.child {
            let tools = self.spec.declarations.iter().map(|one| one.name.clone()).collect();
            out.push(Action::Emit(self.run_started(&task, tools)));
        }
        self.begin(task, out);
    }

    fn begin(&mut self, task: String, out: &mut Vec<Action>) {
        let suffix = match &self.spec.task_suffix {
            Some(suffix) => suffix.as_str(),
            None if self.child => TASK_SUFFIX,
            None => "",
        };
        let mut text = task.clone();
        if !suffix.trim().is_empty() {
            text.push_str("\n\n");
            text.push_str(suffix);
        }
        if let Some(schema) = &self.spec.report_schema {
            text.push_str("\n\nYour final answer must be JSON alone, that fits this JSON Schema:\n");
            text.push_str(&schema.to_string());
        }
        self.push(user(text), out);
        self.task = Task {
            text: task,
            ..Task::default()
        };
        self.next(out);
    }

    /// Whether it has ended: only a new task goes on.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    /// Its session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// What it is.
    #[must_use]
    pub fn spec(&self) -> &Arc<AgentSpec> {
        &self.spec
    }

    /// The task that it works on, or worked on last.
    #[must_use]
    pub fn task(&self) -> &str {
        &self.task.text
    }

    /// Its history so far. Holding it while the agent goes on costs a copy.
    #[must_use]
    pub fn history(&self) -> Arc<Vec<Message>> {
        self.history.share()
    }

    /// What its tree has cost so far, and what it has cost itself.
    #[must_use]
    pub fn usage(&self) -> (Usage, Usage) {
        (self.usage, self.own_usage)
    }

    /// Its account: what is spent, reserved and left.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Checks the arguments of a call that a filter changed.
    ///
    /// # Errors
    /// What is wrong, for the model.
    pub fn check_arguments(&self, tool: &str, arguments: &Value) -> Result<(), String> {
        let (_, spec) = self
            .spec
            .tools
            .get(tool)
            .ok_or_else(|| format!("`{tool}` may not be called by this agent"))?;
        let validator = self
            .validators
            .get(&spec.input_schema)
            .map_err(|error| error.to_string())?;
        validator.check(arguments).map_err(|error| error.to_string())
    }

    /// Reads the arguments of a way to a child that a filter changed.
    ///
    /// # Errors
    /// What is wrong, for the model.
    pub fn child_request(&self, tool: &str, arguments: &Value) -> Result<ChildRequest, String> {
        let object = arguments.as_object().ok_or("the arguments must be one JSON object")?;
        request::parse(&self.spec.ways, &self.own_tools, &self.validators, tool, object)
    }

    /// Names, as people write them, of what it may call itself.
    #[must_use]
    pub fn own_tools(&self) -> &[String] {
        &self.own_tools
    }

    pub(super) fn push(&mut self, message: Message, out: &mut Vec<Action>) {
        out.push(Action::Record(message.clone()));
        self.history.push(message);
    }

    pub(super) fn push_from_host(&mut self, text: &str, out: &mut Vec<Action>) {
        self.push(user(format!("{HOST_MARK}{text}")), out);
    }

    pub(super) fn warn(&self, message: String, out: &mut Vec<Action>) {
        out.push(Action::Emit(EventKind::Warning { message }));
    }
}

fn user(text: String) -> Message {
    Message::User {
        content: vec![Content::Text(text)],
    }
}
