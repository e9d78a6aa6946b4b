//! Names files by absolute paths, as the standard library and as the raw interface take them.

use contract::{Answer, Arguments, Attempts};

use crate::disk;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let dir = disk::root("/work");
    let secret = arguments.text("secret");
    let mut attempts = Attempts::default();
    for path in ["/etc/passwd", "//etc/passwd", "/proc/self/environ", "/work/mine", "/", secret] {
        attempts.note(format!("read {path}"), disk::read(&dir, path));
        attempts.note(format!("write {path}"), disk::write(&dir, path, "broke"));
    }
    for path in ["/etc/passwd", secret, "/work/../etc/passwd", "/workx/mine", "/WORK/mine"] {
        attempts.note(
            format!("read {path} by std"),
            std::fs::read(path).map_err(|error| error.kind()),
        );
    }
    attempts.answer()
}
