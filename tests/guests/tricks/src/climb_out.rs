//! Climbs out of the granted directory by every spelling of `..`, for reading and for each change.

use contract::{Answer, Arguments, Attempts};
use wasip2::filesystem::types::{NewTimestamp, PathFlags};

use crate::disk;

pub(crate) fn run(_: &Arguments) -> Answer {
    let dir = disk::root("/work");
    let mut attempts = Attempts::default();
    for path in [
        "../outside/secret",
        "inner/../../outside/secret",
        "./../outside/secret",
        "inner/.././../outside/secret",
        "..//outside//secret",
        "nowhere/../../outside/secret",
        "../../../../../../../../etc/passwd",
        "inner/../../outside/../outside/secret",
    ] {
        attempts.note(format!("read {path}"), disk::read(&dir, path));
        attempts.note(format!("write {path}"), disk::write(&dir, path, "broke"));
        attempts.note(format!("stat {path}"), dir.stat_at(PathFlags::SYMLINK_FOLLOW, path).map(drop));
        attempts.note(
            format!("hash {path}"),
            dir.metadata_hash_at(PathFlags::SYMLINK_FOLLOW, path).map(drop),
        );
        attempts.note(
            format!("touch {path}"),
            dir.set_times_at(PathFlags::empty(), path, NewTimestamp::Now, NewTimestamp::Now),
        );
        attempts.note(format!("unlink {path}"), dir.unlink_file_at(path));
    }
    attempts.note("make ../new", dir.create_directory_at("../new"));
    attempts.note("remove ../outside", dir.remove_directory_at("../outside"));
    attempts.note("rename to ..", dir.rename_at("mine", &dir, "../stolen"));
    attempts.note("rename from ..", dir.rename_at("../outside/secret", &dir, "stolen"));
    attempts.note("open ..", disk::open(&dir, "..").map(drop));
    attempts.answer()
}
