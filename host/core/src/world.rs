//! What a host knows when it starts, frozen: archetypes, plugins, policy. Nothing that happens in a run changes it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::grant::policy::Policy;
use crate::grant::resolve::absolute;
use crate::id::{ArchetypeName, PluginName};
use crate::manifest::archetype::{AgentConfig, Archetype, GrantRequest, ToolGrant};
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
    /// Whether a repository that nobody trusts had its say: then an archetype's model must be a configured one, since
    /// `PROVIDER:NAME` outright would send the operator's data, and a key, where a stranger wants them.
    pub untrusted: bool,
    /// What `forward_events` means where it is absent: false for embedders, true in the binary.
    pub forward_events: bool,
}

impl World {
    /// Makes every directory that a manifest grants what `canonical` says of its absolute path: symbolic links
    /// resolved. The host must do it once, before anything is planned: grants are compared with policy as text, and a
    /// link in a stranger's repository would else lead out of the directory that policy allows.
    pub fn canonicalise(&mut self, canonical: impl Fn(&Path) -> PathBuf) {
        let base = self.policy.working_directory.clone();
        for archetype in self.archetypes.values_mut() {
            canonicalise(Arc::make_mut(archetype), &base, &canonical);
        }
        if let Some(grants) = &mut self.defaults.filters {
            place(grants, &base, &canonical);
        }
    }
}

/// The same for one archetype that is no part of a world; relative paths are those of `base`.
pub fn canonicalise(archetype: &mut Archetype, base: &Path, canonical: &impl Fn(&Path) -> PathBuf) {
    let dynamic = archetype.dynamic.as_mut();
    let (bound, dynamic) = dynamic.map_or((None, None), |d| (d.tools.as_mut(), d.config.filters.as_mut()));
    let own = [
        archetype.tools.as_mut(),
        archetype.config.filters.as_mut(),
        archetype.spawn.filters.as_mut(),
    ];
    for grants in own.into_iter().chain([bound, dynamic]).flatten() {
        place(grants, base, canonical);
    }
}

fn place(grants: &mut [ToolGrant], base: &Path, canonical: &impl Fn(&Path) -> PathBuf) {
    for grant in grants {
        if let GrantRequest::Exact(table) = &mut grant.grant {
            for file in &mut table.files {
                file.host = canonical(&absolute(base, &file.host));
            }
        }
    }
}
