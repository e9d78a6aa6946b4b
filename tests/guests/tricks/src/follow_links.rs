//! Follows links that somebody else put into the granted directory and that lead out of it.

use contract::{Answer, Arguments, Attempts};
use wasip2::filesystem::types::{DescriptorFlags, OpenFlags, PathFlags};

use crate::disk;

pub(crate) fn run(_: &Arguments) -> Answer {
    let dir = disk::root("/work");
    let mut attempts = Attempts::default();
    for path in [
        "to-secret",
        "to-outside/secret",
        "to-absolute",
        "to-link",
        "to-proc/self/environ",
        "to-root/etc/passwd",
        "inner/up/up/secret",
        "loop",
        "loop/secret",
        "dangling",
    ] {
        attempts.note(format!("read {path}"), disk::read(&dir, path));
        attempts.note(format!("write {path}"), disk::write(&dir, path, "broke"));
        attempts.note(format!("stat {path}"), dir.stat_at(PathFlags::SYMLINK_FOLLOW, path).map(drop));
        let created = dir.open_at(
            PathFlags::SYMLINK_FOLLOW,
            path,
            OpenFlags::CREATE | OpenFlags::DIRECTORY,
            DescriptorFlags::READ,
        );
        attempts.note(format!("create {path}"), created.map(drop));
    }
    attempts.note("open a link itself", {
        let opened = dir.open_at(
            PathFlags::empty(),
            "to-secret",
            OpenFlags::empty(),
            DescriptorFlags::READ,
        );
        opened.and_then(|file| file.read(100, 0)).map(drop)
    });
    attempts.note("make in a linked directory", dir.create_directory_at("to-outside/new"));
    attempts.note("unlink in a linked directory", dir.unlink_file_at("to-outside/secret"));
    attempts.note("rename out of it", dir.rename_at("to-outside/secret", &dir, "stolen"));
    attempts.answer()
}
