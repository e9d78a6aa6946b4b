//! Plugin directories: which files are plugins, what their manifests say, and an index of all that, so that a start
//! reads nothing that has not changed.
//!
//! A plugin is `NAME.wasm` with an optional `NAME.toml` beside it, or a folder `NAME` with `plugin.toml` and `NAME.wasm`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fief_core::id::PluginName;
use fief_core::manifest::error::{Parsed, Source};
use fief_core::manifest::plugin;
use fief_core::manifest::plugin::{NeededOrigin, Needs};
use fief_core::tool::PluginInfo;
use futures::StreamExt as _;

use crate::LoadError;
use crate::component;
use crate::sandbox::{Inspected, Sandbox};

mod index;
#[cfg(test)]
mod tests;

use index::{Index, Known};

/// How long compiling may take before it is worth a line.
const SLOW: Duration = Duration::from_secs(1);
/// Plugins that are looked at at once. Each is compiled on all cores already; more would only hide the others' waits.
const AT_ONCE: usize = 4;
/// The largest manifest, in bytes.
const MANIFEST: u64 = 1 << 20;

/// What a scan found.
#[derive(Default, Debug)]
pub struct Scan {
    /// In the order of their names.
    pub plugins: Vec<Arc<PluginInfo>>,
    /// What lies there and is no plugin, though it looks like one, and what a plugin's manifest says in vain.
    pub problems: Vec<Problem>,
}

/// One thing that was not loaded, or is not as its author meant it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Which file or directory.
    pub path: PathBuf,
    /// Why.
    pub message: String,
    /// What would help.
    pub hint: Option<String>,
}

/// What a scan says while it goes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScanNote {
    /// This component takes longer than a second; it is compiled once.
    Compiling {
        /// Which.
        path: PathBuf,
    },
}

/// A plugin's files.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) component: PathBuf,
    manifest: Option<PathBuf>,
}

/// What a plugin's manifest and file name say.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Read {
    path: PathBuf,
    pub(crate) name: PluginName,
    version: String,
    description: String,
    /// Absent: no manifest, so that the imports say.
    needs: Option<Needs>,
    /// What the manifest says in vain, each with its hint.
    warnings: Vec<(String, Option<String>)>,
}

impl Found {
    /// A component, and the manifest that lies where one may lie.
    pub(crate) fn of_component(component: &Path) -> Self {
        let beside = component.with_extension("toml");
        let folder = component
            .parent()
            .filter(|folder| folder.file_name() == component.file_stem());
        let manifest = [Some(beside), folder.map(|folder| folder.join("plugin.toml"))];
        Self {
            component: component.to_owned(),
            manifest: manifest.into_iter().flatten().find(|manifest| manifest.is_file()),
        }
    }

    /// Reads both files; blocks.
    pub(crate) fn read(&self) -> Result<(Read, Vec<u8>), LoadError> {
        let manifest = self.manifest.as_deref().map(read_manifest).transpose()?;
        let (manifest, warnings) = manifest.map_or((None, Vec::new()), |read| (Some(read.value), read.warnings));
        let name = match manifest.as_ref().and_then(|manifest| manifest.name.clone()) {
            Some(name) => name,
            None => {
                let stem = self.component.file_stem().unwrap_or_default().to_string_lossy();
                PluginName::new(stem).map_err(|error| LoadError::BadName {
                    path: self.component.clone(),
                    error,
                })?
            }
        };
        let bytes = component::read(&self.component)?;
        let (version, description, needs) = manifest
            .map(|manifest| (manifest.version, manifest.description, Some(manifest.needs)))
            .unwrap_or_default();
        let warnings = warnings
            .into_iter()
            .map(|warning| (warning.to_string(), warning.hint))
            .collect();
        let read = Read {
            path: self.component.clone(),
            name,
            version,
            description,
            needs,
            warnings,
        };
        Ok((read, bytes))
    }
}

fn read_manifest(path: &Path) -> Result<Parsed<plugin::PluginManifest>, LoadError> {
    let bad = |message: String, hint: Option<String>| LoadError::Manifest {
        path: path.into(),
        message,
        hint,
    };
    let text = component::bytes(path, MANIFEST).and_then(|bytes| {
        let bytes = bytes.ok_or_else(|| io::Error::other(format!("at most {MANIFEST} bytes are read")))?;
        String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
    });
    let text = text.map_err(|error| bad(format!("`{}` cannot be read: {error}", path.display()), None))?;
    let source = Source::new(path.display().to_string(), text);
    plugin::parse(source).map_err(|errors| {
        let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
        bad(messages.join("\n"), errors.into_iter().find_map(|error| error.hint))
    })
}

impl Read {
    pub(crate) fn into_info(self, inspected: Inspected) -> PluginInfo {
        let Inspected {
            digest,
            imports,
            tools,
            kinds,
        } = inspected;
        PluginInfo {
            name: self.name,
            version: self.version,
            description: self.description,
            digest,
            path: self.path,
            needs: self.needs.unwrap_or_else(|| needs_of(&imports)),
            tools,
            imports,
            filter: kinds.filter,
        }
    }
}

