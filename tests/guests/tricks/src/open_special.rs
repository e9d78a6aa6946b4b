//! Opens what is no file: a FIFO that nobody writes to, a socket, a device.

use contract::{Answer, Arguments, Attempts};
use wasip2::filesystem::types::{DescriptorFlags, OpenFlags, PathFlags};

use crate::disk;

pub(crate) fn run(_: &Arguments) -> Answer {
    let mut attempts = Attempts::default();
    for (root, names) in [
        ("/work", &["fifo", "socket"][..]),
        ("/dev", &["null", "zero", "tty", "random"][..]),
    ] {
        let dir = disk::root(root);
        for name in names {
            for flags in [
                DescriptorFlags::READ,
                DescriptorFlags::WRITE,
                DescriptorFlags::READ | DescriptorFlags::WRITE,
            ] {
                let opened = dir.open_at(PathFlags::SYMLINK_FOLLOW, name, OpenFlags::empty(), flags);
                attempts.note(format!("open {root}/{name}"), opened.map(drop));
            }
        }
    }
    attempts.answer()
}
