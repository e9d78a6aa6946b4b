//! The Markdown form of an archetype: YAML front matter over the instruction.
//!
//! It is read in two steps. [`parse`] needs the text alone, so that archetypes can be read, listed and compared before
//! any plugin was looked at. [`Markdown::resolve`] then gives the tool names a meaning, which takes the mapping, and
//! checks them and the model against what exists, as far as the caller knows it.
//!
//! The form carries no grants: each tool that it names gets what its plugin needs, as wide as policy. A file that was
//! written for another product is taken as it is, but a key that bears on rights is honoured or refused, never ignored.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use super::mapping::{Mapped, ToolMapping};
use super::{Archetype, Disallowed, GrantRequest, ToolGrant};
use crate::agent::instruction::literal;
use crate::id::{ArchetypeName, PluginName, ToolRef};
use crate::manifest::error::{ManifestError, ManifestErrors, ManifestWarning, Parsed, Place, Source};
use crate::manifest::read::{Field, Reader, Table};
use crate::manifest::tree::{self, Value};
use crate::nearest::suggestion;

/// A Markdown archetype whose tool names have no meaning yet.
#[derive(Clone, PartialEq, Debug)]
pub struct Markdown {
    /// All but tools and model.
    base: Archetype,
    /// Absent: it inherits.
    tools: Option<Vec<Named>>,
    disallowed: Vec<Named>,
    model: Option<Named>,
    warnings: Vec<ManifestWarning>,
}

/// A name with its place.
#[derive(Clone, PartialEq, Debug)]
struct Named {
    text: String,
    key: String,
    place: Place,
}

/// What the names in a Markdown archetype are checked against.
#[derive(Clone, Copy, Debug)]
pub struct Known<'k> {
    /// What other products' names are here.
    pub mapping: &'k ToolMapping,
    /// Every tool there is, as `PLUGIN.TOOL`. Absent: not known yet, so only the form is checked, and a tool that does
    /// not exist is found when an agent is made from the archetype.
    pub tools: Option<&'k BTreeSet<String>>,
    /// The names of the configured models. Absent: not known yet.
    pub models: Option<&'k BTreeSet<String>>,
}

impl Markdown {
    /// Its name, which needs no resolving.
    #[must_use]
    pub fn name(&self) -> &ArchetypeName {
        &self.base.name
    }

