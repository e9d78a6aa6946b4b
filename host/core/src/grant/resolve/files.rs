//! Directories.
//!
//! Paths are compared as text, absolute and without `.` and `..`: the host has made those of policy canonical, and
//! does the same with those of manifests before they come here.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::{AS_POLICY, Draft, Kind};
use crate::grant::policy::PolicyDir;
use crate::grant::{DirGrant, FileMode};
use crate::manifest::archetype::{FileRequest, GrantRequest};

/// `path` on top of `base` unless it is absolute, with `.` and `..` resolved as text. `..` at the root stays there.
#[must_use]
pub fn absolute(base: &Path, path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in base.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    out
}

fn word(mode: FileMode) -> &'static str {
    match mode {
        FileMode::Read => "read",
        FileMode::Write => "write",
    }
}

/// The guest path of `host` where `base` is shown at `guest`. Names that are not UTF-8 have none.
fn shown_at(guest: &str, base: &Path, host: &Path) -> Option<String> {
    let mut out = guest.trim_end_matches('/').to_owned();
    for component in host.strip_prefix(base).ok()?.components() {
        out.push('/');
        out.push_str(component.as_os_str().to_str()?);
    }
    Some(if out.is_empty() { "/".into() } else { out })
}

impl Draft<'_> {
    /// The policy entry that allows most at `path`.
    fn policy_at(&self, path: &Path) -> Option<&PolicyDir> {
        let mut best: Option<&PolicyDir> = None;
        for dir in self.policy.files.iter().filter(|dir| path.starts_with(&dir.host)) {
            if best.is_none_or(|best| dir.mode > best.mode) {
                best = Some(dir);
            }
        }
        best
    }

    pub(super) fn files(&mut self) {
        let Some(need) = self.plugin.needs.files else {
            if let GrantRequest::Exact(table) = self.request {
                for request in &table.files {
                    let host = request.host.display().to_string();
                    self.in_vain(Kind::File, &format!("files `{host}`"), &host);
                }
            }
            return;
        };
        match self.request {
            GrantRequest::Policy => self.files_as_policy(need),
            GrantRequest::Exact(table) => {
                // What is written comes first, so that no derived directory takes its place in the guest.
                let roots: Vec<PathBuf> = table
                    .files
                    .iter()
                    .map(|request| absolute(&self.policy.working_directory, &request.host))
                    .collect();
                for (request, host) in table.files.iter().zip(&roots) {
                    self.directory(need, request, host);
                }
                for (request, host) in table.files.iter().zip(&roots) {
                    self.directories_within(need, request, host);
                }
                if table.files.is_empty() {
                    self.out.unmet.push(format!("files `{}`", word(need)));
                    self.reach(Kind::File, "", [Some(word(need).into()), None, None, None]);
                }
            }
        }
    }

    fn files_as_policy(&mut self, need: FileMode) {
        let policy = self.policy;
        for dir in &policy.files {
            let Some(allowed) = self.policy_at(&dir.host).cloned() else {
                continue;
            };
            let mode = need.min(allowed.mode);
            self.add(&dir.host, &dir.guest, mode, AS_POLICY, &allowed);
        }
        if policy.files.is_empty() {
            self.reach(
                Kind::File,
                "",
                [Some(word(need).into()), Some(AS_POLICY.into()), None, None],
            );
        }
    }

    /// A directory that the manifest names, where policy allows all of it.
    fn directory(&mut self, need: FileMode, request: &FileRequest, host: &Path) {
        let name = request.host.display().to_string();
        if request.mode > need {
            self.out.warnings.push(format!(
                "{} grants plugin `{}` writing to `{name}`, and the plugin needs only to read",
                self.granter, self.plugin.name
            ));
        }
        let wanted = request.mode.min(need);
        match self.policy_at(host).cloned() {
            Some(allowed) => {
                let mode = wanted.min(allowed.mode);
                if mode < wanted {
                    self.taken(
                        Kind::File,
                        &name,
                        "policy allows only reading it",
                        format!("--allow-write {name}"),
                    );
                }
                self.add(host, &request.guest, mode, word(request.mode), &allowed);
            }
            None => {
                let left: Vec<String> = self
                    .policy
                    .files
                    .iter()
                    .filter(|dir| dir.host.starts_with(host))
                    .map(|dir| format!("`{}`", dir.host.display()))
                    .collect();
                let why = if left.is_empty() {
                    self.reach(
                        Kind::File,
                        &name,
                        [Some(word(need).into()), Some(word(request.mode).into()), None, None],
                    );
                    "policy does not allow it".into()
                } else {
                    format!("policy allows only {}", left.join(", "))
                };
                self.taken(Kind::File, &name, why, format!("--allow-{} {name}", word(wanted)));
            }
        }
    }

    /// Where policy allows only some directory inside the one that the manifest names, or more of it, the guest finds
    /// that one in its place.
    fn directories_within(&mut self, need: FileMode, request: &FileRequest, host: &Path) {
        let policy = self.policy;
        for dir in policy
            .files
            .iter()
            .filter(|dir| dir.host.starts_with(host) && dir.host != host)
        {
            let Some(allowed) = self.policy_at(&dir.host).cloned() else {
                continue;
            };
            let mode = request.mode.min(need).min(allowed.mode);
            let Some(guest) = shown_at(&request.guest, host, &dir.host) else {
                continue;
            };
            // A narrower directory that the manifest names inside is the manifest's own choice.
            let around = self
                .out
                .grant
                .files
                .iter()
                .filter(|grant| dir.host.starts_with(&grant.host))
                .filter(|grant| shown_at(&grant.guest, &grant.host, &dir.host).as_deref() == Some(&guest))
                .max_by_key(|grant| grant.host.as_os_str().len());
            let chosen_narrower = self.named_between(host, &dir.host, &guest);
            if around.is_some_and(|grant| grant.mode >= mode) || chosen_narrower {
                continue;
            }
            self.add(&dir.host, &guest, mode, word(request.mode), &allowed);
        }
    }

    /// Whether the manifest itself names a directory at or around `inner`, deeper than `outer`, at the same place.
    fn named_between(&self, outer: &Path, inner: &Path, guest: &str) -> bool {
        let GrantRequest::Exact(table) = self.request else {
            return false;
        };
        table.files.iter().any(|request| {
            let host = absolute(&self.policy.working_directory, &request.host);
            host != outer
                && host.starts_with(outer)
                && inner.starts_with(&host)
                && shown_at(&request.guest, &host, inner).as_deref() == Some(guest)
        })
    }

    /// Adds one directory, without what the host itself obeys.
    fn add(&mut self, host: &Path, guest: &str, mode: FileMode, archetype: &str, allowed: &PolicyDir) {
        let named = |path: &Path| {
            self.policy
                .files
                .iter()
                .any(|dir| dir.mode == FileMode::Write && dir.host == path)
        };
        let protected: Vec<PathBuf> = self
            .policy
            .protected
            .iter()
            .filter(|path| !named(path) && (path.starts_with(host) || host.starts_with(path)))
            .cloned()
            .collect();
        let name = host.display().to_string();
        let mut mode = mode;
        if mode == FileMode::Write
            && let Some(around) = protected.iter().find(|path| host.starts_with(path))
        {
            mode = FileMode::Read;
            let why = format!("it lies in `{}`, which the host itself obeys", around.display());
            self.taken(Kind::File, &name, why, format!("--allow-write {}", around.display()));
        }
        let need = self.plugin.needs.files.map(|need| word(need).to_owned());
        let policy = Some(allowed.rule.to_string());
        let effective = Some(format!("{} at {guest}", word(mode)));
        self.reach(Kind::File, &name, [need, Some(archetype.to_owned()), policy, effective]);
        let grant = DirGrant {
            host: host.to_owned(),
            guest: guest.to_owned(),
            mode,
            protected: if mode == FileMode::Write {
                protected.into()
            } else {
                Arc::new([])
            },
            rule: self.rule(&allowed.rule),
        };
        match self.out.grant.files.iter_mut().find(|other| other.guest == grant.guest) {
            None => self.out.grant.files.push(grant),
            Some(other) if other.host == grant.host => {
                if grant.mode > other.mode {
                    *other = grant;
                }
            }
            Some(other) => {
                let message = format!(
                    "{}: plugin `{}` has two directories for `{guest}`, `{}` and `{name}`; the first is used",
                    self.granter,
                    self.plugin.name,
                    other.host.display()
                );
                self.out.warnings.push(message);
            }
        }
    }
}
