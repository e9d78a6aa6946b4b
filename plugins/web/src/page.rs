//! What an answer holds, turned into what is shown.

use encoding_rs::{Encoding, UTF_8};
use fief_plugin::ToolError;
use url::Url;

use crate::fetch::{Format, Reply};
use crate::html;

/// What is shown of a page.
pub(crate) enum Shown {
    Text(String),
    /// The body is an image of this type.
    Image(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Json,
    Text,
    Image,
    Binary,
}

/// The page in the form that was asked for.
pub(crate) fn shown(reply: &Reply, url: &Url, format: Format) -> Result<Shown, ToolError> {
    let kind = kind(reply);
    match (kind, format) {
        (Kind::Image, _) => Ok(Shown::Image(essence(&reply.content_type))),
        (Kind::Binary, _) => Ok(Shown::Text(described(reply))),
        (_, Format::Json) => match indented(&decoded(reply)) {
            Ok(text) => Ok(Shown::Text(text)),
            Err(error) => Err(ToolError::failed(format!(
                "`{url}` holds no JSON ({error}): leave `format` away"
            ))),
        },
        (Kind::Html, Format::Auto | Format::Markdown) => Ok(Shown::Text(html::markdown(&decoded(reply), url))),
        (Kind::Html, Format::Text) => Ok(Shown::Text(html::plain(&decoded(reply)))),
        // What claims to be JSON and is not is shown as it is.
        (Kind::Json, Format::Auto) => {
            let source = decoded(reply);
            Ok(Shown::Text(indented(&source).unwrap_or(source)))
        }
        (Kind::Html | Kind::Json | Kind::Text, _) => Ok(Shown::Text(decoded(reply))),
    }
}

/// The page as plain text, whatever it is: for errors.
pub(crate) fn text(reply: &Reply, url: &Url) -> String {
    match shown(reply, url, Format::Text) {
        Ok(Shown::Text(text)) => text,
        Ok(Shown::Image(_)) | Err(_) => described(reply),
    }
}

fn described(reply: &Reply) -> String {
    let kind = essence(&reply.content_type);
    let kind = if kind.is_empty() {
        "no declared type".to_owned()
    } else {
        format!("type `{kind}`")
    };
    format!("(binary content of {kind}, {} bytes; not shown)", reply.body.len())
}

fn indented(source: &str) -> serde_json::Result<String> {
    let value: serde_json::Value = serde_json::from_str(source.trim_start_matches('\u{feff}'))?;
    serde_json::to_string_pretty(&value)
}

/// `text/html` of `text/html; charset=utf-8`.
fn essence(content_type: &str) -> String {
    content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

fn kind(reply: &Reply) -> Kind {
    let essence = essence(&reply.content_type);
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "application/json" => Kind::Json,
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" => Kind::Image,
        "application/xml"
        | "application/javascript"
        | "application/x-javascript"
        | "application/ecmascript"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/x-sh"
        | "application/sql"
        | "application/graphql"
        | "application/x-ndjson"
        | "application/jsonl"
        | "application/x-www-form-urlencoded"
        | "image/svg+xml" => Kind::Text,
        kind if kind.starts_with("text/") || kind.ends_with("+xml") => Kind::Text,
        kind if kind.ends_with("+json") => Kind::Json,
        "" | "application/octet-stream" => sniffed(&reply.body),
        _ => Kind::Binary,
    }
}

/// What a body is that nobody declares.
fn sniffed(body: &[u8]) -> Kind {
    let head = &body[..body.len().min(1_024)];
    let start = String::from_utf8_lossy(head)
        .trim_start_matches('\u{feff}')
        .trim_start()
        .to_ascii_lowercase();
    if start.starts_with("<!doctype html") || start.starts_with("<html") {
        Kind::Html
    } else if head.contains(&0) || std::str::from_utf8(head).is_err_and(|error| error.error_len().is_some()) {
        Kind::Binary
    } else {
        Kind::Text
    }
}

/// The body as text: by a byte order mark, else as the answer says, else as the page says, else as UTF-8.
fn decoded(reply: &Reply) -> String {
    let declared = label(&reply.content_type);
    let encoding = declared.or_else(|| {
        let head = String::from_utf8_lossy(&reply.body[..reply.body.len().min(1_024)]).into_owned();
        (kind(reply) == Kind::Html).then(|| label(&head)).flatten()
    });
    encoding.unwrap_or(UTF_8).decode(&reply.body).0.into_owned()
}

/// The encoding that `charset=` names in `text`.
fn label(text: &str) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    let rest = &lower[lower.find("charset")? + "charset".len()..];
    let rest = rest
        .trim_start()
        .strip_prefix('=')?
        .trim_start()
        .trim_start_matches(['"', '\'']);
    let end = rest
        .find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c))
        .unwrap_or(rest.len());
    Encoding::for_label(&rest.as_bytes()[..end])
}
