//! Gives a file a second name: in the same directory, in another one with more rights, and outside.

use contract::{Answer, Arguments, Attempts};
use wasip2::filesystem::types::PathFlags;

use crate::disk;

pub(crate) fn run(_: &Arguments) -> Answer {
    let (work, readable) = (disk::root("/work"), disk::root("/readable"));
    let mut attempts = Attempts::default();
    let none = PathFlags::empty();
    attempts.note("a second name", work.link_at(none, "mine", &work, "second"));
    attempts.note("a name with more rights", readable.link_at(none, "data", &work, "data"));
    attempts.note("a name outside", work.link_at(none, "mine", &work, "../outside/second"));
    attempts.note("a file from outside", work.link_at(none, "../outside/secret", &work, "second"));
    attempts.answer()
}
