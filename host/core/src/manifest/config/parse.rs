//! `fief.toml` as it is read.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Config, ConfigFile, PolicyTable, Telemetry, models};
use crate::grant::pattern::OriginPattern;
use crate::id::{PluginName, ToolName, ToolRef};
use crate::manifest::archetype::grant::{host_path, is_variable, limits, origin};
use crate::manifest::archetype::settings::agent_config;
use crate::manifest::error::{ManifestErrors, Parsed, Source};
use crate::manifest::read::{Field, Reader, Table};
use crate::manifest::tree;

/// The built-in archetypes that `[agents] builtin` may name, in the order in which the catalogue shows them.
pub const BUILTIN: [&str; 4] = ["default", "general-purpose", "explore", "plan"];

/// The configuration that `source` holds. Its label is its path: directories and the secrets file are relative to it.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(source: Source) -> Result<Parsed<ConfigFile>, ManifestErrors> {
    let root = tree::parse_toml(&source)?;
    let directory = Path::new(&*source.file).parent().unwrap_or(Path::new("")).to_owned();
    let reader = Reader::new(source);
    let config = Table::root(&reader, &root).map(|table| config(table, &directory));
    let places = reader.places();
    let file = reader.source.file.clone();
    reader.finish(config.map(|config| ConfigFile {
        config,
        directory,
        file,
        places,
    }))
}

// What is wrong has left an error, which refuses the whole: the value that stands in for it is never seen.
fn config(table: Table<'_>, directory: &Path) -> Config {
    let mut config = Config::default();
    let paths = |field: &Field<'_>| field.list_of(|item| Some(directory.join(host_path(item)?)));
    if let Some(run) = sub(&table, "run") {
        config.archetype = run.get("archetype").and_then(|field| archetype(&field));
        config.model = run.get("model").and_then(|field| field.filled()).map(str::to_owned);
        config.record = run.get("record").and_then(|field| field.boolean());
        run.finish(|_| None);
    }
    if let Some(directories) = sub(&table, "directories") {
        config.plugins = directories.get("plugins").and_then(|field| paths(&field));
        config.archetypes = directories.get("archetypes").and_then(|field| paths(&field));
        directories.finish(|_| None);
    }
    if let Some(field) = table.get("models") {
        config.models = models::models(&field);
    }
    if let Some(policy) = sub(&table, "policy") {
        config.policy = self::policy(policy);
    }
    if let Some(agents) = sub(&table, "agents") {
        let builtin = BUILTIN.map(|name| (name, name));
        config.builtin = agents
            .get("builtin")
            .and_then(|field| field.distinct(|item| item.choice(&builtin).map(str::to_owned)));
        if let Some(field) = agents.get("tool_mapping") {
            config.tool_mapping = tool_mapping(&field);
        }
        if let Some(defaults) = sub(&agents, "config") {
            config.agents = agent_config(&defaults);
            config.agents.skip_summarization = defaults.get("skip_summarization").and_then(|field| field.boolean());
            defaults.finish(|key| match key {
                "tools" | "agents" | "agent_tools" | "dynamic" | "spawn" => {
                    Some("an archetype says this, never the defaults of all".into())
                }
                _ => None,
            });
        }
        agents.finish(|key| match key {
            "model" | "max_turns" | "summary" | "filters" => {
                Some(format!("did you mean `{key}` under `[agents.config]`?"))
            }
            _ => None,
        });
    }
    if let Some(secrets) = sub(&table, "secrets") {
        config.secrets_file = secrets
            .get("file")
            .and_then(|field| host_path(&field))
            .map(|path| directory.join(path));
        secrets
            .finish(|_| Some("secrets stand in the environment or in the file that `file` names, never here".into()));
    }
    if let Some(sandbox) = sub(&table, "sandbox") {
        config.pagemap_scan = sandbox
            .get("pagemap_scan")
            .and_then(|field| field.boolean())
            .unwrap_or_default();
        sandbox.finish(|_| None);
    }
    if let Some(telemetry) = sub(&table, "telemetry") {
        config.telemetry = Telemetry {
            endpoint: telemetry.get("endpoint").and_then(|field| models::url(&field)),
            content: telemetry
                .get("content")
                .and_then(|field| field.boolean())
                .unwrap_or_default(),
        };
        telemetry.finish(|_| None);
    }
    table.finish(|key| match key {
        "model" | "archetype" | "record" => Some(format!("did you mean `{key}` under `[run]`?")),
        "plugins" | "archetypes" => Some(format!("did you mean `{key}` under `[directories]`?")),
        "read" | "write" | "net" | "env" | "ask" | "strict" | "limits" => {
            Some(format!("did you mean `{key}` under `[policy]`?"))
        }
        _ => None,
    });
    config
}

