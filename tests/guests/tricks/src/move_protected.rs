//! Moves the directory above what the host obeys, to put another in its place.

use contract::{Answer, Arguments, Attempts};

use crate::disk;

pub(crate) fn run(_: &Arguments) -> Answer {
    let dir = disk::root("/work");
    let mut attempts = Attempts::default();
    disk::write(&dir, "evil/fief.toml", "[policy]").expect("the directory is granted");
    attempts.note("move the directory above", dir.rename_at("config", &dir, "elsewhere"));
    attempts.note("put another in its place", dir.rename_at("evil", &dir, "config"));
    attempts.note("remove the directory above", dir.remove_directory_at("config"));
    attempts.note("write through what was moved", disk::write(&dir, "elsewhere/fief.toml", "broke"));
    attempts.note("write where it was", disk::write(&dir, "config/fief.toml", "broke"));
    // One that does not exist yet.
    attempts.note("make what does not exist yet", disk::write(&dir, "later/fief.toml", "broke"));
    attempts.note("make the way to it", dir.create_directory_at("later"));
    attempts.note("move the way to it there", dir.rename_at("evil", &dir, "later"));
    attempts.answer()
}
