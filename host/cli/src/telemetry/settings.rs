//! Whether spans are told, where to, and with how much in them: `[telemetry]` of the operator's `fief.toml`, then the
//! standard variables of OpenTelemetry. A repository's file has no say here until it is trusted.
//!
//! | variable | means |
//! |---|---|
//! | `OTEL_EXPORTER_OTLP_ENDPOINT` | the collector, where `[telemetry] endpoint` is absent; `/v1/traces` is added |
//! | `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` | the same, for traces alone, taken as it is |
//! | `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TRACES_HEADERS` | headers, such as a key: `name=value,…`, percent-encoded; for the endpoint of the environment alone, where there is one |
//! | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | who tells; absent: `fief` |
//! | `OTEL_SDK_DISABLED=true`, `OTEL_TRACES_EXPORTER=none` | nothing is sent, whatever else says so |
//!
//! Content is sent by `[telemetry] content = true` alone: no variable that was meant for another program lets it out.

use fief_core::manifest::config::Telemetry;
use percent_encoding::percent_decode_str;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;
use url::Url;

/// What holds.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// Absent: nothing is sent.
    pub(super) url: Option<Url>,
    pub(super) headers: HeaderMap,
    pub(super) content: bool,
    /// What tells who sends.
    pub(super) resource: Vec<(String, String)>,
    /// The values of the headers: they may be keys, and stand in no message.
    pub(crate) secrets: Vec<SecretString>,
    pub(crate) warnings: Vec<String>,
}

impl Settings {
    /// What `config` and the environment say. `env` gives the value of a variable.
    pub(crate) fn read(config: &Telemetry, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let env = |name: &str| {
            env(name)
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
        };
        let mut settings = Self::default();
        let off = env("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || env("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
        if off {
            return settings;
        }
        let theirs = settings.environment(&env);
        let own = config
            .endpoint
            .as_deref()
            .and_then(|text| with_path(text, "`[telemetry] endpoint`", &mut settings));
        settings.headers(&env, own.as_ref(), theirs.as_ref());
        settings.url = own.or(theirs);
        settings.content = config.content;
        settings.resource = resource(&env);
        settings
    }

    /// The endpoint of the environment.
    fn environment(&mut self, env: &dyn Fn(&str) -> Option<String>) -> Option<Url> {
        const TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
        const ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let found = match (env(TRACES), env(ALL)) {
            (Some(text), _) => address(&text, TRACES, self),
            (None, Some(text)) => with_path(&text, ALL, self),
            (None, None) => None,
        }?;
        let protocol = env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL").or_else(|| env("OTEL_EXPORTER_OTLP_PROTOCOL"));
        if let Some(other) = protocol.filter(|name| name != "http/protobuf") {
            self.warnings.push(format!(
                "no spans are sent to the collector of the environment: it is to be spoken to by `{other}`, and fief \
                 speaks `http/protobuf`\nhint: set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL and _ENDPOINT for fief, or \
                 OTEL_TRACES_EXPORTER=none"
            ));
            return None;
        }
        Some(found)
    }

    /// A key goes to its own origin: the headers of the environment belong to its endpoint, where it has one.
    fn headers(&mut self, env: &dyn Fn(&str) -> Option<String>, own: Option<&Url>, theirs: Option<&Url>) {
        const NAMES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
        let Some((name, text)) = NAMES.iter().find_map(|name| Some((*name, env(name)?))) else {
            return;
        };
        let mut headers = HeaderMap::new();
        for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
            let parsed = pair.split_once('=').and_then(|(key, value)| {
                let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
                let key = HeaderName::from_bytes(key.trim().as_bytes()).ok()?;
                let mut header = HeaderValue::from_str(&value).ok()?;
                header.set_sensitive(true);
                Some((key, header, value.into_owned()))
            });
            let Some((key, header, value)) = parsed else {
                self.warnings
                    .push(format!("{name}: a part of it is not `name=value`, and is left out"));
                continue;
            };
            // The part after a scheme, such as `Bearer`, is the key itself; short values are none.
            let key_alone = value.split_once(' ').map(|(_, key)| key.trim().to_owned());
            let long = |value: &String| value.len() >= 8;
            self.secrets.extend(
                [Some(value), key_alone]
                    .into_iter()
                    .flatten()
                    .filter(long)
                    .map(SecretString::from),
            );
            headers.insert(key, header);
        }
        match (own, theirs) {
            (Some(own), Some(theirs)) if own.origin() != theirs.origin() => self.warnings.push(format!(
                "{name} is not sent to `{}`: it belongs to `{}`",
                own.origin().ascii_serialization(),
                theirs.origin().ascii_serialization()
            )),
            _ => self.headers = headers,
        }
    }
}

/// The address of a collector's traces, from the address of a collector.
fn with_path(text: &str, name: &str, settings: &mut Settings) -> Option<Url> {
    let mut url = address(text, name, settings)?;
    let path = url.path().trim_end_matches('/');
    if !path.ends_with("/v1/traces") {
        let path = format!("{path}/v1/traces");
        url.set_path(&path);
    }
    Some(url)
}

fn address(text: &str, name: &str, settings: &mut Settings) -> Option<Url> {
    let sound = |url: &Url| matches!(url.scheme(), "http" | "https") && url.host().is_some();
    let plain = |url: &Url| url.username().is_empty() && url.password().is_none();
    let found = Url::parse(text).ok().filter(sound);
    let why = match &found {
        Some(url) if plain(url) => return found,
        Some(_) => "it holds credentials: they belong into OTEL_EXPORTER_OTLP_HEADERS",
        // Not quoted: what was put here by mistake may well be a key.
        None => "it is not an `http://` or `https://` address",
    };
    settings
        .warnings
        .push(format!("{name} is not used, no spans are sent to it: {why}"));
    None
}

fn resource(env: &dyn Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let mut resource = vec![
        ("service.name".to_owned(), "fief".to_owned()),
        ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let mut set = |key: &str, value: String| {
        resource.retain(|(known, _)| known != key);
        resource.push((key.to_owned(), value));
    };
    let text = env("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    for (key, value) in text.split(',').filter_map(|pair| pair.split_once('=')) {
        if let Ok(value) = percent_decode_str(value.trim()).decode_utf8() {
            set(key.trim(), value.into_owned());
        }
    }
    if let Some(name) = env("OTEL_SERVICE_NAME") {
        set("service.name", name);
    }
    resource
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
