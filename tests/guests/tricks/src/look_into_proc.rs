//! Has the host's own directory under `/proc`, whose links lead everywhere without being links.

use contract::{Answer, Arguments, Attempts};

use crate::disk;

pub(crate) fn run(_: &Arguments) -> Answer {
    let dir = disk::root("/proc");
    let mut attempts = Attempts::default();
    for path in ["root/etc/passwd", "cwd/Cargo.toml", "fd/0", "fd/1", "exe", "task/../root/etc/passwd"] {
        attempts.note(format!("read {path}"), disk::read(&dir, path));
    }
    attempts.answer()
}
