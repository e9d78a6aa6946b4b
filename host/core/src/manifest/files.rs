//! How manifests reach the files beside them, without this crate touching any.

use std::path::{Component, Path, PathBuf};

/// What the host reads for its manifests. The one implementation in the binary is a few lines over `std::fs`.
pub trait Files {
    /// The whole text of `path`.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn read(&self, path: &Path) -> Result<String, FileError>;

    /// The whole text of `path`, which lies in `directory` and must not leave it, symbolic links followed.
    ///
    /// # Errors
    /// Why it cannot be had; [`FileError::Outside`] if it leads out of `directory`.
    fn read_inside(&self, directory: &Path, path: &Path) -> Result<String, FileError>;

    /// What lies directly in `directory`, in any order.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn list(&self, directory: &Path) -> Result<Vec<Entry>, FileError>;

    /// The absolute path without symbolic links, of something that exists. Relative paths are those of the directory
    /// in which the run starts.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn canonical(&self, path: &Path) -> Result<PathBuf, FileError>;
}

/// One entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its name; what is no UTF-8 is of no interest to manifests and may be left out.
    pub name: String,
    /// Whether it is a directory, symbolic links followed.
    pub directory: bool,
}

/// Why a file cannot be had.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FileError {
    /// There is none.
    #[error("there is no such file or directory")]
    Missing,
    /// A directory was wanted.
    #[error("it is not a directory")]
    NotADirectory,
    /// It leads out of the directory that it must stay in.
    #[error("it leads out of the directory of its manifest")]
    Outside,
    /// It is no UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
    /// It is larger than [`LARGEST`].
    #[error("it is larger than a manifest may be, 4 MiB")]
    TooLarge,
    /// What the system says.
    #[error("{0}")]
    Other(String),
}

/// The largest manifest, instruction or schema: far beyond any honest one, and bounded so that `/dev/zero` ends.
pub const LARGEST: u64 = 4 << 20;

/// Whether a path, as written, stays below the directory that it is relative to. Symbolic links are not followed.
#[must_use]
pub fn stays_inside(path: &Path) -> bool {
    !path.as_os_str().is_empty()
        && !path.to_string_lossy().contains(['\0', '\\'])
        && path
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Files of a test's own making, by absolute path; what ends in `/` is an empty directory. A text that starts with
    /// `-> ` is a symbolic link.
    #[derive(Default)]
    pub(crate) struct Pretend(pub(crate) BTreeMap<&'static str, &'static str>);

    impl Files for Pretend {
        fn read(&self, path: &Path) -> Result<String, FileError> {
            let path = path.strip_prefix("./").unwrap_or(path);
            match self.0.get(path.to_str().ok_or(FileError::Missing)?) {
                Some(&"<unreadable>") => Err(FileError::Other("permission denied".into())),
                Some(&"<binary>") => Err(FileError::NotText),
                Some(text) => Ok((*text).to_owned()),
                None => Err(FileError::Missing),
            }
        }

        fn read_inside(&self, directory: &Path, path: &Path) -> Result<String, FileError> {
            if self.canonical(path)?.starts_with(directory) {
                self.read(path)
            } else {
                Err(FileError::Outside)
            }
        }

        fn list(&self, directory: &Path) -> Result<Vec<Entry>, FileError> {
            let prefix = format!("{}/", directory.display());
            if self.0.contains_key(directory.to_str().unwrap_or_default()) {
                return Err(FileError::NotADirectory);
            }
            let mut found: Vec<Entry> = Vec::new();
            let mut exists = false;
            // Backwards, so that nothing comes to rely on an order.
            for path in self.0.keys().rev() {
                let Some(rest) = path.strip_prefix(&prefix) else {
                    continue;
                };
                exists = true;
                let (name, directory) = rest.split_once('/').map_or((rest, false), |(name, _)| (name, true));
                if !name.is_empty() && found.iter().all(|entry| entry.name != name) {
                    found.push(Entry {
                        name: name.into(),
                        directory,
                    });
                }
            }
            if exists { Ok(found) } else { Err(FileError::Missing) }
        }

        fn canonical(&self, path: &Path) -> Result<PathBuf, FileError> {
            let mut whole = PathBuf::from("/w");
            for part in path.components() {
                match part {
                    Component::RootDir => whole = PathBuf::from("/"),
                    Component::ParentDir => drop(whole.pop()),
                    Component::Normal(name) => whole.push(name),
                    _ => {}
                }
                if let Some(target) = self
                    .0
                    .get(whole.to_str().unwrap_or_default())
                    .and_then(|t| t.strip_prefix("-> "))
                {
                    whole = PathBuf::from(target);
                }
            }
            Ok(whole)
        }
    }

    #[test]
    fn paths_that_leave_are_known_by_their_text() {
        for (path, inside) in [
            ("a.md", true),
            ("./a/b.md", true),
            ("a..b", true),
            ("", false),
            ("../a", false),
            ("a/../../b", false),
            ("/etc/passwd", false),
            ("a\\..\\..\\b", false),
        ] {
            assert_eq!(stays_inside(Path::new(path)), inside, "{path}");
        }
    }
}
