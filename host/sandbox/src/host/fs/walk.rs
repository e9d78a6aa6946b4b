//! Paths, decided without races: resolve, hold the directory open, then act on one plain name in it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::Dir as CapDir;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, Timestamps};
use rustix::io::Errno;

/// Links that one path may lead over, as on Linux.
const LINKS: usize = 40;

/// Why an operation on a path was not done.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The sandbox says no.
    Refused(&'static str),
    /// The system says no.
    Io(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for Trouble {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

const PROTECTED: &str = "the host itself obeys what lies there";
const SPECIAL: &str = "a special file, which only files and directories may be opened as";

/// A granted directory and what is protected in it.
pub(super) struct Scope {
    pub(super) root: Arc<File>,
    pub(super) host: PathBuf,
    pub(super) protected: Arc<[PathBuf]>,
}

/// Which file it is, whatever it is called.
type Identity = (u64, u64);

fn identity(stat: &Stat) -> Identity {
    // The types of both differ between systems, and none of them is negative.
    #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast)]
    (stat.st_dev as u64, stat.st_ino as u64)
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// How a directory is opened that is only a way to others: one that may be entered, and not listed, is one too.
fn passage() -> OFlags {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return flags | OFlags::PATH;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    return flags | OFlags::RDONLY;
}

/// Opens a directory by its real path: one in which no part has become a link since the path was resolved. A guest that
/// may write to one granted directory could else move another by putting a link in its place.
pub(super) fn open_real(path: &Path) -> io::Result<File> {
    let whole = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut dir: Option<File> = None;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let open = |flags| match (part, &dir) {
            (Component::RootDir, _) => rustix::fs::open("/", flags, Mode::empty()).map_err(io::Error::from),
            (Component::Normal(name), Some(dir)) => {
                rustix::fs::openat(dir, name, flags, Mode::empty()).map_err(io::Error::from)
            }
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not an absolute, canonical path",
            )),
        };
        let opened = match parts.peek() {
            Some(_) => open(passage()),
            // The granted one is to be listed too, if it may be.
            None => match open(whole) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => open(passage()),
                opened => opened,
            },
        };
        dir = Some(File::from(opened?));
    }
    dir.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "an empty path"))
}

/// Whether a directory that is held open has been removed.
pub(super) fn is_removed(dir: &File) -> io::Result<bool> {
    Ok(rustix::fs::fstat(dir)?.st_nlink == 0)
}

/// Whether an error is cap-std's refusal to leave the directory, which is no error of the system's.
pub(super) fn is_escape(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none()
}

/// Where a path ends: a directory that is held open, and a plain name in it; no name for the directory itself.
pub(super) struct Place {
    pub(super) parent: CapDir,
    pub(super) name: Option<OsString>,
}

/// Resolves a path beneath `dir`; `follow` says whether a link at its end is followed too.
pub(super) fn locate(dir: &File, path: &str, follow: bool) -> Result<Place, Trouble> {
    let dir = CapDir::from_std_file(dir.try_clone()?);
    let mut path = PathBuf::from(path);
    if path.as_os_str().is_empty() {
        return Err(io::Error::from(io::ErrorKind::NotFound).into());
    }
    for _ in 0..LINKS {
        let Some(Component::Normal(name)) = path.components().next_back() else {
            return Ok(Place {
                parent: dir.open_dir(&path)?,
                name: None,
            });
        };
        let name = name.to_owned();
        let above = path
            .parent()
            .filter(|above| !above.as_os_str().is_empty())
            .map(Path::to_owned);
        let parent = match &above {
            Some(above) => dir.open_dir(above)?,
            None => dir.try_clone()?,
        };
        let link = match rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => follow && kind(&stat) == FileType::Symlink,
            Err(Errno::NOENT) => false,
            Err(error) => return Err(error.into()),
        };
        if !link {
            return Ok(Place {
                parent,
                name: Some(name),
            });
        }
        // An absolute target replaces the path, and is refused when it is opened.
        path = above.unwrap_or_default().join(parent.read_link_contents(&name)?);
    }
    Err(Errno::LOOP.into())
}

/// What is protected, by identity and by name, as it is now.
struct Protected {
    root: Identity,
    /// What must not be changed, nor anything inside it.
    whole: Vec<Identity>,
    /// Names that must not be created or replaced, each in its directory.
    names: Vec<(Identity, OsString)>,
    /// The directories above, which must not be moved or removed.
    above: Vec<Identity>,
}

