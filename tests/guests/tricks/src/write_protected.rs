//! Changes the configuration that the host obeys, which lies in a directory that it may write to: by name, by case,
//! by links, by a second name, by taking it away and making it anew.

use contract::{Answer, Arguments, Attempts};
use wasip2::filesystem::types::{NewTimestamp, PathFlags};

use crate::disk;

pub(crate) fn run(_: &Arguments) -> Answer {
    let dir = disk::root("/work");
    let mut attempts = Attempts::default();
    let _ = dir.symlink_at("fief.toml", "innocent");
    let _ = dir.symlink_at(".", "here");
    let _ = dir.symlink_at("plugins", "mine-too");
    for path in [
        "fief.toml",
        "./fief.toml",
        "inner/../fief.toml",
        "FIEF.toml",
        "innocent",
        "here/fief.toml",
        "here/here/innocent",
        "second",
        "plugins/planted.wasm",
        "mine-too/planted.wasm",
        "plugins/files/files.wasm",
    ] {
        attempts.note(format!("write {path}"), disk::write(&dir, path, "broke"));
    }
    disk::write(&dir, "allowed", "[policy]").expect("the directory is granted");
    attempts.note("replace it", dir.rename_at("allowed", &dir, "fief.toml"));
    attempts.note("take it away", dir.rename_at("fief.toml", &dir, "old"));
    attempts.note("remove it", dir.unlink_file_at("fief.toml"));
    attempts.note("link in its place", dir.symlink_at("allowed", "fief.toml"));
    attempts.note(
        "date it",
        dir.set_times_at(PathFlags::empty(), "fief.toml", NewTimestamp::Now, NewTimestamp::Now),
    );
    attempts.note("make a plugin", dir.create_directory_at("plugins/evil"));
    // What is there may be read: it tells no secret.
    disk::read(&dir, "fief.toml").expect("it may be read");
    attempts.answer()
}
