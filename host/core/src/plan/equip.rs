//! What an agent holds: plugins, resolved, checked against their imports, left out or refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{LeftOut, PlanError, PlanErrorKind, Reach, choices};
use crate::grant::imports::{Blame, Missing, grouped, missing};
use crate::grant::resolve::{Taken, resolve};
use crate::grant::{Holding, Holdings};
use crate::id::{PluginName, ToolName};
use crate::manifest::archetype::{Archetype, GrantRequest, ToolGrant};
use crate::tool::PluginInfo;
use crate::world::World;

/// What came of a set of grants.
#[derive(Debug, Default)]
pub(super) struct Equipment {
    pub(super) holdings: Holdings,
    pub(super) warnings: Vec<String>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) reach: Vec<Reach>,
    /// What policy took: with `strict` the agent does not start.
    pub(super) lost: Vec<String>,
}

/// The plugins that come with Fief's own sources; a test compares the list with the directory.
pub const FIRST_PARTY: [&str; 6] = ["calculator", "confirm", "files", "redact", "web", "word-count"];

/// Who grants, for messages and rules.
pub(super) struct Granter<'a> {
    /// Such as ``archetype `explore` ``.
    pub(super) name: String,
    /// Where it is written: a path, `built in`, `rust`, `fief.toml`.
    pub(super) origin: &'a str,
    /// The key of the entries: `tools`, `filters`.
    pub(super) key: &'static str,
}

impl Granter<'_> {
    fn place(&self) -> String {
        format!("{} ({}), `{}`", self.name, self.origin, self.key)
    }
}

/// What an agent gets whose manifest lists `grants`.
pub(super) fn listed(world: &World, grants: &[ToolGrant], granter: &Granter<'_>) -> Result<Equipment, PlanError> {
    let mut out = Equipment::default();
    for entry in merged(grants, granter)? {
        let plugin = find(world, &entry, granter)?;
        let tools = allowed(plugin, &entry, granter)?;
        if let Some(holding) = out.hold(world, plugin, &entry.grant, granter, true)? {
            out.holdings.insert(plugin.name.clone(), Holding { tools, ..holding });
        }
        if plugin.tools.is_empty() {
            out.warnings
                .push(format!("{}: plugin `{}` offers no tools", granter.place(), plugin.name));
        }
    }
    Ok(out)
}

/// What an agent gets whose manifest says nothing of tools and that has no parent: every plugin, as wide as policy.
pub(super) fn everything(world: &World, archetype: &Archetype, granter: &Granter<'_>) -> Result<Equipment, PlanError> {
    let mut out = Equipment::default();
    let is_wanted = |plugin: &&Arc<PluginInfo>| {
        plugin
            .tools
            .iter()
            .any(|tool| !archetype.disallows(&plugin.name, &tool.name))
    };
    for plugin in world.plugins.values().filter(is_wanted) {
        if let Some(holding) = out.hold(world, plugin, &GrantRequest::Policy, granter, false)? {
            let tools = plugin.tools.iter().map(|tool| tool.name.clone()).collect();
            out.holdings.insert(plugin.name.clone(), Holding { tools, ..holding });
        }
    }
    Ok(out)
}

/// Filters, in order. One that cannot link is an error whatever the reason: an agent never runs unwatched.
pub(super) fn filters(
    world: &World,
    grants: &[ToolGrant],
    granter: &Granter<'_>,
    out: &mut Equipment,
) -> Result<Vec<(PluginName, Holding)>, PlanError> {
    let mut filters: Vec<(PluginName, Holding)> = Vec::new();
    for entry in grants {
        let plugin = find(world, entry, granter)?;
        if !plugin.filter {
            return Err(PlanError::configuration(format!(
                "{}: plugin `{}` exports no `fief:plugin/filter`, so it cannot see calls",
                granter.place(),
                plugin.name
            )));
        }
        let mut own = Equipment::default();
        let holding = own.hold(world, plugin, &entry.grant, granter, true)?;
        let Some(holding) = holding else {
            let kind = if world.policy.strict {
                PlanErrorKind::Strict
            } else {
                PlanErrorKind::Configuration
            };
            let why = own
                .left_out
                .iter()
                .map(LeftOut::with_flag)
                .collect::<Vec<_>>()
                .join("; ");
            let message = format!(
                "{}: filter `{}` cannot link, and no agent runs without it: {why}",
                granter.place(),
                plugin.name
            );
            return Err(PlanError { kind, message });
        };
        out.absorb(own);
        let filter = (plugin.name.clone(), holding);
        if !filters.contains(&filter) {
            filters.push(filter);
        }
    }
    Ok(filters)
}

