//! From a file's bytes to a component: what is no component, or too large, is refused with its reason.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use fief_core::id::{BadName, Digest};
use wasmtime::Engine;
use wasmtime::component::Component;

/// The largest component, in bytes: three times CPython with its library.
pub const MAX_COMPONENT: u64 = 128 << 20;

/// Why a plugin was not loaded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("`{}` cannot be read: {why}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// In the system's words.
        why: String,
    },
    /// It is larger than [`MAX_COMPONENT`].
    #[error("`{}` has {size} bytes; a component has at most {MAX_COMPONENT}", path.display())]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// Its size.
        size: u64,
    },
    /// The file is something else.
    #[error("`{}` is no WebAssembly component: {what}", path.display())]
    NotAComponent {
        /// Which.
        path: PathBuf,
        /// What it is instead.
        what: String,
    },
    /// It does not validate or compile.
    #[error("`{}` is not a valid component: {why}", path.display())]
    Invalid {
        /// Which.
        path: PathBuf,
        /// In the compiler's words.
        why: String,
    },
    /// It offers nothing.
    #[error("`{}` exports neither `fief:plugin/tools` nor `fief:plugin/filter`", path.display())]
    NoExports {
        /// Which.
        path: PathBuf,
    },
    /// It could not be asked for its tools.
    #[error("`{}` could not list its tools: {why}", path.display())]
    Inspection {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
        /// What would help.
        hint: Option<String>,
    },
    /// What it says of its tools cannot be accepted.
    #[error("`{}` is refused: {why}", path.display())]
    BadTools {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Its file's name is no plugin name and no manifest gives one.
    #[error("`{}`: {error}", path.display())]
    BadName {
        /// Which.
        path: PathBuf,
        /// Why.
        error: BadName,
    },
    /// Its manifest is wrong.
    #[error("{message}")]
    Manifest {
        /// Which.
        path: PathBuf,
        /// File, line and key included.
        message: String,
        /// What would help.
        hint: Option<String>,
    },
    /// It is not the build any more that was found at the start.
    #[error("`{}` has changed since it was found: it was {expected} and is {found}", path.display())]
    Changed {
        /// Which.
        path: PathBuf,
        /// The build that was found.
        expected: Digest,
        /// The build that lies there now.
        found: Digest,
    },
    /// The host could not do its part.
    #[error("`{}` could not be loaded: {why}", path.display())]
    Host {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

impl LoadError {
    /// What would help, for a line of its own.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotAComponent { what, .. } if what.starts_with("a core module") => {
                Some("build it for `wasm32-wasip2`, or wrap it with `wasm-tools component new`".into())
            }
            Self::Manifest { hint, .. } | Self::Inspection { hint, .. } => hint.clone(),
            Self::Changed { .. } => Some("start again to use the new build".into()),
            _ => None,
        }
    }

    /// The file that is meant.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Unreadable { path, .. }
            | Self::TooLarge { path, .. }
            | Self::NotAComponent { path, .. }
            | Self::Invalid { path, .. }
            | Self::NoExports { path }
            | Self::Inspection { path, .. }
            | Self::BadTools { path, .. }
            | Self::BadName { path, .. }
            | Self::Manifest { path, .. }
            | Self::Changed { path, .. }
            | Self::Host { path, .. } => path,
        }
    }
}

/// What a plugin exports, and so how it is called. A component that exports plain typed functions is to become a third
/// kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Kinds {
    /// It exports `fief:plugin/tools`.
    pub(crate) tools: bool,
    /// It exports `fief:plugin/filter`.
    pub(crate) filter: bool,
}

/// The bytes of a regular file, `None` if it holds more than `most`: a FIFO or a device would block or never end, and
/// what grows while it is read, as files of the system's own do, is cut.
pub(crate) fn bytes(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if metadata.len() > most {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// Reads a component's bytes, and nothing that is none.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let unreadable = |error: io::Error| LoadError::Unreadable {
        path: path.into(),
        why: error.to_string(),
    };
    let Some(bytes) = bytes(path, MAX_COMPONENT).map_err(unreadable)? else {
        let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        return Err(LoadError::TooLarge {
            path: path.into(),
            size,
        });
    };
    check(path, &bytes)?;
    Ok(bytes)
}

/// Tells what the bytes are if they are no component.
fn check(path: &Path, bytes: &[u8]) -> Result<(), LoadError> {
    let what = match bytes {
        [] => "it is empty",
        [b'\0', b'a', b's', b'm', _, _, 1, 0, ..] => return Ok(()),
        [b'\0', b'a', b's', b'm', _, _, 0, 0, ..] => "a core module",
        [b'\0', b'a', b's', b'm', ..] => "it is cut off, or of an unknown version of WebAssembly",
        [0x7f, b'E', b'L', b'F', ..] => "a native binary; compiled code is never loaded",
        bytes if std::str::from_utf8(&bytes[..bytes.len().min(512)]).is_ok() => "a text file",
        _ => "unknown data",
    };
    Err(LoadError::NotAComponent {
        path: path.into(),
        what: what.into(),
    })
}

/// Compiles. Takes seconds for a large component: never on a thread of the runtime.
pub(crate) fn compile(engine: &Engine, path: &Path, bytes: &[u8]) -> Result<Component, LoadError> {
    // `from_binary` takes WebAssembly alone: nothing that a user supplies is ever mapped as code.
    Component::from_binary(engine, bytes).map_err(|error| LoadError::Invalid {
        path: path.into(),
        why: format!("{error:#}"),
    })
}

/// The interfaces that a component imports, by name.
pub(crate) fn imports(component: &Component) -> Vec<String> {
    let ty = component.component_type();
    let mut imports: Vec<String> = ty
        .imports(component.engine())
        .map(|(name, _)| name.to_owned())
        .collect();
    imports.sort();
    imports
}

/// What it exports.
pub(crate) fn kinds(component: &Component) -> Kinds {
    let exports = |name| component.get_export_index(None, name).is_some();
    Kinds {
        tools: exports(TOOLS),
        filter: exports(FILTER),
    }
}

/// The interface that offers tools.
pub(crate) const TOOLS: &str = "fief:plugin/tools@0.1.0";
/// The interface of filters.
pub(crate) const FILTER: &str = "fief:plugin/filter@0.1.0";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn no_more_is_read_than_may_be_whatever_a_files_size_says() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "12345").unwrap();
        assert_eq!(bytes(file.path(), 5).unwrap().as_deref(), Some(&b"12345"[..]));
        assert_eq!(bytes(file.path(), 4).unwrap(), None);
        assert!(bytes(file.path().parent().unwrap(), 5).is_err());
        if cfg!(target_os = "linux") {
            assert!(bytes(Path::new("/dev/zero"), 5).is_err());
            // A regular file by its kind, and empty by its size.
            assert_eq!(bytes(Path::new("/proc/self/maps"), 5).unwrap(), None);
        }
    }
}
