//! The TOML form of an archetype.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;

use super::grant::{filters, tools};
use super::settings::agent_config;
use super::{Agents, Archetype, Dynamic, SpawnConfig};
use crate::id::ArchetypeName;
use crate::manifest::error::{ManifestError, ManifestErrors, Parsed, Source};
use crate::manifest::files::{Files, stays_inside};
use crate::manifest::read::{Field, Reader, Table};
use crate::manifest::tree::{self, Value};

/// The archetype that `source` describes. Its label is its path: files that it names are looked for beside it.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(source: Source, files: &dyn Files) -> Result<Parsed<Archetype>, ManifestErrors> {
    let root = tree::parse_toml(&source)?;
    let reader = Reader::new(source);
    let archetype = Table::root(&reader, &root).and_then(|table| archetype(table, files));
    reader.finish(archetype)
}

fn archetype(table: Table<'_>, files: &dyn Files) -> Option<Archetype> {
    const NEEDED: &str = "an archetype needs `name`, `description` and `instruction`";
    let name: Option<ArchetypeName> = table.require("name", NEEDED).and_then(|field| field.name());
    let description = table.require("description", NEEDED).and_then(|field| field.filled());
    let instruction = table
        .require("instruction", NEEDED)
        .and_then(|field| instruction(&field, files));
    let version = table.get("version").and_then(|field| field.text());
    let tools = table.get("tools").map(|field| tools(&field));
    let agents = table.get("agents").map(|field| agents(&field));
    let agent_tools = table.get("agent_tools").map(|field| field.distinct(agent_tool));
    let config = agent_config(&table);
    let spawn = table.get("spawn").map(|field| spawn(&field));
    let dynamic = table.get("dynamic").map(|field| dynamic(&field));
    let input_schema = table.get("input_schema").map(|field| schema(&field, files, true));
    let report_schema = table.get("report_schema").map(|field| schema(&field, files, false));
    let origin = table.place().source.file.to_string();
    table.finish(|key| match key {
        "prompt" | "system_prompt" | "instructions" | "developer_instructions" => {
            Some("did you mean `instruction`?".into())
        }
        "allowed-tools" | "allowed_tools" | "allowedTools" | "extensions" => Some("did you mean `tools`?".into()),
        "disallowedTools" | "disallowed_tools" => Some("name what it may use, with `[[tools]]` and `allow`".into()),
        "skip_summarization" => Some("it is the parent's choice: under `[spawn]` or `[dynamic]`".into()),
        "temperature" | "top_p" | "max_output_tokens" | "stop" | "seed" => {
            Some(format!("did you mean `{key}` under `[generation]`?"))
        }
        "max_tokens" => {
            Some("did you mean `max_output_tokens` under `[generation]`, or `tokens` under `[budget]`?".into())
        }
        "timeout" | "timeout_mins" | "wall" => Some("did you mean `wall` under `[budget]`?".into()),
        _ => None,
    });
    Some(Archetype {
        version: version.unwrap_or_default().to_owned(),
        origin,
        tools: tools.flatten(),
        agents: agents.flatten(),
        agent_tools: agent_tools.flatten(),
        config,
        dynamic: dynamic.flatten(),
        spawn: spawn.flatten().unwrap_or_default(),
        input_schema: input_schema.flatten(),
        report_schema: report_schema.flatten(),
        ..Archetype::new(name?, description?, instruction?)
    })
}

/// The instruction: a text, or a file beside the manifest.
fn instruction(field: &Field<'_>, files: &dyn Files) -> Option<String> {
    if let Value::Text(_) = field.node.value {
        let text = field.filled()?;
        return check_template(field, text).then(|| text.to_owned());
    }
    if !matches!(field.node.value, Value::Table(_)) {
        field.mismatch("a text, or `{ file = \"instruction.md\" }`");
        return None;
    }
    let table = field.table()?;
    let file = table.require("file", "such as `{ file = \"instruction.md\" }`");
    table.finish(|_| None);
    let file = file?;
    let (path, text) = beside(&file, files)?;
    if text.trim().is_empty() {
        file.refuse(
            format!("`{}` is blank", path.display()),
            "write what the agent is to do, in the second person",
        );
        return None;
    }
    check_template(&file, &text).then_some(text)
}

/// An instruction is a template; one that does not parse would fail only when an agent starts.
fn check_template(field: &Field<'_>, text: &str) -> bool {
    let checked = crate::agent::instruction::check(text);
    if let Err(error) = &checked {
        field.refuse(
            error.to_string(),
            "braces that mean themselves stand between `{% raw %}` and `{% endraw %}`",
        );
    }
    checked.is_ok()
}

