//! `[policy]` of a repository.

use std::path::{Path, PathBuf};

use super::{Layer, lower};
use crate::grant::address::{AddressClass, address_class};
use crate::grant::pattern::OriginPattern;
use crate::grant::policy::Policy;
use crate::manifest::archetype::{LimitRequest, OriginRequest};
use crate::manifest::config::PolicyTable;

/// Each key that `over` has replaces that of `base`; caps on limits are merged.
pub(super) fn replaced(base: PolicyTable, over: PolicyTable) -> PolicyTable {
    PolicyTable {
        read: over.read.or(base.read),
        write: over.write.or(base.write),
        net: over.net.or(base.net),
        secrets: over.secrets.or(base.secrets),
        env: over.env.or(base.env),
        toolbox: over.toolbox.or(base.toolbox),
        person: over.person.or(base.person),
        strict: over.strict.or(base.strict),
        max_depth: over.max_depth.or(base.max_depth),
        max_children: over.max_children.or(base.max_children),
        parallel_children: over.parallel_children.or(base.parallel_children),
        ask: over.ask.or(base.ask),
        limits: limits(&over.limits, &base.limits, Option::or, Option::or),
    }
}

/// Both tables, limit by limit.
fn limits(
    one: &LimitRequest,
    other: &LimitRequest,
    number: impl Fn(Option<u64>, Option<u64>) -> Option<u64>,
    time: impl Fn(Option<std::time::Duration>, Option<std::time::Duration>) -> Option<std::time::Duration>,
) -> LimitRequest {
    LimitRequest {
        memory: number(one.memory, other.memory),
        cpu: time(one.cpu, other.cpu),
        wall: time(one.wall, other.wall),
        output: number(one.output, other.output),
        tables: number(one.tables, other.tables),
        instances: number(one.instances, other.instances),
        log: number(one.log, other.log),
        handles: number(one.handles, other.handles),
        requests: number(one.requests, other.requests),
        request_bytes: number(one.request_bytes, other.request_bytes),
        response_bytes: number(one.response_bytes, other.response_bytes),
    }
}

const WIDENS: &str = "your own policy does not allow it";

