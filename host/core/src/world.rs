//! What a host knows when it starts, frozen: archetypes, plugins, policy. Nothing that happens in a run changes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::grant::policy::Policy;
use crate::id::{ArchetypeName, PluginName};
use crate::manifest::archetype::{AgentConfig, Archetype};
use crate::tool::PluginInfo;

/// All that agents are made from.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Every archetype that can be found, by [`ArchetypeName::key`], in alphabetical order.
    pub archetypes: BTreeMap<String, Arc<Archetype>>,
    /// Those that `["*"]` and the catalogue of `main` mean, in the order in which they were registered.
    pub registered: Vec<ArchetypeName>,
    /// Every plugin that loaded.
    pub plugins: BTreeMap<PluginName, Arc<PluginInfo>>,
    /// The operator's ceiling.
    pub policy: Policy,
    /// `[agents.config]`.
    pub defaults: AgentConfig,
    /// The main agent's model where its archetype names none.
    pub model: Option<String>,
    /// The names of the configured models: an archetype's `model` must be one, or `provider:name`.
    pub models: Vec<String>,
    /// What `forward_events` means where it is absent: false for embedders, true in the binary.
    pub forward_events: bool,
}
