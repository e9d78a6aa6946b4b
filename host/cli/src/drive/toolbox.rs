//! The agent's other tools, for a plugin that was granted `toolbox`: the same grants, filters and accounts as a call
//! of the model's, and no way to a child.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use fief_core::event::EventKind;
use fief_core::id::ToolRef;
use fief_core::port::{BoxFuture, Toolbox};
use fief_core::tool::{Declaration, Invocation, Outcome, OutcomeKind, ToolSpec, wire_name};
use serde_json::Value;

use super::agent::Body;
use super::call::{Call, redacted, unpanicked};
use super::millis;

/// How many calls may stand inside one another. Four orchestrators deep is more than was ever seen to be useful, and
/// each level holds a store of its own.
const DEEPEST: usize = 4;

/// The tools whose calls led to a call, the outermost first. None of them can be called again from inside: what calls
/// itself, however indirectly, would not end.
#[derive(Clone, Default)]
pub(super) struct Chain(Arc<[ToolRef]>);

impl Chain {
    pub(super) fn with(&self, tool: &ToolRef) -> Self {
        Self(self.0.iter().cloned().chain([tool.clone()]).collect())
    }

    fn holds(&self, tool: &ToolRef) -> bool {
        self.0.contains(tool)
    }
}

/// The toolbox of one running call.
pub(super) struct OwnToolbox(Arc<Inner>);

struct Inner {
    body: Arc<Body>,
    /// The call that holds it; its own calls are numbered below it.
    call: String,
    chain: Chain,
    count: AtomicU64,
}

impl OwnToolbox {
    pub(super) fn new(body: Arc<Body>, call: String, chain: Chain) -> Self {
        Self(Arc::new(Inner {
            body,
            call,
            chain,
            count: AtomicU64::new(0),
        }))
    }

    pub(super) fn shared(self) -> Arc<dyn Toolbox> {
        Arc::new(self)
    }
}

impl Toolbox for OwnToolbox {
    fn list(&self) -> Vec<Declaration> {
        let spec = &self.0.body.kit.spec;
        let callable = |name: &str| spec.tools.get(name).is_some_and(|(tool, _)| !self.0.chain.holds(tool));
        spec.declarations
            .iter()
            .filter(|one| callable(&one.name))
            .cloned()
            .collect()
    }

    fn call(&self, name: String, arguments: Value) -> BoxFuture<'static, Outcome> {
        let inner = self.0.clone();
        Box::pin(async move { inner.call(&name, arguments).await })
    }
}

impl Inner {
    async fn call(&self, name: &str, arguments: Value) -> Outcome {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let call = format!("{}/{number}", self.call);
        let spec = &self.body.kit.spec;
        let found = spec
            .tools
            .iter()
            .find(|(known, _)| *known == name || wire_name(known) == name);
        let shown = found.map_or(name, |(known, _)| known);
        let plugin = found.map(|(_, (tool, _))| tool.plugin.to_string());
        let arguments = Arc::new(arguments);
        self.body.emitter.emit(EventKind::ToolStarted {
            call: call.clone(),
            plugin: plugin.clone(),
            tool: shown.to_owned(),
            arguments: arguments.clone(),
        });
        let started = Instant::now();
        let outcome = match self.check(name, found.map(|(_, held)| held), &arguments) {
            Ok(tool) => {
                let invocation = Invocation {
                    call: call.clone(),
                    tool,
                    arguments,
                };
                let inside = Call {
                    body: self.body.clone(),
                    invocation,
                    chain: self.chain.clone(),
                };
                // Boxed: a call inside a call is a future inside itself.
                let inside: BoxFuture<'_, Outcome> = Box::pin(inside.outcome());
                unpanicked(inside).await
            }
            Err(refused) => redacted(&self.body, refused),
        };
        self.body.emitter.emit(EventKind::ToolFinished {
            call,
            plugin,
            tool: shown.to_owned(),
            outcome: outcome.kind,
            content: outcome.text(),
            error: outcome.detail.clone(),
            ms: millis(started),
        });
        outcome
    }

    #[expect(clippy::result_large_err, reason = "a refusal is an outcome, and is moved once")]
    fn check(
        &self,
        name: &str,
        found: Option<&(ToolRef, Arc<ToolSpec>)>,
        arguments: &Value,
    ) -> Result<ToolRef, Outcome> {
        let denied = |text: String| Outcome::refused(OutcomeKind::Denied, text);
        let Some((tool, spec)) = found else {
            let names: Vec<&str> = self.body.kit.spec.tools.keys().map(String::as_str).collect();
            let name: String = name.chars().take(80).collect();
            return Err(denied(format!(
                "`{name}` is not among this agent's tools: they are {}",
                names.join(", ")
            )));
        };
        if self.chain.holds(tool) {
            return Err(denied(format!(
                "`{tool}` is what led to this call: it cannot be called from inside"
            )));
        }
        if self.chain.0.len() >= DEEPEST {
            return Err(denied(format!(
                "calls stand {DEEPEST} deep inside one another: that is as deep as it goes"
            )));
        }
        let bad = |why: String| Outcome::refused(OutcomeKind::ToolError, format!("not run: {why}"));
        let validator = self
            .body
            .run
            .validators
            .get(&spec.input_schema)
            .map_err(|error| bad(error.to_string()))?;
        validator.check(arguments).map_err(|error| bad(error.to_string()))?;
        Ok(tool.clone())
    }
}
