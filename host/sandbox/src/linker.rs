//! Linking: what is not granted is not there.
//!
//! A linker is built from a grant alone, interface by interface. A component's imports are compared with it before it
//! is instantiated, and one error names all that is missing. Imports are never defined as traps: that would break
//! guests that probe what works, and would turn a missing grant into a crash in the middle of a call.

use std::fmt;

use fief_core::grant::Grant;
use fief_core::id::PluginName;
use wasmtime::Engine;
use wasmtime::component::{Component, HasSelf, InstancePre, Linker};
use wasmtime_wasi::WasiView as _;
use wasmtime_wasi::cli::{WasiCli, WasiCliView as _};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView as _};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, io, random};
use wasmtime_wasi::random::WasiRandom;

use crate::bindings::{call, person, toolbox, types};
use crate::host::fs::HasFiles;
use crate::host::http;
use crate::instance::Guest;

/// The version of WASI that wasmtime 48 implements. Any 0.2 links against it that imports no item it lacks.
const WASI: &str = "0.2.12";
/// The version of the plugin contract.
const FIEF: &str = "0.1.0";

/// The capability that an interface stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Capability {
    /// `http`.
    Http,
    /// `toolbox`.
    Toolbox,
    /// `person`.
    Person,
}

impl Capability {
    fn key(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Toolbox => "toolbox",
            Self::Person => "person",
        }
    }

    /// The line of an archetype's `[tools.grant]` that would grant it.
    #[must_use]
    pub fn grant_line(self) -> &'static str {
        match self {
            Self::Http => "http = [\"https://HOST\"]",
            Self::Toolbox => "toolbox = true",
            Self::Person => "person = true",
        }
    }
}

/// Every interface that can ever be linked, without its version; absent: no grant is needed.
const INTERFACES: &[(&str, &str, Option<Capability>)] = &[
    ("fief:plugin/types", FIEF, None),
    ("fief:plugin/call", FIEF, None),
    ("fief:plugin/toolbox", FIEF, Some(Capability::Toolbox)),
    ("fief:plugin/person", FIEF, Some(Capability::Person)),
    ("wasi:io/error", WASI, None),
    ("wasi:io/poll", WASI, None),
    ("wasi:io/streams", WASI, None),
    ("wasi:clocks/wall-clock", WASI, None),
    ("wasi:clocks/monotonic-clock", WASI, None),
    ("wasi:random/random", WASI, None),
    ("wasi:random/insecure", WASI, None),
    ("wasi:random/insecure-seed", WASI, None),
    ("wasi:cli/environment", WASI, None),
    ("wasi:cli/exit", WASI, None),
    ("wasi:cli/stdin", WASI, None),
    ("wasi:cli/stdout", WASI, None),
    ("wasi:cli/stderr", WASI, None),
    ("wasi:cli/terminal-input", WASI, None),
    ("wasi:cli/terminal-output", WASI, None),
    ("wasi:cli/terminal-stdin", WASI, None),
    ("wasi:cli/terminal-stdout", WASI, None),
    ("wasi:cli/terminal-stderr", WASI, None),
    ("wasi:filesystem/types", WASI, None),
    ("wasi:filesystem/preopens", WASI, None),
    ("wasi:http/types", WASI, Some(Capability::Http)),
    ("wasi:http/outgoing-handler", WASI, Some(Capability::Http)),
];

/// One import that cannot be linked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    /// As the component names it, with its version.
    pub import: String,
    /// Why.
    pub why: Why,
}

/// Why an import cannot be linked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// A grant would link it.
    NotGranted(Capability),
    /// No grant ever links it.
    Never,
    /// The host has it in a version that does not fit.
    Version {
        /// The host's version.
        host: &'static str,
        /// The item that is missing or differs; absent where the versions themselves do not fit.
        item: Option<String>,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: ", self.import)?;
        match &self.why {
            Why::NotGranted(capability) => {
                let (key, line) = (capability.key(), capability.grant_line());
                write!(f, "`{key}` is not granted; `{line}` in `[tools.grant]` would grant it")
            }
            Why::Never => f.write_str("no grant links it"),
            Why::Version { host, item: None } => write!(f, "the host has version {host}, which does not fit"),
            Why::Version { host, item: Some(item) } => {
                write!(f, "the host has version {host}, where `{item}` is missing or differs")
            }
        }
    }
}

