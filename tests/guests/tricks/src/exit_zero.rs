//! Leaves in the middle of a call, as if all were well.

use contract::{Answer, Arguments};

pub(crate) fn run(_: &Arguments) -> Answer {
    std::process::exit(0)
}
