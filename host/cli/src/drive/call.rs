//! One call: its filters around it, the person where policy wants one asked, the tool itself.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use fief_core::agent::Input;
use fief_core::event::{CallNote, EventKind};
use fief_core::message::Content;
use fief_core::port::{CallContext, CallSink, CallVerdict, OutcomeVerdict, Subject};
use fief_core::tool::{Invocation, Outcome, OutcomeKind};
use futures::FutureExt as _;
use serde_json::Value;

use super::agent::Body;
use super::ask::{Visitor, is_asked_for};
use super::kit::Guard;
use super::millis;
use super::stream::Emitter;
use super::toolbox::{Chain, OwnToolbox};

/// One call of one agent, by its model or by a plugin that was granted its toolbox.
pub(super) struct Call {
    pub(super) body: Arc<Body>,
    pub(super) invocation: Invocation,
    /// The tools whose calls led to this one.
    pub(super) chain: Chain,
}

impl Call {
    pub(super) fn of_model(body: Arc<Body>, invocation: Invocation) -> Self {
        Self {
            body,
            invocation,
            chain: Chain::default(),
        }
    }

    /// Runs it to its one result, whatever happens.
    pub(super) async fn run(self) -> Input {
        let started = Instant::now();
        let call = self.invocation.call.clone();
        let body = self.body.clone();
        body.slot.hold().await;
        let outcome = unpanicked(self.outcome()).await;
        Input::CallFinished {
            call,
            outcome,
            ms: millis(started),
        }
    }

    /// The outcome, as the model is to see it.
    pub(super) async fn outcome(mut self) -> Outcome {
        let tool = self.invocation.tool.to_string();
        let arguments = std::mem::take(&mut self.invocation.arguments);
        let kit = self.body.kit.clone();
        let checked = match before(&self.body, &kit.filters, &self.invocation.call, &tool, arguments).await {
            Ok((arguments, changed)) => self.check(&tool, arguments, changed),
            Err(refused) => Err(refused),
        };
        let arguments = match checked {
            Ok(arguments) => arguments,
            Err(refused) => return redacted(&self.body, refused),
        };
        if let Some(refused) = not_allowed(&self.body, &tool, &arguments).await {
            return refused;
        }
        let context = self.context(&tool);
        let Self {
            body, mut invocation, ..
        } = self;
        let seen = (!kit.filters.is_empty()).then(|| (invocation.call.clone(), arguments.clone()));
        invocation.arguments = arguments;
        let mut outcome = kit.tools.call(invocation, context).await;
        if let Some((call, arguments)) = seen {
            outcome = after(&body, &kit.filters, &call, &tool, &arguments, outcome).await;
        }
        redacted(&body, outcome)
    }

    /// Arguments that a filter changed are checked again.
    #[expect(clippy::result_large_err, reason = "a refusal is an outcome, and is moved once")]
    fn check(&self, tool: &str, arguments: Arc<Value>, changed: Option<String>) -> Result<Arc<Value>, Outcome> {
        let Some(filter) = changed else { return Ok(arguments) };
        let bad = |why: String| {
            Outcome::refused(
                OutcomeKind::Denied,
                format!("not run: filter `{filter}` changed the arguments, and they are not valid: {why}"),
            )
        };
        let Some((_, spec)) = self.body.kit.spec.tools.get(tool) else {
            return Err(bad("the tool is not held".into()));
        };
        let validator = self
            .body
            .run
            .validators
            .get(&spec.input_schema)
            .map_err(|error| bad(error.to_string()))?;
        validator.check(&arguments).map_err(|error| bad(error.to_string()))?;
        Ok(arguments)
    }

    fn context(&self, tool: &str) -> CallContext {
        let grant = self
            .body
            .kit
            .spec
            .holdings
            .get(&self.invocation.tool.plugin)
            .map(|holding| &holding.grant);
        let toolbox = grant.is_some_and(|grant| grant.toolbox).then(|| {
            let chain = self.chain.with(&self.invocation.tool);
            OwnToolbox::new(self.body.clone(), self.invocation.call.clone(), chain).shared()
        });
        let person = grant.is_some_and(|grant| grant.person);
        CallContext {
            sink: Sink::shared(
                &self.body.emitter,
                &self.invocation.call,
                self.invocation.tool.plugin.as_str(),
                tool,
            ),
            toolbox,
            person: person.then(|| visitor(&self.body, tool)),
        }
    }
}

fn visitor(body: &Body, who: &str) -> Arc<dyn fief_core::port::Person> {
    let from = format!("`{who}` of `{}`", body.emitter.source().session);
    Arc::new(Visitor {
        asker: body.run.asker.clone(),
        from,
    })
}

/// A bug in the host is one call's failure, not the end of the run.
pub(super) async fn unpanicked(outcome: impl Future<Output = Outcome>) -> Outcome {
    AssertUnwindSafe(outcome).catch_unwind().await.unwrap_or_else(|panic| {
        let why = panic_text(&*panic);
        tracing::error!(why, "a call panicked in the host");
        Outcome {
            detail: Some(why),
            ..Outcome::refused(
                OutcomeKind::Trap,
                "the host failed while it ran this call; it may not have had its effect",
            )
        }
    })
}

pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".into())
}

/// Shows a call to the filters, in order. The arguments to go on with, and the last filter that changed them.
pub(super) async fn before(
    body: &Body,
    guards: &[Guard],
    call: &str,
    tool: &str,
    mut arguments: Arc<Value>,
) -> Result<(Arc<Value>, Option<String>), Outcome> {
    let mut changed = None;
    for guard in guards {
        let name = &guard.name;
        let verdict = guard
            .filter
            .before_call(subject(body, tool, &arguments), filter_context(body, call, guard))
            .await;
        match verdict {
            CallVerdict::Pass => {}
            CallVerdict::Change(value) => {
                arguments = Arc::new(value);
                changed = Some(name.clone());
            }
            CallVerdict::Refuse(why) => {
                // One that could not answer names itself.
                let text = match why.strip_prefix(&format!("filter `{name}` ")) {
                    Some(broke) => format!("`{tool}` was refused by filter `{name}`, which {broke}"),
                    None => format!("`{tool}` was refused by filter `{name}`: {why}"),
                };
                return Err(Outcome::refused(OutcomeKind::Denied, text));
            }
        }
    }
    Ok((arguments, changed))
}

/// Shows an outcome to the filters, the last one first: the first filter sees the call first and has the last word.
pub(super) async fn after(
    body: &Body,
    guards: &[Guard],
    call: &str,
    tool: &str,
    arguments: &Arc<Value>,
    mut outcome: Outcome,
) -> Outcome {
    for guard in guards.iter().rev() {
        let name = &guard.name;
        let context = filter_context(body, call, guard);
        match guard
            .filter
            .after_call(subject(body, tool, arguments), outcome.clone(), context)
            .await
        {
            OutcomeVerdict::Pass => {}
            OutcomeVerdict::Change(other) => outcome = other,
            OutcomeVerdict::Refuse(why) => {
                let text = format!("`{tool}` ran, and filter `{name}` withholds its result: {why}");
                outcome = Outcome::refused(OutcomeKind::Denied, text);
            }
        }
    }
    outcome
}

fn subject(body: &Body, tool: &str, arguments: &Arc<Value>) -> Subject {
    Subject {
        session: body.emitter.source().session.clone(),
        tool: tool.into(),
        arguments: arguments.clone(),
    }
}

fn filter_context(body: &Body, call: &str, guard: &Guard) -> CallContext {
    CallContext {
        sink: Sink::shared(&body.emitter, call, &guard.name, &guard.name),
        toolbox: None,
        person: guard.person.then(|| visitor(body, &guard.name)),
    }
}

/// Asks the person where policy wants that. `None`: go on.
pub(super) async fn not_allowed(body: &Body, tool: &str, arguments: &Value) -> Option<Outcome> {
    if !is_asked_for(&body.run.world.policy.ask, tool) {
        return None;
    }
    let arguments = body.emitter.stream().redact_json(arguments.clone());
    if body
        .run
        .asker
        .consent(&body.emitter.source().session, tool, &arguments)
        .await
    {
        return None;
    }
    let text = format!("`{tool}` was not allowed by the person who watches this run, or nobody was there to ask");
    Some(Outcome::refused(OutcomeKind::Denied, text))
}

/// The outcome without the values of secrets.
pub(super) fn redacted(body: &Body, mut outcome: Outcome) -> Outcome {
    let stream = body.emitter.stream();
    for part in &mut outcome.content {
        if let Content::Text(text) = part {
            *text = stream.redact(std::mem::take(text));
        }
    }
    outcome.structured = outcome.structured.map(|value| stream.redact_json(value));
    outcome.detail = outcome.detail.map(|text| stream.redact(text));
    outcome
}

/// Turns a call's notes into events of its agent.
struct Sink {
    emitter: Emitter,
    call: String,
    plugin: String,
    tool: String,
}

impl Sink {
    fn shared(emitter: &Emitter, call: &str, plugin: &str, tool: &str) -> Arc<dyn CallSink> {
        Arc::new(Self {
            emitter: emitter.clone(),
            call: call.into(),
            plugin: plugin.into(),
            tool: tool.into(),
        })
    }
}

impl CallSink for Sink {
    fn note(&self, note: CallNote) {
        let kind = match note {
            CallNote::Progress { message, done, total } => EventKind::ToolUpdate {
                call: self.call.clone(),
                plugin: Some(self.plugin.clone()),
                tool: self.tool.clone(),
                message,
                done,
                total,
            },
            CallNote::Log { level, message } => {
                let (session, message) = (&self.emitter.source().session, self.emitter.stream().redact(message));
                tracing::debug!(target: "fief::guest", level, %session, tool = self.tool, "{message}");
                return;
            }
            CallNote::Capability {
                kind,
                target,
                allowed,
                rule,
                count,
            } => EventKind::Capability {
                call: self.call.clone(),
                plugin: self.plugin.clone(),
                kind,
                target,
                allowed,
                rule,
                count,
            },
        };
        self.emitter.emit(kind);
    }
}
