//! Putting an agent together from what was resolved.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::Planned;
use super::equip::Equipment;
use super::settings::Settings;
use crate::agent::spec::{AgentSpec, Ways};
use crate::grant::{Holding, Holdings};
use crate::id::{PluginName, ToolRef};
use crate::tool::{Declaration, ToolSpec};
use crate::world::World;

/// The parts of an agent that its plan does not compute.
pub(super) struct Parts {
    pub(super) label: String,
    pub(super) depth: u32,
    pub(super) instruction: Arc<str>,
    pub(super) holdings: Arc<Holdings>,
    pub(super) filters: Vec<(PluginName, Holding)>,
    pub(super) ways: Ways,
    pub(super) report_schema: Option<Arc<Value>>,
}

/// The tools that are held, in the order in which they are declared: by plugin, then in the plugin's own order.
fn held<'a>(world: &'a World, holdings: &'a Holdings) -> impl Iterator<Item = (ToolRef, &'a ToolSpec)> {
    holdings.iter().flat_map(|(name, holding)| {
        // A plugin of another digest would be another plugin; the world is frozen, so there is none.
        let plugin = world.plugins.get(name).filter(|plugin| plugin.digest == holding.digest);
        let tools = plugin.into_iter().flat_map(|plugin| &plugin.tools);
        let tools = tools.filter(|tool| holding.tools.contains(&tool.name));
        tools.map(|tool| {
            (
                ToolRef {
                    plugin: name.clone(),
                    tool: tool.name.clone(),
                },
                tool,
            )
        })
    })
}

/// The names of the tools that are held, as people write them, in the order of the declarations.
pub(super) fn names(world: &World, holdings: &Holdings) -> Vec<String> {
    held(world, holdings).map(|(tool, _)| tool.to_string()).collect()
}

pub(super) fn planned(world: &World, parts: Parts, settings: Settings, equipment: Equipment) -> Planned {
    let Parts {
        label,
        depth,
        instruction,
        holdings,
        filters,
        ways,
        report_schema,
    } = parts;
    let mut tools = BTreeMap::new();
    let mut declarations = Vec::new();
    for (reference, spec) in held(world, &holdings) {
        let name = reference.to_string();
        declarations.push(Declaration {
            name: name.clone(),
            description: spec.description.clone(),
            input_schema: Arc::clone(&spec.input_schema),
        });
        tools.insert(name, (reference, Arc::new(spec.clone())));
    }
    let own: Vec<String> = declarations
        .iter()
        .map(|declaration| declaration.name.clone())
        .collect();
    declarations.extend(crate::agent::ways::declarations(&ways, &own));
    let Settings {
        model,
        generation,
        parallel_tool_calls,
        bounds,
        parent_history,
        forward_events,
        summary,
        summary_instruction,
        task_suffix,
    } = settings;
    let Equipment {
        holdings: _,
        warnings,
        left_out,
        reach,
        lost: _,
    } = equipment;
    Planned {
        spec: AgentSpec {
            label,
            depth,
            instruction,
            model,
            generation,
            parallel_tool_calls,
            holdings,
            tools: Arc::new(tools),
            declarations: declarations.into(),
            filters,
            ways,
            bounds,
            parent_history,
            forward_events,
            summary,
            summary_instruction,
            task_suffix,
            report_schema,
        },
        warnings,
        left_out,
        reach,
    }
}
