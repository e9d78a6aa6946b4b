//! Changes a directory that is granted for reading, by every operation that changes something.

use contract::{Answer, Arguments, Attempts};
use wasip2::filesystem::types::{DescriptorFlags, NewTimestamp, OpenFlags, PathFlags};

use crate::disk;

pub(crate) fn run(_: &Arguments) -> Answer {
    let (dir, work) = (disk::root("/readable"), disk::root("/work"));
    let mut attempts = Attempts::default();
    let (none, read, write) = (PathFlags::empty(), DescriptorFlags::READ, DescriptorFlags::WRITE);
    for (what, how, flags) in [
        ("write", OpenFlags::empty(), write),
        ("truncate", OpenFlags::TRUNCATE, read),
        ("create", OpenFlags::CREATE, read),
    ] {
        let opened = dir.open_at(none, if what == "create" { "new" } else { "data" }, how, flags);
        attempts.note(what, opened.map(drop));
    }
    let mutate = dir.open_at(
        none,
        ".",
        OpenFlags::DIRECTORY,
        read | DescriptorFlags::MUTATE_DIRECTORY,
    );
    if let Ok(mutate) = mutate {
        attempts.note("mutate", disk::write(&mutate, "data", "broke"));
    }
    let file = disk::open(&dir, "data").expect("it may be read");
    attempts.note("write to what is open", file.write(b"broke", 0).map(drop));
    attempts.note("stream to what is open", file.write_via_stream(0).map(drop));
    attempts.note("append to what is open", file.append_via_stream().map(drop));
    attempts.note("resize what is open", file.set_size(0));
    attempts.note("date what is open", file.set_times(NewTimestamp::Now, NewTimestamp::Now));
    attempts.note("date", dir.set_times_at(none, "data", NewTimestamp::Now, NewTimestamp::Now));
    attempts.note("unlink", dir.unlink_file_at("data"));
    attempts.note("make a directory", dir.create_directory_at("new"));
    attempts.note("remove a directory", dir.remove_directory_at("empty"));
    attempts.note("link", dir.symlink_at("data", "new"));
    attempts.note("rename within", dir.rename_at("data", &dir, "other"));
    attempts.note("rename out of it", dir.rename_at("data", &work, "stolen"));
    attempts.note("rename into it", work.rename_at("mine", &dir, "planted"));
    attempts.answer()
}
