//! The index of plugins: what every start would have to read again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fief_core::id::Digest;
use fief_core::tool::{PluginInfo, ToolSpec};

use super::{Found, Read};
use crate::component::Kinds;
use crate::sandbox::Inspected;
use crate::store;

/// A plugin as the index keeps it.
pub(super) struct Known {
    pub(super) read: Read,
    pub(super) inspected: Inspected,
}

impl Known {
    pub(super) fn info(&self) -> PluginInfo {
        let Inspected {
            digest,
            imports,
            tools,
            kinds,
        } = &self.inspected;
        self.read.clone().into_info(Inspected {
            digest: *digest,
            imports: imports.clone(),
            tools: tools.clone(),
            kinds: *kinds,
        })
    }
}

/// What every start would have to read again.
pub(super) struct Index {
    entries: BTreeMap<PathBuf, Entry>,
    /// Entries that this scan has not asked for.
    left: BTreeMap<PathBuf, Entry>,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    component: Stamp,
    manifest: Option<(PathBuf, Stamp)>,
    read: Read,
    digest: Digest,
    imports: Vec<String>,
    tools: Vec<ToolSpec>,
    kinds: Kinds,
}

/// How a file looks without reading it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
struct Stamp {
    size: u64,
    /// Nanoseconds since 1970.
    modified: u128,
    /// On Unix the inode and the time of its last change, which no program can set back.
    identity: Option<(u64, i64, i64)>,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        let modified = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt as _;
            Some((metadata.ino(), metadata.ctime(), metadata.ctime_nsec()))
        };
        #[cfg(not(unix))]
        let identity = None;
        Some(Self {
            size: metadata.len(),
            modified: modified.as_nanos(),
            identity,
        })
    }
}

/// The layout of the index, and of what is checked before something enters it: a change here reads everything again.
const LAYOUT: &str = concat!("fief-index 2 ", env!("CARGO_PKG_VERSION"));

impl Index {
    /// An index that cannot be read, or that another version wrote, is an empty one.
    pub(super) fn read(path: &Path) -> Self {
        let left = (|| {
            store::must_be_private(path).ok()?;
            let text = fs::read_to_string(path).ok()?;
            let (layout, entries) = text.split_once('\n')?;
            if layout != LAYOUT {
                return None;
            }
            serde_json::from_str(entries).ok()
        })();
        Self {
            entries: BTreeMap::new(),
            left: left.unwrap_or_default(),
        }
    }

    /// What is known of a plugin whose files have not changed.
    pub(super) fn take(&mut self, found: &Found) -> Option<Known> {
        let entry = self.left.remove(&found.component)?;
        let manifest = match &found.manifest {
            Some(path) => Some((path.clone(), Stamp::of(path)?)),
            None => None,
        };
        if entry.component != Stamp::of(&found.component)? || entry.manifest != manifest {
            return None;
        }
        Some(Known {
            read: entry.read,
            inspected: Inspected {
                digest: entry.digest,
                imports: entry.imports,
                tools: entry.tools,
                kinds: entry.kinds,
            },
        })
    }

    pub(super) fn put(&mut self, found: &Found, known: Known) {
        let component = Stamp::of(&found.component);
        let manifest = found
            .manifest
            .as_ref()
            .map(|path| Some((path.clone(), Stamp::of(path)?)));
        // What vanished meanwhile is not worth keeping.
        let (Some(component), Some(manifest)) = (component, manifest.map_or(Some(None), |m| m.map(Some))) else {
            return;
        };
        let entry = Entry {
            component,
            manifest,
            read: known.read,
            digest: known.inspected.digest,
            imports: known.inspected.imports,
            tools: known.inspected.tools,
            kinds: known.inspected.kinds,
        };
        self.entries.insert(found.component.clone(), entry);
    }

    /// Whether it holds what does not lie in the scanned directories any more; that is forgotten. What lies elsewhere
    /// another start may ask for.
    pub(super) fn is_stale(&mut self, directories: &[PathBuf]) -> bool {
        let scanned: Vec<PathBuf> = directories
            .iter()
            .filter_map(|dir| std::path::absolute(dir).ok())
            .collect();
        let before = self.left.len();
        self.left
            .retain(|path, _| !scanned.iter().any(|dir| path.starts_with(dir)));
        before != self.left.len()
    }

    pub(super) fn write(mut self, path: &Path) -> io::Result<()> {
        self.entries.append(&mut self.left);
        let entries = serde_json::to_vec(&self.entries)?;
        store::write_private(path, &[LAYOUT.as_bytes(), b"\n", &entries])
    }
}
