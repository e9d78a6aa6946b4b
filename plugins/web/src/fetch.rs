//! One fetch: from a URL, over redirects, to what is shown.

use fief_plugin::{Output, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

use crate::page;

/// What is fetched.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fetch {
    /// Whole, such as `https://example.com/page`.
    pub(crate) url: String,
    /// As what to show it; absent: whatever fits its type.
    #[serde(default)]
    pub(crate) format: Option<Format>,
    /// Characters of the result to skip, to go on where an earlier one was cut; absent: 0.
    #[serde(default)]
    pub(crate) offset: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Whatever fits its type.
    Auto,
    /// HTML as Markdown.
    Markdown,
    /// HTML without its markup.
    Text,
    /// JSON, indented.
    Json,
    /// The source as it is.
    Raw,
}

/// As browsers and most libraries do.
const REDIRECTS: usize = 10;
/// Characters of a result: some 15,000 tokens.
const LONGEST: usize = 60_000;
/// Characters of the body that an error shows.
const QUOTED: usize = 500;

/// What a server answered. The body is empty where the answer leads on to another address.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) location: Option<String>,
    pub(crate) body: Vec<u8>,
    /// The body was longer than is read.
    pub(crate) cut: bool,
}

/// Why there is no answer.
#[derive(Debug)]
#[cfg_attr(not(target_family = "wasm"), allow(dead_code))] // Natively every request is denied.
pub(crate) enum Fault {
    /// The host does not let requests to this origin out.
    Denied,
    /// The host does not let requests to this name out, since it leads to an address inside its own network.
    Private,
    /// Anything else.
    Failed(String),
}

/// Sends one request; the second argument is what it accepts.
pub(crate) type Send<'a> = &'a dyn Fn(&Url, &str) -> Result<Reply, Fault>;

pub(crate) fn fetch(args: &Fetch, send: Send<'_>) -> Result<Output, ToolError> {
    let mut url = address(&args.url)?;
    let format = args.format.unwrap_or(Format::Auto);
    let mut hops = 0;
    let reply = loop {
        let reply = send(&url, accepted(format)).map_err(|fault| explain(&url, &fault, hops))?;
        let Some(location) = reply.location.as_deref().filter(|_| is_redirect(reply.status)) else {
            break reply;
        };
        hops += 1;
        if hops > REDIRECTS {
            return Err(ToolError::failed(format!(
                "`{}` redirects more than {REDIRECTS} times",
                args.url
            )));
        }
        url = next(&url, location)?;
    };
    if !(200..300).contains(&reply.status) {
        let quoted: String = page::text(&reply, &url).chars().take(QUOTED).collect();
        let quoted = quoted.trim();
        let said = if quoted.is_empty() {
            String::new()
        } else {
            format!(":\n{quoted}")
        };
        return Err(ToolError::failed(format!(
            "`{url}` answered {}{said}",
            status(reply.status)
        )));
    }
    let mut notes = Vec::new();
    if hops > 0 {
        notes.push(format!("redirected to `{url}`"));
    }
    if reply.cut {
        notes.push(format!(
            "only the first {} bytes of the page were read",
            reply.body.len()
        ));
    }
    match page::shown(&reply, &url, format)? {
        page::Shown::Image(media_type) => Ok(Output::image(media_type, reply.body)),
        page::Shown::Text(text) => window(&text, args.offset.unwrap_or(0), notes),
    }
}

/// The URL, if it is one that may be fetched at all.
fn address(text: &str) -> Result<Url, ToolError> {
    let text = text.trim();
    let mut url = match Url::parse(text) {
        Ok(url) => url,
        Err(url::ParseError::RelativeUrlWithoutBase) => {
            return Err(ToolError::invalid(format!(
                "`{text}` is no whole URL: write `https://{text}`"
            )));
        }
        Err(error) => return Err(ToolError::invalid(format!("`{text}` is no URL: {error}"))),
    };
    check(&url)?;
    url.set_fragment(None);
    Ok(url)
}

fn check(url: &Url) -> Result<(), ToolError> {
    if !matches!(url.scheme(), "http" | "https") {
        let scheme = url.scheme();
        return Err(ToolError::invalid(format!(
            "`{url}`: `{scheme}` is not fetched, only `https` and `http` are"
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ToolError::invalid(
            "a URL with a user or a password is not fetched: credentials are the operator's to grant, as a secret",
        ));
    }
    Ok(())
}

/// Where a redirect leads.
fn next(from: &Url, location: &str) -> Result<Url, ToolError> {
    let to = from
        .join(location)
        .map_err(|error| ToolError::failed(format!("`{from}` redirects to `{location}`, which is no URL: {error}")))?;
    check(&to).map_err(|error| ToolError::failed(format!("`{from}` redirects: {}", error.message())))?;
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err(ToolError::failed(format!(
            "`{from}` redirects to `{to}`, which is not encrypted; this is not followed"
        )));
    }
    let mut to = to;
    to.set_fragment(None);
    Ok(to)
}

fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

fn accepted(format: Format) -> &'static str {
    match format {
        Format::Json => "application/json, */*;q=0.5",
        Format::Auto | Format::Markdown | Format::Text | Format::Raw => {
            "text/html, text/markdown, text/plain, application/json, */*;q=0.5"
        }
    }
}

fn explain(url: &Url, fault: &Fault, hops: usize) -> ToolError {
    let origin = url.origin().ascii_serialization();
    let way = if hops > 0 { " (a redirect led there)" } else { "" };
    match fault {
        Fault::Denied => ToolError::denied(format!(
            "`{origin}` may not be reached by this agent{way}\n\
             hint: the operator can allow it with `--allow-net {origin}`, or name it under `http` in the archetype's \
             grant and under `net` in `[policy]`"
        )),
        Fault::Private => ToolError::denied(format!(
            "`{origin}`{way} leads to an address inside a private network\n\
             hint: the operator can allow it with `private = true` beside the origin"
        )),
        Fault::Failed(reason) => ToolError::failed(format!("`{url}`{way}: {reason}")),
    }
}

/// The names of the answers that a model meets.
fn status(status: u16) -> String {
    let name = match status {
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized: it wants credentials that this agent does not have",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        410 => "Gone",
        429 => "Too Many Requests: wait before you try again",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => return status.to_string(),
    };
    format!("{status} {name}")
}

/// The part of `text` from character `offset` on.
fn window(text: &str, offset: usize, mut notes: Vec<String>) -> Result<Output, ToolError> {
    let total = text.chars().count();
    if offset > 0 && offset >= total {
        return Err(ToolError::invalid(format!(
            "`offset` {offset} is past the end: the page has {total} characters"
        )));
    }
    if text.trim().is_empty() {
        notes.push("the page holds no text".to_owned());
    }
    let shown: String = text.chars().skip(offset).take(LONGEST).collect();
    if offset + LONGEST < total {
        let end = offset + LONGEST;
        notes.push(format!(
            "characters {offset}-{end} of {total}; to go on: `offset` {end}"
        ));
    }
    let notes = if notes.is_empty() {
        String::new()
    } else {
        format!("\n({})\n", notes.join("; "))
    };
    Ok(Output::text(format!("{shown}{notes}")))
}
