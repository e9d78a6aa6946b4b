//! Writes to the log without end.

use contract::call::{Level, log};
use contract::{Answer, Arguments, text};

pub(crate) fn run(_: &Arguments) -> Answer {
    for line in 0..50_000 {
        log(Level::Error, &format!("line {line} of a flood"));
    }
    log(Level::Error, &"x".repeat(1 << 20));
    text("flooded")
}
