//! `plugin.toml`: what a plugin is called, what it asks for, how it is built.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::grant::FileMode;
use crate::grant::pattern::OriginPattern;
use crate::id::PluginName;

mod parse;
pub use parse::parse;

/// A parsed `plugin.toml`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PluginManifest {
    /// Absent: the file's stem.
    pub name: Option<PluginName>,
    /// Free text, shown to people.
    pub version: String,
    /// One line, shown to people.
    pub description: String,
    /// How `fief plugin build` builds it.
    pub build: Option<Build>,
    /// What it asks for.
    pub needs: Needs,
    /// Descriptions of typed exports that their component lacks, by tool.
    pub docs: BTreeMap<String, String>,
    /// What `fief plugin check` tries.
    pub examples: Vec<Example>,
}

/// How a plugin is built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Build {
    /// The tool chain: `rust` so far.
    pub lang: Lang,
}

/// The tool chains that `fief plugin build` knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lang {
    /// Cargo for wasm32-wasip2.
    Rust,
}

/// A call and what it should come to.
#[derive(Clone, PartialEq, Debug)]
pub struct Example {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// What is expected.
    pub expect: Expectation,
}

/// What an example expects.
#[derive(Clone, PartialEq, Debug)]
pub enum Expectation {
    /// Success with this text.
    Text(String),
    /// Success with this structured result.
    Structured(Value),
    /// A tool error that holds this text.
    Error(String),
}

/// What a plugin asks for. Absent: it only computes.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Needs {
    /// Which origins, at most.
    pub http: Vec<NeededOrigin>,
    /// Files, of directories that the archetype names.
    pub files: Option<FileMode>,
    /// Environment variables by name.
    pub env: Vec<String>,
    /// Secrets.
    pub secrets: Vec<NeededSecret>,
    /// The agent's other tools.
    pub toolbox: bool,
    /// The person who watches.
    pub person: bool,
}

/// An origin, or `*`, kept as it is written.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct NeededOrigin(pub String);

/// A secret that a plugin asks for.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct NeededSecret {
    /// Its name.
    pub name: String,
    /// The origin it is for, as written.
    #[serde(rename = "for")]
    pub origin: String,
    /// The header, lower case; absent: `authorization`.
    pub header: Option<String>,
    /// Its value, `{}` standing for the secret; absent: `Bearer {}`.
    pub format: Option<String>,
}

const _: fn(OriginPattern) = drop;

#[cfg(test)]
mod tests;
