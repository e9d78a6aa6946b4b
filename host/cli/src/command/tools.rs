//! `fief tools`: what an agent could call, with what grants, and why not more.

use std::sync::Arc;

use fief::core::plan::{self, Planned};
use fief::core::world::World;
use serde_json::{Value, json};

use super::host;
use crate::args::Tools;
use crate::exit::{Exit, Fault};
use crate::render;
use crate::render::text::{Paint, fit, one_line, sanitise, width};

pub(crate) async fn tools(args: Tools) -> Result<Exit, Fault> {
    let host = host(&args.places, &args.allow, None).await?;
    let archetype = host.archetype(args.archetype.as_deref())?;
    // What can be called does not hang on a model: none need be configured to look.
    let model = host.world().model.clone().or_else(|| Some("none".into()));
    let world = Arc::new(World {
        model,
        ..(**host.world()).clone()
    });
    if let Some(tool) = &args.why {
        render::data(&plan::why(&world, &archetype, tool).map_err(fief::Error::from)?);
        return Ok(Exit::Done);
    }
    let planned = plan::main(&world, &archetype).map_err(fief::Error::from)?;
    for warning in &planned.warnings {
        render::warn(warning);
    }
    if args.json {
        render::json(&as_json(&world, &planned));
    } else {
        render::painted(&lines(&world, &planned, Paint::for_stdout(), width().unwrap_or(120)).join("\n"));
    }
    Ok(Exit::Done)
}

fn as_json(world: &World, planned: &Planned) -> Value {
    let tools: Vec<Value> = planned
        .spec
        .declarations
        .iter()
        .map(|declared| {
            let plugin = planned.spec.tools.get(&declared.name).map(|(tool, _)| &tool.plugin);
            let info = plugin.and_then(|plugin| world.plugins.get(plugin));
            let digest = info.map(|info| match info.path.as_os_str() == "native" {
                true => "native".to_owned(),
                false => info.digest.to_string(),
            });
            json!({
                "tool": declared.name,
                "plugin": plugin,
                "digest": digest,
                "description": declared.description,
                "input_schema": declared.input_schema,
            })
        })
        .collect();
    json!({ "tools": tools, "reach": planned.reach, "left_out": planned.left_out })
}

fn lines(world: &World, planned: &Planned, paint: Paint, width: usize) -> Vec<String> {
    let mut lines = vec![format!("{} {}", paint.bold("agent"), planned.spec.label)];
    if planned.spec.declarations.is_empty() {
        lines.push("  it can call nothing".into());
    }
    for declared in planned.spec.declarations.iter() {
        let room = width.saturating_sub(declared.name.len() + 4).max(20);
        let what = fit(&one_line(&declared.description), room);
        lines.push(format!("  {}  {}", paint.cyan(&declared.name), paint.dim(&what)));
    }
    if !planned.reach.is_empty() {
        lines.push(paint.bold("reach"));
    }
    for reach in &planned.reach {
        let side = |side: &Option<String>| side.as_deref().map_or("nothing".to_owned(), one_line);
        lines.push(format!(
            "  {} {} {}: {} {}",
            reach.plugin,
            reach.kind,
            one_line(&reach.target),
            side(&reach.effective),
            paint.dim(&format!(
                "(needs {}; archetype {}; policy {})",
                side(&reach.need),
                side(&reach.archetype),
                side(&reach.policy)
            ))
        ));
    }
    if !planned.left_out.is_empty() {
        lines.push(paint.bold("left out"));
    }
    for left in &planned.left_out {
        let why = sanitise(&left.with_flag());
        lines.push(format!("  {}: {why}", paint.yellow(left.plugin.as_str())));
    }
    if world.plugins.is_empty() {
        lines.push("no plugin was found: `fief plugin install DIR` puts one into your data directory".into());
    }
    lines
}
