//! Fief as a library: agents whose every tool is a sandboxed component, or trusted Rust of your own.
//!
//! ```no_run
//! use fief::core::manifest::archetype::Archetype;
//! use fief::{Host, HostOptions, NativePlugin, SessionOptions};
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
//! let words = NativePlugin::new("words")?.tool("count", "Counts words.", schema, |arguments| async move {
//!     Ok(arguments["text"].as_str().unwrap_or_default().split_whitespace().count().to_string())
//! })?;
//! let counter = Archetype::new("counter".parse()?, "Counts things.", "You count, and say the number alone.");
//! let options = HostOptions::embedded(std::env::current_dir()?)
//!     .plugins_in("plugins")
//!     .native(words)
//!     .archetype(counter)
//!     .model("openai:gpt-5");
//! let host = Host::open(options).await?;
//! let mut session = host.session(SessionOptions::default()).await?;
//! let (mut events, handle) = (session.events(), session.handle());
//! tokio::spawn(async move {
//!     while let Some(event) = events.recv().await {
//!         println!("{} {:?}", event.session, event.kind);
//!     }
//! });
//! let report = session.task("How many words has the README?").await; // `handle.cancel()` ends it
//! println!("{}: {}", report.status.as_str(), report.text);
//! # drop(handle);
//! # Ok(())
//! # }
//! ```
//!
//! [`core`] keeps its types stable within a minor version, and so does what is exported here. `fief-sandbox` and
//! `fief-llm` are parts of the host and promise nothing to others.

pub use fief_core as core;

mod clock;
pub mod drive;
mod error;
pub mod folders;
pub mod host;
pub mod native;
mod private;
pub mod record;
pub mod sessions;
mod telemetry;
pub mod trust;

pub use drive::ask::{Consent, Question};
pub use error::Error;
pub use host::{Allow, Host, HostOptions};
pub use native::NativePlugin;
pub use sessions::{Handle, Session, SessionOptions};

/// A recorded model from its lines, as `--model script:FILE` reads them; messages call it `label`.
///
/// # Errors
/// What is wrong with a line, by its number.
pub fn script(label: &str, lines: &str) -> Result<std::sync::Arc<dyn core::port::Model>, String> {
    fief_llm::script::Script::from_text(label, lines).map_err(|error| error.to_string())
}
