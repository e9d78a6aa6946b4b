//! Opens a file again and again while somebody exchanges its directory for a link that leads out.

use contract::{Answer, Arguments, text};

use crate::disk;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let dir = disk::root("/work");
    let (mut inside, mut failed) = (0, 0);
    for _ in 0..arguments.number("tries") {
        match disk::read(&dir, "door/file") {
            Ok(content) if content == "inside" => inside += 1,
            Ok(content) => return text(format!("broke out: {content}")),
            Err(_) => failed += 1,
        }
        if disk::write(&dir, "door/mine", "x").is_err() {
            failed += 1;
        }
    }
    text(format!("read {inside} times, failed {failed} times"))
}