impl Scope {
    fn protected(&self) -> Result<Protected, Trouble> {
        let root = identity(&rustix::fs::fstat(&self.root)?);
        let mut found = Protected {
            root,
            whole: Vec::new(),
            names: Vec::new(),
            above: Vec::new(),
        };
        for path in self.protected.iter() {
            let Ok(inside) = path.strip_prefix(&self.host) else {
                continue;
            };
            let mut at = (self.root.try_clone()?, root);
            let mut parts = inside.components().peekable();
            if parts.peek().is_none() {
                found.whole.push(root);
            }
            while let Some(part) = parts.next() {
                let name = part.as_os_str().to_owned();
                let stat = match rustix::fs::statat(&at.0, &name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => stat,
                    Err(Errno::NOENT) => {
                        // It does not exist yet: whoever made it, or the first directory on the way to it, would decide
                        // what the host finds there.
                        found.names.push((at.1, name));
                        break;
                    }
                    Err(error) => return Err(error.into()),
                };
                let id = identity(&stat);
                if parts.peek().is_none() || kind(&stat) != FileType::Directory {
                    found.whole.push(id);
                    found.names.push((at.1, name));
                    break;
                }
                found.above.push(id);
                at = (
                    File::from(rustix::fs::openat(&at.0, &name, passage(), Mode::empty())?),
                    id,
                );
            }
        }
        Ok(found)
    }

    /// Refuses to change what is protected. `moves` says whether a directory itself would go elsewhere.
    fn check(&self, place: &Place, moves: bool) -> Result<(), Trouble> {
        if self.protected.is_empty() {
            return Ok(());
        }
        let protected = self.protected()?;
        if inside(&place.parent, &protected)? {
            return Err(Trouble::Refused(PROTECTED));
        }
        let Some(name) = &place.name else { return Ok(()) };
        let parent = identity(&rustix::fs::fstat(&place.parent)?);
        // Without regard to case: some file systems have none.
        if protected
            .names
            .iter()
            .any(|(dir, other)| *dir == parent && other.eq_ignore_ascii_case(name))
        {
            return Err(Trouble::Refused(PROTECTED));
        }
        let existing = match rustix::fs::statat(&place.parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => identity(&stat),
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        // By identity, so that a second hard link to a protected file is no way to it either.
        if protected.whole.contains(&existing) || (moves && protected.above.contains(&existing)) {
            return Err(Trouble::Refused(PROTECTED));
        }
        Ok(())
    }

    /// Whether what is open there must not be changed.
    fn is_protected(&self, place: &Place, opened: &Stat) -> Result<bool, Trouble> {
        if self.protected.is_empty() {
            return Ok(false);
        }
        let protected = self.protected()?;
        Ok(protected.whole.contains(&identity(opened)) || inside(&place.parent, &protected)?)
    }
}

/// Whether a directory lies in a protected one, or is one: its ancestors are asked, up to the root.
fn inside(dir: &CapDir, protected: &Protected) -> Result<bool, Trouble> {
    Ok(ancestors(dir, protected.root)?
        .iter()
        .any(|id| protected.whole.contains(id)))
}

/// The directory and those above it, up to and with the root.
fn ancestors(dir: &CapDir, root: Identity) -> Result<Vec<Identity>, Trouble> {
    let mut found = vec![identity(&rustix::fs::fstat(dir)?)];
    let mut at: Option<File> = None;
    while found.last() != Some(&root) {
        let above = match &at {
            Some(at) => rustix::fs::openat(at, "..", passage(), Mode::empty())?,
            None => rustix::fs::openat(dir, "..", passage(), Mode::empty())?,
        };
        let id = identity(&rustix::fs::fstat(&above)?);
        if found.last() == Some(&id) {
            // The root of all: the directory was moved out of the granted one.
            return Err(Trouble::Refused("it was moved out of the granted directory"));
        }
        found.push(id);
        at = Some(File::from(above));
    }
    Ok(found)
}

/// How a file is to be opened.
#[derive(Clone, Copy)]
pub(super) struct Opening {
    pub(super) follow: bool,
    pub(super) read: bool,
    pub(super) write: bool,
    pub(super) create: bool,
    pub(super) exclusive: bool,
    pub(super) truncate: bool,
    pub(super) directory: bool,
}

impl Opening {
    pub(super) fn changes(self) -> bool {
        self.write || self.create || self.truncate
    }
}

/// What was opened.
pub(super) struct Found {
    pub(super) file: File,
    pub(super) directory: bool,
    /// It must not be changed, whatever the grant says.
    pub(super) protected: bool,
}

pub(super) fn open(scope: &Scope, writable: bool, dir: &File, path: &str, how: Opening) -> Result<Found, Trouble> {
    let place = locate(dir, path, how.follow && !how.exclusive)?;
    if how.changes() {
        scope.check(&place, false)?;
    }
    let mut flags = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    flags |= match (how.read, how.changes()) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        (_, false) => OFlags::RDONLY,
    };
    flags.set(OFlags::CREATE, how.create);
    flags.set(OFlags::EXCL, how.create && how.exclusive);
    flags.set(OFlags::TRUNC, how.truncate);
    // What only a directory may be called; the parts of a path do not show either.
    let as_directory = path.ends_with('/') || path.ends_with("/.");
    flags.set(OFlags::DIRECTORY, how.directory || as_directory);
    let name: &OsStr = place.name.as_deref().unwrap_or(OsStr::new("."));
    if let Ok(stat) = rustix::fs::statat(&place.parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        regular(&stat)?;
    }
    let file = File::from(rustix::fs::openat(
        &place.parent,
        name,
        flags,
        Mode::from_raw_mode(0o666),
    )?);
    let stat = rustix::fs::fstat(&file)?;
    // Again, now that it is held: the name may have been given to something else in between.
    regular(&stat)?;
    Ok(Found {
        directory: kind(&stat) == FileType::Directory,
        protected: writable && scope.is_protected(&place, &stat)?,
        file,
    })
}

