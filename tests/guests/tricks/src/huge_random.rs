//! Asks the host for more random bytes than any memory holds.

use contract::{Answer, Arguments, text};
use wasip2::random::random;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let bytes = random::get_random_bytes(arguments.number("bytes"));
    text(format!("broke the host's memory: {} bytes", bytes.len()))
}