/// The text of a file that the manifest names.
fn beside(field: &Field<'_>, files: &dyn Files) -> Option<(PathBuf, String)> {
    let name = field.filled()?;
    if !stays_inside(Path::new(name)) {
        field.refuse(
            format!("`{}` leads out of the directory of its manifest", field.shown()),
            "a path below it, relative and without `..`",
        );
        return None;
    }
    let manifest = Path::new(&*field.reader.source.file);
    let directory = manifest
        .parent()
        .filter(|path| !path.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let path = directory.join(name);
    match files.read_inside(directory, &path) {
        Ok(text) => Some((path, text)),
        Err(error) => {
            let hint = format!("the path is relative to `{}`", directory.display());
            field.refuse(format!("`{name}` cannot be read: {error}"), hint);
            None
        }
    }
}

/// A JSON Schema beside the manifest. As input of a tool it must describe an object.
fn schema(field: &Field<'_>, files: &dyn Files, input: bool) -> Option<Arc<Json>> {
    let file = if let Value::Table(_) = field.node.value {
        let table = field.table()?;
        let file = table.require("file", "such as `{ file = \"input.json\" }`");
        table.finish(|_| None);
        file?
    } else {
        field.clone()
    };
    let (path, text) = beside(&file, files)?;
    let schema: Json = match serde_json::from_str(&text) {
        Ok(schema) => schema,
        Err(error) => {
            let offset: usize = text
                .split_inclusive('\n')
                .take(error.line().saturating_sub(1))
                .map(str::len)
                .sum();
            let offset = offset + error.column().saturating_sub(1);
            let place = Source::new(path.display().to_string(), text).place(offset..offset);
            field
                .reader
                .push(ManifestError::at(place, format!("this is not JSON: {error}")).with_key(&*field.path));
            return None;
        }
    };
    if let Err(error) = jsonschema::draft202012::meta::validate(&schema) {
        let at = error.instance_path().to_string();
        let message = format!("`{}` is not a JSON Schema: `{at}`: {error}", path.display());
        field
            .reader
            .push(ManifestError::at(file.place(), message).with_key(&*field.path));
        return None;
    }
    if input && schema.get("type").and_then(Json::as_str) != Some("object") {
        file.refuse(
            format!("`{}` does not describe an object", path.display()),
            "a tool's input is an object: `\"type\": \"object\"` at the top",
        );
        return None;
    }
    Some(Arc::new(schema))
}

fn agents(field: &Field<'_>) -> Option<Agents> {
    if let Value::List(items) = &field.node.value
        && items
            .iter()
            .any(|item| matches!(&item.value, Value::Text(text) if text == "*"))
    {
        if items.len() == 1 {
            return Some(Agents::All);
        }
        field.refuse(
            "`*` stands alone in `agents`",
            "`[\"*\"]` for every registered archetype, or names",
        );
        return None;
    }
    let same_but_for_case = |field: &Field<'_>| spawnable(field).map(CaseBlind);
    Some(Agents::Named(
        field
            .distinct(same_but_for_case)?
            .into_iter()
            .map(|name| name.0)
            .collect(),
    ))
}

/// A name that is another's equal if they differ only in case.
struct CaseBlind(ArchetypeName);

impl PartialEq for CaseBlind {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

fn spawnable(field: &Field<'_>) -> Option<ArchetypeName> {
    let name: ArchetypeName = field.name()?;
    if name.key() == "main" {
        field.refuse(
            "`main` cannot be spawned",
            "name an archetype that does a part of the work",
        );
        return None;
    }
    Some(name)
}

fn agent_tool(field: &Field<'_>) -> Option<ArchetypeName> {
    let name: ArchetypeName = field.name()?;
    if !name.as_str().starts_with("agent-") || name.as_str() == "agent-" {
        field.refuse(
            format!("`{name}` cannot be served as a tool"),
            "the name must start with `agent-`; others are started by `spawn_subagent` if `agents` names them",
        );
        return None;
    }
    Some(name)
}

fn spawn(field: &Field<'_>) -> Option<SpawnConfig> {
    let table = field.table()?;
    let spawn = SpawnConfig {
        skip_summarization: table.get("skip_summarization").and_then(|field| field.boolean()),
        filters: table.get("filters").and_then(|field| filters(&field)),
    };
    table.finish(|_| None);
    Some(spawn)
}

fn dynamic(field: &Field<'_>) -> Option<Dynamic> {
    let table = field.table()?;
    let base = Dynamic::default();
    let name = table.get("name").map(|field| tool_name(&field));
    let mut config = agent_config(&table);
    config.skip_summarization = table.get("skip_summarization").and_then(|field| field.boolean());
    let dynamic = Dynamic {
        name: name.flatten().unwrap_or(base.name),
        description: table
            .get("description")
            .and_then(|field| field.filled())
            .map(str::to_owned),
        expose_tool_selection: table
            .get("expose_tool_selection")
            .and_then(|field| field.boolean())
            .unwrap_or(base.expose_tool_selection),
        fallback_instruction: table
            .get("fallback_instruction")
            .and_then(|field| field.filled())
            .map(str::to_owned),
        tools: table.get("tools").and_then(|field| tools(&field)),
        config,
    };
    table.finish(|key| match key {
        "instruction" => Some("the model writes it; did you mean `fallback_instruction`?".into()),
        _ => None,
    });
    Some(dynamic)
}

/// The name of the tool that makes dynamic children: it must meet no other way to a child.
fn tool_name(field: &Field<'_>) -> Option<String> {
    let name = field.text()?;
    let sound = (1..=48).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        && !name.contains("__");
    if !sound {
        field.refuse(
            format!("`{}` is not a tool name", field.shown()),
            "1 to 48 of letters, digits, `-` and single `_`",
        );
        return None;
    }
    if name.starts_with("agent-") || matches!(name, "spawn_subagent" | "transfer") {
        field.refuse(
            format!("`{name}` is reserved"),
            "another way to a child has it; the default is `dynamic_subagent`",
        );
        return None;
    }
    Some(name.to_owned())
}

#[cfg(test)]
mod faults;
#[cfg(test)]
mod tests;
