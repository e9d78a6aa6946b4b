//! The archetypes of a host: those that are compiled in, those of the archetype directories, those made in Rust.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::archetype::{Archetype, markdown, toml};
use super::config::BUILTIN;
use super::error::{ManifestError, ManifestErrors, ManifestWarning, Parsed, Source};
use super::files::{FileError, Files};
use crate::id::ArchetypeName;

/// What [`World`](crate::world::World) holds of archetypes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Registry {
    /// Every archetype that can be found, by [`ArchetypeName::key`], in alphabetical order.
    pub archetypes: BTreeMap<String, Arc<Archetype>>,
    /// Those that `["*"]` means, in the order in which they were registered: never `main`.
    pub registered: Vec<ArchetypeName>,
}

/// Puts archetypes together.
///
/// `compiled` can all be found by name; those of them that `builtin` names (absent: `default`) are registered first, in
/// that order. `added` come from files and from Rust, and are registered in the order given. One that is identical to
/// a compiled one *is* that one. One that only shares its name takes its place, unless a registered built-in or `main`
/// has it.
///
/// # Errors
/// Every name that two archetypes have, with both files.
pub fn assemble(
    compiled: Vec<Archetype>,
    builtin: Option<&[String]>,
    added: Vec<Archetype>,
) -> Result<Registry, ManifestErrors> {
    let mut errors = Vec::new();
    let mut registry = Registry::default();
    let default = [BUILTIN[0].to_owned()];
    for archetype in compiled {
        registry.archetypes.insert(archetype.name.key(), Arc::new(archetype));
    }
    for name in builtin.unwrap_or(&default) {
        match registry.archetypes.get(&name.to_ascii_lowercase()) {
            Some(archetype) => registry.registered.push(archetype.name.clone()),
            None => errors.push(ManifestError::of_file(
                "fief.toml",
                format!("no archetype `{name}` is built in"),
            )),
        }
    }
    let built_in = registry.clone();
    let mut origins: BTreeMap<String, String> = BTreeMap::new();
    for archetype in added {
        let key = archetype.name.key();
        if let Some(other) = origins.get(&key) {
            errors.push(collision(&archetype, &format!("`{other}` has that name too")));
            continue;
        }
        origins.insert(key.clone(), archetype.origin.clone());
        let compiled = built_in.archetypes.get(&key);
        let identical = compiled.is_some_and(|compiled| same(compiled, &archetype));
        let taken = key == "main" || built_in.registered.iter().any(|name| name.key() == key);
        if !identical && taken && compiled.is_some() {
            errors.push(
                collision(&archetype, "a built-in archetype has that name").with_hint(if key == "main" {
                    "name it otherwise, and choose it with `--archetype` or `[run] archetype`".to_owned()
                } else {
                    format!("name it otherwise, or leave `{key}` out of `[agents] builtin` in fief.toml")
                }),
            );
            continue;
        }
        if key != "main" && registry.registered.iter().all(|name| name.key() != key) {
            registry.registered.push(archetype.name.clone());
        }
        if !identical {
            registry.archetypes.insert(key, Arc::new(archetype));
        }
    }
    if errors.is_empty() { Ok(registry) } else { Err(errors) }
}

fn collision(archetype: &Archetype, why: &str) -> ManifestError {
    ManifestError::of_file(
        archetype.origin.as_str(),
        format!("the archetype name `{}` is taken: {why}", archetype.name),
    )
    .with_key("name")
    .with_hint("names match without regard to case; rename one of the two")
}

/// Whether two archetypes are the same but for where they come from.
fn same(one: &Archetype, other: &Archetype) -> bool {
    let other = Archetype {
        origin: one.origin.clone(),
        ..other.clone()
    };
    *one == other
}

/// The archetypes of a directory, in alphabetical order: `NAME.toml`, `NAME.md` and `NAME/archetype.toml`. Other files
/// are none of ours.
///
/// # Errors
/// Everything that is wrong with any of them.
pub fn load_directory(
    directory: &Path,
    known: markdown::Known<'_>,
    files: &dyn Files,
) -> Result<Parsed<Vec<Archetype>>, ManifestErrors> {
    let label = directory.display().to_string();
    let entries = files.list(directory).map_err(|error| {
        let message = match error {
            FileError::Missing => "there is no such directory of archetypes".to_owned(),
            error => format!("this directory of archetypes cannot be read: {error}"),
        };
        vec![ManifestError::of_file(label, message).with_hint("`[directories] archetypes` or `--archetypes` names it")]
    })?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let path = directory.join(&entry.name);
        if !entry.directory {
            if !entry.name.starts_with('.') && is_archetype(&path) {
                paths.push(path);
            }
        } else if let Ok(inner) = files.list(&path)
            && inner
                .iter()
                .any(|file| !file.directory && file.name == "archetype.toml")
        {
            paths.push(path.join("archetype.toml"));
        }
    }
    paths.sort();
    let mut errors = Vec::new();
    let mut warnings: Vec<ManifestWarning> = Vec::new();
    let mut archetypes = Vec::new();
    for path in paths {
        match load(&path, known, files) {
            Ok(parsed) => {
                archetypes.push(parsed.value);
                warnings.extend(parsed.warnings);
            }
            Err(found) => errors.extend(found),
        }
    }
    archetypes.sort_by_key(|archetype| archetype.name.key());
    if errors.is_empty() {
        Ok(Parsed {
            value: archetypes,
            warnings,
        })
    } else {
        Err(errors)
    }
}

fn is_archetype(path: &Path) -> bool {
    let extension = path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default();
    // A directory of archetypes is often described by a file of its own.
    let readme = path.file_stem().is_some_and(|stem| stem.eq_ignore_ascii_case("readme"));
    extension == "toml" || (extension == "md" && !readme)
}

/// One archetype by its file.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load(path: &Path, known: markdown::Known<'_>, files: &dyn Files) -> Result<Parsed<Archetype>, ManifestErrors> {
    let label = path.display().to_string();
    let text = files.read(path).map_err(|error| {
        vec![ManifestError::of_file(
            label.as_str(),
            format!("it cannot be read: {error}"),
        )]
    })?;
    let source = Source::new(label, text);
    if path
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
    {
        return markdown::parse(source)?.resolve(known);
    }
    toml::parse(source, files)
}

#[cfg(test)]
mod tests;
