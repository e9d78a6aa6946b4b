//! Reads what the host is given on its standard input, and waits for it.

use std::io::Read as _;

use contract::{Answer, Arguments, text};

pub(crate) fn run(_: &Arguments) -> Answer {
    let mut input = Vec::new();
    let read = std::io::stdin().read_to_end(&mut input);
    text(format!("{read:?}"))
}
