//! Anthropic's messages.

mod read;
mod write;

use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use url::Url;

use super::{Format, Provider, Question, Reader};
use crate::draft::Draft;
use crate::fault::Fault;

pub(super) const PROVIDER: Provider = Provider {
    name: "anthropic",
    base_url: "https://api.anthropic.com/v1",
    key_env: "ANTHROPIC_API_KEY",
    format: |_| Box::new(Messages::default()),
};

/// The version of the format that is spoken.
const VERSION: &str = "2023-06-01";
/// The output limit where none is configured; the format demands one. Models with a smaller one say so, and it is
/// lowered to what they say.
const OUTPUT: u64 = 16_000;

/// The format, and what the server has said of its limits.
#[derive(Debug)]
pub(crate) struct Messages {
    /// The most output tokens that the server has said it allows.
    most: AtomicU64,
}

impl Default for Messages {
    fn default() -> Self {
        Self {
            most: AtomicU64::new(u64::MAX),
        }
    }
}

impl Format for Messages {
    fn endpoint(&self, base: &Url) -> Url {
        let mut url = base.clone();
        let path = base.path().trim_end_matches('/');
        let path = if path.ends_with("/messages") {
            path.to_owned()
        } else if path.ends_with("/v1") {
            format!("{path}/messages")
        } else {
            format!("{path}/v1/messages")
        };
        url.set_path(&path);
        url
    }

    fn headers(&self, key: Option<&SecretString>, headers: &mut HeaderMap) {
        headers.insert(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION));
        if let Some(mut value) = key.and_then(|key| HeaderValue::from_str(key.expose_secret()).ok()) {
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static("x-api-key"), value);
        }
    }

    fn body(&self, question: &Question<'_>) -> Value {
        let limit = question.generation.max_output_tokens.unwrap_or(OUTPUT);
        write::body(question, limit.min(self.most.load(Ordering::Relaxed)))
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(read::StreamReader::default())
    }

    fn whole(&self, body: Value) -> Result<Draft, Fault> {
        read::whole(body)
    }

    fn adapt(&self, fault: &Fault) -> bool {
        // "max_tokens: 16000 > 4096, which is the maximum allowed number of output tokens for claude-…"
        let Some((before, after)) = fault.message.split_once(" > ") else { return false };
        if !before.contains("max_tokens") || !after.contains("output tokens") {
            return false;
        }
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        match after[..digits].parse() {
            Ok(limit) if limit > 0 => self.most.fetch_min(limit, Ordering::Relaxed) > limit,
            _ => false,
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
