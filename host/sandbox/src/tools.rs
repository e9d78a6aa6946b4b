//! The ports that the agent loop calls: an agent's tools and its filters. Holdings are enforced here, where a call is
//! dispatched, not only where tools are listed.

use std::collections::BTreeMap;
use std::sync::Arc;

use fief_core::grant::{Holding, Holdings};
use fief_core::id::PluginName;
use fief_core::port::{BoxFuture, CallContext, CallVerdict, Filter, OutcomeVerdict, Subject, Tools};
use fief_core::tool::{Invocation, Outcome, OutcomeKind, PluginInfo};

use tokio::sync::OnceCell;

use crate::LinkError;
use crate::sandbox::{Linked, Sandbox};

/// The tools of one agent.
#[derive(Clone)]
pub struct AgentTools(Arc<Held>);

struct Held {
    sandbox: Sandbox,
    plugins: BTreeMap<PluginName, HeldPlugin>,
    /// Held plugins that nobody found.
    absent: Vec<PluginName>,
}

struct HeldPlugin {
    plugin: Arc<PluginInfo>,
    holding: Holding,
    /// Linked once; a call looks nothing else up.
    linked: OnceCell<Arc<Linked>>,
}

impl HeldPlugin {
    async fn linked(&self, sandbox: &Sandbox) -> Result<&Arc<Linked>, LinkError> {
        self.linked
            .get_or_try_init(|| sandbox.link(&self.plugin, &self.holding.grant))
            .await
    }
}

impl AgentTools {
    pub(crate) fn new(
        sandbox: Sandbox,
        mut plugins: BTreeMap<PluginName, Arc<PluginInfo>>,
        holdings: &Holdings,
    ) -> Self {
        let mut held = BTreeMap::new();
        let mut absent = Vec::new();
        for (name, holding) in holdings {
            match plugins.remove(name) {
                Some(plugin) => {
                    let plugin = HeldPlugin {
                        plugin,
                        holding: holding.clone(),
                        linked: OnceCell::new(),
                    };
                    held.insert(name.clone(), plugin);
                }
                None => absent.push(name.clone()),
            }
        }
        Self(Arc::new(Held {
            sandbox,
            plugins: held,
            absent,
        }))
    }

    /// Links every plugin that is held, so that what cannot be linked is known before the agent starts.
    ///
    /// # Errors
    /// All that cannot be linked, by name.
    pub async fn link(&self) -> Result<(), Vec<(PluginName, LinkError)>> {
        let linking = self.0.plugins.iter().map(|(name, plugin)| async move {
            let linked = plugin.linked(&self.0.sandbox).await;
            linked.err().map(|error| (name.clone(), error))
        });
        let failed: Vec<_> = futures::future::join_all(linking).await.into_iter().flatten().collect();
        if failed.is_empty() { Ok(()) } else { Err(failed) }
    }
}

impl Held {
    async fn call(&self, invocation: Invocation, context: CallContext) -> Outcome {
        let tool = &invocation.tool;
        let Some(held) = self.plugins.get(&tool.plugin) else {
            let why = if self.absent.contains(&tool.plugin) {
                "its plugin is not installed any more"
            } else {
                "it is not granted to this agent"
            };
            return self.denied(&format!("`{tool}` cannot be called: {why}"));
        };
        if !held.holding.tools.contains(&tool.tool) {
            return self.denied(&format!("`{tool}` cannot be called: it is not granted to this agent"));
        }
        if held.plugin.digest != held.holding.digest {
            return self.denied(&format!(
                "`{tool}` cannot be called: another build of its plugin was granted"
            ));
        }
        match held.linked(&self.sandbox).await {
            Ok(linked) => linked.call(invocation, context).await,
            Err(error) => {
                let mut outcome = Outcome::refused(OutcomeKind::Denied, format!("`{tool}` cannot be called: {error}"));
                outcome.detail = error.hint();
                outcome
            }
        }
    }

    /// A refusal that says what could be called instead.
    fn denied(&self, text: &str) -> Outcome {
        let mut held = self
            .plugins
            .iter()
            .flat_map(|(name, held)| held.holding.tools.iter().map(move |tool| format!("`{name}.{tool}`")))
            .peekable();
        let instead = if held.peek().is_none() {
            "this agent holds no tools".to_owned()
        } else {
            format!("it may call {}", held.collect::<Vec<_>>().join(", "))
        };
        Outcome::refused(OutcomeKind::Denied, format!("{text}\n{instead}"))
    }
}

impl Tools for AgentTools {
    fn call(&self, invocation: Invocation, context: CallContext) -> BoxFuture<'static, Outcome> {
        let held = Arc::clone(&self.0);
        Box::pin(async move { held.call(invocation, context).await })
    }
}

/// A plugin that sees every call of an agent.
#[derive(Clone)]
pub struct PluginFilter(Arc<Guard>);

struct Guard {
    sandbox: Sandbox,
    plugin: Arc<PluginInfo>,
    holding: Holding,
}

impl PluginFilter {
    pub(crate) fn new(sandbox: Sandbox, plugin: Arc<PluginInfo>, holding: Holding) -> Self {
        Self(Arc::new(Guard {
            sandbox,
            plugin,
            holding,
        }))
    }

    /// Links it, so that what cannot be linked is known before the agent starts.
    ///
    /// # Errors
    /// Why it cannot be linked.
    pub async fn link(&self) -> Result<(), LinkError> {
        self.0
            .sandbox
            .link(&self.0.plugin, &self.0.holding.grant)
            .await
            .map(drop)
    }
}

impl Guard {
    /// The linked filter, or why it refuses.
    async fn linked(&self) -> Result<Arc<Linked>, String> {
        let name = &self.plugin.name;
        if self.plugin.digest != self.holding.digest {
            return Err(format!(
                "filter `{name}` is another build than the one that was granted"
            ));
        }
        if !self.plugin.filter {
            return Err(format!("plugin `{name}` exports no filter"));
        }
        let linked = self.sandbox.link(&self.plugin, &self.holding.grant).await;
        linked.map_err(|error| format!("filter `{name}` cannot be run: {error}"))
    }
}

impl Filter for PluginFilter {
    fn before_call(&self, subject: Subject, context: CallContext) -> BoxFuture<'static, CallVerdict> {
        let guard = Arc::clone(&self.0);
        Box::pin(async move {
            match guard.linked().await {
                Ok(linked) => linked.before_call(subject, context).await,
                Err(why) => CallVerdict::Refuse(why),
            }
        })
    }

    fn after_call(
        &self,
        subject: Subject,
        outcome: Outcome,
        context: CallContext,
    ) -> BoxFuture<'static, OutcomeVerdict> {
        let guard = Arc::clone(&self.0);
        Box::pin(async move {
            match guard.linked().await {
                Ok(linked) => linked.after_call(subject, &outcome, context).await,
                Err(why) => OutcomeVerdict::Refuse(why),
            }
        })
    }
}
