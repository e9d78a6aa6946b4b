//! The first-party archetypes, compiled in: a `fief` copied to another place stays useful.

use std::path::{Path, PathBuf};

use fief_core::manifest::archetype::Archetype;
use fief_core::manifest::archetype::mapping::ToolMapping;
use fief_core::manifest::archetype::markdown::Known;
use fief_core::manifest::files::{Entry, FileError, Files};
use fief_core::manifest::registry;

use crate::error::Error;

/// What their `origin` says.
const ORIGIN: &str = "built in";

macro_rules! compiled {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../../archetypes/", $path)))),*]
    };
}

/// The files of `archetypes/`; a test compares the list with the directory.
const FILES: &[(&str, &str)] = compiled!(
    "agent-worker.toml",
    "auditor.toml",
    "default.toml",
    "explore.toml",
    "general-purpose.toml",
    "main.toml",
    "plan.toml",
);

/// Every first-party archetype.
///
/// # Errors
/// What is wrong with one: never in a build that passed its tests.
pub(crate) fn archetypes() -> Result<Vec<Archetype>, Error> {
    let mapping = ToolMapping::default();
    let known = Known {
        mapping: &mapping,
        tools: None,
        models: None,
    };
    let parsed = registry::load_directory(Path::new(""), known, &Compiled).map_err(Error::Manifest)?;
    let origin = |archetype| Archetype {
        origin: ORIGIN.into(),
        ..archetype
    };
    Ok(parsed.value.into_iter().map(origin).collect())
}

/// The compiled-in files as a directory.
struct Compiled;

impl Files for Compiled {
    fn read(&self, path: &Path) -> Result<String, FileError> {
        let path = path.strip_prefix("./").unwrap_or(path);
        let found = FILES.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, text)| (*text).to_owned()).ok_or(FileError::Missing)
    }

    fn read_inside(&self, directory: &Path, path: &Path) -> Result<String, FileError> {
        if path.starts_with(directory) {
            self.read(path)
        } else {
            Err(FileError::Outside)
        }
    }

    fn list(&self, directory: &Path) -> Result<Vec<Entry>, FileError> {
        let mut found: Vec<Entry> = Vec::new();
        for (name, _) in FILES {
            let Ok(rest) = Path::new(name).strip_prefix(directory) else {
                continue;
            };
            let mut parts = rest.components();
            let Some(first) = parts.next() else { continue };
            let entry = Entry {
                name: first.as_os_str().to_string_lossy().into_owned(),
                directory: parts.next().is_some(),
            };
            if !found.contains(&entry) {
                found.push(entry);
            }
        }
        if found.is_empty() {
            Err(FileError::Missing)
        } else {
            Ok(found)
        }
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf, FileError> {
        Ok(path.to_path_buf())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_first_party_archetype_is_compiled_in_and_sound() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../archetypes");
        let mut there = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.file_name().unwrap() != "README.md" {
                    there.push(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        let mut compiled: Vec<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        there.sort();
        compiled.sort();
        assert_eq!(compiled, there);
        let names: Vec<String> = archetypes().unwrap().iter().map(|one| one.name.to_string()).collect();
        for name in [
            "main",
            "default",
            "general-purpose",
            "explore",
            "plan",
            "auditor",
            "agent-worker",
        ] {
            assert!(names.iter().any(|one| one == name), "{name} of {names:?}");
        }
    }
}
