//! What a run tells an operator's collector: spans after OpenTelemetry's GenAI conventions, over OTLP/HTTP. Off unless
//! a collector is named; what models, tools and people say is in none of them unless that is asked for as well.
//!
//! Read `settings` (whether, where to, how much), then `tree` (what happens in a run, as spans; pure), with `span` and
//! `content` (what they hold), `otlp` (as the protocol has them) and `export` (sending, beside the run).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fief_core::id::SessionId;
use fief_sandbox::redact::Redactor;

mod content;
mod export;
mod otlp;
pub(crate) mod settings;
mod span;
mod tree;

#[cfg(test)]
mod tests;

pub(crate) use settings::Settings;
pub(crate) use tree::{Note, Profile};

use content::Author;
use export::{Destination, Exporter};
use tree::Tree;

/// How long a collector may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// The way to the collector, one for a host.
pub(crate) struct Telemetry {
    exporter: Exporter,
    origin: String,
    content: bool,
    redact: Arc<Redactor>,
}

impl Telemetry {
    /// The way that `settings` describe, if there is one. A client that cannot be made is a warning.
    pub(crate) fn open(settings: Settings, redact: Arc<Redactor>, warnings: &mut Vec<String>) -> Option<Self> {
        let url = settings.url?;
        let origin = url.origin().ascii_serialization();
        let client = match fief_llm::http_client(&url, CONNECT) {
            Ok(client) => client,
            Err(error) => {
                warnings.push(format!("no spans are sent to {origin}: {error}"));
                return None;
            }
        };
        let exporter = Exporter::start(Destination {
            client,
            url,
            headers: settings.headers,
            resource: settings.resource,
        });
        Some(Self {
            exporter,
            origin,
            content: settings.content,
            redact,
        })
    }

    /// What takes the notes of one run.
    pub(crate) fn trace(&self, run: &str) -> Trace {
        let author = self.content.then(|| Author::new(self.redact.clone()));
        Trace {
            tree: Mutex::new(Tree::new(run, author)),
            exporter: self.exporter.clone(),
            redact: self.redact.clone(),
        }
    }

    /// Waits, a few seconds at most, until everything is sent; a warning for a person if it is not.
    pub(crate) async fn flush(&self) -> Option<String> {
        let (lost, why) = self.exporter.flush(export::LAST_WAIT).await?;
        let spans = if lost == 1 { "span" } else { "spans" };
        Some(format!("{lost} {spans} could not be sent to {}: {why}", self.origin))
    }
}

/// Takes the notes of one run.
pub(crate) struct Trace {
    tree: Mutex<Tree>,
    exporter: Exporter,
    redact: Arc<Redactor>,
}

impl Trace {
    /// Takes what happened in `session` just now.
    pub(crate) fn take(&self, session: &SessionId, note: &Note<'_>) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let ended = self
            .tree
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(session, at, note);
        for mut span in ended {
            // Whatever it holds and wherever it came from: this is the way out.
            if !self.redact.is_empty() {
                span.map_texts(&|text| self.redact.text(text).into_owned());
            }
            self.exporter.send(span);
        }
    }
}
