//! Reads a file of a gibibyte at once, and in one piece of any size.

use contract::{Answer, Arguments, text};
use wasip2::filesystem::types::{DescriptorFlags, OpenFlags, PathFlags};

use crate::disk;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let dir = disk::root("/work");
    let file = dir
        .open_at(PathFlags::empty(), "huge", OpenFlags::empty(), DescriptorFlags::READ)
        .expect("it may be read");
    let read = match arguments.text("how") {
        "stream" => {
            let stream = file.read_via_stream(0).expect("it may be read");
            stream.blocking_read(u64::MAX).expect("it may be read").len()
        }
        _ => file.read(u64::MAX, 0).expect("it may be read").0.len(),
    };
    text(format!("read {read} bytes"))
}
