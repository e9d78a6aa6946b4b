//! What a component imports against what it was granted, before anything is instantiated.
//!
//! | interface | linked |
//! |---|---|
//! | `fief:plugin/types`, `fief:plugin/call` | always |
//! | base WASI 0.2: `cli`, `io`, `clocks`, `random`, `filesystem` | always; it holds nothing by itself |
//! | `wasi:http/types`, `wasi:http/outgoing-handler` | if an origin is granted |
//! | `fief:plugin/toolbox`, `fief:plugin/person` | if granted |
//! | everything else, `wasi:sockets` first of all | never |
//!
//! Whether the *items* of a linked interface exist in its version is for the linker to say.

use std::fmt;

use super::resolve::{Kind, Resolved};
use crate::manifest::archetype::GrantRequest;
use crate::tool::PluginInfo;

/// An interface that the component imports and that its agent does not link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    /// With its version, as the component names it.
    pub interface: String,
    /// Whose doing it is.
    pub blame: Blame,
}

/// Why an interface is missing, and what would change that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Blame {
    /// The plugin's own manifest does not ask for it.
    Needs {
        /// The line of `plugin.toml` that would.
        line: String,
    },
    /// The archetype does not grant it.
    Manifest {
        /// The line of the archetype that would.
        line: String,
    },
    /// The archetype grants it, and policy allows none of it.
    Policy {
        /// The flag, or the key of `fief.toml`, that would allow it.
        flag: String,
    },
    /// No agent ever has it.
    Never {
        /// What to do instead.
        hint: String,
    },
}

impl Blame {
    /// The flag, or the key of `fief.toml`, where policy is all that stands in the way.
    #[must_use]
    pub fn flag(&self) -> Option<&str> {
        match self {
            Self::Policy { flag } => Some(flag),
            Self::Needs { .. } | Self::Manifest { .. } | Self::Never { .. } => None,
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.interface, self.blame)
    }
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Needs { line } => write!(f, "its `plugin.toml` does not ask for it; `{line}` would"),
            Self::Manifest { line } => write!(f, "not granted; `{line}` would grant it"),
            Self::Policy { flag } => write!(f, "not allowed by policy; `{flag}` would allow it"),
            Self::Never { hint } => write!(f, "never granted; {hint}"),
        }
    }
}

/// What is missing, a line for each reason: the interfaces of one capability lack one and the same line or flag, which
/// is said once.
#[must_use]
pub fn grouped(lacking: &[Missing]) -> Vec<(String, &Blame)> {
    let mut groups: Vec<(String, &Blame)> = Vec::new();
    for missing in lacking {
        let name = format!("`{}`", missing.interface);
        match groups.iter_mut().find(|(_, blame)| **blame == missing.blame) {
            Some((names, _)) => *names = format!("{names}, {name}"),
            None => groups.push((name, &missing.blame)),
        }
    }
    groups
}

/// How an interface is come by.
enum Access {
    Always,
    Granted(Kind),
    Never(String),
}

/// Every interface that `plugin` imports and does not get under what was `resolved` from `request`, in the order of its
/// imports.
#[must_use]
pub fn missing(plugin: &PluginInfo, request: &GrantRequest, resolved: &Resolved) -> Vec<Missing> {
    let blame = |interface: &str| match access(interface) {
        Access::Always => None,
        Access::Never(hint) => Some(Blame::Never { hint }),
        Access::Granted(kind) => blame(plugin, request, resolved, kind),
    };
    let missing = |interface: &String| {
        blame(interface).map(|blame| Missing {
            interface: interface.clone(),
            blame,
        })
    };
    plugin.imports.iter().filter_map(missing).collect()
}

fn access(interface: &str) -> Access {
    let (path, version) = interface.split_once('@').unwrap_or((interface, ""));
    let (package, name) = path.split_once('/').unwrap_or((path, ""));
    let access = match (package, name) {
        ("fief:plugin", "types" | "call") => Access::Always,
        ("fief:plugin", "toolbox") => Access::Granted(Kind::Toolbox),
        ("fief:plugin", "person") => Access::Granted(Kind::Person),
        (
            "wasi:cli",
            "environment" | "exit" | "stdin" | "stdout" | "stderr" | "terminal-input" | "terminal-output"
            | "terminal-stdin" | "terminal-stdout" | "terminal-stderr",
        )
        | ("wasi:io", "error" | "poll" | "streams")
        | ("wasi:clocks", "monotonic-clock" | "wall-clock")
        | ("wasi:random", "random" | "insecure" | "insecure-seed")
        | ("wasi:filesystem", "types" | "preopens") => Access::Always,
        ("wasi:http", "types" | "outgoing-handler") => Access::Granted(Kind::Http),
        ("wasi:http", _) => Access::Never("a plugin answers calls, it serves no requests".into()),
        ("wasi:sockets", _) => Access::Never(
            "a plugin reaches the network through `wasi:http` (for Python: `componentize-py --stub-wasi`)".into(),
        ),
        (package, _) if package.starts_with("wasi:") => Access::Never(
            "this host links base WASI and `wasi:http` (for Python: `componentize-py --stub-wasi`)".into(),
        ),
        _ => Access::Never("this host does not know it".into()),
    };
    let offered = if package.starts_with("wasi:") { "0.2" } else { "0.1" };
    let fits = version
        .strip_prefix(offered)
        .is_some_and(|patch| patch.starts_with('.'));
    match access {
        Access::Never(hint) => Access::Never(hint),
        access if fits => access,
        _ => Access::Never(format!("this host offers `{path}` in version {offered}")),
    }
}

fn blame(plugin: &PluginInfo, request: &GrantRequest, resolved: &Resolved, kind: Kind) -> Option<Blame> {
    let (had, needed, wanted, key) = match kind {
        Kind::Http => (
            !resolved.grant.http.is_empty(),
            !plugin.needs.http.is_empty(),
            resolved.wanted.http,
            "http",
        ),
        Kind::Toolbox => (
            resolved.grant.toolbox,
            plugin.needs.toolbox,
            resolved.wanted.toolbox,
            "toolbox",
        ),
        Kind::Person => (
            resolved.grant.person,
            plugin.needs.person,
            resolved.wanted.person,
            "person",
        ),
        Kind::File | Kind::Env | Kind::Secret | Kind::Limit => return None,
    };
    if had {
        return None;
    }
    let value = |origins: String| {
        if kind == Kind::Http {
            format!("[{origins}]")
        } else {
            "true".into()
        }
    };
    if !needed {
        return Some(Blame::Needs {
            line: format!("[needs] {key} = {}", value("\"*\"".into())),
        });
    }
    if !wanted {
        let needed = plugin.needs.http.iter().map(|need| need.0.as_str());
        let origins: Vec<String> = needed
            .map(|need| if need == "*" { "ORIGIN" } else { need })
            .map(|o| format!("\"{o}\""))
            .collect();
        return Some(Blame::Manifest {
            line: format!("[tools.grant] {key} = {}", value(origins.join(", "))),
        });
    }
    if kind != Kind::Http {
        return Some(Blame::Policy {
            flag: format!("[policy] {key} = true"),
        });
    }
    let granted: Vec<&str> = match request {
        GrantRequest::Exact(table) => table.http.iter().map(|request| request.origin.as_str()).collect(),
        GrantRequest::Policy => plugin.needs.http.iter().map(|need| need.0.as_str()).collect(),
    };
    let flags: Vec<String> = granted
        .iter()
        .map(|o| format!("--allow-net {}", if *o == "*" { "ORIGIN" } else { o }))
        .collect();
    Some(Blame::Policy { flag: flags.join(" ") })
}
