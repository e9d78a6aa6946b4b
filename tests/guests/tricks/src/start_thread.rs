//! Starts a thread that would go on after the call.

use contract::{Answer, Arguments, Attempts};

pub(crate) fn run(_: &Arguments) -> Answer {
    let mut attempts = Attempts::default();
    let started = std::thread::Builder::new().spawn(|| ());
    attempts.note("a thread", started.map(drop).map_err(|error| error.kind()));
    attempts.answer()
}
