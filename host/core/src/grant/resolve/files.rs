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

impl<'a> Draft<'a> {
    /// The policy entry that allows most at `path`.
    fn policy_at(&self, path: &Path) -> Option<&'a PolicyDir> {
        let mut best: Option<&'a PolicyDir> = None;
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
                let requests = self.distinct(&table.files);
                for (request, host) in &requests {
                    self.directory(need, request, host);
                }
                for (request, host) in &requests {
                    self.directories_within(need, request, host, &requests);
                }
                if requests.is_empty() {
                    self.out.unmet.push(format!("files `{}`", word(need)));
                    self.reach(Kind::File, "", [Some(word(need).into()), None, None, None]);
                }
            }
        }
    }

    /// The manifest's directories with absolute host paths, one for a guest path. Which one is settled before policy is
    /// asked, so that less policy never shows another directory in its place.
    fn distinct<'r>(&mut self, requests: &'r [FileRequest]) -> Vec<(&'r FileRequest, PathBuf)> {
        let mut out: Vec<(&FileRequest, PathBuf)> = Vec::new();
        for request in requests {
            let host = absolute(&self.policy.working_directory, &request.host);
            match out
                .iter()
                .find(|(other, _)| parts(&other.guest).eq(parts(&request.guest)))
            {
                None => out.push((request, host)),
                Some((_, other)) => self.out.warnings.push(format!(
                    "{}: plugin `{}` has two directories for `{}`, `{}` and `{}`; the first is used",
                    self.granter,
                    self.plugin.name,
                    request.guest,
                    other.display(),
                    host.display()
                )),
            }
        }
        out
    }

    fn files_as_policy(&mut self, need: FileMode) {
        let policy = self.policy;
        for dir in &policy.files {
            let Some(allowed) = self.policy_at(&dir.host) else {
                continue;
            };
            let mode = need.min(allowed.mode);
            self.add(&dir.host, &dir.guest, mode, AS_POLICY, allowed);
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
        match self.policy_at(host) {
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
                self.add(host, &request.guest, mode, word(request.mode), allowed);
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
    fn directories_within(
        &mut self,
        need: FileMode,
        request: &FileRequest,
        host: &Path,
        requests: &[(&FileRequest, PathBuf)],
    ) {
        let policy = self.policy;
        for dir in policy
            .files
            .iter()
            .filter(|dir| dir.host.starts_with(host) && dir.host != host)
        {
            let Some(allowed) = self.policy_at(&dir.host) else {
                continue;
            };
            let mode = request.mode.min(need).min(allowed.mode);
            let Some(guest) = shown_at(&request.guest, host, &dir.host) else {
                continue;
            };
            // What the manifest itself names deeper in the guest is its own choice, narrower or elsewhere.
            let depth = parts(&request.guest).count();
            let deeper = |other: &FileRequest| parts(&other.guest).count() > depth && lies_in(&guest, &other.guest);
            if requests.iter().any(|(other, _)| deeper(other)) {
                continue;
            }
            // A directory that is there already, at the same place and with as much, need not be there twice.
            let is_there = self.out.grant.files.iter().any(|grant| {
                grant.mode >= mode && shown_at(&grant.guest, &grant.host, &dir.host).as_deref() == Some(&guest)
            });
            if !is_there {
                self.add(&dir.host, &guest, mode, word(request.mode), allowed);
            }
        }
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
        self.place(grant);
    }

    /// Puts a directory where it belongs. Two of policy's that would stand at one place, such as `a/src` and `b/src`,
    /// both as `/src`, stand side by side: `/src` and `/src-2`.
    fn place(&mut self, mut grant: DirGrant) {
        let files = &mut self.out.grant.files;
        if let Some(other) = files
            .iter_mut()
            .find(|other| other.guest == grant.guest && other.host == grant.host)
        {
            if grant.mode > other.mode {
                *other = grant;
            }
            return;
        }
        let wanted = grant.guest.clone();
        let mut count = 2;
        while files.iter().any(|other| other.guest == grant.guest) {
            grant.guest = format!("{}-{count}", wanted.trim_end_matches('/'));
            count += 1;
        }
        files.push(grant);
    }
}

/// The components of a guest path.
fn parts(guest: &str) -> impl Iterator<Item = &str> {
    guest.split('/').filter(|part| !part.is_empty())
}

/// Whether the guest path `inner` is `outer` or lies in it.
fn lies_in(inner: &str, outer: &str) -> bool {
    let mut inner = parts(inner);
    parts(outer).all(|part| inner.next() == Some(part))
}
