//! Files without the standard library in between, which tidies paths up before the host sees them.

use wasip2::filesystem::preopens;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, ErrorCode, OpenFlags, PathFlags};

/// A granted directory.
pub(crate) fn root(guest: &str) -> Descriptor {
    let mut directories = preopens::get_directories();
    let at = directories.iter().position(|(_, path)| path == guest);
    directories.swap_remove(at.expect("the directory is granted")).0
}

pub(crate) fn open(dir: &Descriptor, path: &str) -> Result<Descriptor, ErrorCode> {
    dir.open_at(
        PathFlags::SYMLINK_FOLLOW,
        path,
        OpenFlags::empty(),
        DescriptorFlags::READ,
    )
}

/// The beginning of a file.
pub(crate) fn read(dir: &Descriptor, path: &str) -> Result<String, ErrorCode> {
    let (bytes, _) = open(dir, path)?.read(4_096, 0)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A file's new content.
pub(crate) fn write(dir: &Descriptor, path: &str, text: &str) -> Result<(), ErrorCode> {
    let how = OpenFlags::CREATE | OpenFlags::TRUNCATE;
    let file = dir.open_at(PathFlags::SYMLINK_FOLLOW, path, how, DescriptorFlags::WRITE)?;
    file.write(text.as_bytes(), 0).map(drop)
}