    /// The archetype.
    ///
    /// # Errors
    /// Every tool name that means nothing, with what there is.
    pub fn resolve(&self, known: Known<'_>) -> Result<Parsed<Archetype>, ManifestErrors> {
        let mut errors = Vec::new();
        let mut warnings = self.warnings.clone();
        let mut archetype = self.base.clone();

        let mut found = Vec::new();
        for name in self.tools.iter().flatten() {
            match meaning(name, known) {
                Ok(Meaning::Tools(tools)) => found.extend(tools),
                Ok(Meaning::Nothing(why)) => {
                    warnings.push(warning(name, &format!("`{}` is left out: {why}", name.text)));
                }
                Err(error) => errors.push(error),
            }
        }
        for name in &self.disallowed {
            match meaning(name, known) {
                Ok(Meaning::Tools(tools)) => archetype.disallow.extend(tools),
                // What does not exist is not held, so the wish is granted.
                Ok(Meaning::Nothing(_)) => {}
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        if self.tools.is_some() {
            found.retain(|tool| !archetype.disallow.contains(tool) && !archetype.disallow.contains(&whole(tool)));
            archetype.tools = Some(grants(&found));
        }
        if let Some(model) = &self.model {
            let configured = known.models.is_none_or(|models| models.contains(&model.text));
            if configured || model.text.contains(':') {
                archetype.config.model = Some(model.text.clone());
            } else {
                let message = format!("no model `{}` is configured; this agent uses its parent's", model.text);
                let hint = format!("to choose one, add `[models.{}]` to fief.toml", model.text);
                warnings.push(warning(model, &message).with_hint(hint));
            }
        }
        warnings.sort_by_key(|warning| warning.place.span.start);
        Ok(Parsed {
            value: archetype,
            warnings,
        })
    }
}

fn warning(name: &Named, message: &str) -> ManifestWarning {
    ManifestWarning::at(name.place.clone(), message).with_key(&*name.key)
}

fn whole(entry: &Disallowed) -> Disallowed {
    match entry {
        Disallowed::Plugin(plugin) | Disallowed::Tool(ToolRef { plugin, .. }) => Disallowed::Plugin(plugin.clone()),
    }
}

/// One entry for each plugin, in the order in which they are named first.
fn grants(found: &[Disallowed]) -> Vec<ToolGrant> {
    let mut grants: Vec<ToolGrant> = Vec::new();
    for entry in found {
        let plugin = match entry {
            Disallowed::Plugin(plugin) | Disallowed::Tool(ToolRef { plugin, .. }) => plugin,
        };
        if grants.iter().all(|grant| grant.plugin != *plugin) {
            let (plugin, grant) = (plugin.clone(), GrantRequest::Policy);
            grants.push(ToolGrant {
                plugin,
                digest: None,
                allow: Some(Vec::new()),
                grant,
            });
        }
        let grant = grants
            .iter_mut()
            .find(|grant| grant.plugin == *plugin)
            .expect("it was just added");
        match entry {
            Disallowed::Plugin(_) => grant.allow = None,
            Disallowed::Tool(tool) => {
                if let Some(allow) = &mut grant.allow
                    && !allow.contains(&tool.tool)
                {
                    allow.push(tool.tool.clone());
                }
            }
        }
    }
    grants
}

enum Meaning {
    Tools(Vec<Disallowed>),
    Nothing(String),
}

/// What a name in `tools` or `disallowedTools` stands for. The operator's mapping goes first, then the tools that
/// exist, then other products' names.
fn meaning(name: &Named, known: Known<'_>) -> Result<Meaning, ManifestError> {
    let refuse = |message: String, hint: String| {
        Err(ManifestError::at(name.place.clone(), message)
            .with_key(&*name.key)
            .with_hint(hint))
    };
    let exists = |tool: &str| known.tools.is_none_or(|tools| tools.contains(tool));
    let (word, restricted) = name
        .text
        .split_once('(')
        .map_or((name.text.trim(), false), |(word, _)| (word.trim(), true));
    let plugin_exists = |plugin: &PluginName| {
        let prefix = format!("{plugin}.");
        known.tools.is_none_or(|tools| {
            tools
                .range(prefix.clone()..)
                .next()
                .is_some_and(|tool| tool.starts_with(&prefix))
        })
    };
    let found = match known.mapping.resolve(word) {
        Mapped::WithoutCounterpart => return Ok(Meaning::Nothing("it has no counterpart here".into())),
        Mapped::Tools(tools) => {
            if let Some(missing) = tools.iter().find(|tool| !exists(&tool.to_string())) {
                return Ok(Meaning::Nothing(format!(
                    "it stands for `{missing}`, and no plugin here offers that"
                )));
            }
            tools.iter().cloned().map(Disallowed::Tool).collect()
        }
        Mapped::Unknown => {
            let bare: Result<PluginName, _> = word.strip_suffix(".*").unwrap_or(word).parse();
            match (word.parse::<ToolRef>(), bare) {
                (Ok(tool), _) if exists(word) => vec![Disallowed::Tool(tool)],
                // A whole plugin; its name alone is taken only where it is known to be one.
                (_, Ok(plugin)) if plugin_exists(&plugin) && (known.tools.is_some() || word.ends_with(".*")) => {
                    vec![Disallowed::Plugin(plugin)]
                }
                _ => {
                    let names: Vec<&str> = known
                        .tools
                        .into_iter()
                        .flatten()
                        .map(String::as_str)
                        .chain(known.mapping.names())
                        .collect();
                    return refuse(
                        format!("unknown tool `{word}`"),
                        suggestion(word, "tools", names.iter().copied()),
                    );
                }
            }
        }
    };
    if restricted {
        return refuse(
            format!("`{}` restricts a tool, which this form cannot express", name.text),
            "write the archetype in TOML, where `[tools.grant]` says which files and origins".into(),
        );
    }
    Ok(Meaning::Tools(found))
}

/// Reads a Markdown archetype.
///
/// # Errors
/// Everything that is wrong with it but its tool names.
pub fn parse(source: Source) -> Result<Markdown, ManifestErrors> {
    let (front, body) = split(&source).map_err(|error| vec![error])?;
    let root = tree::parse_yaml(&source, front).map_err(|error| vec![error])?;
    let body = Range {
        start: body,
        end: source.text.len(),
    };
    let reader = Reader::new(source);
    if !matches!(root.value, Value::Table(_)) {
        let place = reader.source.place(root.span.clone());
        let message = format!("the front matter must be keys and values, not {}", root.value.kind());
        reader.push(ManifestError::at(place, message).with_hint("such as `name: auditor`"));
        return Err(reader.finish::<()>(None).err().unwrap_or_default());
    }
    let markdown = Table::root(&reader, &root).and_then(|table| read(table, body));
    let parsed = reader.finish(markdown)?;
    Ok(Markdown {
        warnings: parsed.warnings,
        ..parsed.value
    })
}

/// The bytes of the front matter, and where the body starts.
fn split(source: &Source) -> Result<(Range<usize>, usize), ManifestError> {
    const HINT: &str = "a Markdown archetype starts with a line `---`, keys such as `name: auditor`, and a line `---`";
    let text = &source.text;
    let start = text.len() - text.strip_prefix('\u{feff}').unwrap_or(text).len();
    let mut offset = start;
    let mut front = None;
    for line in text[start..].split_inclusive('\n') {
        let next = offset + line.len();
        let rule = line.trim_end() == "---";
        match front {
            None if rule => front = Some(next),
            None => break,
            Some(begin) if rule => return Ok((begin..offset, next)),
            Some(_) => {}
        }
        offset = next;
    }
    let message = if front.is_some() {
        "the front matter is not closed: a second `---` is missing"
    } else {
        "there is no front matter"
    };
    Err(ManifestError::at(source.place(start..start), message).with_hint(HINT))
}

fn read(table: Table<'_>, body: Range<usize>) -> Option<Markdown> {
    const NEEDED: &str = "an archetype needs `name` and `description`";
    let reader = table.reader();
    let name: Option<ArchetypeName> = table.require("name", NEEDED).and_then(|field| field.name());
    let description = table.require("description", NEEDED).and_then(|field| field.filled());
    let tools = table.get("tools").map(|field| names(&field));
    let disallowed = table.get("disallowedTools").map(|field| names(&field));
    let model = table
        .get("model")
        .filter(is_said)
        .map(|field| (field.clone(), field.filled()));
    let version = table.get("version").map(|field| field.shown());
    let turns: Vec<_> = ["maxTurns", "max_turns", "steps"]
        .into_iter()
        .filter_map(|key| table.get(key))
        .collect();
    let temperature = table
        .get("temperature")
        .and_then(|field| field.number_in(0.0..=f64::INFINITY));
    let minutes = table
        .get("timeout_mins")
        .and_then(|field| field.number_in(0.1..=500_000.0));
    rights(&table);
    harmless(&table);
    table.finish(explain);

    let text = &reader.source.text[body.clone()];
    if text.trim().is_empty() {
        let error = ManifestError::at(reader.source.place(body), "the text under the front matter is blank");
        reader.push(error.with_hint("it is the instruction: what the agent is to do, in the second person"));
        return None;
    }
    // Braces in a file that was written for another product mean themselves.
    let instruction = literal(text.trim_start_matches(['\r', '\n']).trim_end());
    let mut base = Archetype::new(name?, description?, instruction);
    base.origin = reader.source.file.to_string();
    base.version = version.unwrap_or_default();
    // Of several words for one limit the least holds.
    let turns = turns.iter().filter_map(|field| field.limit(1));
    base.config.max_turns = turns.min_by_key(|turns| if *turns < 0 { i64::MAX } else { *turns });
    base.config.generation.temperature = temperature;
    base.config.budget.wall = minutes.map(|minutes| Duration::from_secs_f64(minutes * 60.0));
    let mut tools = match tools {
        None => None,
        Some(names) => match names? {
            Names::All => None,
            Names::These(names) => Some(names),
        },
    };
    let disallowed = match disallowed {
        None => Vec::new(),
        Some(names) => match names? {
            Names::These(names) => names,
            Names::All => {
                tools = Some(Vec::new());
                Vec::new()
            }
        },
    };
    let model = match model {
        None => None,
        Some((field, text)) => Some(Named::new(&field, text?)).filter(|model| model.text != "inherit"),
    };
    Some(Markdown {
        base,
        tools,
        disallowed,
        model,
        warnings: Vec::new(),
    })
}

/// Whether something stands after the colon.
fn is_said(field: &Field<'_>) -> bool {
    !matches!(field.node.value, Value::Null)
}

fn explain(key: &str) -> Option<String> {
    let hint = match key {
        "allowed-tools" | "allowed_tools" | "allowedTools" => "did you mean `tools`?",
        "disallowed-tools" | "disallowed_tools" => "did you mean `disallowedTools`?",
        "instruction" | "instructions" | "prompt" | "system_prompt" | "developer_instructions" => {
            "the instruction is the text under the front matter"
        }
        "agents" | "agent_tools" | "filters" | "dynamic" | "spawn" | "budget" | "generation" | "grant" => {
            "write the archetype in TOML, which can say this"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

impl Named {
    fn new(field: &Field<'_>, text: &str) -> Self {
        Self {
            text: text.trim().to_owned(),
            key: field.path.clone(),
            place: field.place(),
        }
    }
}

enum Names {
    /// `*`.
    All,
    These(Vec<Named>),
}

/// A list of names, or a text in which commas part them.
fn names(field: &Field<'_>) -> Option<Names> {
    let mut found = Vec::new();
    match &field.node.value {
        Value::Text(_) => found.extend(parts(field.filled()?).map(|part| Named::new(field, part))),
        Value::List(_) => {
            for names in
                field.list_of(|item| Some(parts(item.filled()?).map(|part| Named::new(item, part)).collect()))?
            {
                let names: Vec<Named> = names;
                found.extend(names);
            }
        }
        other => {
            field.refuse(
                format!("`{}` must be a list of names, not {}", field.path, other.kind()),
                "such as `[Read, Grep]`; `[]` is none, and to inherit all leave the key out",
            );
            return None;
        }
    }
    if found.iter().any(|name| name.text == "*") {
        if found.len() == 1 {
            return Some(Names::All);
        }
        field.refuse(format!("`*` stands alone in `{}`", field.path), "`*` for all, or names");
        return None;
    }
    if let Some(name) = found.iter().find(|name| name.text.is_empty()) {
        let error = ManifestError::at(name.place.clone(), format!("`{}` holds an empty name", field.path));
        field
            .reader
            .push(error.with_key(&*field.path).with_hint("leave the comma out"));
        return None;
    }
    Some(Names::These(found))
}

/// The parts between commas; those inside parentheses part nothing. A comma at the end is no part.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim().trim_end_matches(',');
    let mut depth = 0_usize;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

/// Keys of other products that bear on rights and cannot be honoured.
fn rights(table: &Table<'_>) {
    const REFUSED: &[(&str, &str)] = &[
        (
            "mcpServers",
            "an agent's tools are plugins: install one, and name its tools in `tools`",
        ),
        (
            "mcp-servers",
            "an agent's tools are plugins: install one, and name its tools in `tools`",
        ),
        (
            "mcp_servers",
            "an agent's tools are plugins: install one, and name its tools in `tools`",
        ),
        (
            "extensions",
            "an agent's tools are plugins: install one, and name its tools in `tools`",
        ),
        (
            "hooks",
            "write the archetype in TOML, with plugins that see each call in `filters`",
        ),
        (
            "permission",
            "name what it may use in `tools`; `[policy] ask` in fief.toml names what a person is asked for",
        ),
        (
            "permissions",
            "name what it may use in `tools`; `[policy] ask` in fief.toml names what a person is asked for",
        ),
        (
            "sandbox_mode",
            "every tool is in a sandbox; write the archetype in TOML, where `[tools.grant]` says what it reaches",
        ),
        (
            "isolation",
            "write the archetype in TOML, where `[tools.grant]` says which directory it works in",
        ),
        (
            "disable",
            "to turn an archetype off, take the file out of the directory",
        ),
    ];
    for (key, hint) in REFUSED {
        let Some(field) = table.get_unlisted(key) else { continue };
        let nothing = match &field.node.value {
            Value::Null | Value::Bool(false) => true,
            Value::List(items) => items.is_empty(),
            Value::Table(entries) => entries.is_empty(),
            _ => false,
        };
        if !nothing {
            field.refuse(format!("`{key}` bears on rights and cannot be honoured here"), *hint);
        }
    }
    if let Some(field) = table.get_unlisted("permissionMode")
        && !matches!(&field.node.value, Value::Text(mode) if mode == "default")
    {
        field.refuse(
            "`permissionMode` bears on rights and cannot be honoured here",
            "leave it out: an agent has what `tools` names, within `[policy]` of fief.toml",
        );
    }
}

/// Keys of other products that cannot change rights: what they ask for does not happen, which is worth a warning.
fn harmless(table: &Table<'_>) {
    const IGNORED: &[&str] = &[
        "argument-hint",
        "background",
        "color",
        "display_name",
        "effort",
        "handoffs",
        "hidden",
        "infer",
        "initialPrompt",
        "kind",
        "memory",
        "mode",
        "skills",
        "target",
    ];
    for key in IGNORED {
        if let Some(field) = table.get_unlisted(key) {
            field.warn(format!("`{key}` has no effect here"), None);
        }
    }
}

#[cfg(test)]
mod tests;
