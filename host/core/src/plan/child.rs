//! Children: by a frozen archetype, or made up by a model inside a bound.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::equip::{Equipment, Granter, filters, listed, withhold};
use super::main::is_markdown;
use super::settings::Layers;
use super::spec::{Parts, names, planned};
use super::ways::ways;
use super::{PlanError, Planned, choices};
use crate::agent::instruction::literal;
use crate::agent::spec::{AgentSpec, ChildRequest, Ways};
use crate::grant::{Holding, Holdings};
use crate::id::{ArchetypeName, PluginName};
use crate::manifest::archetype::{Archetype, Dynamic};
use crate::tool::wire_name;
use crate::world::World;

/// The child that `request` asks `parent` for. What the parent may start was settled when it was planned, and is
/// checked here again: a request is a model's words.
///
/// # Errors
/// [`super::PlanErrorKind::Request`] for an archetype or a tool out of bounds, with what is in bounds; else as for
/// [`super::main()`].
pub fn child(world: &World, parent: &AgentSpec, request: &ChildRequest) -> Result<Planned, PlanError> {
    match request {
        ChildRequest::Archetype { name, .. } => by_archetype(world, parent, offered(&parent.ways, name)?),
        ChildRequest::Dynamic { instruction, tools, .. } => {
            let Some(dynamic) = &parent.ways.dynamic else {
                return Err(PlanError::request("this agent may make up no sub-agent"));
            };
            made_up(world, parent, dynamic, instruction, tools.as_deref())
        }
    }
}

fn offered<'a>(ways: &'a Ways, name: &ArchetypeName) -> Result<&'a Archetype, PlanError> {
    let all = || ways.spawn.iter().chain(&ways.agent_tools);
    all()
        .find(|archetype| archetype.name.key() == name.key())
        .map(AsRef::as_ref)
        .ok_or_else(|| {
            let known: Vec<&str> = all().map(|archetype| archetype.name.as_str()).collect();
            PlanError::request(format!(
                "`{name}` is none of the agents that may be started here: {}",
                choices(name.as_str(), known)
            ))
        })
}

fn by_archetype(world: &World, parent: &AgentSpec, archetype: &Archetype) -> Result<Planned, PlanError> {
    let name = format!("archetype `{}`", archetype.name);
    let granter = |key| Granter {
        name: name.clone(),
        origin: &archetype.origin,
        key,
    };
    let mut equipment = Equipment::default();
    let holdings = match &archetype.tools {
        None => Arc::clone(&parent.holdings),
        Some(grants) => {
            equipment = listed(world, grants, &granter("tools"))?;
            Arc::new(std::mem::take(&mut equipment.holdings))
        }
    };
    let holdings = withhold(archetype, holdings);
    let layers = Layers {
        world,
        who: format!("{name} ({})", archetype.origin),
        lenient_model: is_markdown(archetype),
        own: &archetype.config,
        defaults: Some(&world.defaults),
        parent: Some(parent),
    };
    let settings = layers.settle(&mut equipment.warnings)?;
    let mut filters = filters(world, layers.filters(), &granter("filters"), &mut equipment)?;
    add(&mut filters, &parent.ways.spawn_filters);
    let depth = parent.depth.saturating_add(1);
    let ways = ways(world, archetype, depth, &mut equipment)?;
    equipment.refuse_losses(world, &name)?;
    let parts = Parts {
        label: archetype.name.to_string(),
        depth,
        instruction: Arc::clone(&archetype.instruction),
        holdings,
        filters,
        ways,
        report_schema: archetype.report_schema.clone(),
    };
    Ok(planned(world, parts, settings, equipment))
}

/// The filters that the way to a child names, after the child's own: a way that is watched is watched to its end.
fn add(filters: &mut Vec<(PluginName, Holding)>, more: &[(PluginName, Holding)]) {
    for filter in more {
        if !filters.contains(filter) {
            filters.push(filter.clone());
        }
    }
}

fn made_up(
    world: &World,
    parent: &AgentSpec,
    dynamic: &Dynamic,
    instruction: &str,
    tools: Option<&[String]>,
) -> Result<Planned, PlanError> {
    let name = format!("`[dynamic]` of `{}`", parent.label);
    let granter = Granter {
        name: name.clone(),
        origin: "its manifest",
        key: "[[dynamic.tools]]",
    };
    let mut equipment = Equipment::default();
    let bound = match &dynamic.tools {
        None => Arc::clone(&parent.holdings),
        Some(grants) => {
            equipment = listed(world, grants, &granter)?;
            Arc::new(std::mem::take(&mut equipment.holdings))
        }
    };
    // An empty list is what models write into every optional field: it counts as absent, since the bound holds.
    let holdings = match tools {
        Some(tools) if dynamic.expose_tool_selection && !tools.is_empty() => Arc::new(narrowed(world, &bound, tools)?),
        _ => bound,
    };
    let layers = Layers {
        world,
        who: name.clone(),
        lenient_model: false,
        own: &dynamic.config,
        defaults: Some(&world.defaults),
        parent: Some(parent),
    };
    let settings = layers.settle(&mut equipment.warnings)?;
    equipment.refuse_losses(world, &name)?;
    let parts = Parts {
        label: "dynamic".into(),
        depth: parent.depth.saturating_add(1),
        // What a model wrote is text, not a template.
        instruction: literal(instruction).into(),
        holdings,
        // No manifest names a way to a child for it, so that it has none.
        ways: Ways::default(),
        filters: parent.ways.dynamic_filters.clone(),
        report_schema: None,
    };
    Ok(planned(world, parts, settings, equipment))
}

/// `bound` without what `wanted` does not name. A name is a tool's, as people or as models write it, or a plugin's for
/// all its tools in the bound.
fn narrowed(world: &World, bound: &Holdings, wanted: &[String]) -> Result<Holdings, PlanError> {
    let all = names(world, bound);
    let mut kept = BTreeSet::new();
    let mut unknown = Vec::new();
    for name in wanted {
        let plugin = name.strip_suffix(".*").unwrap_or(name);
        let meant = |tool: &&String| {
            *tool == name || wire_name(tool) == *name || tool.split_once('.').is_some_and(|(of, _)| of == plugin)
        };
        let found: Vec<&String> = all.iter().filter(meant).collect();
        if found.is_empty() {
            unknown.push(name.as_str());
        }
        kept.extend(found);
    }
    if let Some(first) = unknown.first() {
        let listed: Vec<String> = unknown.iter().map(|name| format!("`{name}`")).collect();
        return Err(PlanError::request(format!(
            "{} cannot be given to this sub-agent; in bounds are {}",
            listed.join(", "),
            choices(first, all.iter().map(String::as_str))
        )));
    }
    let mut out = Holdings::new();
    for (plugin, holding) in bound {
        let tools: BTreeSet<_> = holding
            .tools
            .iter()
            .filter(|tool| kept.contains(&format!("{plugin}.{tool}")))
            .cloned()
            .collect();
        if !tools.is_empty() {
            out.insert(
                plugin.clone(),
                Holding {
                    tools,
                    ..holding.clone()
                },
            );
        }
    }
    Ok(out)
}
