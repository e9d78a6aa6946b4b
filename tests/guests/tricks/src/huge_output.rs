//! Returns as much as it is told to.

use contract::{Answer, Arguments, text};

pub(crate) fn run(arguments: &Arguments) -> Answer {
    text("x".repeat(usize::try_from(arguments.number("bytes")).unwrap_or(usize::MAX)))
}
