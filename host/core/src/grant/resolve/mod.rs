//! Resolution: what a plugin needs ∩ what an archetype grants ∩ what policy allows.
//!
//! The result says beside the [`Grant`] what policy took from it, what was granted in vain, and, line by line, where
//! each right comes from. It does *not* decide whether the plugin links ([`super::imports`]) or whether its agent
//! starts ([`crate::plan`]).

use std::fmt;

use serde::Serialize;

use super::pattern::{BadOrigin, OriginPattern};
use super::policy::Policy;
use super::{Grant, Limits};
use crate::id::PluginName;
use crate::manifest::archetype::{GrantRequest, GrantTable, LimitRequest};
use crate::tool::PluginInfo;

mod files;
mod net;
#[cfg(test)]
mod tests;

pub use files::absolute;

/// What one plugin may do for one agent, and how that came about.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// The rights.
    pub grant: Grant,
    /// Whether the plugin needs, and the manifest grants, a capability whose interface is linked only if granted:
    /// what the grant would hold if policy allowed everything.
    pub wanted: Wanted,
    /// What policy took from what the manifest grants.
    pub taken: Vec<Taken>,
    /// Grants in vain, and other faults that stop nothing.
    pub warnings: Vec<String>,
    /// Needs that the manifest grants nothing for.
    pub unmet: Vec<String>,
    /// Where each right comes from, and what became of each that was asked for.
    pub reach: Vec<Reach>,
}

/// See [`Resolved::wanted`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // each is the field of the same name of `Grant`
pub struct Wanted {
    pub http: bool,
    pub toolbox: bool,
    pub person: bool,
}

/// Something that a manifest grants and policy does not allow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Of what kind.
    pub kind: Kind,
    /// What was taken, as the manifest writes it.
    pub target: String,
    /// What is left, or why nothing is.
    pub why: String,
    /// The flag, or the key of `fief.toml`, that would allow it.
    pub flag: String,
}

/// The kinds of rights.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // each is a field of `Grant`
pub enum Kind {
    File,
    Http,
    Env,
    Secret,
    Toolbox,
    Person,
    Limit,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "file",
            Self::Http => "http",
            Self::Env => "env",
            Self::Secret => "secret",
            Self::Toolbox => "toolbox",
            Self::Person => "person",
            Self::Limit => "limit",
        })
    }
}

/// One line of what an agent reaches: who asks, who grants, who allows, and what comes of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Reach {
    /// Whose right.
    pub plugin: PluginName,
    /// Of what kind.
    pub kind: Kind,
    /// Which directory, origin, variable or secret.
    pub target: String,
    /// The need that asks for it; absent: none does.
    pub need: Option<String>,
    /// What the archetype grants; absent: nothing.
    pub archetype: Option<String>,
    /// What of policy allows it; absent: nothing does.
    pub policy: Option<String>,
    /// What the agent has in the end; absent: nothing.
    pub effective: Option<String>,
}

/// A manifest holds an origin that is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {error}")]
pub struct BadGrant {
    /// Whose, and under which key.
    pub place: String,
    /// What is wrong with it.
    pub error: BadOrigin,
}

/// Resolves what `plugin` may do where `granter` (such as ``archetype `explore` ``) grants it `request`.
///
/// # Errors
/// [`BadGrant`] where a need or the request names an origin that cannot be read.
pub fn resolve(
    plugin: &PluginInfo,
    request: &GrantRequest,
    policy: &Policy,
    granter: &str,
) -> Result<Resolved, BadGrant> {
    let mut draft = Draft {
        plugin,
        request,
        policy,
        granter,
        out: Resolved::default(),
    };
    draft.files();
    draft.http()?;
    draft.env();
    draft.secrets()?;
    draft.switches();
    draft.limits();
    Ok(draft.out)
}

/// What a grant as wide as policy is called in the archetype's column.
pub(crate) const AS_POLICY: &str = "as wide as policy";

struct Draft<'a> {
    plugin: &'a PluginInfo,
    request: &'a GrantRequest,
    policy: &'a Policy,
    granter: &'a str,
    out: Resolved,
}

