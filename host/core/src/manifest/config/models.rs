//! `[models]`.

use std::collections::BTreeMap;

use super::{ModelConfig, Prices};
use crate::manifest::archetype::grant::{header, is_variable};
use crate::manifest::archetype::settings::generation;
use crate::manifest::error::ManifestError;
use crate::manifest::read::{Field, Table};

/// The wire formats.
pub const PROVIDERS: [&str; 5] = ["openai", "openai-responses", "anthropic", "gemini", "script"];

/// Headers that carry a key, which belongs in a variable.
const CREDENTIALS: [&str; 8] = [
    "api-key",
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-api-key",
    "x-auth-token",
    "x-goog-api-key",
    "x-token",
];

pub(super) fn models(field: &Field<'_>) -> BTreeMap<String, ModelConfig> {
    let mut models = BTreeMap::new();
    for (name, field) in field.table().iter().flat_map(Table::fields) {
        let sound = (1..=64).contains(&name.len())
            && name != "inherit"
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b));
        if !sound {
            field.refuse(
                format!("`{name}` is not a model's name"),
                "1 to 64 of letters, digits, `-`, `_`, `.` and `/`; `inherit` is reserved, and `:` parts a provider from its model",
            );
        }
        if let Some(model) = model(&field, name) {
            models.insert(name.to_owned(), model);
        }
    }
    models
}

fn model(field: &Field<'_>, name: &str) -> Option<ModelConfig> {
    let table = field.table()?;
    let providers = PROVIDERS.map(|provider| (provider, provider));
    let provider = table
        .require(
            "provider",
            "one of `openai`, `openai-responses`, `anthropic`, `gemini`, `script`",
        )
        .and_then(|field| field.choice(&providers));
    let model = table
        .require("model", "the provider's name of the model; for `script` the file")
        .and_then(|field| field.filled());
    let config = ModelConfig {
        provider: provider.unwrap_or_default().to_owned(),
        model: model.unwrap_or_default().to_owned(),
        base_url: table.get("base_url").and_then(|field| url(&field)),
        key_env: table.get("key_env").and_then(|field| key_variable(&field)),
        headers: table.get("headers").map(|field| headers(&field)).unwrap_or_default(),
        context: table.get("context").and_then(|field| field.count(1)),
        native_tools: table.get("native_tools").and_then(|field| field.boolean()),
        stream: table.get("stream").and_then(|field| field.boolean()),
        generation: table
            .get("generation")
            .and_then(|field| generation(&field))
            .unwrap_or_default(),
        prices: table.get("prices").and_then(|field| prices(&field)),
        fallback: table
            .get("fallback")
            .and_then(|field| field.distinct(|item| fallback(item, name)))
            .unwrap_or_default(),
    };
    for key in ["key", "api_key", "apikey", "api-key", "token", "secret", "password"] {
        if let Some(field) = table.get_unlisted(key) {
            refuse_key(&field, format!("`{key}` would hold a key, and no manifest does"));
        }
    }
    table.finish(|key| match key {
        "url" | "endpoint" => Some("did you mean `base_url`?".into()),
        "temperature" | "top_p" | "max_output_tokens" | "seed" => {
            Some(format!("did you mean `{key}` under `generation`?"))
        }
        _ => None,
    });
    Some(config)
}

/// Refuses what is, or may be, a key: neither its text nor its line is repeated.
fn refuse_key(field: &Field<'_>, message: String) {
    let error = ManifestError::at(field.place(), message).with_key(field.path.clone());
    let hint = "put it into an environment variable, and name that: `key_env = \"MY_KEY\"`";
    field.reader.push(error.with_hint(hint).without_text());
}

fn key_variable(field: &Field<'_>) -> Option<String> {
    let name = field.text()?;
    if !is_variable(name) {
        refuse_key(field, "`key_env` is the name of a variable, not a key".into());
        return None;
    }
    Some(name.to_owned())
}

/// An `http` or `https` URL without credentials in it.
pub(super) fn url(field: &Field<'_>) -> Option<String> {
    let text = field.filled()?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let authority = rest
        .unwrap_or_default()
        .split(['/', '?', '#'])
        .next()
        .unwrap_or_default();
    if authority.contains('@') {
        refuse_key(field, format!("`{}` holds credentials", field.path));
        return None;
    }
    if authority.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        field.refuse(
            format!("`{}` is not a URL", field.shown()),
            "such as `http://127.0.0.1:8080/v1`",
        );
        return None;
    }
    Some(text.to_owned())
}

fn headers(field: &Field<'_>) -> BTreeMap<String, String> {
    let mut headers = BTreeMap::new();
    for (name, field) in field.table().iter().flat_map(Table::fields) {
        if CREDENTIALS.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            refuse_key(
                &field,
                format!("the header `{name}` would hold a key, and no manifest does"),
            );
            continue;
        }
        let Some(value) = field.text() else { continue };
        if value.chars().any(char::is_control) {
            field.refuse(
                format!("`{}` holds a control character", field.path),
                "a header is one line",
            );
        } else if let Some(name) = header_name(&field, name) {
            headers.insert(name, value.to_owned());
        }
    }
    headers
}

fn header_name(field: &Field<'_>, name: &str) -> Option<String> {
    let lower = header(name);
    if lower.is_none() {
        field.refuse(format!("`{name}` is not a header's name"), "such as `x-team`");
    }
    lower
}

fn prices(field: &Field<'_>) -> Option<Prices> {
    const SHAPE: &str = "dollars for a million tokens: `prices = { input = 0.25, cached = 0.025, output = 2.0 }`";
    let table = field.table()?;
    let price = |field: Field<'_>| field.number_in(0.0..=f64::INFINITY);
    let input = table.require("input", SHAPE).and_then(price);
    let output = table.require("output", SHAPE).and_then(price);
    let cached = table.get("cached").and_then(price);
    table.finish(|_| None);
    Some(Prices {
        input: input?,
        cached,
        output: output?,
    })
}

fn fallback(field: &Field<'_>, own: &str) -> Option<String> {
    let name = field.filled()?;
    if name == own {
        field.refuse(format!("`{name}` cannot stand in for itself"), "name another model");
        return None;
    }
    Some(name.to_owned())
}
