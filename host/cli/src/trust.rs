//! Which files from other people's repositories the user has accepted, as they were when they were accepted.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fief_core::id::Digest;
use fief_core::manifest::files::Files as _;

use crate::host::files::Disk;
use crate::private;

/// The list of accepted files: a path and the digest that the file had.
#[derive(Clone, Debug)]
pub struct Trust {
    file: PathBuf,
}

impl Trust {
    /// The list below a user's state folder.
    #[must_use]
    pub fn below(state: &Path) -> Self {
        Self {
            file: state.join("trusted.json"),
        }
    }

    /// Whether `path`, which holds `bytes`, was accepted as it is. A damaged list accepts nothing.
    #[must_use]
    pub fn holds(&self, path: &Path, bytes: &[u8]) -> bool {
        let digest = Digest::of(bytes).to_string();
        self.read()
            .is_ok_and(|list| key(path).is_ok_and(|key| list.get(&key) == Some(&digest)))
    }

    /// Accepts `path` as it is now.
    ///
    /// # Errors
    /// What the system says of the file or the list.
    pub fn accept(&self, path: &Path) -> io::Result<Digest> {
        // Read as the configuration is: a link to a device, which a repository can hold, would never end.
        let disk = Disk { base: PathBuf::new() };
        let digest = Digest::of(disk.read(path).map_err(io::Error::other)?.as_bytes());
        let mut list = self.read()?;
        list.insert(key(path)?, digest.to_string());
        if let Some(folder) = self.file.parent() {
            private::create_dir(folder)?;
        }
        private::replace(&self.file, serde_json::to_string_pretty(&list)?.as_bytes())?;
        Ok(digest)
    }

    fn read(&self) -> io::Result<BTreeMap<String, String>> {
        match fs::read(&self.file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", self.file.display()))
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        }
    }
}

/// The file's name in its canonical directory. A symbolic link is not followed: what is written relative to the directory
/// of a file that was accepted elsewhere would mean another directory here.
fn key(path: &Path) -> io::Result<String> {
    let missing = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
    let name = path.file_name().ok_or_else(missing)?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    Ok(directory.canonicalize()?.join(name).to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_link_to_an_accepted_file_is_not_accepted() {
        let home = tempfile::tempdir().unwrap();
        let (mine, theirs) = (home.path().join("mine"), home.path().join("theirs"));
        fs::create_dir(&mine).unwrap();
        fs::create_dir(&theirs).unwrap();
        let text = b"[policy]\nwrite = [\".\"]\n";
        fs::write(mine.join("fief.toml"), text).unwrap();
        std::os::unix::fs::symlink("../mine/fief.toml", theirs.join("fief.toml")).unwrap();
        let trust = Trust::below(&home.path().join("state"));
        trust.accept(&mine.join("fief.toml")).unwrap();
        assert!(trust.holds(&mine.join("fief.toml"), text));
        assert!(!trust.holds(&theirs.join("fief.toml"), text));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_device_that_never_ends_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("fief.toml");
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        let error = Trust::below(&home.path().join("state")).accept(&file).unwrap_err();
        assert_eq!(error.to_string(), "it is not a regular file");
    }

    #[test]
    fn a_changed_file_must_be_accepted_again() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("fief.toml");
        fs::write(&file, "[policy]\n").unwrap();
        let trust = Trust::below(&home.path().join("state"));
        assert!(!trust.holds(&file, b"[policy]\n"));
        trust.accept(&file).unwrap();
        assert!(trust.holds(&file, b"[policy]\n"));
        assert!(!trust.holds(&file, b"[policy]\ntoolbox = true\n"));
        let copy = home.path().join("other.toml");
        fs::copy(&file, &copy).unwrap();
        assert!(!trust.holds(&copy, b"[policy]\n"), "a copy elsewhere is another file");
    }

    #[test]
    fn a_damaged_list_accepts_nothing_and_is_not_overwritten() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("fief.toml");
        fs::write(&file, "").unwrap();
        fs::write(home.path().join("trusted.json"), "{ not json").unwrap();
        let trust = Trust::below(home.path());
        assert!(!trust.holds(&file, b""));
        assert!(trust.accept(&file).unwrap_err().to_string().contains("trusted.json"));
    }
}
