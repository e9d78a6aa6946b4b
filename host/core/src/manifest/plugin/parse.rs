//! `plugin.toml` as it is read.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{Build, Example, Expectation, Lang, NeededOrigin, NeededSecret, Needs, PluginManifest};
use crate::grant::FileMode;
use crate::id::ToolName;
use crate::manifest::archetype::grant::{is_variable, origin_text, secret};
use crate::manifest::error::{ManifestErrors, Parsed, Source};
use crate::manifest::read::{Field, Reader, Table};
use crate::manifest::tree::{self, Node, Value};

/// The manifest that `source` holds.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(source: Source) -> Result<Parsed<PluginManifest>, ManifestErrors> {
    let root = tree::parse_toml(&source)?;
    let reader = Reader::new(source);
    let manifest = Table::root(&reader, &root).map(|table| manifest(table));
    reader.finish(manifest)
}

// What is optional and wrong has left an error, which refuses the whole: the value that stands in for it is never seen.
fn manifest(table: Table<'_>) -> PluginManifest {
    let mut manifest = PluginManifest::default();
    if let Some(plugin) = table.get("plugin").and_then(|field| field.table()) {
        manifest.name = plugin.get("name").and_then(|field| field.name());
        manifest.version = plugin
            .get("version")
            .and_then(|field| field.text())
            .unwrap_or_default()
            .to_owned();
        manifest.description = plugin
            .get("description")
            .and_then(|field| field.filled())
            .unwrap_or_default()
            .to_owned();
        manifest.build = plugin.get("build").and_then(|field| build(&field));
        plugin.finish(|key| match key {
            "needs" | "docs" | "examples" => Some(format!("`[{key}]` is a table of its own")),
            _ => None,
        });
    }
    if let Some(field) = table.get("docs") {
        manifest.docs = docs(&field);
    }
    if let Some(field) = table.get("examples") {
        manifest.examples = field.list_of(example).unwrap_or_default();
    }
    if let Some(field) = table.get("needs") {
        manifest.needs = needs(&field).unwrap_or_default();
    }
    table.finish(|key| match key {
        "name" | "version" | "description" | "build" => Some(format!("did you mean `{key}` under `[plugin]`?")),
        "http" | "files" | "env" | "secrets" | "toolbox" | "person" => {
            Some(format!("did you mean `{key}` under `[needs]`?"))
        }
        _ => None,
    });
    manifest
}

fn build(field: &Field<'_>) -> Option<Build> {
    let table = field.table()?;
    let lang = table.require("lang", "such as `build = { lang = \"rust\" }`");
    let lang = lang.and_then(|field| field.choice(&[("rust", Lang::Rust)]));
    table.finish(|_| None);
    Some(Build { lang: lang? })
}

fn docs(field: &Field<'_>) -> BTreeMap<String, String> {
    let Some(table) = field.table() else {
        return BTreeMap::new();
    };
    let entry = |(name, field): (&str, Field<'_>)| {
        field.name_of::<ToolName>(name)?;
        Some((name.to_owned(), field.filled()?.to_owned()))
    };
    table.fields().filter_map(entry).collect()
}

fn example(field: &Field<'_>) -> Option<Example> {
    const ONE: &str = "`text`, `structured` or `error`: what the call should come to";
    let table = field.table()?;
    let tool: Option<ToolName> = table
        .require("tool", "the tool's name without the plugin's")
        .and_then(|f| f.name());
    let arguments = table
        .get("arguments")
        .map(|field| field.table().and_then(|_| json(&field)));
    let text = table
        .get("text")
        .map(|field| field.text().map(|text| Expectation::Text(text.into())));
    let structured = table
        .get("structured")
        .map(|field| json(&field).map(Expectation::Structured));
    let error = table
        .get("error")
        .map(|field| field.text().map(|text| Expectation::Error(text.into())));
    let mut expected: Vec<_> = [text, structured, error].into_iter().flatten().collect();
    let expect = match (expected.pop(), expected.is_empty()) {
        (Some(expect), true) => expect,
        (Some(_), false) => {
            field.refuse(format!("`{}` expects more than one thing", field.path), ONE);
            None
        }
        (None, _) => {
            table.missing("text", ONE);
            None
        }
    };
    table.finish(|_| None);
    let arguments = arguments.unwrap_or_else(|| Some(Json::Object(serde_json::Map::new())));
    Some(Example {
        tool: tool?.as_str().to_owned(),
        arguments: arguments?,
        expect: expect?,
    })
}

