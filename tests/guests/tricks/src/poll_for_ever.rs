//! Waits in the host for what never comes, five hundred times at once.

use contract::{Answer, Arguments, text};
use wasip2::clocks::monotonic_clock;
use wasip2::io::poll;

pub(crate) fn run(_: &Arguments) -> Answer {
    let never: Vec<_> = (0..500)
        .map(|_| monotonic_clock::subscribe_instant(u64::MAX))
        .collect();
    let ready = poll::poll(&never.iter().collect::<Vec<_>>());
    text(format!("broke waiting: {ready:?}"))
}