impl<'a> Draft<'a> {
    /// The manifest's table; absent where it grants as wide as policy.
    fn table(&self) -> Option<&'a GrantTable> {
        match self.request {
            GrantRequest::Policy => None,
            GrantRequest::Exact(table) => Some(table),
        }
    }

    fn origin(&self, text: &str, key: &str) -> Result<OriginPattern, BadGrant> {
        text.parse().map_err(|error| BadGrant {
            place: format!("{}, plugin `{}`, `{key}`", self.granter, self.plugin.name),
            error,
        })
    }

    fn needed_origin(&self, text: &str, key: &str) -> Result<OriginPattern, BadGrant> {
        text.parse().map_err(|error| BadGrant {
            place: format!("plugin `{}`, `[needs] {key}`", self.plugin.name),
            error,
        })
    }

    /// The provenance of a right that the granter gives and `rule` of policy allows.
    fn rule(&self, rule: &str) -> std::sync::Arc<str> {
        format!("{}, {rule}", self.granter).into()
    }

    fn reach(
        &mut self,
        kind: Kind,
        target: &(impl ToString + ?Sized),
        [need, archetype, policy, effective]: [Option<String>; 4],
    ) {
        self.out.reach.push(Reach {
            plugin: self.plugin.name.clone(),
            kind,
            target: target.to_string(),
            need,
            archetype,
            policy,
            effective,
        });
    }

    fn taken(
        &mut self,
        kind: Kind,
        target: &(impl ToString + ?Sized),
        why: impl Into<String>,
        flag: impl Into<String>,
    ) {
        self.out.taken.push(Taken {
            kind,
            target: target.to_string(),
            why: why.into(),
            flag: flag.into(),
        });
    }

    /// A grant that no need asks for: harmless, and not what its author meant.
    fn in_vain(&mut self, kind: Kind, what: &str, target: &str) {
        self.out.warnings.push(format!(
            "{} grants plugin `{}` {what}, which the plugin does not need",
            self.granter, self.plugin.name
        ));
        self.reach(kind, target, [None, Some(target.into()), None, None]);
    }

    /// Literal values are the manifest's own words and need no policy. Where the manifest grants something and is
    /// silent about a variable, policy may let the host's value through.
    fn env(&mut self) {
        let literals = self.table().map(|table| &table.env);
        for (name, value) in literals.into_iter().flatten() {
            if self.plugin.needs.env.contains(name) {
                self.out.grant.env.insert(name.clone(), value.clone());
                let literal = Some(format!("`{value}`"));
                self.reach(Kind::Env, name, [Some(name.clone()), literal.clone(), None, literal]);
            } else {
                self.in_vain(Kind::Env, &format!("env `{name}`"), name);
            }
        }
        // A table that grants no right at all lets nothing through either: limits are bounds, not rights.
        let silent = self.table().is_some_and(|table| {
            let limits = LimitRequest::default();
            GrantTable {
                limits,
                ..table.clone()
            } == GrantTable::default()
        });
        for name in &self.plugin.needs.env {
            if self.out.grant.env.contains_key(name) {
                continue;
            }
            let allowed = self
                .policy
                .env
                .iter()
                .find(|variable| variable.name == *name && !silent);
            let value = allowed.and_then(|variable| variable.value.clone());
            let policy = allowed.map(|_| format!("[policy] env `{name}`"));
            let effective = value.as_ref().map(|_| "the host's value".to_owned());
            let archetype = (!silent).then(|| AS_POLICY.to_owned());
            self.reach(Kind::Env, name, [Some(name.clone()), archetype, policy, effective]);
            match value {
                Some(value) => drop(self.out.grant.env.insert(name.clone(), value)),
                None => self.out.unmet.push(format!("env `{name}`")),
            }
        }
    }

    fn switches(&mut self) {
        let needs = &self.plugin.needs;
        let table = self.table();
        let toolbox = self.switch(
            Kind::Toolbox,
            needs.toolbox,
            table.map(|t| t.toolbox),
            self.policy.toolbox,
        );
        let person = self.switch(Kind::Person, needs.person, table.map(|t| t.person), self.policy.person);
        (self.out.grant.toolbox, self.out.wanted.toolbox) = toolbox;
        (self.out.grant.person, self.out.wanted.person) = person;
    }

    /// Whether a right that is only there or not is had, and whether it is wanted.
    fn switch(&mut self, kind: Kind, needed: bool, granted: Option<bool>, allowed: bool) -> (bool, bool) {
        let name = match kind {
            Kind::Person => "person",
            _ => "toolbox",
        };
        if !needed {
            if granted == Some(true) {
                self.in_vain(kind, &format!("`{name}`"), name);
            }
            return (false, false);
        }
        let wanted = granted.unwrap_or(true);
        let had = wanted && allowed;
        let archetype = match granted {
            None => Some(AS_POLICY.to_owned()),
            Some(granted) => granted.then(|| name.to_owned()),
        };
        let policy = allowed.then(|| format!("[policy] {name}"));
        self.reach(
            kind,
            name,
            [Some(name.into()), archetype, policy, had.then(|| name.to_owned())],
        );
        if granted == Some(true) && !allowed {
            self.taken(
                kind,
                name,
                "policy does not allow it",
                format!("[policy] {name} = true"),
            );
        }
        if !wanted {
            self.out.unmet.push(format!("`{name}`"));
        }
        (had, wanted)
    }

    fn limits(&mut self) {
        // Taken apart exhaustively: a new limit does not compile before policy can cap it.
        let LimitRequest {
            memory,
            cpu,
            wall,
            output,
            tables,
            instances,
            log,
            handles,
            requests,
            request_bytes,
            response_bytes,
        } = self.table().map_or_else(LimitRequest::default, |table| table.limits);
        let cap = self.policy.limits;
        let default = Limits::default();
        self.out.grant.limits = Limits {
            memory: self.limit("memory", memory, cap.memory, default.memory),
            cpu: self.limit("cpu", cpu, cap.cpu, default.cpu),
            wall: self.limit("wall", wall, cap.wall, default.wall),
            output: self.limit("output", output, cap.output, default.output),
            tables: self.limit("tables", tables, cap.tables, default.tables),
            instances: self.limit("instances", instances, cap.instances, default.instances),
            log: self.limit("log", log, cap.log, default.log),
            handles: self.limit("handles", handles, cap.handles, default.handles),
            requests: self.limit("requests", requests, cap.requests, default.requests),
            request_bytes: self.limit("request_bytes", request_bytes, cap.request_bytes, default.request_bytes),
            response_bytes: self.limit(
                "response_bytes",
                response_bytes,
                cap.response_bytes,
                default.response_bytes,
            ),
        };
    }

    fn limit<T: Ord + Copy + fmt::Debug>(&mut self, name: &str, asked: Option<T>, cap: Option<T>, default: T) -> T {
        let wanted = asked.unwrap_or(default);
        let Some(cap) = cap.filter(|cap| *cap < wanted) else {
            return wanted;
        };
        if asked.is_some() {
            let why = format!("policy caps {wanted:?} at {cap:?}");
            self.taken(Kind::Limit, name, why, format!("[policy] limits = {{ {name} = … }}"));
        }
        cap
    }
}
