//! From a call of a way to a child to what it asks for. A call that is not right starts no child: the model is told
//! what is wrong and what would be right, and its turn goes on.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::spec::{ChildRequest, Ways};
use super::ways::{FALLBACK_INSTRUCTION, SPAWN};
use crate::manifest::archetype::{Archetype, Dynamic};
use crate::tool::arguments::Validators;
use crate::tool::wire_name;

/// The longest label, in characters: it is one line of a watcher's view.
const MAX_LABEL: usize = 100;

/// Reads a call of `name`. Arguments beyond those that the way declares change nothing.
///
/// # Errors
/// What is wrong, for the model: it names the argument and the choices.
pub fn parse(
    ways: &Ways,
    own_tools: &[String],
    validators: &Validators,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<ChildRequest, String> {
    if name == SPAWN && !ways.spawn.is_empty() {
        return spawn(ways, arguments);
    }
    if let Some(archetype) = ways.agent_tool(name) {
        return agent_tool(archetype, validators, arguments);
    }
    match &ways.dynamic {
        Some(dynamic) if dynamic.name == name => self::dynamic(dynamic, ways.dynamic_bound(own_tools), arguments),
        _ => Err(format!("`{name}` starts no agent here")),
    }
}

fn spawn(ways: &Ways, arguments: &Map<String, Value>) -> Result<ChildRequest, String> {
    let asked = text(arguments, "subagent_type", "the name of a type")?;
    let choices = || {
        let names: Vec<String> = ways.spawn.iter().map(|one| format!("`{}`", one.name)).collect();
        names.join(", ")
    };
    let archetype = ways
        .spawn
        .iter()
        .find(|one| one.name.as_str().eq_ignore_ascii_case(asked.trim()))
        .ok_or_else(|| {
            format!(
                "`subagent_type` is `{}`, which is not a type\nthe types are {}",
                short(asked),
                choices()
            )
        })?;
    Ok(ChildRequest::Archetype {
        name: archetype.name.clone(),
        task: text(arguments, "prompt", "the sub-agent's whole task")?.into(),
        label: arguments.get("description").and_then(Value::as_str).and_then(label),
    })
}

fn agent_tool(
    archetype: &Archetype,
    validators: &Validators,
    arguments: &Map<String, Value>,
) -> Result<ChildRequest, String> {
    let task = match &archetype.input_schema {
        None => text(arguments, "subtask", "the agent's whole task")?.to_owned(),
        Some(schema) => {
            let value = Value::Object(arguments.clone());
            validators
                .get(schema)
                .map_err(|error| format!("`{}` cannot be called: {error}", archetype.name))?
                .check(&value)
                .map_err(|error| error.to_string())?;
            let pretty = serde_json::to_string_pretty(&value).map_err(|error| error.to_string())?;
            format!("Your task, as JSON:\n{pretty}")
        }
    };
    Ok(ChildRequest::Archetype {
        name: archetype.name.clone(),
        task,
        label: None,
    })
}

fn dynamic(dynamic: &Dynamic, bound: &[String], arguments: &Map<String, Value>) -> Result<ChildRequest, String> {
    let task = text(arguments, "prompt", "the sub-agent's whole task")?.to_owned();
    let instruction = match arguments.get("instruction") {
        None | Some(Value::Null) => "",
        Some(Value::String(instruction)) => instruction.as_str(),
        Some(other) => return Err(wrong("instruction", "a string", other)),
    };
    let instruction = if instruction.trim().is_empty() {
        dynamic.fallback_instruction.as_deref().unwrap_or(FALLBACK_INSTRUCTION)
    } else {
        instruction
    };
    Ok(ChildRequest::Dynamic {
        instruction: instruction.into(),
        task,
        tools: if dynamic.expose_tool_selection {
            selection(bound, arguments.get("tools"))?
        } else {
            None
        },
    })
}

/// The model's choice of tools. It can only narrow: an absent or empty one is all of the bound, and a name outside
/// the bound is an error.
fn selection(bound: &[String], tools: Option<&Value>) -> Result<Option<Vec<String>>, String> {
    let list = match tools {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(wrong("tools", "a list of names", other)),
    };
    let in_bounds = || match bound {
        [] => "it may have none".to_owned(),
        names => format!("it may have `{}`", names.join("`, `")),
    };
    let mut seen = BTreeSet::new();
    let mut chosen = Vec::new();
    for entry in list {
        let Value::String(asked) = entry else {
            return Err(wrong("tools", "a list of names", entry));
        };
        let asked = asked.trim();
        // A model sees a tool under the name that its provider allows, so that it may write either.
        let name = bound
            .iter()
            .find(|name| *name == asked || wire_name(name) == asked)
            .ok_or_else(|| {
                format!(
                    "`tools` names `{}`, which the sub-agent may not have\n{}",
                    short(asked),
                    in_bounds()
                )
            })?;
        if seen.insert(name) {
            chosen.push(name.clone());
        }
    }
    Ok(if chosen.is_empty() { None } else { Some(chosen) })
}

/// A required argument that is a text and not blank.
fn text<'a>(arguments: &'a Map<String, Value>, key: &str, what: &str) -> Result<&'a str, String> {
    match arguments.get(key) {
        None | Some(Value::Null) => Err(format!("`{key}` is missing: it is {what}")),
        Some(Value::String(text)) if text.trim().is_empty() => Err(format!("`{key}` is blank: it is {what}")),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(wrong(key, "a string", other)),
    }
}

fn wrong(key: &str, expected: &str, found: &Value) -> String {
    format!("`{key}` is `{}`: it must be {expected}", short(&found.to_string()))
}

fn label(text: &str) -> Option<String> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then(|| line.chars().take(MAX_LABEL).collect())
}

/// At most the first 80 characters, for quoting.
fn short(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
