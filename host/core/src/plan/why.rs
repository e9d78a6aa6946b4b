//! Why an agent can, or cannot, call a tool.

use super::{PlanError, Planned, choices, main};
use crate::grant::resolve::{AS_POLICY, Kind, Reach};
use crate::id::ToolName;
use crate::manifest::archetype::{Agents, Archetype};
use crate::nearest::nearest;
use crate::tool::{PluginInfo, wire_name};
use crate::world::World;

/// Why the main agent under `archetype` can call `tool`, or cannot and what would change that: some lines for a person.
/// A tool is named as people or as models write it.
///
/// # Errors
/// [`PlanError`] if there is no such tool, with the nearest name.
pub fn why(world: &World, archetype: &Archetype, tool: &str) -> Result<String, PlanError> {
    let asked = find(world, archetype, tool)?;
    let planned = match main(world, archetype) {
        Ok(planned) => planned,
        Err(error) => {
            return Ok(format!(
                "`{tool}` cannot be called, since the agent does not start: {error}"
            ));
        }
    };
    let declared = planned.spec.declarations.iter().map(|declaration| &declaration.name);
    if let Some(name) = declared.clone().find(|name| *name == tool || wire_name(name) == tool) {
        return Ok(callable(&planned, archetype, name));
    }
    let reason = match asked {
        Asked::Way => no_way(world, archetype, tool),
        Asked::Tool(info, tool) => not_held(archetype, &planned, info, tool),
    };
    Ok(format!("`{tool}` cannot be called: {reason}"))
}

/// What was asked about.
enum Asked<'a> {
    /// A way to a child.
    Way,
    /// A tool of a plugin.
    Tool(&'a PluginInfo, &'a ToolName),
}

fn find<'a>(world: &'a World, archetype: &Archetype, asked: &str) -> Result<Asked<'a>, PlanError> {
    let dynamic = archetype.dynamic.iter().map(|dynamic| dynamic.name.as_str());
    let agent_tools = world.archetypes.values().map(|one| one.name.as_str());
    let ways: Vec<&str> = ["spawn_subagent", "dynamic_subagent"]
        .into_iter()
        .chain(dynamic)
        .chain(agent_tools.filter(|name| name.starts_with("agent-")))
        .collect();
    // Names of archetypes match without regard to case.
    let is_asked = |way: &&str| *way == asked || (way.starts_with("agent-") && way.eq_ignore_ascii_case(asked));
    if ways.iter().any(is_asked) {
        return Ok(Asked::Way);
    }
    let plugins = world.plugins.values();
    let all = plugins.flat_map(|plugin| plugin.tools.iter().map(move |tool| (plugin, &tool.name)));
    let all: Vec<(String, &PluginInfo, &ToolName)> = all
        .map(|(plugin, tool)| (format!("{}.{tool}", plugin.name), &**plugin, tool))
        .collect();
    if let Some((_, plugin, tool)) = all.iter().find(|(name, ..)| name == asked || wire_name(name) == asked) {
        return Ok(Asked::Tool(plugin, tool));
    }
    let (plugin, tool) = asked
        .split_once('.')
        .or_else(|| asked.split_once("__"))
        .unwrap_or((asked, ""));
    let what = if asked.starts_with("agent-") {
        format!("there is no archetype `{asked}`")
    } else {
        match world.plugins.values().find(|info| info.name.as_str() == plugin) {
            None => {
                let known: Vec<String> = world.plugins.keys().map(|name| format!("`{name}`")).collect();
                let known = if known.is_empty() {
                    "none".into()
                } else {
                    known.join(", ")
                };
                format!("there is no tool `{asked}`: there is no plugin `{plugin}`; found are {known}")
            }
            Some(info) => {
                let offered: Vec<String> = info.tools.iter().map(|tool| format!("`{}`", tool.name)).collect();
                let offered = offered.join(", ");
                match tool {
                    "" => format!("`{plugin}` is a plugin; its tools are {offered}"),
                    tool => format!("plugin `{plugin}` has no tool `{tool}`; it has {offered}"),
                }
            }
        }
    };
    let names = all.iter().map(|(name, ..)| name.as_str()).chain(ways);
    Err(PlanError::configuration(match nearest(asked, names) {
        Some(near) => format!("{what}\nhint: did you mean `{near}`?"),
        None => what,
    }))
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
            "\n  {}{target}: need {}, archetype {}, policy {}: has {}",
            reach.kind,
            column(&reach.need),
            column(&reach.archetype),
            column(&reach.policy),
            column(&reach.effective)
        ));
        if let Some(flag) = widening(reach) {
            lines.push_str(&format!("\nhint: `{flag}` would give it more"));
        }
    }
    lines
}

/// The flag that would give a plugin what it needs where only policy holds it back. What a manifest's own table grants
/// and policy takes is a warning with its flag already.
fn widening(reach: &Reach) -> Option<String> {
    if reach.archetype.as_deref() != Some(AS_POLICY) {
        return None;
    }
    let less = match &reach.effective {
        None => true,
        Some(held) => reach.kind == Kind::File && held.starts_with("read") && reach.need.as_deref() == Some("write"),
    };
    less.then(|| match reach.kind {
        Kind::File if reach.effective.is_some() => format!("--allow-write {}", reach.target),
        Kind::File => "--allow-read DIR".into(),
        Kind::Http => "--allow-net ORIGIN".into(),
        Kind::Secret => format!("--allow-secret {}@ORIGIN", reach.target),
        Kind::Env => format!("[policy] env = [\"{}\"]", reach.target),
        Kind::Toolbox | Kind::Person => format!("[policy] {} = true", reach.kind),
        Kind::Limit => "[policy] limits".into(),
    })
}

fn not_held(archetype: &Archetype, planned: &Planned, info: &PluginInfo, tool: &ToolName) -> String {
    let plugin = &info.name;
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
    if archetype.disallows(plugin, tool) {
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
        choices(tool.as_str(), allow)
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
        return format!("{place} does not name it in `agent_tools`");
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
