//! Reads a directory whose names are no text, and makes names that no system has.

use contract::{Answer, Arguments, Attempts};

use crate::disk;

pub(crate) fn run(_: &Arguments) -> Answer {
    let dir = disk::root("/work");
    let mut attempts = Attempts::default();
    let long = "n".repeat(300);
    let deep = "d/".repeat(3_000);
    for path in ["", "a\0b", "mine\0", "mine/", "mine/.", long.as_str(), deep.as_str()] {
        let shown: String = path.chars().take(8).collect();
        attempts.note(format!("read {shown:?}"), disk::read(&dir, path));
        attempts.note(format!("write {shown:?}"), disk::write(&dir, path, "broke"));
    }
    let entries = dir.read_directory().expect("it may be read");
    loop {
        match entries.read_directory_entry() {
            Ok(None) => break,
            Ok(Some(entry)) if entry.name == "mine" => attempts.note("seen", Err::<(), _>("mine")),
            Ok(Some(_)) => {}
            Err(error) => attempts.note("an entry", Err::<(), _>(error)),
        }
    }
    attempts.answer()
}
