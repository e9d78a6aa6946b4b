//! Plans: an archetype and the frozen [`World`] become an [`AgentSpec`], everything resolved, before anything runs.
//!
//! This is the only place that makes one. Read [`main`](fn@main) and [`child`](fn@child) first, then `equip` (what an
//! agent holds), `settings` (what an absent key means) and `ways` (whom it may start). `check` and `why` explain to an
//! operator what comes of his manifests.
//!
//! A model's words reach this module as a [`ChildRequest`](crate::agent::spec::ChildRequest) and choose among what is
//! already resolved; they cannot add to it.

use serde::Serialize;

use crate::agent::spec::AgentSpec;
use crate::grant::resolve::BadGrant;
use crate::id::PluginName;
use crate::nearest::nearest;

mod check;
mod child;
mod equip;
mod main;
mod settings;
mod spec;
#[cfg(test)]
mod tests;
mod ways;
mod why;

pub use crate::grant::resolve::Reach;
pub use check::{Finding, check};
pub use child::child;
pub use equip::FIRST_PARTY;
pub use main::{main, reachable};
pub use why::why;

/// An agent that can start, and what its operator should know about it.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The agent.
    pub spec: AgentSpec,
    /// What is odd about it, or less than its archetype says, one line each; what was left out is among them.
    pub warnings: Vec<String>,
    /// Plugins that it does not hold because they cannot link.
    pub left_out: Vec<LeftOut>,
    /// What its plugins reach and why, one line each.
    pub reach: Vec<Reach>,
}

/// A plugin that an agent does not hold because it cannot link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LeftOut {
    /// Which.
    pub plugin: PluginName,
    /// Every interface that it lacks.
    pub why: String,
    /// The flag, or the key of `fief.toml`, that would allow it; absent where none would.
    pub flag: Option<String>,
}

impl LeftOut {
    /// Why, with the flag that would change it.
    #[must_use]
    pub fn with_flag(&self) -> String {
        match &self.flag {
            Some(flag) => format!("{}; `{flag}` would allow it", self.why),
            None => self.why.clone(),
        }
    }
}

/// Why an agent does not start.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct PlanError {
    /// Whose fault it is.
    pub kind: PlanErrorKind,
    /// What is wrong and what would be right; hints stand on lines of their own.
    pub message: String,
}

/// Whose fault it is that an agent does not start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanErrorKind {
    /// A manifest's or the configuration's: exit code 2.
    Configuration,
    /// `[policy] strict` refuses what it would else only warn of: exit code 4.
    Strict,
    /// The model's that asked for a child: it can mend its call.
    Request,
}

impl PlanError {
    fn configuration(message: impl Into<String>) -> Self {
        Self {
            kind: PlanErrorKind::Configuration,
            message: message.into(),
        }
    }

    fn request(message: impl Into<String>) -> Self {
        Self {
            kind: PlanErrorKind::Request,
            message: message.into(),
        }
    }
}

impl From<BadGrant> for PlanError {
    fn from(error: BadGrant) -> Self {
        Self::configuration(error.to_string())
    }
}

/// `names` as a list for people, or a word for none; and the nearest as a hint on a line of its own.
fn choices<'a>(name: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let listed: Vec<String> = names.clone().into_iter().map(|name| format!("`{name}`")).collect();
    let listed = if listed.is_empty() {
        "none".to_owned()
    } else {
        listed.join(", ")
    };
    match nearest(name, names) {
        Some(nearest) => format!("{listed}\nhint: did you mean `{nearest}`?"),
        None => listed,
    }
}
