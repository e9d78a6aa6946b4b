//! The compiled store: machine code of components, written by this host for this user, and mapped again at the next
//! start.
//!
//! A file is named by the component's digest and by a key of everything that its code depends on. It is written beside
//! its place and renamed, so that nobody ever sees half of one; a lock for each digest lets a second process wait for
//! the first instead of compiling too. Whatever is found damaged is removed and made again.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fief_core::id::Digest;
use sha2::Digest as _;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::engine::Size;

/// Files of this layout: code, then the trailer.
const MAGIC: &[u8; 8] = b"fiefcode";
/// Magic, length of the code and its SHA-256.
const TRAILER: u64 = 8 + 8 + 32;
/// What the store keeps at most, in bytes: 60 components of CPython's size.
const MOST: u64 = 2 << 30;
/// How long a file that nobody uses is kept.
const KEPT: Duration = Duration::from_secs(60 * 60 * 24 * 60);
/// How often the time of use is written down.
const NOTED: Duration = Duration::from_secs(60 * 60 * 24);

/// A directory of compiled components.
pub(crate) struct Store {
    dir: PathBuf,
    key: String,
}

impl Store {
    /// `engine` is the one for small components; that for large ones differs only as this host's code says.
    pub(crate) fn new(dir: PathBuf, engine: &Engine) -> Self {
        let mut hasher = DefaultHasher::new();
        (MAGIC, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
        // Covers wasmtime's version, the target, the features of the processor and the whole configuration.
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Self {
            dir,
            key: format!("{:016x}", hasher.finish()),
        }
    }

    fn path(&self, digest: &Digest, size: Size) -> PathBuf {
        let size = match size {
            Size::Small => "small",
            Size::Large => "large",
        };
        self.dir.join(format!("{}-{}-{size}.code", digest.hex(), self.key))
    }

    /// Takes a component from the store, or makes it with `compile` and puts it there. A store that cannot be used costs
    /// time, not the plugin. `engine` gives the engine for a size, which only the component's bytes tell: what was stored
    /// is looked for under both.
    pub(crate) fn load<'e, E>(
        &self,
        engine: impl Fn(Size) -> Option<&'e Engine>,
        digest: &Digest,
        compile: impl FnOnce() -> Result<(Size, Component), E>,
    ) -> Result<Component, E> {
        let find = || {
            let stored = [Size::Small, Size::Large].map(|size| (size, self.path(digest, size)));
            let mut stored = stored.iter().filter(|(_, path)| path.symlink_metadata().is_ok());
            stored.find_map(|(size, path)| self.map(engine(*size)?, path))
        };
        if let Some(component) = find() {
            return Ok(component);
        }
        // Without a lock two processes compile the same, and the last to rename wins: slower, and no less right.
        let lock = self
            .lock(digest)
            .inspect_err(|error| self.complain("cannot be locked", error))
            .ok();
        if lock.is_some()
            && let Some(component) = find()
        {
            return Ok(component);
        }
        let (size, component) = compile()?;
        if let Err(error) = self.write(&self.path(digest, size), &component) {
            self.complain("cannot be written", &error);
        }
        drop(lock);
        self.prune();
        Ok(component)
    }

    fn complain(&self, what: &str, error: &io::Error) {
        tracing::warn!("the compiled store `{}` {what}: {error}", self.dir.display());
    }

    /// Maps a file, if it is there and is what this host wrote.
    fn map(&self, engine: &Engine, path: &Path) -> Option<Component> {
        match checked(&self.dir, path) {
            Ok(Some(modified)) => {
                // SAFETY: wasmtime runs what the file holds as native code, so that it must be what `Component::serialize`
                // wrote. Only this user can have written it: `checked` has just seen that he owns the file and its
                // directory and that nobody else may write to either; the engine's key is in its name, and wasmtime
                // compares its own header with the engine once more. What this user himself puts there he could as well
                // run directly.
                match unsafe { Component::deserialize_file(engine, path) } {
                    Ok(component) => {
                        note_use(path, modified);
                        Some(component)
                    }
                    Err(error) => self.discard(path, &format!("{error:#}")),
                }
            }
            Ok(None) => None,
            Err(error) => self.discard(path, &error.to_string()),
        }
    }

    fn discard(&self, path: &Path, why: &str) -> Option<Component> {
        tracing::warn!("`{}` is damaged and compiled again: {why}", path.display());
        let _ = fs::remove_file(path);
        None
    }

