//! Whom an agent may start, and how.

use std::sync::Arc;

use super::equip::{Equipment, Granter, filters, listed};
use super::{PlanError, choices};
use crate::agent::spec::Ways;
use crate::id::ArchetypeName;
use crate::manifest::archetype::{Agents, Archetype};
use crate::world::World;

/// The name of the main agent's archetype, which nobody may spawn.
const MAIN: &str = "main";
/// What the name of an archetype that is served as a tool starts with.
const PREFIX: &str = "agent-";

/// Whether an archetype names any way to a child.
fn wants(archetype: &Archetype) -> bool {
    let names = match &archetype.agents {
        None => false,
        Some(Agents::All) => true,
        Some(Agents::Named(names)) => !names.is_empty(),
    };
    names || archetype.agent_tools.as_ref().is_some_and(|names| !names.is_empty()) || archetype.dynamic.is_some()
}

/// The ways to a child that `archetype` names, for an agent at `depth`. Names are checked also where the depth allows
/// none of them.
pub(super) fn ways(world: &World, archetype: &Archetype, depth: u32, out: &mut Equipment) -> Result<Ways, PlanError> {
    let who = format!("archetype `{}`", archetype.name);
    let spawn = match &archetype.agents {
        None => Vec::new(),
        Some(Agents::All) => {
            let mut all = Vec::new();
            for name in world.registered.iter().filter(|name| name.key() != MAIN) {
                all.push(find(world, name, archetype, "agents")?);
            }
            all
        }
        Some(Agents::Named(names)) => catalogue(world, names, archetype, "agents")?,
    };
    let agent_tools = catalogue(
        world,
        archetype.agent_tools.as_deref().unwrap_or_default(),
        archetype,
        "agent_tools",
    )?;
    if let Some(odd) = agent_tools.iter().find(|tool| !tool.name.as_str().starts_with(PREFIX)) {
        return Err(PlanError::configuration(format!(
            "{who} ({}), `agent_tools`: `{}` does not start with `{PREFIX}`, as the name of an agent that is a tool must",
            archetype.origin, odd.name
        )));
    }
    if depth >= world.policy.max_depth {
        if wants(archetype) {
            out.warnings.push(format!(
                "{who} may start no child at depth {depth}: `[policy] max_depth` is {}",
                world.policy.max_depth
            ));
        }
        return Ok(Ways::default());
    }
    let granter = |key| Granter {
        name: who.clone(),
        origin: &archetype.origin,
        key,
    };
    let defaults = &world.defaults;
    let mut ways = Ways {
        skip_summarization: archetype
            .spawn
            .skip_summarization
            .or(defaults.skip_summarization)
            .unwrap_or(false),
        spawn_filters: filters(
            world,
            archetype.spawn.filters.as_deref().unwrap_or_default(),
            &granter("[spawn] filters"),
            out,
        )?,
        spawn,
        agent_tools,
        defaults: defaults.clone(),
        ..Ways::default()
    };
    if let Some(dynamic) = &archetype.dynamic {
        ways.dynamic_skip_summarization = dynamic
            .config
            .skip_summarization
            .or(defaults.skip_summarization)
            .unwrap_or(false);
        let named = dynamic.config.filters.as_ref().or(defaults.filters.as_ref());
        ways.dynamic_filters = filters(
            world,
            named.map_or(&[], Vec::as_slice),
            &granter("[dynamic] filters"),
            out,
        )?;
        if let Some(tools) = &dynamic.tools {
            let bound = listed(world, tools, &granter("[[dynamic.tools]]"))?;
            ways.dynamic_tools = super::spec::names(world, &bound.holdings);
            out.absorb(bound);
        }
        ways.dynamic = Some(Arc::new(dynamic.clone()));
    }
    Ok(ways)
}

fn catalogue(
    world: &World,
    names: &[ArchetypeName],
    archetype: &Archetype,
    key: &str,
) -> Result<Vec<Arc<Archetype>>, PlanError> {
    let mut out: Vec<Arc<Archetype>> = Vec::new();
    for name in names {
        let found = find(world, name, archetype, key)?;
        if !out.iter().any(|other| other.name.key() == found.name.key()) {
            out.push(found);
        }
    }
    Ok(out)
}

fn find(world: &World, name: &ArchetypeName, archetype: &Archetype, key: &str) -> Result<Arc<Archetype>, PlanError> {
    let place = format!("archetype `{}` ({}), `{key}`", archetype.name, archetype.origin);
    if name.key() == MAIN {
        return Err(PlanError::configuration(format!(
            "{place}: `{name}` is the main agent's and starts no child"
        )));
    }
    world.archetypes.get(&name.key()).cloned().ok_or_else(|| {
        let known = world
            .archetypes
            .values()
            .map(|known| known.name.as_str())
            .filter(|known| *known != MAIN);
        PlanError::configuration(format!(
            "{place}: there is no archetype `{name}`; found are {}",
            choices(name.as_str(), known)
        ))
    })
}
