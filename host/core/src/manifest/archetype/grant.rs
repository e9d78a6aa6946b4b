//! `[[tools]]`, `filters` and the grants in them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{FileRequest, GrantRequest, GrantTable, LimitRequest, OriginRequest, SecretRequest, ToolGrant};
use crate::grant::FileMode;
use crate::grant::pattern::{BadOrigin, OriginPattern};
use crate::id::PluginName;
use crate::manifest::read::{Field, Table};
use crate::manifest::tree::Value;

/// `tools`: a list of tables, one for each plugin.
pub(crate) fn tools(field: &Field<'_>) -> Option<Vec<ToolGrant>> {
    let items = field.list_of(|item| {
        if let Value::Text(name) = &item.node.value {
            item.refuse(
                format!("`{}` names a plugin without a grant", item.shown()),
                format!("write `[[tools]]` with `plugin = \"{name}\"`, and `[tools.grant]` or `grant = \"policy\"`"),
            );
            return None;
        }
        Some((item.clone(), entry(item, true)?))
    })?;
    unambiguous(items)
}

/// `filters`: plugins that see every call, by name or as a table. A name alone grants nothing, as a table without
/// `grant` does.
pub(crate) fn filters(field: &Field<'_>) -> Option<Vec<ToolGrant>> {
    let items = field.list_of(|item| {
        let grant = if let Value::Text(_) = item.node.value {
            let grant = GrantRequest::Exact(GrantTable::default());
            ToolGrant {
                plugin: item.name()?,
                digest: None,
                allow: None,
                grant,
            }
        } else {
            entry(item, false)?
        };
        Some((item.clone(), grant))
    })?;
    unambiguous(items)
}

/// Refuses a plugin that is named twice with different rights: which of them would hold?
fn unambiguous(items: Vec<(Field<'_>, ToolGrant)>) -> Option<Vec<ToolGrant>> {
    let mut seen: Vec<ToolGrant> = Vec::new();
    let mut sound = true;
    for (field, entry) in items {
        let differs = |other: &ToolGrant| other.grant != entry.grant || other.digest != entry.digest;
        if seen.iter().any(|other| other.plugin == entry.plugin && differs(other)) {
            field.refuse(
                format!("the plugin `{}` stands here twice with different rights", entry.plugin),
                "put all its tools and rights in one entry",
            );
            sound = false;
        }
        seen.push(entry);
    }
    sound.then_some(seen)
}

fn entry(field: &Field<'_>, offers_tools: bool) -> Option<ToolGrant> {
    let table = field.table()?;
    let plugin: Option<PluginName> = table
        .require("plugin", "`plugin = \"NAME\"`, the name of a plugin such as `files`")
        .and_then(|field| field.name());
    let digest = table.get("digest").map(|field| field.name());
    let allow = if offers_tools {
        table
            .get("allow")
            .map(|field| field.distinct(|item| allowed(item, plugin.as_ref())))
    } else {
        None
    };
    let grant = match table.get("grant") {
        None => Some(GrantRequest::Exact(GrantTable::default())),
        Some(field) => grant(&field),
    };
    table.finish(|key| match key {
        "name" => Some("did you mean `plugin`?".into()),
        "tools" if offers_tools => Some("did you mean `allow`?".into()),
        "allow" => Some("a filter sees every call and offers no tools, so there is nothing to allow".into()),
        "files" | "http" | "env" | "secrets" | "toolbox" | "person" | "limits" => {
            Some(format!("did you mean `{key}` under `grant`?"))
        }
        _ => None,
    });
    // An optional key that is there and wrong has its error already; the entry is worthless then.
    Some(ToolGrant {
        plugin: plugin?,
        digest: transpose(digest)?,
        allow: transpose(allow)?,
        grant: grant?,
    })
}

fn transpose<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    value.map_or(Some(None), |value| value.map(Some))
}

fn allowed(item: &Field<'_>, plugin: Option<&PluginName>) -> Option<crate::id::ToolName> {
    let text = item.text()?;
    if text.contains('*') {
        item.refuse(
            format!("`{}` is a pattern, and `allow` takes names", item.shown()),
            "leave `allow` out to allow every tool of the plugin",
        );
        return None;
    }
    // `files.read` is understood under `plugin = "files"`: there is nothing else that it could mean.
    let bare = plugin
        .and_then(|plugin| text.strip_prefix(plugin.as_str()))
        .and_then(|rest| rest.strip_prefix('.'));
    item.name_of(bare.unwrap_or(text))
}