/// Why a plugin was not linked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LinkError {
    /// Imports that nothing granted provides; all of them.
    #[error("plugin `{plugin}` imports what it cannot have:{}", list(missing))]
    Missing {
        /// The plugin.
        plugin: PluginName,
        /// All that is missing.
        missing: Vec<Missing>,
    },
    /// A granted directory cannot be used.
    #[error("plugin `{plugin}`: granted directory `{}` cannot be opened: {why}", path.display())]
    Directory {
        /// The plugin.
        plugin: PluginName,
        /// Which.
        path: std::path::PathBuf,
        /// Why.
        why: String,
    },
    /// The component itself cannot be had any more, or is not what was found at the start.
    #[error(transparent)]
    Load(#[from] crate::LoadError),
}

impl LinkError {
    /// What would help, for a line of its own.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let Self::Missing { missing, .. } = self else {
            return None;
        };
        let sockets = missing
            .iter()
            .any(|missing| missing.import.starts_with("wasi:sockets/"));
        sockets.then(|| {
            "sockets are never linked; a Python plugin is built without them by `componentize-py --stub-wasi`".into()
        })
    }
}

fn list(missing: &[Missing]) -> String {
    missing.iter().map(|missing| format!("\n  {missing}")).collect()
}

/// What a linker is for.
#[derive(Clone, Copy)]
pub(crate) enum Purpose<'a> {
    /// Calls of an agent, under its grant.
    Calls(&'a Grant),
    /// Listing tools: everything that a grant could link is there, backed by what refuses every use.
    Inspection,
}

/// Links a component for a purpose.
pub(crate) fn link(
    plugin: &PluginName,
    component: &Component,
    purpose: Purpose<'_>,
) -> Result<InstancePre<Guest>, LinkError> {
    let missing = missing(component, purpose);
    if !missing.is_empty() {
        return Err(LinkError::Missing {
            plugin: plugin.clone(),
            missing,
        });
    }
    linker(component.engine(), purpose)
        .and_then(|linker| linker.instantiate_pre(component))
        .map_err(|error| LinkError::Missing {
            plugin: plugin.clone(),
            missing: vec![mismatch(&error)],
        })
}

/// Compares a component's imports with what the linker for `purpose` holds.
fn missing(component: &Component, purpose: Purpose<'_>) -> Vec<Missing> {
    let ty = component.component_type();
    ty.imports(component.engine())
        .filter_map(|(import, _)| {
            let why = why_not(import, purpose)?;
            let import = import.to_owned();
            Some(Missing { import, why })
        })
        .collect()
}

fn why_not(import: &str, purpose: Purpose<'_>) -> Option<Why> {
    let (interface, version) = import.split_once('@').unwrap_or((import, ""));
    let Some((_, host, capability)) = INTERFACES.iter().find(|(known, ..)| *known == interface) else {
        return Some(Why::Never);
    };
    if track(version) != track(host) {
        return Some(Why::Version { host, item: None });
    }
    let granted = match (capability, purpose) {
        (None, _) | (_, Purpose::Inspection) => true,
        (Some(Capability::Http), Purpose::Calls(grant)) => !grant.http.is_empty(),
        (Some(Capability::Toolbox), Purpose::Calls(grant)) => grant.toolbox,
        (Some(Capability::Person), Purpose::Calls(grant)) => grant.person,
    };
    (!granted).then(|| Why::NotGranted((*capability).expect("only interfaces with a capability can lack it")))
}

/// The part of a version within which versions are compatible: `0.2` of `0.2.4`, `1` of `1.3.0`.
fn track(version: &str) -> &str {
    // A pre-release is compatible with nothing but itself.
    if version.contains('-') {
        return version;
    }
    let mut dots = version.match_indices('.').map(|(at, _)| at);
    let end = if version.starts_with("0.") {
        dots.nth(1)
    } else {
        dots.next()
    };
    end.map_or(version, |end| &version[..end])
}

