//! Leaves in the middle of a call, with a failure.

use contract::{Answer, Arguments};

pub(crate) fn run(_: &Arguments) -> Answer {
    std::process::exit(1)
}
