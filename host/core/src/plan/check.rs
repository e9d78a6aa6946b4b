//! What is wrong with an archetype on this machine: every fault, not only the first.

use serde::Serialize;

use super::equip::{Equipment, Granter, filters, listed};
use super::main::is_markdown;
use super::settings::is_known;
use super::ways::ways;
use super::{PlanError, choices};
use crate::grant::resolve::resolve;
use crate::id::ArchetypeName;
use crate::manifest::archetype::{Archetype, GrantRequest, ToolGrant};
use crate::world::World;

/// One fault.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Whose.
    pub archetype: ArchetypeName,
    /// What it is and what would be right.
    pub message: String,
    /// Whether it is only something that the archetype grants and policy does not allow: its author's manifest is
    /// sound, the agent starts with less, and what is allowed is the operator's choice. `[policy] strict` makes it the
    /// manifest's fault: then the agent does not start.
    pub policy: bool,
}

/// Every fault of `archetype` in this world: what it names and is not there, grants that nothing needs, needs that
/// nothing grants, what policy takes, what cannot link. Empty: clean.
#[must_use]
pub fn check(world: &World, archetype: &Archetype) -> Vec<Finding> {
    let mut found = Found::default();
    let name = format!("archetype `{}`", archetype.name);
    let granter = |key| Granter {
        name: name.clone(),
        origin: &archetype.origin,
        key,
    };
    for grant in archetype.tools.iter().flatten() {
        entry(world, grant, &granter("tools"), &mut found);
    }
    for grant in archetype
        .dynamic
        .iter()
        .flat_map(|dynamic| dynamic.tools.iter().flatten())
    {
        entry(world, grant, &granter("[[dynamic.tools]]"), &mut found);
    }
    for filter in archetype.config.filters.iter().flatten() {
        let mut out = Equipment::default();
        match filters(world, std::slice::from_ref(filter), &granter("filters"), &mut out) {
            Ok(_) => found.equipment(out),
            Err(error) => found.faults.push(error.message),
        }
    }
    names(world, archetype, &mut found.faults);
    let configs = [
        Some(&archetype.config),
        archetype.dynamic.as_ref().map(|dynamic| &dynamic.config),
    ];
    for model in configs
        .into_iter()
        .flatten()
        .filter_map(|config| config.model.as_deref())
    {
        if !is_known(world, model) {
            let what = if is_markdown(archetype) {
                ", so that its parent's is used"
            } else {
                ""
            };
            found.faults.push(format!(
                "{name} ({}): model `{model}` is not configured{what}; configured are {}",
                archetype.origin,
                choices(model, world.models.iter().map(String::as_str))
            ));
        }
    }
    let finding = |message: String, policy| Finding {
        archetype: archetype.name.clone(),
        message,
        policy,
    };
    let faults = once(found.faults).into_iter().map(|message| finding(message, false));
    let losses = once(found.losses)
        .into_iter()
        .map(|message| finding(message, !world.policy.strict));
    faults.chain(losses).collect()
}

/// The same without what was said before.
fn once(messages: Vec<String>) -> Vec<String> {
    let mut seen = Vec::with_capacity(messages.len());
    for message in messages {
        if !seen.contains(&message) {
            seen.push(message);
        }
    }
    seen
}

/// What was found so far.
#[derive(Default)]
struct Found {
    /// The manifest's faults.
    faults: Vec<String>,
    /// What policy does not allow.
    losses: Vec<String>,
}

impl Found {
    fn equipment(&mut self, out: Equipment) {
        let faults = out.warnings.into_iter().filter(|warning| !out.lost.contains(warning));
        self.faults.extend(faults);
        self.losses.extend(out.lost);
    }
}

fn entry(world: &World, grant: &ToolGrant, granter: &Granter<'_>, found: &mut Found) {
    match listed(world, std::slice::from_ref(grant), granter) {
        Ok(out) => found.equipment(out),
        Err(PlanError { message, .. }) => found.faults.push(message),
    }
    let Some(plugin) = world.plugins.get(&grant.plugin) else {
        return;
    };
    // As wide as policy grants all that is needed; what policy lacks of it is no fault of the manifest.
    if !matches!(grant.grant, GrantRequest::Exact(_)) {
        return;
    }
    if let Ok(resolved) = resolve(plugin, &grant.grant, &world.policy, &granter.name) {
        for unmet in resolved.unmet {
            found.faults.push(format!(
                "{}: plugin `{}` needs {unmet}, and nothing grants it",
                granter.name, plugin.name
            ));
        }
    }
}

/// The archetypes that it names. Each is looked up alone, so that one that is missing hides no other.
fn names(world: &World, archetype: &Archetype, messages: &mut Vec<String>) {
    use crate::manifest::archetype::Agents;
    let alone = |agents: Option<Agents>, agent_tools: Option<Vec<ArchetypeName>>| Archetype {
        agents,
        agent_tools,
        dynamic: None,
        spawn: crate::manifest::archetype::SpawnConfig::default(),
        ..archetype.clone()
    };
    let mut parts = Vec::new();
    if let Some(Agents::Named(names)) = &archetype.agents {
        parts.extend(
            names
                .iter()
                .map(|name| alone(Some(Agents::Named(vec![name.clone()])), None)),
        );
    }
    let agent_tools = archetype.agent_tools.iter().flatten();
    parts.extend(agent_tools.map(|name| alone(None, Some(vec![name.clone()]))));
    parts.push(Archetype {
        agents: None,
        agent_tools: None,
        dynamic: None,
        ..archetype.clone()
    });
    if let Some(dynamic) = &archetype.dynamic {
        // Its tools are checked one by one; here only its filters are of interest.
        let dynamic = crate::manifest::archetype::Dynamic {
            tools: None,
            ..dynamic.clone()
        };
        parts.push(Archetype {
            dynamic: Some(dynamic),
            ..alone(None, None)
        });
    }
    for part in &parts {
        let mut out = Equipment::default();
        if let Err(error) = ways(world, part, 0, &mut out) {
            messages.push(error.message);
        }
    }
}
