//! What agents of one kind run on: their plan, their tools, their filters. It is made once for each kind of child that an
//! agent starts and shared by all of that kind, since a plan depends on nothing but what was frozen when the host
//! started. Nothing of one agent's course is in it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use fief_core::agent::spec::{AgentSpec, ChildRequest};
use fief_core::grant::Holding;
use fief_core::id::PluginName;
use fief_core::plan;
use fief_core::port::{Filter, Tools};
use tokio::sync::OnceCell;

use super::{Run, Supply};

/// What all agents under one plan run on.
pub(crate) struct Kit {
    pub(crate) spec: Arc<AgentSpec>,
    /// What a person should know whenever one starts.
    pub(crate) warnings: Vec<String>,
    pub(crate) tools: Arc<dyn Tools>,
    /// Its filters, in order: they see every call.
    pub(crate) filters: Vec<Guard>,
    /// Filters of its ways to a child: they see the calls that start one, after its own.
    pub(crate) spawn_filters: Vec<Guard>,
    pub(crate) dynamic_filters: Vec<Guard>,
    /// By the archetype's key. What a model makes up is made for one child alone.
    children: Mutex<HashMap<String, Arc<OnceCell<Arc<Self>>>>>,
}

/// A filter that an agent's calls are shown to.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) name: String,
    pub(crate) filter: Arc<dyn Filter>,
    /// Whether it may ask the person.
    pub(crate) person: bool,
}

impl Guard {
    async fn all(supply: &dyn Supply, filters: &[(PluginName, Holding)]) -> Result<Vec<Self>, String> {
        let mut guards = Vec::with_capacity(filters.len());
        for (plugin, holding) in filters {
            guards.push(Self {
                name: plugin.to_string(),
                filter: supply.filter(plugin.clone(), holding.clone()).await?,
                person: holding.grant.person,
            });
        }
        Ok(guards)
    }
}

impl Kit {
    /// What agents under `spec` run on.
    ///
    /// # Errors
    /// Why their tools or a filter cannot be had.
    pub(crate) async fn new(supply: &dyn Supply, spec: AgentSpec, warnings: Vec<String>) -> Result<Arc<Self>, String> {
        let filters = Guard::all(supply, &spec.filters).await?;
        // One filter sees a call once.
        let further = |named: &[(PluginName, Holding)]| -> Vec<_> {
            named
                .iter()
                .filter(|one| !spec.filters.contains(one))
                .cloned()
                .collect()
        };
        let spawn_filters = Guard::all(supply, &further(&spec.ways.spawn_filters)).await?;
        let dynamic_filters = Guard::all(supply, &further(&spec.ways.dynamic_filters)).await?;
        Ok(Arc::new(Self {
            tools: supply.tools(spec.holdings.clone()).await?,
            filters,
            spawn_filters,
            dynamic_filters,
            spec: Arc::new(spec),
            warnings,
            children: Mutex::default(),
        }))
    }

    /// What the child runs on that `request` asks for.
    ///
    /// # Errors
    /// Why there can be none. A further request tries anew.
    pub(crate) async fn child(&self, run: &Run, request: &ChildRequest) -> Result<Arc<Self>, String> {
        let made = || async {
            let planned = plan::child(&run.world, &self.spec, request).map_err(|error| error.message)?;
            Self::new(&*run.supply, planned.spec, planned.warnings).await
        };
        let ChildRequest::Archetype { name, .. } = request else {
            return made().await;
        };
        let cell = {
            let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(children.entry(name.key()).or_default())
        };
        cell.get_or_try_init(made).await.cloned()
    }
}

impl std::fmt::Debug for Kit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kit").field("spec", &self.spec).finish_non_exhaustive()
    }
}
