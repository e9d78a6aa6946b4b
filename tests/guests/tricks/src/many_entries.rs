//! Lists a directory of ten thousand files, twenty times, and holds every listing open.

use contract::{Answer, Arguments, text};

use crate::disk;

pub(crate) fn run(_: &Arguments) -> Answer {
    let dir = disk::root("/work");
    let (mut held, mut count) = (Vec::new(), 0);
    for _ in 0..20 {
        held.push(dir.read_directory().expect("it may be read"));
    }
    while let Ok(Some(_)) = held[0].read_directory_entry() {
        count += 1;
    }
    text(format!("{count} entries"))
}