/// Refuses what is neither a file nor a directory. A link is left to the system, which says what it is.
fn regular(stat: &Stat) -> Result<(), Trouble> {
    match kind(stat) {
        FileType::RegularFile | FileType::Directory | FileType::Symlink => Ok(()),
        _ => Err(Trouble::Refused(SPECIAL)),
    }
}

fn named(place: &Place) -> Result<&OsStr, Trouble> {
    place.name.as_deref().ok_or_else(|| Errno::INVAL.into())
}

pub(super) fn create_directory(scope: &Scope, dir: &File, path: &str) -> Result<(), Trouble> {
    let place = locate(dir, path, false)?;
    scope.check(&place, false)?;
    // As the system says it of `.`: a language's `create_dir_all` goes on from there.
    let name = place.name.as_deref().ok_or(Errno::EXIST)?;
    Ok(rustix::fs::mkdirat(&place.parent, name, Mode::from_raw_mode(0o777))?)
}

pub(super) fn remove(scope: &Scope, dir: &File, path: &str, directory: bool) -> Result<(), Trouble> {
    let place = locate(dir, path, false)?;
    scope.check(&place, true)?;
    let flags = if directory {
        AtFlags::REMOVEDIR
    } else {
        AtFlags::empty()
    };
    Ok(rustix::fs::unlinkat(&place.parent, named(&place)?, flags)?)
}

pub(super) fn set_times(
    scope: &Scope,
    dir: &File,
    path: &str,
    follow: bool,
    times: &Timestamps,
) -> Result<(), Trouble> {
    let place = locate(dir, path, follow)?;
    scope.check(&place, false)?;
    let name = place.name.as_deref().unwrap_or(OsStr::new("."));
    Ok(rustix::fs::utimensat(
        &place.parent,
        name,
        times,
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

pub(super) fn rename(from: (&Scope, &File, &str), to: (&Scope, &File, &str)) -> Result<(), Trouble> {
    let old = locate(from.1, from.2, false)?;
    let new = locate(to.1, to.2, false)?;
    from.0.check(&old, true)?;
    to.0.check(&new, true)?;
    Ok(rustix::fs::renameat(
        &old.parent,
        named(&old)?,
        &new.parent,
        named(&new)?,
    )?)
}

/// Makes a link that stays inside: the guest could follow no other, but a person or another program would.
pub(super) fn link(scope: &Scope, dir: &File, path: &str, target: &str) -> Result<(), Trouble> {
    let place = locate(dir, path, false)?;
    scope.check(&place, false)?;
    let root = identity(&rustix::fs::fstat(&scope.root)?);
    // How many directories lie between the root and the link.
    let mut depth = ancestors(&place.parent, root)?.len() - 1;
    for part in Path::new(target).components() {
        depth = match part {
            Component::Normal(_) => depth + 1,
            Component::CurDir => depth,
            Component::ParentDir => depth.checked_sub(1).ok_or(Trouble::Refused(super::OUTSIDE))?,
            Component::RootDir | Component::Prefix(_) => return Err(Trouble::Refused(super::OUTSIDE)),
        };
    }
    Ok(rustix::fs::symlinkat(target, &place.parent, named(&place)?)?)
}