/// What a plugin without a manifest needs: what it imports, and no files.
fn needs_of(imports: &[String]) -> Needs {
    let has = |interface: &str| imports.iter().any(|import| import.split('@').next() == Some(interface));
    let http = has("wasi:http/outgoing-handler");
    Needs {
        http: http.then(|| NeededOrigin("*".into())).into_iter().collect(),
        toolbox: has("fief:plugin/toolbox"),
        person: has("fief:plugin/person"),
        ..Needs::default()
    }
}

/// Every plugin of one directory, by name, and what stands in the way of others.
fn list(directory: &Path, problems: &mut Vec<Problem>) -> Vec<Found> {
    let mut problem = |path: &Path, message: String, hint: Option<String>| {
        problems.push(Problem {
            path: path.into(),
            message,
            hint,
        });
    };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => {
            problem(
                directory,
                format!("plugin directory `{}`: {error}", directory.display()),
                None,
            );
            return Vec::new();
        }
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if path.extension().is_some_and(|extension| extension == "wasm") {
            found.push(Found::of_component(&path));
            continue;
        }
        let (Some(name), true) = (path.file_name(), path.is_dir()) else {
            continue;
        };
        let component = path.join(name).with_extension("wasm");
        if component.exists() {
            found.push(Found::of_component(&component));
        } else if path.join("plugin.toml").is_file() {
            let hint = format!("`fief plugin build {}` builds it", path.display());
            problem(
                &path,
                format!("plugin `{}` is not built yet", path.display()),
                Some(hint),
            );
        }
    }
    found
}

impl Sandbox {
    /// Finds the plugins of these directories. The first of a name counts. What cannot be loaded is a problem with its
    /// reason, and keeps no other from loading.
    pub async fn scan(&self, directories: &[PathBuf], progress: &(dyn Fn(ScanNote) + Sync)) -> Scan {
        let (owned, index_path) = (directories.to_vec(), self.0.index.clone());
        let listing = tokio::task::spawn_blocking(move || {
            let mut problems = Vec::new();
            let found: Vec<Found> = owned
                .iter()
                .flat_map(|directory| match std::path::absolute(directory) {
                    Ok(directory) => list(&directory, &mut problems),
                    Err(_) => list(directory, &mut problems),
                })
                .collect();
            let mut index = Index::read(&index_path);
            let known: Vec<(Found, Option<Known>)> = found
                .into_iter()
                .map(|found| {
                    let known = index.take(&found);
                    (found, known)
                })
                .collect();
            (known, index, problems)
        });
        let Ok((found, mut index, mut problems)) = listing.await else {
            return Scan::default();
        };
        let looked = futures::stream::iter(found)
            .map(|(found, known)| async move {
                if let Some(known) = known {
                    return (found, Ok(known), false);
                }
                let looked = self.look_and_tell(found.clone(), progress).await;
                (found, looked, true)
            })
            .buffered(AT_ONCE);
        let looked: Vec<_> = looked.collect().await;

        let mut plugins: BTreeMap<PluginName, Arc<PluginInfo>> = BTreeMap::new();
        let mut changed = index.is_stale(directories);
        for (found, looked, fresh) in looked {
            let known = match looked {
                Ok(known) => known,
                Err(error) => {
                    problems.push(Problem {
                        path: found.component,
                        message: error.to_string(),
                        hint: error.hint(),
                    });
                    continue;
                }
            };
            changed |= fresh;
            let info = known.info();
            problems.extend(known.read.warnings.iter().map(|(message, hint)| Problem {
                path: info.path.clone(),
                message: message.clone(),
                hint: hint.clone(),
            }));
            index.put(&found, known);
            match plugins.get(&info.name) {
                None => drop(plugins.insert(info.name.clone(), Arc::new(info))),
                // The same build in two directories is one plugin.
                Some(first) if first.digest == info.digest => {}
                Some(first) => problems.push(Problem {
                    message: format!(
                        "`{}` is another plugin named `{}`; `{}` was found first",
                        info.path.display(),
                        info.name,
                        first.path.display()
                    ),
                    path: info.path,
                    hint: Some("give one of them another `name` in its manifest, or remove it".into()),
                }),
            }
        }
        if changed {
            let path = self.0.index.clone();
            // Without an index the next start is slower.
            let written = tokio::task::spawn_blocking(move || index.write(&path)).await;
            if let Ok(Err(error)) = written {
                tracing::warn!("the index of plugins cannot be written: {error}");
            }
        }
        Scan {
            plugins: plugins.into_values().collect(),
            problems,
        }
    }

    async fn look_and_tell(&self, found: Found, progress: &(dyn Fn(ScanNote) + Sync)) -> Result<Known, LoadError> {
        let path = found.component.clone();
        let mut looking = std::pin::pin!(self.look_at(found));
        let looked = match tokio::time::timeout(SLOW, &mut looking).await {
            Ok(looked) => looked,
            Err(_) => {
                progress(ScanNote::Compiling { path });
                looking.await
            }
        };
        let (read, inspected) = looked?;
        Ok(Known { read, inspected })
    }
}
