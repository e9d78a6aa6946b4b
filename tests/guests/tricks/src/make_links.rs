//! Makes links that lead out, at once or once they are moved.

use contract::{Answer, Arguments, Attempts};

use crate::disk;

pub(crate) fn run(_: &Arguments) -> Answer {
    let dir = disk::root("/work");
    let mut attempts = Attempts::default();
    for target in [
        "/etc/passwd",
        "/",
        "..",
        "../outside/secret",
        "inner/../../outside",
        "/work/mine",
    ] {
        attempts.note(format!("link to {target}"), dir.symlink_at(target, "planted"));
        attempts.note(format!("read the link to {target}"), disk::read(&dir, "planted"));
    }
    // Harmless where it stands, one level down; it leads out once it is moved up.
    dir.symlink_at("../outside/secret", "inner/moved").expect("stays inside");
    dir.rename_at("inner/moved", &dir, "moved").expect("within the grant");
    attempts.note("read a link that was moved up", disk::read(&dir, "moved"));
    attempts.note("write through it", disk::write(&dir, "moved", "broke"));
    attempts.answer()
}
