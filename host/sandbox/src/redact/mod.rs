//! Redaction: takes the values of secrets out of whatever a guest, a model, an event or a log is about to see.
//!
//! A value is found as it is, in Base64 (both alphabets, padded or not, at any of the three alignments that the bytes
//! around it can give it), in hexadecimal, and with any of its characters percent- or JSON-escaped; in either case of
//! its letters; and broken by line ends anywhere. What is found becomes [`REDACTED`], overlapping finds one of them.
//!
//! It does *not* decide which values are secrets, and it promises nothing for any other transformation: a server that
//! is sent a secret and means to give it away can. A secret goes only to the origin that it is granted for, and that
//! origin has to be trusted with it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

mod pattern;
mod sink;
mod stream;
#[cfg(test)]
mod tests;
mod view;

use pattern::Patterns;
pub(crate) use sink::RedactingSink;
pub use stream::RedactStream;

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Finds a fixed set of secrets. Cheap to clone; with no secrets every method is the identity.
#[derive(Clone, Default)]
pub struct Redactor {
    patterns: Option<Arc<Patterns>>,
}

impl Redactor {
    /// A redactor of these values. Empty ones are left out: they would be found everywhere.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a SecretString>) -> Self {
        Self {
            patterns: Patterns::new(secrets.into_iter().map(ExposeSecret::expose_secret)).map(Arc::new),
        }
    }

    /// Whether there is nothing to find.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.patterns.is_none()
    }

    /// Text without the secrets.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // Every form of a secret is whole characters, so what is left is too; if it ever were not, the broken
            // character is the only one to suffer.
            Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }),
        }
    }

    /// Bytes without the secrets.
    #[must_use]
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut stream = self.stream();
        let mut clean = stream.push(bytes);
        clean.extend(stream.finish());
        if clean == bytes {
            Cow::Borrowed(bytes)
        } else {
            Cow::Owned(clean)
        }
    }

    /// JSON without the secrets: in texts, in keys, and in numbers that hold one as their digits.
    pub fn value(&self, value: &mut Value) {
        if self.is_empty() {
            return;
        }
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                let digits = number.to_string();
                if let Cow::Owned(clean) = self.text(&digits) {
                    *value = Value::String(clean);
                }
            }
            Value::String(text) => {
                if let Cow::Owned(clean) = self.text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => {
                map.values_mut().for_each(|item| self.value(item));
                if map.keys().any(|key| matches!(self.text(key), Cow::Owned(_))) {
                    *map = std::mem::take(map)
                        .into_iter()
                        .map(|(key, item)| (self.text(&key).into_owned(), item))
                        .collect();
                }
            }
        }
    }

    /// Redaction of a text that arrives in pieces, such as a response's body or the lines of a log.
    #[must_use]
    pub fn stream(&self) -> RedactStream {
        RedactStream::new(self.patterns.clone())
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("empty", &self.is_empty())
            .finish_non_exhaustive()
    }
}
