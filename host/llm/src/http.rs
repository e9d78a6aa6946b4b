//! Requests to one server: its own origin, no redirects, no key in any message.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, redirect};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use url::{Host, Url};

use crate::config::{ClientOptions, ModelConfigError, Timeouts};
use crate::fault::{Cause, Fault, shorten};
use crate::retry::retry_after;

/// The most that is read of an error's body.
const MAX_ERROR: usize = 64 << 10;

/// One address, and how it is asked.
pub(crate) struct Endpoint {
    client: Client,
    url: Url,
    headers: HeaderMap,
    timeouts: Timeouts,
    secrets: Vec<SecretString>,
}

impl Endpoint {
    /// Prepares requests to `url`. `secrets` are values that no message may hold.
    pub(crate) fn new(
        url: Url,
        headers: HeaderMap,
        secrets: Vec<SecretString>,
        options: &ClientOptions,
    ) -> Result<Self, ModelConfigError> {
        Ok(Self {
            client: http_client(&url, options.timeouts.connect)?,
            url,
            headers,
            timeouts: options.timeouts,
            secrets,
        })
    }

    /// Where it is, for messages.
    pub(crate) fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Posts a body and hands back a response whose status is a success.
    pub(crate) async fn post(&self, body: Bytes) -> Result<Response, Fault> {
        let request = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(body);
        let response = tokio::time::timeout(self.timeouts.answer, request.send())
            .await
            .map_err(|_| {
                Fault::new(
                    Cause::Slow,
                    format!("no answer began within {:?}", self.timeouts.answer),
                )
            })?
            .map_err(|error| of_transport(error, Cause::Cut))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let target = response
                .headers()
                .get("location")
                .and_then(|value| value.to_str().ok())
                .unwrap_or("nowhere");
            let message = format!(
                "the server redirects ({}) to `{}`, which is not followed: set `base_url` to the right address",
                status.as_u16(),
                shorten(target)
            );
            return Err(Fault::new(Cause::Redirect, message));
        }
        Err(self.of_status(response).await)
    }

    /// The fault of an answer whose status is no success.
    async fn of_status(&self, mut response: Response) -> Fault {
        let status = response.status();
        let wait = retry_after(response.headers(), SystemTime::now());
        let mut body = Vec::new();
        let read = async {
            while let Ok(Some(piece)) = response.chunk().await {
                body.extend_from_slice(&piece);
                if body.len() >= MAX_ERROR {
                    break;
                }
            }
        };
        // An error whose body does not come is still that error.
        let _ = tokio::time::timeout(self.timeouts.idle, read).await;
        let mut fault = match serde_json::from_slice::<Value>(&body) {
            Ok(Value::Array(mut items)) if items.len() == 1 => {
                Fault::of_error(Cause::Status(status.as_u16()), &items.remove(0))
            }
            Ok(value @ Value::Object(_)) => Fault::of_error(Cause::Status(status.as_u16()), &value),
            _ => {
                let text = String::from_utf8_lossy(&body);
                let page = text.trim_start().starts_with('<');
                Fault::new(
                    Cause::Status(status.as_u16()),
                    if page { "a web page".to_owned() } else { shorten(&text) },
                )
            }
        };
        let reason = status.canonical_reason().unwrap_or("unknown").to_lowercase();
        let colon = if fault.message.is_empty() { "" } else { ": " };
        fault.message = format!(
            "the server answered {} ({reason}){colon}{}",
            status.as_u16(),
            fault.message
        );
        fault.retry_after = wait;
        fault
    }

    /// The next piece of an answer; `None` at its end.
    pub(crate) async fn next(&self, response: &mut Response, within: Duration) -> Result<Option<Bytes>, Fault> {
        match tokio::time::timeout(within, response.chunk()).await {
            Ok(piece) => piece.map_err(|error| of_transport(error, Cause::Cut)),
            Err(_) => Err(Fault::new(
                Cause::Idle,
                format!("nothing came for {within:?} in the middle of the answer"),
            )),
        }
    }

    /// How long an answer may be silent.
    pub(crate) fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// A text without any secret, for people, logs and models.
    pub(crate) fn redact(&self, text: &str) -> String {
        redact(text, &self.secrets)
    }
}

/// The client for one server of the operator's: what goes to it goes nowhere else.
///
/// # Errors
/// [`ModelConfigError::Client`] if TLS cannot be set up.
pub fn http_client(url: &Url, connect: Duration) -> Result<Client, ModelConfigError> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls()?)
        // A redirect would carry the key, or the conversation, to an origin that nobody configured.
        .redirect(redirect::Policy::none())
        .referer(false)
        .connect_timeout(connect)
        .tcp_keepalive(Duration::from_secs(30))
        .user_agent(concat!("fief/", env!("CARGO_PKG_VERSION")));
    if is_loopback(url) {
        // A proxy of the environment cannot reach this machine's own ports.
        builder = builder.no_proxy();
    }
    builder
        .build()
        .map_err(|error| ModelConfigError::Client(error.to_string()))
}

/// Replaces every secret in a text.
pub(crate) fn redact(text: &str, secrets: &[SecretString]) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        let secret = secret.expose_secret();
        if !secret.is_empty() && text.contains(secret) {
            text = text.replace(secret, "[redacted]");
        }
    }
    text
}

/// TLS with `ring` chosen here rather than by a process-wide default, and the system's certificates.
fn tls() -> Result<rustls::ClientConfig, ModelConfigError> {
    let failed = |error: rustls::Error| ModelConfigError::Client(error.to_string());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = rustls_platform_verifier::Verifier::new(provider.clone()).map_err(failed)?;
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// A transport's failure. Its own address is left out, since a base address may hold what is nobody's business.
fn of_transport(error: reqwest::Error, other: Cause) -> Fault {
    let error = error.without_url();
    let chain: Vec<String> = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source())
        .map(ToString::to_string)
        .collect();
    let text = chain.last().cloned().unwrap_or_default();
    let tls = chain.iter().any(|part| {
        let part = part.to_lowercase();
        part.contains("certificate") || part.contains("tls") || part.contains("handshake")
    });
    if error.is_connect() {
        let cause = if tls { Cause::Tls } else { Cause::Connect };
        return Fault::new(cause, format!("cannot connect: {text}"));
    }
    if error.is_decode() {
        return Fault::new(Cause::Cut, format!("the answer cannot be decoded: {text}"));
    }
    Fault::new(
        other,
        format!("the connection broke before the answer was whole: {text}"),
    )
}

/// Adds configured headers.
///
/// # Errors
/// The first that no request can carry.
pub(crate) fn add_headers<'a>(
    model: &str,
    configured: impl Iterator<Item = (&'a String, &'a String)>,
    headers: &mut HeaderMap,
) -> Result<(), ModelConfigError> {
    for (name, value) in configured {
        let bad = |rule: &'static str| ModelConfigError::Header {
            model: model.to_owned(),
            name: name.clone(),
            rule,
        };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("is not a header's name"))?;
        if [
            "host",
            "content-length",
            "transfer-encoding",
            "connection",
            "content-type",
        ]
        .contains(&header.as_str())
        {
            return Err(bad("is the host's own to set"));
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| bad("has a value that no header can carry"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(())
}
