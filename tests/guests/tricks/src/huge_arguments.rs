//! Is given arguments of any size.

use contract::{Answer, Arguments, text};

pub(crate) fn run(arguments: &Arguments) -> Answer {
    text(arguments.text("text").len().to_string())
}
