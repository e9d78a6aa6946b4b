//! Sleeps in the host for a year.

use contract::{Answer, Arguments, text};

pub(crate) fn run(arguments: &Arguments) -> Answer {
    // The neighbours of other tricks sleep too, for a while that is told.
    let time = match arguments.number("ms") {
        0 => std::time::Duration::from_secs(31_536_000),
        ms => std::time::Duration::from_millis(ms),
    };
    std::thread::sleep(time);
    text("slept")
}
