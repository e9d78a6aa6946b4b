//! The operations of `wasi:filesystem/types`: those on a path decided by [`super::walk`], the rest wasmtime's.

use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{Descriptor, Dir, File};
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, DescriptorFlags, ErrorCode, Host, HostDescriptor, HostDirectoryEntryStream, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult, ReaddirIterator};
use wasmtime_wasi::{FsPerms, OpenMode};

use super::walk::{self, Opening};
use super::{FilesView, Opened, READ_ONLY, blocking};

type Fd = Resource<Descriptor>;

impl Host for FilesView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        self.inner().filesystem_error_code(error)
    }
}

impl FilesView<'_> {
    /// Refuses to write to a file that was granted, or is to be had, for reading only.
    fn file_must_be_writable(&self, fd: &Fd) -> FsResult<()> {
        let perms = match self.table.get(fd)? {
            Descriptor::File(file) => file.perms,
            Descriptor::Dir(dir) => dir.perms,
        };
        if perms.write_not_permitted() {
            let opened = self.opened(fd).map_err(FsError::trap)?;
            return Err(self.refuse(&opened.path, READ_ONLY));
        }
        Ok(())
    }
}

impl HostDescriptor for FilesView<'_> {
    async fn open_at(
        &mut self,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
        open_flags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Fd> {
        let unsupported = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if flags.intersects(unsupported) {
            return Err(ErrorCode::Unsupported.into());
        }
        let creates = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
        if open_flags.contains(OpenFlags::DIRECTORY) && open_flags.intersects(creates) {
            return Err(ErrorCode::Invalid.into());
        }
        let write = flags.contains(DescriptorFlags::WRITE);
        let how = Opening {
            follow: path_flags.contains(PathFlags::SYMLINK_FOLLOW),
            read: flags.contains(DescriptorFlags::READ) || !write,
            write,
            create: open_flags.contains(OpenFlags::CREATE),
            exclusive: open_flags.contains(OpenFlags::EXCLUSIVE),
            truncate: open_flags.contains(OpenFlags::TRUNCATE),
            directory: open_flags.contains(OpenFlags::DIRECTORY),
        };
        let target = self.target(&fd, path)?;
        if how.changes() {
            self.must_be_writable(&target)?;
        }
        let writable = !target.dir.perms.write_not_permitted();
        let scope = self.scope(target.root).map_err(FsError::from)?;
        let (dir, path) = (Arc::clone(&target.dir.dir), target.path.clone());
        let found = blocking(move || walk::open(&scope, writable, &dir, &path, how)).await?;
        let found = self.settle(&target, found)?;

        let perms = if found.protected {
            FsPerms::ReadOnly
        } else {
            target.dir.perms
        };
        let mut mode = OpenMode::empty();
        mode.set(OpenMode::READ, how.read);
        mode.set(OpenMode::WRITE, how.changes());
        let descriptor = if found.directory {
            Descriptor::Dir(Dir::new(found.file, perms, mode, false))
        } else {
            Descriptor::File(File::new(found.file, perms, mode, false))
        };
        let resource = self.table.push(descriptor)?;
        let opened = Opened {
            root: target.root,
            path: target.shown,
        };
        self.files.opened.insert(resource.rep(), opened);
        Ok(resource)
    }

    async fn create_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let target = self.target(&fd, path)?;
        self.change(&target, walk::create_directory).await
    }

    async fn remove_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let target = self.target(&fd, path)?;
        self.change(&target, |scope, dir, path| walk::remove(scope, dir, path, true))
            .await
    }

    async fn unlink_file_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let target = self.target(&fd, path)?;
        self.change(&target, |scope, dir, path| walk::remove(scope, dir, path, false))
            .await
    }

    async fn symlink_at(&mut self, fd: Fd, points_to: String, path: String) -> FsResult<()> {
        let target = self.target(&fd, path)?;
        self.change(&target, move |scope, dir, path| {
            walk::link(scope, dir, path, &points_to)
        })
        .await
    }

    async fn set_times_at(
        &mut self,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
        accessed: types::NewTimestamp,
        modified: types::NewTimestamp,
    ) -> FsResult<()> {
        let times = Timestamps {
            last_access: timespec(accessed)?,
            last_modification: timespec(modified)?,
        };
        let follow = path_flags.contains(PathFlags::SYMLINK_FOLLOW);
        let target = self.target(&fd, path)?;
        self.change(&target, move |scope, dir, path| {
            walk::set_times(scope, dir, path, follow, &times)
        })
        .await
    }

    async fn rename_at(&mut self, fd: Fd, old_path: String, new_fd: Fd, new_path: String) -> FsResult<()> {
        let old = self.target(&fd, old_path)?;
        let new = self.target(&new_fd, new_path)?;
        self.must_be_writable(&old)?;
        self.must_be_writable(&new)?;
        let from = self.scope(old.root).map_err(FsError::from)?;
        let to = self.scope(new.root).map_err(FsError::from)?;
        let (old_dir, new_dir) = (Arc::clone(&old.dir.dir), Arc::clone(&new.dir.dir));
        let (old_path, new_path) = (old.path.clone(), new.path.clone());
        let done = blocking(move || walk::rename((&from, &old_dir, &old_path), (&to, &new_dir, &new_path))).await?;
        // Which side was refused is not known here; both are named.
        let both = super::Target {
            shown: format!("{} -> {}", old.shown, new.shown),
            ..new
        };
        self.settle(&both, done)
    }

    async fn link_at(&mut self, fd: Fd, _: PathFlags, old_path: String, _: Fd, new_path: String) -> FsResult<()> {
        let target = self.target(&fd, old_path)?;
        let shown = format!("{} -> {new_path}", target.shown);
        Err(self.refuse(&shown, "hard links are not made"))
    }

    async fn set_size(&mut self, fd: Fd, size: u64) -> FsResult<()> {
        self.file_must_be_writable(&fd)?;
        self.inner().set_size(fd, size).await
    }

    async fn set_times(
        &mut self,
        fd: Fd,
        accessed: types::NewTimestamp,
        modified: types::NewTimestamp,
    ) -> FsResult<()> {
        self.file_must_be_writable(&fd)?;
        self.inner().set_times(fd, accessed, modified).await
    }

    async fn write(&mut self, fd: Fd, bytes: Vec<u8>, offset: u64) -> FsResult<u64> {
        self.file_must_be_writable(&fd)?;
        self.inner().write(fd, bytes, offset).await
    }

    fn write_via_stream(&mut self, fd: Fd, offset: u64) -> FsResult<Resource<DynOutputStream>> {
        self.file_must_be_writable(&fd)?;
        self.inner().write_via_stream(fd, offset)
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        self.file_must_be_writable(&fd)?;
        self.inner().append_via_stream(fd)
    }

    fn read_via_stream(&mut self, fd: Fd, offset: u64) -> FsResult<Resource<DynInputStream>> {
        self.inner().read_via_stream(fd, offset)
    }

    async fn advise(&mut self, fd: Fd, offset: u64, length: u64, advice: types::Advice) -> FsResult<()> {
        self.inner().advise(fd, offset, length, advice).await
    }

    async fn sync_data(&mut self, fd: Fd) -> FsResult<()> {
        self.inner().sync_data(fd).await
    }

    async fn sync(&mut self, fd: Fd) -> FsResult<()> {
        self.inner().sync(fd).await
    }

    async fn get_flags(&mut self, fd: Fd) -> FsResult<DescriptorFlags> {
        self.inner().get_flags(fd).await
    }

    async fn get_type(&mut self, fd: Fd) -> FsResult<types::DescriptorType> {
        self.inner().get_type(fd).await
    }

    async fn read(&mut self, fd: Fd, length: u64, offset: u64) -> FsResult<(Vec<u8>, bool)> {
        self.inner().read(fd, length, offset).await
    }

    async fn read_directory(&mut self, fd: Fd) -> FsResult<Resource<ReaddirIterator>> {
        self.inner().read_directory(fd).await
    }

    async fn stat(&mut self, fd: Fd) -> FsResult<types::DescriptorStat> {
        self.inner().stat(fd).await
    }

    async fn stat_at(&mut self, fd: Fd, path_flags: PathFlags, path: String) -> FsResult<types::DescriptorStat> {
        let again = Resource::new_borrow(fd.rep());
        let result = self.inner().stat_at(fd, path_flags, path.clone()).await;
        self.note_refusal(&again, &path, result)
    }

    async fn readlink_at(&mut self, fd: Fd, path: String) -> FsResult<String> {
        let again = Resource::new_borrow(fd.rep());
        let result = self.inner().readlink_at(fd, path.clone()).await;
        self.note_refusal(&again, &path, result)
    }

    async fn is_same_object(&mut self, one: Fd, other: Fd) -> wasmtime::Result<bool> {
        self.inner().is_same_object(one, other).await
    }

    async fn metadata_hash(&mut self, fd: Fd) -> FsResult<types::MetadataHashValue> {
        self.inner().metadata_hash(fd).await
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Fd,
        path_flags: PathFlags,
        path: String,
    ) -> FsResult<types::MetadataHashValue> {
        let again = Resource::new_borrow(fd.rep());
        let result = self.inner().metadata_hash_at(fd, path_flags, path.clone()).await;
        self.note_refusal(&again, &path, result)
    }

    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        self.files.opened.remove(&fd.rep());
        HostDescriptor::drop(&mut self.inner(), fd)
    }
}

impl HostDirectoryEntryStream for FilesView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<ReaddirIterator>,
    ) -> FsResult<Option<types::DirectoryEntry>> {
        self.inner().read_directory_entry(stream).await
    }

    fn drop(&mut self, stream: Resource<ReaddirIterator>) -> wasmtime::Result<()> {
        HostDirectoryEntryStream::drop(&mut self.inner(), stream)
    }
}

/// A new time as the system takes it.
fn timespec(time: types::NewTimestamp) -> Result<Timespec, ErrorCode> {
    let special = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    match time {
        types::NewTimestamp::NoChange => Ok(special(UTIME_OMIT)),
        types::NewTimestamp::Now => Ok(special(UTIME_NOW)),
        types::NewTimestamp::Timestamp(time) => {
            let since = Duration::from_secs(time.seconds)
                .checked_add(Duration::from_nanos(time.nanoseconds.into()))
                .ok_or(ErrorCode::Overflow)?;
            Ok(Timespec {
                tv_sec: i64::try_from(since.as_secs()).map_err(|_| ErrorCode::Overflow)?,
                tv_nsec: since.subsec_nanos().into(),
            })
        }
    }
}
