//! `wasi:filesystem` for guests: wasmtime's implementation, with every operation on a path decided here first.
//!
//! A path is resolved beneath the granted directory, the directory that it ends in is held open, and what follows is
//! done to one plain name in that directory, without following links. So what was checked is what is used, whatever
//! somebody else does to the tree meanwhile ([`walk`]). Special files are refused before they are opened: opening a
//! FIFO would block a thread of the host. No hard link is ever made: it would carry a file's contents into a directory
//! with other rights.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use fief_core::event::CapabilityKind;
use fief_core::grant::{DirGrant, FileMode};
use tokio::sync::Semaphore;
use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, Dir, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};
use wasmtime_wasi::p2::{FsError, FsResult};
use wasmtime_wasi::{FsPerms, OpenMode};

use self::walk::Trouble;
use crate::audit::Audit;
use crate::instance::Guest;

mod descriptor;
#[cfg(test)]
mod tests;
mod walk;

/// Threads that all guests together may keep busy with the file system: a mount that does not answer must not take
/// every thread that the host has for blocking work.
static THREADS: Semaphore = Semaphore::const_new(64);

/// One granted directory, held open from the moment of linking: what is put in its place later gains nothing.
pub(crate) struct Root {
    grant: DirGrant,
    dir: Mutex<Arc<std::fs::File>>,
}

impl Root {
    /// Opens the directories of a grant. One that is granted read-only inside another is protected in that one.
    pub(crate) fn open(grants: &[DirGrant]) -> Result<Arc<[Self]>, (PathBuf, io::Error)> {
        let mut roots = Vec::new();
        for grant in grants {
            let dir = walk::open_real(&grant.host).map_err(|error| (grant.host.clone(), error))?;
            let mut grant = grant.clone();
            let inner = grants.iter().filter(|other| {
                other.mode == FileMode::Read && other.host != grant.host && other.host.starts_with(&grant.host)
            });
            let protected = grant
                .protected
                .iter()
                .cloned()
                .chain(inner.map(|inner| inner.host.clone()));
            grant.protected = protected.collect();
            roots.push(Self {
                grant,
                dir: Mutex::new(Arc::new(dir)),
            });
        }
        Ok(roots.into())
    }

    /// The directory; opened again if the one that was linked has been removed since.
    fn dir(&self) -> io::Result<Arc<std::fs::File>> {
        let mut dir = self.dir.lock().unwrap_or_else(PoisonError::into_inner);
        if walk::is_removed(&dir)? {
            *dir = Arc::new(walk::open_real(&self.grant.host)?);
        }
        Ok(Arc::clone(&dir))
    }

    fn perms(&self) -> FsPerms {
        match self.grant.mode {
            FileMode::Read => FsPerms::ReadOnly,
            FileMode::Write => FsPerms::ReadWrite,
        }
    }
}

/// What one call holds of the file system.
pub(crate) struct Files {
    roots: Arc<[Root]>,
    /// Of each open descriptor: in which root it lies, and how the guest would call it.
    opened: HashMap<u32, Opened>,
    audit: Arc<Audit>,
}

#[derive(Clone)]
struct Opened {
    root: usize,
    path: String,
}

impl Files {
    pub(crate) fn new(roots: &Arc<[Root]>, audit: Arc<Audit>) -> Self {
        Self {
            roots: Arc::clone(roots),
            opened: HashMap::new(),
            audit,
        }
    }
}

/// Gives the linker the file system of a guest.
pub(crate) struct HasFiles;

impl HasData for HasFiles {
    type Data<'a> = FilesView<'a>;
}

/// The file system of one call, borrowed with its table.
pub(crate) struct FilesView<'a> {
    files: &'a mut Files,
    ctx: &'a mut WasiFilesystemCtx,
    table: &'a mut ResourceTable,
}

impl Guest {
    pub(crate) fn files(&mut self) -> FilesView<'_> {
        FilesView {
            files: &mut self.files,
            ctx: self.wasi.filesystem(),
            table: &mut self.table,
        }
    }
}

/// A directory of the guest's and a path in it, as an operation names them.
struct Target {
    dir: Dir,
    root: usize,
    /// As the guest would call it, for the audit.
    shown: String,
    path: String,
}

