//! The disk, for manifests.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use fief_core::manifest::files::{Entry, FileError, Files, LARGEST};

/// The real file system, relative paths being those of one directory.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) base: PathBuf,
}

impl Files for Disk {
    fn read(&self, path: &Path) -> Result<String, FileError> {
        let path = self.base.join(path);
        let about = fs::metadata(&path).map_err(|error| known(&error))?;
        if about.is_dir() {
            return Err(FileError::Other("it is a directory".into()));
        }
        if !about.is_file() {
            // A FIFO would wait for ever, a device may never end.
            return Err(FileError::Other("it is not a regular file".into()));
        }
        let mut bytes = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
            .map_err(|error| known(&error))?;
        if bytes.len() as u64 > LARGEST {
            return Err(FileError::TooLarge);
        }
        String::from_utf8(bytes).map_err(|_| FileError::NotText)
    }

    fn read_inside(&self, directory: &Path, path: &Path) -> Result<String, FileError> {
        let directory = self.canonical(directory)?;
        let path = self.canonical(path)?;
        if path.starts_with(&directory) {
            self.read(&path)
        } else {
            Err(FileError::Outside)
        }
    }

    fn list(&self, directory: &Path) -> Result<Vec<Entry>, FileError> {
        let entries = fs::read_dir(self.base.join(directory)).map_err(|error| known(&error))?;
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| known(&error))?;
            if let Ok(name) = entry.file_name().into_string() {
                found.push(Entry {
                    name,
                    directory: entry.path().is_dir(),
                });
            }
        }
        Ok(found)
    }

    fn canonical(&self, path: &Path) -> Result<PathBuf, FileError> {
        self.base.join(path).canonicalize().map_err(|error| known(&error))
    }
}

fn known(error: &io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::NotFound => FileError::Missing,
        io::ErrorKind::NotADirectory => FileError::NotADirectory,
        _ => FileError::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_are_read_only_where_they_may_be() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk {
            base: dir.path().into(),
        };
        fs::create_dir(dir.path().join("in")).unwrap();
        fs::write(dir.path().join("in/a.md"), "text").unwrap();
        fs::write(dir.path().join("out.md"), "other").unwrap();
        fs::write(dir.path().join("bytes"), [0xff, 0xfe]).unwrap();
        let inside = Path::new("in");
        assert_eq!(disk.read(Path::new("in/a.md")).unwrap(), "text");
        assert_eq!(disk.read_inside(inside, Path::new("in/a.md")).unwrap(), "text");
        assert_eq!(
            disk.read_inside(inside, Path::new("in/../out.md")),
            Err(FileError::Outside)
        );
        assert_eq!(disk.read(Path::new("none")), Err(FileError::Missing));
        assert_eq!(disk.read(Path::new("bytes")), Err(FileError::NotText));
        assert!(matches!(disk.read(inside), Err(FileError::Other(_))));
        assert_eq!(disk.list(Path::new("out.md")), Err(FileError::NotADirectory));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../out.md", dir.path().join("in/link.md")).unwrap();
            assert_eq!(
                disk.read_inside(inside, Path::new("in/link.md")),
                Err(FileError::Outside)
            );
            assert!(matches!(disk.read(Path::new("/dev/zero")), Err(FileError::Other(_))));
        }
    }
}