/// Reads which item wasmtime found missing from its error, whose links name the interface first and the item last.
fn mismatch(error: &wasmtime::Error) -> Missing {
    let quoted: Vec<String> = error
        .chain()
        .filter_map(|cause| {
            let cause = cause.to_string();
            let name = cause.split('`').nth(1)?;
            Some(name.to_owned())
        })
        .collect();
    let import = quoted
        .iter()
        .find(|name| name.contains('/'))
        .cloned()
        .unwrap_or_else(|| format!("{error:#}"));
    let item = quoted.iter().rev().find(|name| !name.contains('/')).cloned();
    let interface = import.split('@').next().unwrap_or_default();
    let host = INTERFACES
        .iter()
        .find(|(known, ..)| *known == interface)
        .map_or(WASI, |(_, host, _)| host);
    Missing {
        import,
        why: Why::Version { host, item },
    }
}

/// A linker that holds what `purpose` says, each interface added by itself, so that none comes in with another.
fn linker(engine: &Engine, purpose: Purpose<'_>) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::<Guest>::new(engine);
    let l = &mut linker;
    types::add_to_linker::<_, HasSelf<Guest>>(l, |guest| guest)?;
    call::add_to_linker::<_, HasSelf<Guest>>(l, |guest| guest)?;

    io::error::add_to_linker::<_, HasTable>(l, |guest| &mut guest.table)?;
    io::poll::add_to_linker::<_, HasTable>(l, |guest| &mut guest.table)?;
    io::streams::add_to_linker::<_, HasTable>(l, |guest| &mut guest.table)?;
    clocks::wall_clock::add_to_linker::<_, WasiClocks>(l, Guest::clocks)?;
    clocks::monotonic_clock::add_to_linker::<_, WasiClocks>(l, Guest::clocks)?;
    random::random::add_to_linker::<_, WasiRandom>(l, |guest| guest.ctx().ctx.random())?;
    random::insecure::add_to_linker::<_, WasiRandom>(l, |guest| guest.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<_, WasiRandom>(l, |guest| guest.ctx().ctx.random())?;
    cli::environment::add_to_linker::<_, WasiCli>(l, Guest::cli)?;
    cli::exit::add_to_linker::<_, WasiCli>(l, Guest::cli)?;
    cli::stdin::add_to_linker::<_, WasiCli>(l, Guest::cli)?;
    cli::stdout::add_to_linker::<_, WasiCli>(l, Guest::cli)?;
    cli::stderr::add_to_linker::<_, WasiCli>(l, Guest::cli)?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(l, Guest::cli)?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(l, Guest::cli)?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(l, Guest::cli)?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(l, Guest::cli)?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(l, Guest::cli)?;
    filesystem::types::add_to_linker::<_, HasFiles>(l, Guest::files)?;
    filesystem::preopens::add_to_linker::<_, HasFiles>(l, Guest::files)?;

    let (with_http, with_toolbox, with_person) = match purpose {
        Purpose::Inspection => (true, true, true),
        Purpose::Calls(grant) => {
            // Taken apart exhaustively: a new right does not compile until it is handled.
            let Grant {
                // The interfaces are always there; without a grant they hold no directory, no variable.
                files: _,
                env: _,
                http,
                // Added to requests by the host.
                secrets: _,
                toolbox,
                person,
                // Enforced around the call.
                limits: _,
            } = grant;
            (!http.is_empty(), *toolbox, *person)
        }
    };
    if with_http {
        http::add_to_linker(l)?;
    }
    if with_toolbox {
        toolbox::add_to_linker::<_, HasSelf<Guest>>(l, |guest| guest)?;
    }
    if with_person {
        person::add_to_linker::<_, HasSelf<Guest>>(l, |guest| guest)?;
    }
    Ok(linker)
}

/// Gives `wasi:io` the table of the call.
struct HasTable;

impl wasmtime::component::HasData for HasTable {
    type Data<'a> = &'a mut wasmtime::component::ResourceTable;
}

#[cfg(test)]
mod tests;
