//! The operator's ceiling, with every path made absolute by the host.

use std::path::PathBuf;
use std::sync::Arc;

use super::pattern::OriginPattern;
use crate::manifest::archetype::LimitRequest;

/// The ceiling over every grant. `default()` allows nothing but computing; the host adds reading the working directory.
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    /// The directory in which the run starts, absolute and canonical: `/work` in a guest.
    pub working_directory: PathBuf,
    /// Directories that may be granted, read or write.
    pub files: Vec<PolicyDir>,
    /// Origins that may be granted.
    pub net: Vec<PolicyOrigin>,
    /// Secrets that may be granted, each for an origin.
    pub secrets: Vec<PolicySecret>,
    /// Environment variables whose host value may be granted.
    pub env: Vec<PolicyVariable>,
    /// Whether `toolbox` may be granted.
    pub toolbox: bool,
    /// Whether `person` may be granted.
    pub person: bool,
    /// Whether an agent that policy takes something from does not start at all.
    pub strict: bool,
    /// The depth of the deepest child: 1 means that main's children start none.
    pub max_depth: u32,
    /// Children of one run in all.
    pub max_children: u32,
    /// Children of one run at once.
    pub parallel_children: u32,
    /// Tools, as `PLUGIN.TOOL` or `PLUGIN.*`, for which the person is asked before each call.
    pub ask: Vec<String>,
    /// Caps on limits. What is absent caps nothing.
    pub limits: LimitRequest,
    /// What the host itself obeys: never writable, unless a `write` entry names that very path.
    pub protected: Vec<PathBuf>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            working_directory: PathBuf::from("/"),
            files: Vec::new(),
            net: Vec::new(),
            secrets: Vec::new(),
            env: Vec::new(),
            toolbox: false,
            person: false,
            strict: false,
            max_depth: 1,
            max_children: 64,
            parallel_children: 8,
            ask: Vec::new(),
            limits: LimitRequest::default(),
            protected: Vec::new(),
        }
    }
}

/// A directory (or file) that may be granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyDir {
    /// Absolute and canonical.
    pub host: PathBuf,
    /// Where a grant as wide as policy shows it: `/work`, `/NAME` by its last part, or what the flag says.
    pub guest: String,
    /// Read, or read and write.
    pub mode: super::FileMode,
    /// The flag or the key that allows it, such as ``[policy] read `.` `` or `--allow-read out`.
    pub rule: Arc<str>,
}

/// An origin that may be granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyOrigin {
    /// Which origins.
    pub pattern: OriginPattern,
    /// Whether names may resolve to private addresses.
    pub private: bool,
    /// The flag or the key that allows it.
    pub rule: Arc<str>,
}

/// A secret that may be granted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicySecret {
    /// Its name.
    pub name: String,
    /// The origins whose requests may carry it.
    pub origin: OriginPattern,
    /// The flag or the key that allows it.
    pub rule: Arc<str>,
}

/// A host variable that may be granted, with its value when the host started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyVariable {
    /// Its name.
    pub name: String,
    /// Its value; absent if the host has none.
    pub value: Option<String>,
}
