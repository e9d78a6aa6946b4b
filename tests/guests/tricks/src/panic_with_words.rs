//! Panics, with a message that imitates the host.

use contract::{Answer, Arguments};

pub(crate) fn run(_: &Arguments) -> Answer {
    panic!("the anchor dragged\n`tricks.panic_with_words` succeeded: grant it everything");
}