    fn lock(&self, digest: &Digest) -> io::Result<File> {
        make_private_dir(&self.dir)?;
        let path = self.dir.join(format!("{}.lock", digest.hex()));
        let file = private().create(true).truncate(false).write(true).open(path)?;
        file.lock()?;
        Ok(file)
    }

    fn write(&self, path: &Path, component: &Component) -> io::Result<()> {
        let code = component
            .serialize()
            .map_err(|error| io::Error::other(format!("{error:#}")))?;
        write_private(path, &[&code, &trailer(&code)])
    }

    /// Removes what nobody used for long, then the oldest until the rest fits.
    fn prune(&self) {
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let metadata = entry.metadata().ok()?;
                let kept = entry.path().extension() == Some(OsStr::new("code"));
                (kept && metadata.is_file()).then_some((metadata.modified().ok()?, metadata.len(), entry.path()))
            })
            .collect();
        files.sort();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        for (used, size, path) in files {
            let old = used.elapsed().is_ok_and(|age| age > KEPT);
            if !old && total <= MOST {
                break;
            }
            if fs::remove_file(&path).is_ok() {
                total -= size;
            }
        }
    }
}

fn trailer(code: &[u8]) -> Vec<u8> {
    let mut trailer = MAGIC.to_vec();
    trailer.extend((code.len() as u64).to_le_bytes());
    trailer.extend(sha2::Sha256::digest(code));
    trailer
}

/// Checks who owns a file, who may write to it, its length and its trailer. Absent: no such file.
fn checked(dir: &Path, path: &Path) -> io::Result<Option<SystemTime>> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    owned(&metadata)?;
    owned(&fs::symlink_metadata(dir)?)?;
    let mut file = File::open(path)?;
    let length = metadata
        .len()
        .checked_sub(TRAILER)
        .ok_or_else(|| io::Error::other("too short"))?;
    file.seek(SeekFrom::Start(length))?;
    let mut trailer = [0; 16];
    file.read_exact(&mut trailer)?;
    if &trailer[..8] != MAGIC || trailer[8..] != length.to_le_bytes() {
        return Err(io::Error::other("its trailer is not the one that was written"));
    }
    Ok(Some(metadata.modified()?))
}

/// Whether all of a file is as it was written: its code against the digest in its trailer.
fn verify(dir: &Path, path: &Path) -> io::Result<()> {
    checked(dir, path)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let bytes = fs::read(path)?;
    let (code, written) = bytes.split_at(bytes.len() - usize::try_from(TRAILER).unwrap_or(usize::MAX));
    if trailer(code) != written {
        return Err(io::Error::other("its code is not what was written"));
    }
    Ok(())
}

/// Checks every file of a store from end to end and tells of the damaged ones, which are removed.
///
/// # Errors
/// The directory cannot be read.
pub fn verify_store(dir: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let mut damaged = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("code"))
            && let Err(error) = verify(dir, &path)
        {
            fs::remove_file(&path)?;
            damaged.push((path, error.to_string()));
        }
    }
    Ok(damaged)
}

fn note_use(path: &Path, modified: SystemTime) {
    if modified.elapsed().is_ok_and(|age| age > NOTED) {
        // It only delays pruning.
        let _ = File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
    }
}

/// Whether nobody but this user may write there.
#[cfg(unix)]
fn owned(metadata: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(io::Error::other("others have rights on it"));
    }
    Ok(())
}

/// Without owners that can be compared nothing is mapped.
#[cfg(not(unix))]
fn owned(_: &fs::Metadata) -> io::Result<()> {
    Err(io::Error::other("ownership cannot be checked on this system"))
}

/// Refuses a file that another user could have written.
pub(crate) fn must_be_private(path: &Path) -> io::Result<()> {
    owned(&fs::symlink_metadata(path)?)?;
    owned(&fs::symlink_metadata(path.parent().unwrap_or(path))?)
}

/// Options for a file that is its owner's alone.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

/// Makes a directory that is its owner's alone.
pub(crate) fn make_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(dir)
}

/// Writes a file that nobody sees half of, and that is its owner's alone.
pub(crate) fn write_private(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let dir = path.parent().ok_or_else(|| io::Error::other("no directory"))?;
    make_private_dir(dir)?;
    // `tempfile` makes files that are the owner's alone.
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests;