/// What an agent holds without the tools that its archetype refuses itself; a plugin of which no tool is left goes.
pub(super) fn withhold(archetype: &Archetype, holdings: Arc<Holdings>) -> Arc<Holdings> {
    if archetype.disallow.is_empty() {
        return holdings;
    }
    let mut kept = Arc::unwrap_or_clone(holdings);
    kept.retain(|plugin, holding| {
        holding.tools.retain(|tool| !archetype.disallows(plugin, tool));
        !holding.tools.is_empty()
    });
    Arc::new(kept)
}

impl Equipment {
    /// Adds all but the holdings of `other`.
    pub(super) fn absorb(&mut self, other: Self) {
        self.warnings.extend(other.warnings);
        self.left_out.extend(other.left_out);
        self.reach.extend(other.reach);
        self.lost.extend(other.lost);
    }

    /// Resolves one plugin; `None` if it is left out. `named` tells what a manifest lists from what merely lies in a
    /// plugin directory.
    fn hold(
        &mut self,
        world: &World,
        plugin: &PluginInfo,
        request: &GrantRequest,
        granter: &Granter<'_>,
        named: bool,
    ) -> Result<Option<Holding>, PlanError> {
        let resolved = resolve(plugin, request, &world.policy, &granter.name)?;
        let lacking = missing(plugin, request, &resolved);
        if named
            && lacking
                .iter()
                .any(|missing| !matches!(missing.blame, Blame::Policy { .. }))
        {
            return Err(unlinkable(plugin, &lacking, granter));
        }
        self.reach.extend(resolved.reach);
        self.warnings.extend(resolved.warnings);
        if !lacking.is_empty() {
            self.leave_out(&plugin.name, &lacking);
            return Ok(None);
        }
        for Taken {
            target,
            why,
            flag,
            kind: _,
        } in &resolved.taken
        {
            let line = format!(
                "{}: plugin `{}` runs without all of `{target}`: {why}; `{flag}` would allow it",
                granter.name, plugin.name
            );
            self.lost.push(line.clone());
            self.warnings.push(line);
        }
        Ok(Some(Holding {
            digest: plugin.digest,
            tools: BTreeSet::new(),
            grant: resolved.grant,
        }))
    }

    /// A plugin that cannot link. Whatever else policy took from it is of no interest: it does not run.
    fn leave_out(&mut self, plugin: &PluginName, lacking: &[Missing]) {
        // Each flag is named once, after all that it would allow; but where flags alone do not help, beside what they
        // would allow.
        let flags: Option<Vec<&str>> = grouped(lacking).iter().map(|(_, blame)| blame.flag()).collect();
        let (why, flag) = match flags {
            Some(flags) => {
                let names: Vec<String> = lacking.iter().map(|one| format!("`{}`", one.interface)).collect();
                (
                    format!("{}: not allowed by policy", names.join(", ")),
                    Some(flags.join(" ")),
                )
            }
            None => (lines(lacking, "; "), None),
        };
        let allow = flag
            .as_ref()
            .map(|flag| format!("; `{flag}` would allow it"))
            .unwrap_or_default();
        let line = format!("plugin `{plugin}` is left out, it cannot link: {why}{allow}");
        self.lost.push(line.clone());
        self.warnings.push(line);
        self.left_out.push(LeftOut {
            plugin: plugin.clone(),
            why,
            flag,
        });
    }

