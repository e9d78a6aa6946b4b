//! Holds a directory open while it is moved out of the grant, and climbs from there.

use contract::{Answer, Arguments, Attempts};

use crate::disk;

pub(crate) fn run(_: &Arguments) -> Answer {
    let dir = disk::root("/work");
    let held = disk::open(&dir, "inner/deep").expect("it may be opened");
    let mut attempts = Attempts::default();
    // Moved up within the grant, so that one `..` more would lead out if paths were counted.
    dir.rename_at("inner/deep", &dir, "deep").expect("within the grant");
    for path in ["../../outside/secret", "../../../etc/passwd", "../.."] {
        attempts.note(format!("read {path}"), disk::read(&held, path));
        attempts.note(format!("write {path}"), disk::write(&held, path, "broke"));
        attempts.note(format!("link to {path}"), held.symlink_at(path, "planted"));
    }
    attempts.answer()
}
