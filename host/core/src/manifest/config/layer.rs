//! A repository's `fief.toml` over the operator's.
//!
//! A file that lies in the working directory may be a stranger's. Until the operator trusts it, it may choose the main
//! archetype, set `[agents]`, add directories inside itself, and *narrow* policy. Whatever could widen what the
//! operator's own settings allow is ignored, with a warning that names the key. Where it is not plain that a setting
//! narrows, it does not pass.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Config, ConfigFile};
use crate::id::ToolRef;
use crate::manifest::archetype::mapping::is_built_in;
use crate::manifest::error::{ManifestWarning, Place};
use crate::manifest::files::Files;

mod defaults;
mod policy;

/// What a repository's settings come to.
#[derive(Clone, PartialEq, Debug)]
pub struct Layered {
    /// What holds.
    pub config: Config,
    /// What was ignored.
    pub warnings: Vec<ManifestWarning>,
}

/// Lays a file that the operator trusts over his own: each key that it has replaces his; models, mapped names and
/// caps on limits are merged.
#[must_use]
pub fn trusted(operator: &Config, repository: &ConfigFile) -> Config {
    let over = repository.config.clone();
    let has = |key: &str| repository.places.contains_key(key);
    let mut config = operator.clone();
    config.archetype = over.archetype.or(config.archetype);
    config.model = over.model.or(config.model);
    config.record = over.record.or(config.record);
    config.plugins = over.plugins.or(config.plugins);
    config.archetypes = over.archetypes.or(config.archetypes);
    config.models.extend(over.models);
    config.policy = policy::replaced(config.policy, over.policy);
    config.builtin = over.builtin.or(config.builtin);
    config
        .tool_mapping
        .retain(|name, _| over.tool_mapping.keys().all(|other| !other.eq_ignore_ascii_case(name)));
    config.tool_mapping.extend(over.tool_mapping);
    config.agents = defaults::replaced(&config.agents, over.agents);
    config.secrets_file = over.secrets_file.or(config.secrets_file);
    if has("sandbox.pagemap_scan") {
        config.pagemap_scan = over.pagemap_scan;
    }
    if has("telemetry.endpoint") {
        config.telemetry.endpoint = over.telemetry.endpoint;
    }
    if has("telemetry.content") {
        config.telemetry.content = over.telemetry.content;
    }
    config
}

/// Lays a file that nobody trusts over the operator's. `protected` are the paths that the host itself obeys, absolute
/// and canonical; the file and the directories of both are added here.
#[must_use]
pub fn untrusted(operator: &Config, repository: &ConfigFile, protected: &[PathBuf], files: &dyn Files) -> Layered {
    let mut layer = Layer {
        repository,
        files,
        warnings: Vec::new(),
    };
    let mut config = operator.clone();
    let over = &repository.config;
    if let Some(archetype) = &over.archetype {
        config.archetype = Some(archetype.clone());
    }
    for key in ["run.model", "run.record", "models", "secrets", "sandbox", "telemetry"] {
        if repository.places.contains_key(key) {
            layer.ignore(key, "a repository that is not trusted cannot set it");
        }
    }
    layer.directories("directories.plugins", over.plugins.as_deref(), &mut config.plugins);
    layer.directories(
        "directories.archetypes",
        over.archetypes.as_deref(),
        &mut config.archetypes,
    );
    if let Some(builtin) = &over.builtin {
        config.builtin = Some(builtin.clone());
    }
    layer.mapping(&mut config);
    layer.defaults(operator, &mut config.agents);

    let directories = config.plugins.iter().chain(&config.archetypes).flatten();
    let own = [PathBuf::from(&*repository.file)];
    let mut obeyed: Vec<PathBuf> = protected.to_vec();
    obeyed.extend(directories.chain(&own).filter_map(|path| files.canonical(path).ok()));
    layer.policy(&operator.policy, &obeyed, &mut config.policy);
    Layered {
        config,
        warnings: layer.warnings,
    }
}

struct Layer<'a> {
    repository: &'a ConfigFile,
    files: &'a dyn Files,
    warnings: Vec<ManifestWarning>,
}

impl Layer<'_> {
    fn ignore(&mut self, key: &str, why: &str) {
        let place = self
            .repository
            .places
            .get(key)
            .cloned()
            .unwrap_or_else(|| Place::file(Arc::clone(&self.repository.file)));
        self.warnings.push(
            ManifestWarning::at(place, format!("`{key}` is ignored: {why}"))
                .with_key(key)
                .with_hint("read the file, then accept it with `fief trust`"),
        );
    }

    /// Adds the repository's directories after the operator's, so that what lies there cannot stand before his.
    fn directories(&mut self, key: &str, wanted: Option<&[PathBuf]>, directories: &mut Option<Vec<PathBuf>>) {
        let Some(wanted) = wanted else { return };
        let root = if self.repository.directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &self.repository.directory
        };
        let root = self.files.canonical(root).ok();
        let list = directories.get_or_insert_default();
        for path in wanted {
            match (self.files.canonical(path), &root) {
                (Ok(path), Some(root)) if path.starts_with(root) => {
                    if !list.contains(&path) {
                        list.push(path);
                    }
                }
                (Ok(_), _) => self.ignore(key, &format!("`{}` leads out of the repository", path.display())),
                (Err(error), _) => self.ignore(key, &format!("`{}`: {error}", path.display())),
            }
        }
    }

    /// Adds names that have no meaning yet. To give one another meaning would change what the operator's own Markdown
    /// archetypes hold.
    fn mapping(&mut self, config: &mut Config) {
        for (name, tool) in &self.repository.config.tool_mapping {
            let key = format!("agents.tool_mapping.{name}");
            let theirs: Option<&ToolRef> = config
                .tool_mapping
                .iter()
                .find(|(other, _)| other.eq_ignore_ascii_case(name))
                .map(|(_, tool)| tool);
            match theirs {
                Some(theirs) if theirs == tool => {}
                Some(_) => self.ignore(&key, "your own settings give the name another meaning"),
                None if is_built_in(name) => self.ignore(&key, "the name has a meaning of its own"),
                None => {
                    config.tool_mapping.insert(name.clone(), tool.clone());
                }
            }
        }
    }
}

/// The lower of two caps, of which an absent one caps nothing.
fn lower<T: PartialOrd + Copy>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other < one { other } else { one }),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests;
