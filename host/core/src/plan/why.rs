//! Why an agent can, or cannot, call a tool.

use super::{Planned, choices, main};
use crate::id::{PluginName, ToolName};
use crate::manifest::archetype::{Agents, Archetype};
use crate::tool::wire_name;
use crate::world::World;

/// Why the main agent under `archetype` can call `tool`, or cannot and what would change that: some lines for a person.
/// A tool is named as people or as models write it.
#[must_use]
pub fn why(world: &World, archetype: &Archetype, tool: &str) -> String {
    let planned = match main(world, archetype) {
        Ok(planned) => planned,
        Err(error) => return format!("`{tool}` cannot be called, since the agent does not start: {error}"),
    };
    let declared = planned.spec.declarations.iter().map(|declaration| &declaration.name);
    if let Some(name) = declared.clone().find(|name| *name == tool || wire_name(name) == tool) {
        return callable(&planned, archetype, name);
    }
    let is_way = tool == "spawn_subagent" || tool == "dynamic_subagent" || tool.starts_with("agent-");
    if is_way || archetype.dynamic.as_ref().is_some_and(|dynamic| dynamic.name == tool) {
        return format!("`{tool}` cannot be called: {}", no_way(world, archetype, tool));
    }
    let (plugin, name) = tool
        .split_once('.')
        .or_else(|| tool.split_once("__"))
        .unwrap_or((tool, ""));
    format!(
        "`{tool}` cannot be called: {}",
        not_held(world, archetype, &planned, plugin, name)
    )
}

fn callable(planned: &Planned, archetype: &Archetype, name: &str) -> String {
    let Some((reference, _)) = planned.spec.tools.get(name) else {
        return format!(
            "`{name}` can be called: archetype `{}` ({}) names it",
            archetype.name, archetype.origin
        );
    };
    let mut lines = match &archetype.tools {
        Some(_) => {
            format!(
                "`{name}` can be called: archetype `{}` ({}) lists it",
                archetype.name, archetype.origin
            )
        }
        None => format!(
            "`{name}` can be called: archetype `{}` is silent about tools, so that it gets every plugin as wide as policy",
            archetype.name
        ),
    };
    for reach in planned.reach.iter().filter(|reach| reach.plugin == reference.plugin) {
        let column = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing".into());
        let target = if reach.target.is_empty() {
            String::new()
        } else {
            format!(" `{}`", reach.target)
        };
        lines.push_str(&format!(
            "\n  {:?}{target}: need {}, archetype {}, policy {}: has {}",
            reach.kind,
            column(&reach.need),
            column(&reach.archetype),
            column(&reach.policy),
            column(&reach.effective)
        ));
    }
    lines
}

fn not_held(world: &World, archetype: &Archetype, planned: &Planned, plugin: &str, tool: &str) -> String {
    let known = world.plugins.keys().map(PluginName::as_str);
    let Some(info) = world.plugins.values().find(|info| info.name.as_str() == plugin) else {
        return format!("there is no plugin `{plugin}`; found are {}", choices(plugin, known));
    };
    let offered: Vec<&str> = info.tools.iter().map(|offered| offered.name.as_str()).collect();
    if tool.is_empty() {
        return format!("`{plugin}` is a plugin; its tools are {}", choices(tool, offered));
    }
    if !offered.contains(&tool) {
        return format!(
            "plugin `{plugin}` has no tool `{tool}`; it has {}",
            choices(tool, offered)
        );
    }
    if let Some(left) = planned.left_out.iter().find(|left| left.plugin == info.name) {
        let flag = left
            .flag
            .as_ref()
            .map(|flag| format!("\nhint: `{flag}` would allow it"));
        return format!(
            "plugin `{plugin}` is left out, it cannot link: {}{}",
            left.why,
            flag.unwrap_or_default()
        );
    }
    if tool.parse().is_ok_and(|tool| archetype.disallows(&info.name, &tool)) {
        return format!(
            "archetype `{}` ({}) refuses it itself",
            archetype.name, archetype.origin
        );
    }
    let listed: Vec<_> = archetype.tools.iter().flatten().collect();
    let Some(entry) = listed.iter().find(|entry| entry.plugin == info.name) else {
        let line = format!("[[tools]] plugin = \"{plugin}\"");
        return format!(
            "archetype `{}` ({}) does not list plugin `{plugin}`\nhint: `{line}` would",
            archetype.name, archetype.origin
        );
    };
    let allow: Vec<&str> = entry.allow.iter().flatten().map(ToolName::as_str).collect();
    format!(
        "archetype `{}` ({}) lists plugin `{plugin}`, and its `allow` holds only {}",
        archetype.name,
        archetype.origin,
        choices(tool, allow)
    )
}

fn no_way(world: &World, archetype: &Archetype, tool: &str) -> String {
    let place = format!("archetype `{}` ({})", archetype.name, archetype.origin);
    let deep = format!("`[policy] max_depth` is {}", world.policy.max_depth);
    let shallow = world.policy.max_depth == 0;
    if tool.starts_with("agent-") {
        let names: Vec<&str> = archetype
            .agent_tools
            .iter()
            .flatten()
            .map(crate::id::ArchetypeName::as_str)
            .collect();
        if shallow && names.iter().any(|name| name.eq_ignore_ascii_case(tool)) {
            return deep;
        }
        let known = world.archetypes.contains_key(&tool.to_ascii_lowercase());
        return match known {
            true => format!("{place} does not name it in `agent_tools`"),
            false => format!("there is no archetype `{tool}`"),
        };
    }
    if tool == "spawn_subagent" {
        let none = match &archetype.agents {
            None => true,
            Some(Agents::Named(names)) => names.is_empty(),
            Some(Agents::All) => false,
        };
        return match (none, shallow) {
            (true, _) => format!("{place} names no `agents`"),
            (false, true) => deep,
            (false, false) => format!("{place} may spawn every registered archetype, and none is registered"),
        };
    }
    match (&archetype.dynamic, shallow) {
        (None, _) => format!("{place} has no `[dynamic]` table"),
        (Some(_), true) => deep,
        (Some(dynamic), false) => format!("{place} calls it `{}`", dynamic.name),
    }
}