fn sub<'r>(table: &Table<'r>, key: &'static str) -> Option<Table<'r>> {
    table.get(key)?.table()
}

fn archetype(field: &Field<'_>) -> Option<String> {
    field
        .name::<crate::id::ArchetypeName>()
        .map(|name| name.as_str().to_owned())
}

fn tool_mapping(field: &Field<'_>) -> BTreeMap<String, ToolRef> {
    let Some(table) = field.table() else {
        return BTreeMap::new();
    };
    let mut mapping: BTreeMap<String, ToolRef> = BTreeMap::new();
    for (name, field) in table.fields() {
        if mapping.keys().any(|other| other.eq_ignore_ascii_case(name)) {
            field.refuse(
                format!("`{name}` is mapped twice"),
                "the names of tools match without regard to case",
            );
        } else if name.trim().is_empty() || name.contains(',') {
            field.refuse(
                format!("`{name}` is not the name of a tool"),
                "such as `Fetch = \"web.fetch\"`",
            );
        } else if let Some(tool) = field.name() {
            mapping.insert(name.to_owned(), tool);
        }
    }
    mapping
}

fn policy(table: Table<'_>) -> PolicyTable {
    let paths = |field: Field<'_>| field.list_of(|item| host_path(item));
    let policy = PolicyTable {
        read: table.get("read").and_then(paths),
        write: table.get("write").and_then(paths),
        net: table.get("net").and_then(|field| field.list_of(origin)),
        secrets: table.get("secrets").and_then(|field| field.distinct(secret)),
        env: table.get("env").and_then(|field| field.distinct(variable)),
        toolbox: table.get("toolbox").and_then(|field| field.boolean()),
        person: table.get("person").and_then(|field| field.boolean()),
        strict: table.get("strict").and_then(|field| field.boolean()),
        max_depth: table.get("max_depth").and_then(|field| field.count(0)),
        max_children: table.get("max_children").and_then(|field| field.count(0)),
        parallel_children: table.get("parallel_children").and_then(|field| field.count(1)),
        ask: table.get("ask").and_then(|field| field.distinct(asked)),
        limits: table.get("limits").and_then(|field| limits(&field)).unwrap_or_default(),
    };
    table.finish(|key| match key {
        "http" | "network" => Some("did you mean `net`?".into()),
        "files" => Some("did you mean `read` or `write`?".into()),
        _ => None,
    });
    policy
}

/// `NAME@ORIGIN`, a text that holds no secret.
fn secret(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let sound = text
        .split_once('@')
        .is_some_and(|(name, origin)| is_variable(name) && origin.parse::<OriginPattern>().is_ok());
    if !sound {
        let error = crate::manifest::error::ManifestError::at(field.place(), "this is not a secret's name and origin")
            .with_key(field.path.clone())
            .with_hint("such as `GITHUB_TOKEN@https://api.github.com`; the value never stands here");
        field.reader.push(error.without_text());
        return None;
    }
    Some(text.to_owned())
}

fn variable(field: &Field<'_>) -> Option<String> {
    let name = field.text()?;
    if !is_variable(name) {
        field.refuse(
            format!("`{}` is not the name of a variable", field.shown()),
            "letters, digits and `_`",
        );
        return None;
    }
    Some(name.to_owned())
}

/// `PLUGIN.TOOL` or `PLUGIN.*`.
fn asked(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let sound = text.split_once('.').is_some_and(|(plugin, tool)| {
        plugin.parse::<PluginName>().is_ok() && (tool == "*" || tool.parse::<ToolName>().is_ok())
    });
    if !sound {
        field.refuse(
            format!("`{}` names no tool", field.shown()),
            "`PLUGIN.TOOL`, such as `files.write`, or `PLUGIN.*`",
        );
        return None;
    }
    Some(text.to_owned())
}
