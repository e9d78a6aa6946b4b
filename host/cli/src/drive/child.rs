//! Children: the one mechanism beneath `spawn_subagent`, the agents that are served as tools, and those that a model
//! makes up.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use fief_core::agent::spec::ChildRequest;
use fief_core::agent::{Input, Start, request};
use fief_core::budget::Allowance;
use fief_core::id::SessionId;
use fief_core::message::Message;
use fief_core::port::BoxFuture;
use fief_core::report::{Report, Status};
use fief_core::tool::{Outcome, OutcomeKind};
use futures::FutureExt as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::agent::{Body, Course};
use super::call::{after, before, not_allowed, panic_text, redacted};
use super::kit::Guard;
use super::millis;
use super::slot::Slot;
use super::stream::{Emitter, Source};

/// A child that an agent wants started.
pub(super) struct Spawned {
    pub(super) number: u64,
    pub(super) parent: Arc<Body>,
    pub(super) parent_task: String,
    pub(super) call: String,
    pub(super) tool: String,
    pub(super) arguments: Arc<Value>,
    pub(super) request: ChildRequest,
    pub(super) allowance: Allowance,
    pub(super) parent_history: Option<Arc<Vec<Message>>>,
    pub(super) token: CancellationToken,
}

impl Spawned {
    /// Runs it from the parent's filters to its report. Boxed, since a child may have children.
    pub(super) fn run(self) -> BoxFuture<'static, Input> {
        Box::pin(async move {
            let started = Instant::now();
            let call = self.call.clone();
            match AssertUnwindSafe(self.course()).catch_unwind().await {
                Ok(Ok((session, report))) => Input::ChildFinished {
                    call,
                    report,
                    session,
                    ms: millis(started),
                },
                Ok(Err(outcome)) => Input::ChildRefused {
                    call,
                    outcome,
                    ms: millis(started),
                },
                Err(panic) => {
                    let why = panic_text(&*panic);
                    tracing::error!(why, "starting an agent crashed in the host");
                    let outcome = Outcome {
                        detail: Some(why),
                        ..Outcome::refused(OutcomeKind::ToolError, "the host failed while it started this agent")
                    };
                    Input::ChildRefused {
                        call,
                        outcome,
                        ms: millis(started),
                    }
                }
            }
        })
    }

    async fn course(mut self) -> Result<(SessionId, Report), Outcome> {
        let token = self.token.clone();
        let cancelled = || Outcome::refused(OutcomeKind::Cancelled, "cancelled before the agent started");
        let ready = async {
            self.settle_request().await?;
            let slot = Slot::wait(&self.parent.run.slots).await;
            self.body(slot).await
        };
        let child = tokio::select! {
            biased;
            () = token.cancelled() => return Err(cancelled()),
            ready = ready => ready.map_err(|refused| redacted(&self.parent, refused))?,
        };
        let made_up = matches!(self.request, ChildRequest::Dynamic { .. });
        let system = tokio::select! {
            biased;
            () = token.cancelled() => return Err(cancelled()),
            system = child.system(&self.parent_task, made_up) => system.map_err(|why| not_started(&why))?,
        };
        let (task, label) = match &self.request {
            ChildRequest::Archetype { task, label, .. } => (task.clone(), label.clone()),
            ChildRequest::Dynamic { task, .. } => (task.clone(), None),
        };
        let session = child.emitter.source().session.clone();
        let sees_history = child.kit.spec.parent_history.is_some();
        let start = Start {
            session: Some(session.clone()),
            call: Some(self.call.clone()),
            label,
            task,
            system,
            parent_history: self.parent_history.take().filter(|_| sees_history),
            allowance: self.allowance,
            warnings: child.kit.warnings.clone(),
            ..Start::default()
        };
        let mut course = Course::new(child.clone());
        let run = AssertUnwindSafe(course.start(start, token.clone())).catch_unwind();
        let report = match run.await {
            Ok(report) => report,
            Err(panic) => {
                // A bug in the host ends one child, as a failure that its parent can act on.
                tracing::error!(why = panic_text(&*panic), %session, "an agent crashed in the host");
                course.close(Status::Failed, "the host failed while it ran this agent")
            }
        };
        drop(course);
        let withheld = Report {
            status: Status::Cancelled,
            text: "[not finished: it was cancelled while filters looked at the report]".into(),
            ..report.clone()
        };
        let report = tokio::select! {
            biased;
            report = self.filtered(report) => report,
            () = token.cancelled() => withheld,
        };
        Ok((session, report))
    }

    /// Shows the call to the parent's filters and, where policy wants it, to the person. Changed arguments are read
    /// again, so that they can ask for nothing that the model's could not.
    async fn settle_request(&mut self) -> Result<(), Outcome> {
        let arguments = std::mem::take(&mut self.arguments);
        let guards = self.guards();
        let (arguments, changed) = before(&self.parent, &guards, &self.call, &self.tool, arguments).await?;
        if let Some(filter) = changed {
            let own: Vec<String> = self.parent.kit.spec.tools.keys().cloned().collect();
            let ways = &self.parent.kit.spec.ways;
            let object = arguments.as_object().cloned().unwrap_or_default();
            self.request =
                request::parse(ways, &own, &self.parent.run.validators, &self.tool, &object).map_err(|why| {
                    let text = format!("no agent was started: filter `{filter}` changed the arguments, and {why}");
                    Outcome::refused(OutcomeKind::Denied, text)
                })?;
        }
        self.arguments = arguments;
        match not_allowed(&self.parent, &self.tool, &self.arguments).await {
            Some(refused) => Err(refused),
            None => Ok(()),
        }
    }

    /// The filters that see this call: its agent's own, then those of the way to a child.
    fn guards(&self) -> Vec<Guard> {
        let of_way = match self.request {
            ChildRequest::Archetype { .. } => &self.parent.kit.spawn_filters,
            ChildRequest::Dynamic { .. } => &self.parent.kit.dynamic_filters,
        };
        self.parent.kit.filters.iter().chain(of_way).cloned().collect()
    }

    /// Gives the child what it runs on.
    async fn body(&self, slot: Slot) -> Result<Arc<Body>, Outcome> {
        let run = &self.parent.run;
        let ready = async {
            let kit = self.parent.kit.child(run, &self.request).await?;
            let supplied = run.supply.model(&kit.spec.model)?;
            Ok((kit, supplied))
        };
        let (kit, supplied) = ready.await.map_err(|why: String| not_started(&why))?;
        let parent = self.parent.emitter.source();
        let source = Source {
            session: SessionId::child(&kit.spec.label, self.number),
            parent: Some(parent.session.clone()),
            depth: kit.spec.depth,
            author: Some(kit.spec.label.as_str().into()),
            // What its parent keeps to itself, its descendants do too.
            forward: kit.spec.forward_events && parent.forward,
        };
        let emitter = Emitter::new(self.parent.emitter.stream().clone(), source);
        Ok(Body::new(run.clone(), kit, supplied, emitter, slot))
    }

    /// Shows the report to the parent's filters.
    async fn filtered(&self, mut report: Report) -> Report {
        let guards = self.guards();
        if guards.is_empty() {
            return report;
        }
        let kind = if report.status == Status::Done {
            OutcomeKind::Ok
        } else {
            OutcomeKind::ToolError
        };
        let outcome = Outcome {
            kind,
            ..Outcome::ok(report.text.clone())
        };
        let seen = after(
            &self.parent,
            &guards,
            &self.call,
            &self.tool,
            &self.arguments,
            outcome.clone(),
        )
        .await;
        if seen != outcome {
            report.text = redacted(&self.parent, seen.clone()).text();
            if seen.kind != OutcomeKind::Ok && report.status == Status::Done {
                report.status = Status::Failed;
            }
        }
        report
    }
}

fn not_started(why: &str) -> Outcome {
    Outcome::refused(OutcomeKind::ToolError, format!("no agent was started: {why}"))
}
