//! Files that only their owner may read: what depends on the system is here.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Creates a directory, and those above it that are missing, for the owner alone.
///
/// # Errors
/// What the system says; a directory that exists is none.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Opens a file for appending, for the owner alone, and creates it if it is missing.
///
/// # Errors
/// What the system says.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    owner_only(&mut options);
    options.open(path)
}

/// Replaces a file in one step, for the owner alone: a reader sees the old one or the new one, never half.
///
/// # Errors
/// What the system says.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?; // mode 0600 on Unix
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

fn owner_only(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    #[cfg(not(unix))]
    let _ = options;
}