impl Layer<'_> {
    /// Narrows `policy`, which is `operator`'s. `obeyed` are canonical paths that the host itself obeys.
    pub(super) fn policy(&mut self, operator: &PolicyTable, obeyed: &[PathBuf], policy: &mut PolicyTable) {
        let over = self.repository.config.policy.clone();
        let written = self.all_canonical(operator.write.as_deref().unwrap_or_default());
        let mut readable = self.all_canonical(operator.read.as_deref().unwrap_or(&[PathBuf::from(".")]));
        readable.extend(written.iter().cloned());

        if let Some(read) = &over.read {
            policy.read = Some(self.inside("policy.read", read, |path| {
                readable.iter().any(|dir| path.starts_with(dir))
            }));
        }
        if let Some(write) = &over.write {
            // A write entry that names what the host obeys lifts its protection, so the operator must have named it.
            policy.write = Some(self.inside("policy.write", write, |path| {
                written.iter().any(|dir| {
                    let lifts = |guarded: &&PathBuf| path.starts_with(guarded) && !dir.starts_with(guarded);
                    path.starts_with(dir) && !obeyed.iter().any(|guarded| lifts(&guarded))
                })
            }));
        }
        if let Some(net) = &over.net {
            let theirs = operator.net.as_deref().unwrap_or_default();
            policy.net = Some(self.kept("policy.net", net, |origin| {
                theirs.iter().any(|theirs| covers(theirs, origin))
            }));
        }
        if let Some(secrets) = &over.secrets {
            let theirs = operator.secrets.as_deref().unwrap_or_default();
            policy.secrets = Some(self.kept("policy.secrets", secrets, |secret| {
                theirs
                    .iter()
                    .any(|theirs| theirs == secret || secret_covers(theirs, secret))
            }));
        }
        if let Some(env) = &over.env {
            let theirs = operator.env.as_deref().unwrap_or_default();
            policy.env = Some(self.kept("policy.env", env, |name| theirs.contains(name)));
        }
        self.switch("policy.toolbox", over.toolbox, &mut policy.toolbox, true);
        self.switch("policy.person", over.person, &mut policy.person, true);
        self.switch("policy.strict", over.strict, &mut policy.strict, false);
        let defaults = Policy::default();
        self.at_most(
            "policy.max_depth",
            over.max_depth,
            &mut policy.max_depth,
            defaults.max_depth,
        );
        self.at_most(
            "policy.max_children",
            over.max_children,
            &mut policy.max_children,
            defaults.max_children,
        );
        let parallel = defaults.parallel_children;
        self.at_most(
            "policy.parallel_children",
            over.parallel_children,
            &mut policy.parallel_children,
            parallel,
        );
        // What a person is asked for can only grow.
        for tool in over.ask.into_iter().flatten() {
            let ask = policy.ask.get_or_insert_default();
            if !ask.contains(&tool) {
                ask.push(tool);
            }
        }
        let narrowed = limits(&operator.limits, &over.limits, lower, lower);
        if limits(&over.limits, &narrowed, Option::or, Option::or) != narrowed {
            self.ignore(
                "policy.limits",
                "your own limits are lower; those that are not still hold",
            );
        }
        policy.limits = narrowed;
    }

    fn all_canonical(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        paths
            .iter()
            .filter_map(|path| self.files.canonical(path).ok())
            .collect()
    }

    /// The canonical form of the paths that `allowed` holds for: a symbolic link of the repository leads nowhere else.
    fn inside(&mut self, key: &str, paths: &[PathBuf], allowed: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        let mut kept = Vec::new();
        // `DIR=GUEST` is taken apart later: what is compared here must be the very path that is granted then.
        let renamed = |path: &Path| path.to_string_lossy().contains('=');
        for path in paths {
            match self.files.canonical(path) {
                Ok(whole) if renamed(path) || renamed(&whole) => {
                    let why = "a repository that is not trusted cannot name a path that holds `=`";
                    self.ignore(key, &format!("`{}`: {why}", path.display()));
                }
                Ok(whole) if allowed(&whole) => kept.push(whole),
                Ok(_) => self.ignore(key, &format!("`{}`: {WIDENS}", path.display())),
                Err(error) => self.ignore(key, &format!("`{}`: {error}", path.display())),
            }
        }
        kept
    }

    fn kept<T: Clone + Shown>(&mut self, key: &str, entries: &[T], allowed: impl Fn(&T) -> bool) -> Vec<T> {
        let (kept, rest): (Vec<T>, Vec<T>) = entries.iter().cloned().partition(|entry| allowed(entry));
        for entry in rest {
            self.ignore(key, &format!("`{}`: {WIDENS}", entry.shown()));
        }
        kept
    }

    /// A switch that widens when it is `wide`.
    fn switch(&mut self, key: &str, over: Option<bool>, value: &mut Option<bool>, wide: bool) {
        match over {
            Some(over) if over == wide && value.unwrap_or(false) != wide => self.ignore(key, WIDENS),
            Some(over) => *value = Some(over),
            None => {}
        }
    }

    fn at_most(&mut self, key: &str, over: Option<u32>, value: &mut Option<u32>, default: u32) {
        match over {
            Some(over) if over > value.unwrap_or(default) => self.ignore(key, "your own limit is lower"),
            Some(over) => *value = Some(over),
            None => {}
        }
    }
}

/// Whether the operator's entry allows all that a repository's does. A range or name that is explicit about private
/// addresses, and a literal metadata address, say more than a pattern that merely contains them.
fn covers(theirs: &OriginRequest, origin: &OriginRequest) -> bool {
    let (Ok(wide), Ok(narrow)) = (
        theirs.origin.parse::<OriginPattern>(),
        origin.origin.parse::<OriginPattern>(),
    ) else {
        return false;
    };
    let metadata = |address| address_class(address) == AddressClass::Metadata;
    wide.contains(&narrow)
        && (theirs.private || !origin.private)
        && (wide.is_explicit() || !narrow.is_explicit())
        && (wide.literal() == narrow.literal() || !narrow.literal().is_some_and(metadata))
}

fn secret_covers(theirs: &str, secret: &str) -> bool {
    let (Some((their_name, wide)), Some((name, narrow))) = (theirs.split_once('@'), secret.split_once('@')) else {
        return false;
    };
    let request = |origin: &str| OriginRequest {
        origin: origin.into(),
        private: false,
    };
    their_name == name && covers(&request(wide), &request(narrow))
}

/// As a warning names it.
trait Shown {
    fn shown(&self) -> &str;
}

impl Shown for String {
    fn shown(&self) -> &str {
        self
    }
}

impl Shown for OriginRequest {
    fn shown(&self) -> &str {
        &self.origin
    }
}