/// A TOML value as the JSON that a call carries.
fn json(field: &Field<'_>) -> Option<Json> {
    fn convert(node: &Node) -> Option<Json> {
        Some(match &node.value {
            Value::Text(text) => Json::String(text.clone()),
            Value::Integer(number) => (*number).into(),
            Value::Float(number) => serde_json::Number::from_f64(*number)?.into(),
            Value::Bool(value) => Json::Bool(*value),
            Value::List(items) => items.iter().map(convert).collect::<Option<_>>()?,
            Value::Table(entries) => {
                let entry = |(key, node): &(tree::Key, Node)| Some((key.name.clone(), convert(node)?));
                Json::Object(entries.iter().map(entry).collect::<Option<_>>()?)
            }
            Value::Null | Value::Date => return None,
        })
    }
    let value = convert(field.node);
    if value.is_none() {
        field.refuse(
            format!("`{}` is not JSON", field.path),
            "JSON has no dates and no infinite numbers",
        );
    }
    value
}

/// A `[needs]` table. A capability that is not known is refused, not ignored: the plugin could not work without it.
fn needs(field: &Field<'_>) -> Option<Needs> {
    let table = field.table()?;
    let origin = |item: &Field<'_>| Some(NeededOrigin(origin_text(item)?));
    let variable = |item: &Field<'_>| {
        let name = item.text()?;
        if !is_variable(name) {
            item.refuse(
                format!("`{}` is not the name of a variable", item.shown()),
                "letters, digits and `_`",
            );
            return None;
        }
        Some(name.to_owned())
    };
    let needed_secret = |item: &Field<'_>| {
        let secret = secret(item)?;
        Some(NeededSecret {
            name: secret.name,
            origin: secret.origin,
            header: secret.header,
            format: secret.format,
        })
    };
    let secrets = table.get("secrets");
    let needs = Needs {
        http: table
            .get("http")
            .and_then(|field| field.list_of(origin))
            .unwrap_or_default(),
        files: table
            .get("files")
            .and_then(|field| field.choice(&[("read", FileMode::Read), ("write", FileMode::Write)])),
        env: table
            .get("env")
            .and_then(|field| field.distinct(variable))
            .unwrap_or_default(),
        secrets: secrets
            .as_ref()
            .and_then(|field| field.list_of(needed_secret))
            .unwrap_or_default(),
        toolbox: table
            .get("toolbox")
            .and_then(|field| field.boolean())
            .unwrap_or_default(),
        person: table
            .get("person")
            .and_then(|field| field.boolean())
            .unwrap_or_default(),
    };
    if let Some(secrets) = secrets.filter(|_| !needs.secrets.is_empty() && needs.http.is_empty()) {
        secrets.warn(
            "`needs.secrets` has no effect without `needs.http`: a secret goes along with requests alone",
            Some("add the origin, such as `http = [\"https://api.github.com\"]`"),
        );
    }
    table.finish(|key| match key {
        "network" | "net" => Some("did you mean `http`?".into()),
        "fs" | "read" | "write" | "filesystem" => Some("did you mean `files`?".into()),
        "limits" => Some("limits are granted, not needed: the archetype's `[tools.grant]` sets them".into()),
        "sockets" | "tcp" | "udp" => {
            Some("no plugin ever gets sockets; `http` is all of the network that there is".into())
        }
        _ => None,
    });
    Some(needs)
}
