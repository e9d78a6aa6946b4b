//! `fief agents`: the archetypes that can be found, and what is wrong with some.

use std::path::Path;

use fief::core::manifest::archetype::Archetype;
use fief::core::plan;
use serde_json::json;

use super::host;
use crate::args::{Agents, AgentsCommand, Allow, Places};
use crate::exit::{Exit, Fault};
use crate::render::text::{Paint, fit, one_line, width};
use crate::render::{self, source};

pub(crate) async fn agents(args: Agents) -> Result<Exit, Fault> {
    match args.command {
        Some(AgentsCommand::Check { path, places }) => check(&path, &places).await,
        None => list(&args.places, args.json).await,
    }
}

async fn list(places: &Places, as_json: bool) -> Result<Exit, Fault> {
    let host = host(places, &Allow::default(), None).await?;
    let world = host.world();
    let registered = |one: &Archetype| world.registered.iter().any(|name| name.key() == one.name.key());
    if as_json {
        let all: Vec<_> = world
            .archetypes
            .values()
            .map(|one| {
                json!({
                    "name": one.name,
                    "version": one.version,
                    "description": one.description,
                    "origin": one.origin,
                    "registered": registered(one),
                    "model": one.config.model,
                    "tools": tools(one),
                })
            })
            .collect();
        render::json(&all);
        return Ok(Exit::Done);
    }
    let (paint, width) = (Paint::for_stdout(), width().unwrap_or(120));
    let lines: Vec<String> = world
        .archetypes
        .values()
        .map(|one| {
            let tools = tools(one).map_or("inherits its tools".into(), |tools| match tools.as_slice() {
                [] => "no tools".to_owned(),
                some => some.join(", "),
            });
            let mark = if registered(one) { "" } else { " (not registered)" };
            let tail = format!("{} · {tools} · {}{mark}", one.description, one.origin);
            let room = width.saturating_sub(one.name.as_str().len() + 2).max(20);
            format!("{}  {}", paint.cyan(one.name.as_str()), fit(&one_line(&tail), room))
        })
        .collect();
    render::painted(&lines.join("\n"));
    Ok(Exit::Done)
}

/// What an archetype lists, as people write it; absent: it inherits.
fn tools(archetype: &Archetype) -> Option<Vec<String>> {
    let grants = archetype.tools.as_ref()?;
    let all = grants.iter().flat_map(|grant| match &grant.allow {
        Some(tools) => tools.iter().map(|tool| format!("{}.{tool}", grant.plugin)).collect(),
        None => vec![format!("{}.*", grant.plugin)],
    });
    Some(all.collect())
}

async fn check(path: &Path, places: &Places) -> Result<Exit, Fault> {
    let host = host(places, &Allow::default(), None).await?;
    let checked = host.check_archetypes(path)?;
    let mut findings = 0;
    for error in &checked.errors {
        findings += 1;
        render::fault(&source::error(error), &error.hint.iter().cloned().collect::<Vec<_>>());
    }
    for warning in &checked.warnings {
        findings += 1;
        render::warn(&source::warning(warning));
    }
    for archetype in &checked.archetypes {
        for finding in plan::check(host.world(), archetype) {
            if finding.policy {
                render::note(&format!("note: {}", finding.message));
            } else {
                findings += 1;
                render::warn(&finding.message);
            }
        }
    }
    if findings == 0 {
        let names: Vec<String> = checked.archetypes.iter().map(|one| one.name.to_string()).collect();
        render::data(&format!("clean: {}", names.join(", ")));
        return Ok(Exit::Done);
    }
    Ok(Exit::Failed)
}
