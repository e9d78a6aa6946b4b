//! Uses the rights of one granted directory on another that is granted within it, for reading only.

use contract::{Answer, Arguments, Attempts};

use crate::disk;

pub(crate) fn run(_: &Arguments) -> Answer {
    let (outer, inner) = (disk::root("/work"), disk::root("/work/inner"));
    let mut attempts = Attempts::default();
    attempts.note("write the inner one", disk::write(&inner, "file", "broke"));
    attempts.note("write it through the outer one", disk::write(&outer, "inner/file", "broke"));
    attempts.note("move it", outer.rename_at("inner", &outer, "other"));
    attempts.note("empty it", outer.unlink_file_at("inner/file"));
    let _ = outer.symlink_at("inner", "way");
    attempts.note("write it through a link", disk::write(&outer, "way/file", "broke"));
    disk::write(&outer, "mine", "fine").expect("the outer one may be written");
    attempts.answer()
}