fn grant(field: &Field<'_>) -> Option<GrantRequest> {
    if let Value::Text(text) = &field.node.value {
        if text == "policy" {
            return Some(GrantRequest::Policy);
        }
        field.refuse(
            format!("`grant` cannot be `{}`", field.shown()),
            "`grant = \"policy\"` gives what the plugin needs, as wide as policy; else write a table, `[tools.grant]`",
        );
        return None;
    }
    let table = field.table()?;
    let files = table.get("files").map(|field| files(&field));
    let http = table.get("http").map(|field| field.list_of(origin));
    let env = table.get("env").map(|field| environment(&field));
    let secrets = table.get("secrets").map(|field| field.list_of(secret));
    let toolbox = table.get("toolbox").map(|field| field.boolean());
    let person = table.get("person").map(|field| field.boolean());
    let limits = table.get("limits").map(|field| limits(&field));
    table.finish(|key| match key {
        "network" | "net" => Some("did you mean `http`?".into()),
        "fs" | "read" | "write" | "directories" => Some("did you mean `files`?".into()),
        _ => None,
    });
    Some(GrantRequest::Exact(GrantTable {
        files: transpose(files)?.unwrap_or_default(),
        http: transpose(http)?.unwrap_or_default(),
        env: transpose(env)?.unwrap_or_default(),
        secrets: transpose(secrets)?.unwrap_or_default(),
        toolbox: transpose(toolbox)?.unwrap_or_default(),
        person: transpose(person)?.unwrap_or_default(),
        limits: transpose(limits)?.unwrap_or_default(),
    }))
}

fn files(field: &Field<'_>) -> Option<Vec<FileRequest>> {
    let entries = field.list_of(|item| Some((item.clone(), directory(item)?)))?;
    let mut seen: Vec<FileRequest> = Vec::new();
    let mut sound = true;
    for (item, entry) in entries {
        if seen.iter().any(|other| other.guest == entry.guest) {
            item.refuse(
                format!("the guest path `{}` is taken", entry.guest),
                "each directory needs a path of its own",
            );
            sound = false;
        } else {
            seen.push(entry);
        }
    }
    sound.then_some(seen)
}

fn directory(field: &Field<'_>) -> Option<FileRequest> {
    const SHAPE: &str = "such as `{ host = \".\", guest = \"/work\", mode = \"read\" }`";
    if !matches!(field.node.value, Value::Table(_)) {
        field.refuse(
            format!("`{}` must be a table, not {}", field.path, field.node.value.kind()),
            SHAPE,
        );
        return None;
    }
    let table = field.table()?;
    let host = table.require("host", SHAPE).and_then(|field| host_path(&field));
    let guest = table.require("guest", SHAPE).and_then(|field| guest_path(&field));
    let mode = table
        .require("mode", "`read`, or `write`, which includes it")
        .and_then(|field| field.choice(&[("read", FileMode::Read), ("write", FileMode::Write)]));
    table.finish(|_| None);
    Some(FileRequest {
        host: host?,
        guest: guest?,
        mode: mode?,
    })
}

/// A path of this machine as it is written.
pub(crate) fn host_path(field: &Field<'_>) -> Option<PathBuf> {
    let path = field.filled()?;
    if path.contains('\0') {
        field.refuse(
            format!("`{}` holds a null character", field.path),
            "a path of this machine",
        );
        return None;
    }
    Some(PathBuf::from(path))
}