    /// With `strict`, what policy took is an error.
    pub(super) fn refuse_losses(&self, world: &World, who: &str) -> Result<(), PlanError> {
        if !world.policy.strict || self.lost.is_empty() {
            return Ok(());
        }
        let message = format!(
            "{who} does not start under `[policy] strict`:\n  {}",
            self.lost.join("\n  ")
        );
        Err(PlanError {
            kind: PlanErrorKind::Strict,
            message,
        })
    }
}

fn lines(lacking: &[Missing], between: &str) -> String {
    let line = |(names, blame): (String, &Blame)| format!("{names}: {blame}");
    grouped(lacking).into_iter().map(line).collect::<Vec<_>>().join(between)
}

fn unlinkable(plugin: &PluginInfo, lacking: &[Missing], granter: &Granter<'_>) -> PlanError {
    PlanError::configuration(format!(
        "{}: plugin `{}` cannot link what it imports:\n  {}",
        granter.place(),
        plugin.name,
        lines(lacking, "\n  ")
    ))
}

/// One entry for a plugin: entries that differ only in the tools that they allow are one.
fn merged(grants: &[ToolGrant], granter: &Granter<'_>) -> Result<Vec<ToolGrant>, PlanError> {
    let mut out: Vec<ToolGrant> = Vec::new();
    for entry in grants {
        let Some(other) = out.iter_mut().find(|other| other.plugin == entry.plugin) else {
            out.push(entry.clone());
            continue;
        };
        if other.grant != entry.grant || other.digest != entry.digest {
            return Err(PlanError::configuration(format!(
                "{}: plugin `{}` stands there twice with different grants; write one entry",
                granter.place(),
                entry.plugin
            )));
        }
        other.allow = match (other.allow.take(), &entry.allow) {
            (Some(mut tools), Some(more)) => {
                tools.extend(more.iter().cloned());
                Some(tools)
            }
            _ => None,
        };
    }
    Ok(out)
}

/// The plugin that an entry names, in the build that it pins.
fn find<'a>(world: &'a World, entry: &ToolGrant, granter: &Granter<'_>) -> Result<&'a PluginInfo, PlanError> {
    let Some(plugin) = world.plugins.get(&entry.plugin) else {
        let known = world.plugins.keys().map(PluginName::as_str);
        let found = choices(entry.plugin.as_str(), known);
        let install = match FIRST_PARTY.iter().find(|name| **name == entry.plugin.as_str()) {
            Some(name) => format!("\nhint: in a checkout of Fief, `fief plugin install plugins/{name}` installs it"),
            None if found.contains("\nhint: ") => String::new(),
            None => "\nhint: `fief plugin install PATH` installs a plugin".to_owned(),
        };
        return Err(PlanError::configuration(format!(
            "{}: there is no plugin `{}`; found are {found}{install}",
            granter.place(),
            entry.plugin,
        )));
    };
    match entry.digest {
        Some(pinned) if pinned != plugin.digest => Err(PlanError::configuration(format!(
            "{}: plugin `{}` is pinned to `{pinned}`, and `{}` is `{}`",
            granter.place(),
            plugin.name,
            plugin.path.display(),
            plugin.digest
        ))),
        _ => Ok(plugin),
    }
}

/// The tools of a plugin that an entry allows.
fn allowed(plugin: &PluginInfo, entry: &ToolGrant, granter: &Granter<'_>) -> Result<BTreeSet<ToolName>, PlanError> {
    let offered = || plugin.tools.iter().map(|tool| tool.name.as_str());
    let Some(allow) = &entry.allow else {
        return Ok(plugin.tools.iter().map(|tool| tool.name.clone()).collect());
    };
    for tool in allow {
        if !offered().any(|offered| offered == tool.as_str()) {
            return Err(PlanError::configuration(format!(
                "{}: plugin `{}` has no tool `{tool}`; it has {}",
                granter.place(),
                plugin.name,
                choices(tool.as_str(), offered().collect::<Vec<_>>())
            )));
        }
    }
    Ok(allow.iter().cloned().collect())
}
