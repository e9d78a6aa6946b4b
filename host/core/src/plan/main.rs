//! The main agent: the first, nobody's child.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::equip::{Granter, everything, filters, listed, withhold};
use super::settings::Layers;
use super::spec::{Parts, planned};
use super::ways::ways;
use super::{PlanError, PlanErrorKind, Planned, child};
use crate::agent::spec::{AgentSpec, ChildRequest};
use crate::id::ArchetypeName;
use crate::manifest::archetype::Archetype;
use crate::world::World;

/// The main agent under `archetype`.
///
/// Where the archetype is silent about tools it gets every plugin, as wide as policy. `[agents.config]` is about
/// children and says nothing here. The run's own cap on children, `[policy] max_children`, is the main agent's bound.
///
/// # Errors
/// [`PlanErrorKind::Configuration`] for whatever a manifest or the configuration has wrong, an unlinkable filter among
/// it; [`PlanErrorKind::Strict`] where policy takes something from this agent, or from one that it can come to start,
/// and is strict.
pub fn main(world: &World, archetype: &Archetype) -> Result<Planned, PlanError> {
    let planned = alone(world, archetype)?;
    if world.policy.strict {
        let strict = |error: &PlanError| error.kind == PlanErrorKind::Strict;
        if let Some(error) = reachable(world, &planned.spec)
            .into_iter()
            .filter_map(|(_, plan)| plan.err())
            .find(strict)
        {
            return Err(error);
        }
    }
    Ok(planned)
}

fn alone(world: &World, archetype: &Archetype) -> Result<Planned, PlanError> {
    let name = format!("archetype `{}`", archetype.name);
    let granter = |key| Granter {
        name: name.clone(),
        origin: &archetype.origin,
        key,
    };
    let mut equipment = match &archetype.tools {
        Some(grants) => listed(world, grants, &granter("tools"))?,
        None => everything(world, archetype, &granter("tools"))?,
    };
    let layers = Layers {
        world,
        who: format!("{name} ({})", archetype.origin),
        lenient_model: is_markdown(archetype),
        own: &archetype.config,
        defaults: None,
        parent: None,
    };
    let mut settings = layers.settle(&mut equipment.warnings)?;
    // Nobody stands between the main agent and the watcher, and it has no parent with a history.
    settings.forward_events = true;
    settings.parent_history = None;
    let children = settings
        .bounds
        .children
        .unwrap_or(u32::MAX)
        .min(world.policy.max_children);
    settings.bounds.children = Some(children);
    let filters = filters(world, layers.filters(), &granter("filters"), &mut equipment)?;
    let ways = ways(world, archetype, 0, &mut equipment)?;
    equipment.refuse_losses(world, &name)?;
    let holdings = withhold(archetype, Arc::new(std::mem::take(&mut equipment.holdings)));
    let parts = Parts {
        label: archetype.name.to_string(),
        depth: 0,
        instruction: Arc::clone(&archetype.instruction),
        holdings,
        filters,
        ways,
        report_schema: archetype.report_schema.clone(),
    };
    Ok(planned(world, parts, settings, equipment))
}

/// Whether an archetype is a Markdown file, whose `model` may be another product's name.
pub(super) fn is_markdown(archetype: &Archetype) -> bool {
    let extension = std::path::Path::new(&archetype.origin).extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}

/// The plan of every archetype that an agent can come to start, its children's children included, each once for each
/// set of rights that it could inherit: what an operator should hear about before the run, not in the middle of it.
#[must_use]
pub fn reachable(world: &World, agent: &AgentSpec) -> Vec<(ArchetypeName, Result<Planned, PlanError>)> {
    let mut out = Vec::new();
    let mut seen = BTreeSet::new();
    let mut next = vec![agent.clone()];
    while let Some(parent) = next.pop() {
        let archetypes: Vec<Arc<Archetype>> = parent
            .ways
            .spawn
            .iter()
            .chain(&parent.ways.agent_tools)
            .cloned()
            .collect();
        for archetype in archetypes {
            // What a child inherits differs by parent only where it is silent about its tools.
            let inherits = archetype.tools.is_none().then(|| parent.label.clone());
            if !seen.insert((archetype.name.key(), parent.depth, inherits)) {
                continue;
            }
            let request = ChildRequest::Archetype {
                name: archetype.name.clone(),
                task: String::new(),
                label: None,
            };
            let plan = child(world, &parent, &request);
            if let Ok(planned) = &plan {
                next.push(planned.spec.clone());
            }
            out.push((archetype.name.clone(), plan));
        }
    }
    out
}