/// A path in the guest: absolute and without detours, so that two that differ are two directories. One `/` at the end
/// is dropped.
fn guest_path(field: &Field<'_>) -> Option<String> {
    let written = field.text()?;
    let path = written
        .strip_suffix('/')
        .filter(|rest| !rest.is_empty())
        .unwrap_or(written);
    let sound = path.strip_prefix('/').is_some_and(|rest| {
        rest.is_empty()
            || rest
                .split('/')
                .all(|part| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']))
    });
    if !sound || path.chars().any(char::is_control) {
        field.refuse(
            format!("`{}` is not a path of the guest", field.shown()),
            "an absolute path such as `/work`, without `.`, `..`, `\\` and doubled `/`",
        );
        return None;
    }
    Some(path.to_owned())
}

/// An origin: a text, or a table that says whether it may be private.
pub(crate) fn origin(field: &Field<'_>) -> Option<OriginRequest> {
    if let Value::Text(_) = field.node.value {
        return Some(OriginRequest {
            origin: origin_text(field)?,
            private: false,
        });
    }
    if !matches!(field.node.value, Value::Table(_)) {
        field.refuse(
            format!("`{}` must be an origin, not {}", field.path, field.node.value.kind()),
            "such as `\"https://api.github.com\"` or `{ origin = \"https://wiki.corp.example\", private = true }`",
        );
        return None;
    }
    let table = field.table()?;
    let origin = table
        .require(
            "origin",
            "such as `{ origin = \"https://wiki.corp.example\", private = true }`",
        )
        .and_then(|field| origin_text(&field));
    let private = table.get("private").map(|field| field.boolean());
    table.finish(|_| None);
    Some(OriginRequest {
        origin: origin?,
        private: transpose(private)?.unwrap_or_default(),
    })
}

/// The text of an origin pattern.
pub(crate) fn origin_text(field: &Field<'_>) -> Option<String> {
    let text = field.filled()?;
    if let Err(BadOrigin { text, rule }) = text.parse::<OriginPattern>() {
        field.refuse(format!("`{text}` is not an origin"), rule);
        return None;
    }
    Some(text.to_owned())
}

fn environment(field: &Field<'_>) -> Option<BTreeMap<String, String>> {
    let mut sound = true;
    let mut variables = BTreeMap::new();
    for (name, field) in field.table()?.fields() {
        let value = field.text();
        if !is_variable(name) {
            field.refuse(
                format!("`{name}` is not the name of a variable"),
                "letters, digits and `_`, no digit in front",
            );
            sound = false;
        } else if let Some(value) = value
            && !value.contains('\0')
        {
            variables.insert(name.to_owned(), value.to_owned());
        } else {
            if value.is_some() {
                field.refuse(format!("`{}` holds a null character", field.path), "a text without one");
            }
            sound = false;
        }
    }
    sound.then_some(variables)
}

/// Whether `name` can name an environment variable or a secret.
pub(crate) fn is_variable(name: &str) -> bool {
    name.len() <= 128
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// A secret, as an archetype grants it and a plugin needs it.
pub(crate) fn secret(field: &Field<'_>) -> Option<SecretRequest> {
    const SHAPE: &str = "such as `{ name = \"GITHUB_TOKEN\", for = \"https://api.github.com\" }`";
    if !matches!(field.node.value, Value::Table(_)) {
        field.refuse(
            format!("`{}` must be a table, not {}", field.path, field.node.value.kind()),
            SHAPE,
        );
        return None;
    }
    let table = field.table()?;
    let name = table.require("name", SHAPE).and_then(|field| secret_name(&field));
    let origin = table.require("for", SHAPE).and_then(|field| origin_text(&field));
    let header = table.get("header").map(|field| header_field(&field));
    let format = table.get("format").map(|field| secret_format(&field));
    table.finish(|key| match key {
        "origin" | "host" | "url" => Some("did you mean `for`?".into()),
        "value" | "key" | "token" => {
            Some("a manifest never holds a secret: its value comes from the environment or the secrets file".into())
        }
        _ => None,
    });
    Some(SecretRequest {
        name: name?,
        origin: origin?,
        header: transpose(header)?,
        format: transpose(format)?,
    })
}

fn secret_name(field: &Field<'_>) -> Option<String> {
    let name = field.text()?;
    if !is_variable(name) {
        // It may be the secret itself, so it is not repeated.
        let error = crate::manifest::error::ManifestError::at(field.place(), "this is not the name of a secret")
            .with_key(field.path.clone())
            .with_hint("a name such as `GITHUB_TOKEN`, never the value: letters, digits and `_`");
        field.reader.push(error.without_text());
        return None;
    }
    Some(name.to_owned())
}

fn header_field(field: &Field<'_>) -> Option<String> {
    let name = header(field.text()?);
    if name.is_none() {
        field.refuse(
            format!("`{}` is not a header's name", field.shown()),
            "such as `authorization`",
        );
    }
    name
}

/// A header's name in lower case, if it is one.
pub(crate) fn header(name: &str) -> Option<String> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let sound = (1..=128).contains(&name.len()) && name.bytes().all(token);
    sound.then(|| name.to_ascii_lowercase())
}

fn secret_format(field: &Field<'_>) -> Option<String> {
    let format = field.text()?;
    if format.matches("{}").count() != 1 || format.chars().any(char::is_control) {
        field.refuse(
            format!("`{}` is not a format", field.shown()),
            "a line that holds `{}` once, where the secret goes, such as `Bearer {}`",
        );
        return None;
    }
    Some(format.to_owned())
}

/// A `limits` table, of a grant or of policy.
pub(crate) fn limits(field: &Field<'_>) -> Option<LimitRequest> {
    let table = field.table()?;
    let size = |table: &Table<'_>, key, least| table.get(key).map(|field| field.size(least));
    let count = |table: &Table<'_>, key, least| table.get(key).map(|field| field.count(least));
    let time = |table: &Table<'_>, key| table.get(key).map(|field| field.duration());
    let request = (
        // A module's smallest memory is a page of 64 KiB.
        size(&table, "memory", 64 << 10),
        time(&table, "cpu"),
        time(&table, "wall"),
        size(&table, "output", 1),
        count(&table, "tables", 0),
        count(&table, "instances", 1),
        size(&table, "log", 0),
        count(&table, "handles", 0),
        count(&table, "requests", 0),
        size(&table, "request_bytes", 0),
        size(&table, "response_bytes", 0),
    );
    table.finish(|key| match key {
        "time" | "timeout" => {
            Some("did you mean `wall`, the time in all, or `cpu`, the time that a guest computes?".into())
        }
        _ => None,
    });
    Some(LimitRequest {
        memory: transpose(request.0)?,
        cpu: transpose(request.1)?,
        wall: transpose(request.2)?,
        output: transpose(request.3)?,
        tables: transpose(request.4)?,
        instances: transpose(request.5)?,
        log: transpose(request.6)?,
        handles: transpose(request.7)?,
        requests: transpose(request.8)?,
        request_bytes: transpose(request.9)?,
        response_bytes: transpose(request.10)?,
    })
}