impl FilesView<'_> {
    /// wasmtime's own view, for what needs no decision of ours.
    fn inner(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView {
            ctx: self.ctx,
            table: self.table,
        }
    }

    fn opened(&self, fd: &Resource<Descriptor>) -> wasmtime::Result<&Opened> {
        let opened = self.files.opened.get(&fd.rep());
        opened.ok_or_else(|| wasmtime::format_err!("a descriptor that was never opened"))
    }

    fn target(&self, fd: &Resource<Descriptor>, path: String) -> FsResult<Target> {
        let Descriptor::Dir(dir) = self.table.get(fd)? else {
            return Err(types::ErrorCode::NotDirectory.into());
        };
        let opened = self.opened(fd).map_err(FsError::trap)?;
        Ok(Target {
            dir: dir.clone(),
            root: opened.root,
            shown: shown(&opened.path, &path),
            path,
        })
    }

    fn rule(&self, root: usize) -> &str {
        &self.files.roots[root].grant.rule
    }

    fn allow(&self, target: &Target) {
        self.files
            .audit
            .allowed(CapabilityKind::File, &target.shown, self.rule(target.root));
    }

    fn refuse(&self, shown: &str, why: &str) -> FsError {
        self.files.audit.refused(CapabilityKind::File, shown, why);
        types::ErrorCode::NotPermitted.into()
    }

    /// Whether the directory may be changed at all.
    fn must_be_writable(&self, target: &Target) -> FsResult<()> {
        if target.dir.perms.write_not_permitted() {
            return Err(self.refuse(&target.shown, READ_ONLY));
        }
        Ok(())
    }

    /// Carries out an operation that changes a directory, on a thread of its own.
    async fn change<F>(&mut self, target: &Target, operation: F) -> FsResult<()>
    where
        F: FnOnce(&walk::Scope, &std::fs::File, &str) -> Result<(), Trouble> + Send + 'static,
    {
        self.must_be_writable(target)?;
        let scope = self.scope(target.root).map_err(FsError::from)?;
        let (dir, path) = (Arc::clone(&target.dir.dir), target.path.clone());
        let done = blocking(move || operation(&scope, &dir, &path)).await?;
        self.settle(target, done)
    }

    fn settle<T>(&self, target: &Target, done: Result<T, Trouble>) -> FsResult<T> {
        match done {
            Ok(value) => {
                self.allow(target);
                Ok(value)
            }
            Err(Trouble::Refused(why)) => Err(self.refuse(&target.shown, why)),
            Err(Trouble::Io(error)) if walk::is_escape(&error) => Err(self.refuse(&target.shown, OUTSIDE)),
            Err(Trouble::Io(error)) => Err(error.into()),
        }
    }

    fn scope(&self, root: usize) -> io::Result<walk::Scope> {
        let root = &self.files.roots[root];
        Ok(walk::Scope {
            root: root.dir()?,
            host: root.grant.host.clone(),
            protected: Arc::clone(&root.grant.protected),
        })
    }

    /// Tells of what wasmtime refused itself.
    fn note_refusal<T>(&self, fd: &Resource<Descriptor>, path: &str, result: FsResult<T>) -> FsResult<T> {
        if let Err(error) = &result
            && matches!(error.downcast_ref(), Some(types::ErrorCode::NotPermitted))
        {
            let opened = self.opened(fd).map_err(FsError::trap)?;
            let (shown, why) = match path {
                "" => (opened.path.clone(), READ_ONLY),
                path => (shown(&opened.path, path), OUTSIDE),
            };
            self.files.audit.refused(CapabilityKind::File, &shown, why);
        }
        result
    }
}

/// A path beneath a directory, as the guest would write it.
fn shown(directory: &str, path: &str) -> String {
    match path {
        "." => directory.into(),
        path => format!("{}/{path}", directory.trim_end_matches('/')),
    }
}

const READ_ONLY: &str = "granted for reading only";
const OUTSIDE: &str = "leads out of the granted directory";

/// Runs what may block on a thread for it. A thread that hangs keeps its place, so that no more than [`THREADS`] hang.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> FsResult<T> {
    let place = THREADS.acquire().await.map_err(FsError::trap)?;
    tokio::task::spawn_blocking(move || {
        let _place = place;
        work()
    })
    .await
    .map_err(FsError::trap)
}

impl preopens::Host for FilesView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let mut directories = Vec::with_capacity(self.files.roots.len());
        for (index, root) in Arc::clone(&self.files.roots).iter().enumerate() {
            let dir = match root.dir() {
                Ok(dir) => dir,
                Err(error) => {
                    let why = format!("the granted directory cannot be opened: {error}");
                    self.files.audit.refused(CapabilityKind::File, &root.grant.guest, &why);
                    continue;
                }
            };
            let mode = match root.grant.mode {
                FileMode::Read => OpenMode::READ,
                FileMode::Write => OpenMode::READ | OpenMode::WRITE,
            };
            let dir = Dir::new(dir.try_clone()?, root.perms(), mode, false);
            let resource = self.table.push(Descriptor::Dir(dir))?;
            let opened = Opened {
                root: index,
                path: root.grant.guest.clone(),
            };
            self.files.opened.insert(resource.rep(), opened);
            directories.push((resource, root.grant.guest.clone()));
        }
        Ok(directories)
    }
}
