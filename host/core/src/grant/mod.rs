//! Grants: what a plugin needs ∩ what an archetype grants ∩ what the operator's policy allows.
//!
//! [`Grant`] is the result, and the only thing from which the sandbox builds a linker. Everything in it carries the
//! rule that let it through, so that an audit can name it.
//!
//! Read [`policy`] (the ceiling), [`pattern`] (how origins are written), [`resolve`](mod@resolve) (the intersection) and
//! [`imports`] (what a component lacks under it); then [`egress`] with [`target`] and [`address`], which the sandbox
//! asks about every request. Who gets which grant is settled in [`crate::plan`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::{Digest, PluginName, ToolName};

pub mod address;
pub mod egress;
pub mod imports;
pub mod pattern;
pub mod policy;
pub mod resolve;
pub mod target;

#[cfg(test)]
mod imports_tests;
#[cfg(test)]
mod origin_tests;

use pattern::OriginPattern;

/// What one plugin may do for one agent. Nothing outside it is linked.
///
/// A new field does not compile until the sandbox handles it: it is taken apart exhaustively there.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Grant {
    /// Directories, at most one for a guest path.
    pub files: Vec<DirGrant>,
    /// Origins that requests may go to. Empty: `wasi:http` is not linked.
    pub http: Vec<OriginGrant>,
    /// Environment variables with their values.
    pub env: BTreeMap<String, String>,
    /// Secrets that the host adds to requests.
    pub secrets: Vec<SecretGrant>,
    /// Whether it may call the agent's other tools.
    pub toolbox: bool,
    /// Whether it may ask the person who watches.
    pub person: bool,
    /// Bounds on each call.
    pub limits: Limits,
}

/// Whether a directory may be changed. `Write` includes `Read`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileMode {
    /// Read only.
    Read,
    /// Read and write.
    Write,
}

/// One granted directory.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DirGrant {
    /// Absolute, canonical.
    pub host: PathBuf,
    /// Absolute path in the guest, such as `/work`.
    pub guest: String,
    /// Read, or read and write.
    pub mode: FileMode,
    /// Paths inside it that must not be written even so: what the host itself obeys. Absolute, canonical; a
    /// directory stands for all that it holds.
    pub protected: Arc<[PathBuf]>,
    /// What let it through, such as ``archetype `explore`, policy read `.` ``.
    pub rule: Arc<str>,
}

/// One granted origin.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OriginGrant {
    /// Scheme, host and port: the overlap of what the plugin needs, the archetype grants and policy allows.
    pub pattern: OriginPattern,
    /// Whether the address may be one that is not on the open internet: both the archetype and policy say `private`,
    /// or name a literal address, a range or `localhost`.
    pub private: bool,
    /// Whether a literal metadata address was named by the policy itself.
    pub metadata: bool,
    /// What let it through.
    pub rule: Arc<str>,
}

/// A secret that the host adds to requests for one origin. Never holds its value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SecretGrant {
    /// The secret's name, in the operator's environment or secrets file.
    pub name: String,
    /// The origin whose requests get it.
    pub origin: OriginPattern,
    /// The header that carries it, lower case.
    pub header: String,
    /// The header's value, `{}` standing for the secret.
    pub format: String,
    /// What let it through.
    pub rule: Arc<str>,
}

/// Bounds on one call. `Default` is the table of defaults.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Limits {
    /// Bytes of linear memory, all memories of the call together.
    pub memory: u64,
    /// Time that the guest itself computes.
    pub cpu: Duration,
    /// Time in all, waits in the host included; stands still while a person is asked.
    pub wall: Duration,
    /// Bytes of a result: content and structured together.
    pub output: u64,
    /// Elements of all tables together.
    pub tables: u64,
    /// Core instances, memories and tables a call may have, each.
    pub instances: u64,
    /// Bytes of log and progress text kept of a call, standard error included.
    pub log: u64,
    /// Resources open at once: files, streams, requests.
    pub handles: u64,
    /// Requests a call may send.
    pub requests: u64,
    /// Bytes of one request's body.
    pub request_bytes: u64,
    /// Bytes of one response's body.
    pub response_bytes: u64,
}

impl Default for Limits {
    /// 128 MiB, 5 s of CPU, 30 s in all and 256 KiB of output hold the tools that were measured with room to spare,
    /// CPython among them; the rest is what no honest tool came near.
    fn default() -> Self {
        Self {
            memory: 128 << 20,
            cpu: Duration::from_secs(5),
            wall: Duration::from_secs(30),
            output: 256 << 10,
            tables: 100_000,
            instances: 64,
            log: 64 << 10,
            handles: 1_024,
            requests: 64,
            request_bytes: 8 << 20,
            response_bytes: 16 << 20,
        }
    }
}

/// What an agent holds of one plugin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holding {
    /// The build that was resolved.
    pub digest: Digest,
    /// The tools that it may call.
    pub tools: BTreeSet<ToolName>,
    /// With what rights.
    pub grant: Grant,
}

/// All that an agent may call: the ceiling of what it, or a child that it makes up, can ever reach.
pub type Holdings = BTreeMap<PluginName, Holding>;
