//! Opens what the host keeps for it, and closes nothing.

use contract::{Answer, Arguments, text};
use wasip2::clocks::monotonic_clock;

pub(crate) fn run(_: &Arguments) -> Answer {
    let mut held = Vec::new();
    for _ in 0..1_000_000 {
        held.push(monotonic_clock::subscribe_duration(1));
    }
    text(format!("broke the host's table: {} handles", held.len()))
}
