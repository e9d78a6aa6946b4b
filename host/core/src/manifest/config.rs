//! `fief.toml`: the operator's models, directories, policy and defaults.
//!
//! The types; [`parse`](fn@parse) reads a file, and [`layer`] lays a repository's over the operator's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::archetype::{AgentConfig, Generation, LimitRequest, OriginRequest};
use super::error::Place;
use crate::id::ToolRef;

pub mod layer;
mod models;
mod parse;

pub use models::PROVIDERS;
pub use parse::{BUILTIN, parse};

/// A `fief.toml` with where it lies and where its keys stand.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ConfigFile {
    /// What it says.
    pub config: Config,
    /// The directory that it lies in, as its label has it; empty for the working directory.
    pub directory: PathBuf,
    /// Its label.
    pub file: Arc<str>,
    /// Where each key stands that it has, by its whole path, such as `policy.net`.
    pub places: BTreeMap<String, Place>,
}

/// A parsed `fief.toml`. Everything absent keeps its default.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Config {
    /// `[run] archetype`.
    pub archetype: Option<String>,
    /// `[run] model`.
    pub model: Option<String>,
    /// `[run] record`.
    pub record: Option<bool>,
    /// `[directories] plugins`, relative ones joined to the directory of the file.
    pub plugins: Option<Vec<PathBuf>>,
    /// `[directories] archetypes`, relative ones joined to the directory of the file.
    pub archetypes: Option<Vec<PathBuf>>,
    /// `[models]`.
    pub models: BTreeMap<String, ModelConfig>,
    /// `[policy]`.
    pub policy: PolicyTable,
    /// `[agents] builtin`.
    pub builtin: Option<Vec<String>>,
    /// `[agents] tool_mapping`: another product's name to `PLUGIN.TOOL`.
    pub tool_mapping: BTreeMap<String, ToolRef>,
    /// `[agents.config]`.
    pub agents: AgentConfig,
    /// `[secrets] file`, joined to the directory of the configuration if relative.
    pub secrets_file: Option<PathBuf>,
    /// `[sandbox] pagemap_scan`: faster, and not isolated under memory pressure; see `SECURITY.md`.
    pub pagemap_scan: bool,
    /// `[telemetry]`.
    pub telemetry: Telemetry,
}

/// `[telemetry]`: spans over OTLP/HTTP, off unless an endpoint is named.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Telemetry {
    /// Such as `http://127.0.0.1:4318`.
    pub endpoint: Option<String>,
    /// Whether messages, arguments and results are exported too.
    pub content: bool,
}

/// One `[models.NAME]` table.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ModelConfig {
    /// `openai`, `openai-responses`, `anthropic`, `gemini`, `script`.
    pub provider: String,
    /// The provider's name of the model; for `script` the file.
    pub model: String,
    /// Absent: the provider's own.
    pub base_url: Option<String>,
    /// The name of the variable that holds the key.
    pub key_env: Option<String>,
    /// Sent with every request.
    pub headers: BTreeMap<String, String>,
    /// Tokens.
    pub context: Option<u64>,
    /// False: the text protocol. Absent: true.
    pub native_tools: Option<bool>,
    /// Whether answers are streamed. Absent: true.
    pub stream: Option<bool>,
    /// Defaults of sampling.
    pub generation: Generation,
    /// For a million tokens.
    pub prices: Option<Prices>,
    /// Models that are asked when this one cannot be had.
    pub fallback: Vec<String>,
}

/// What a million tokens cost.
#[derive(Clone, Copy, PartialEq, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Input that was not cached.
    pub input: f64,
    /// Input read from the cache; absent: as `input`.
    #[serde(default)]
    pub cached: Option<f64>,
    /// Output, thoughts included.
    pub output: f64,
}

impl Prices {
    /// What `usage` costs.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // Token counts stay far below 2^52.
    pub fn cost(&self, usage: &crate::message::Usage) -> f64 {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let fresh = usage.input_tokens - cached;
        let cached_price = self.cached.unwrap_or(self.input);
        (fresh as f64 * self.input + cached as f64 * cached_price + usage.output_tokens as f64 * self.output) / 1e6
    }
}

/// `[policy]`: a key that is present replaces its default.
#[derive(Clone, PartialEq, Debug, Default)]
#[allow(missing_docs)] // each key is documented at `grant::policy::Policy`
pub struct PolicyTable {
    pub read: Option<Vec<PathBuf>>,
    pub write: Option<Vec<PathBuf>>,
    pub net: Option<Vec<OriginRequest>>,
    pub secrets: Option<Vec<String>>,
    pub env: Option<Vec<String>>,
    pub toolbox: Option<bool>,
    pub person: Option<bool>,
    pub strict: Option<bool>,
    pub max_depth: Option<u32>,
    pub max_children: Option<u32>,
    pub parallel_children: Option<u32>,
    pub ask: Option<Vec<String>>,
    pub limits: LimitRequest,
}

#[cfg(test)]
mod tests;
