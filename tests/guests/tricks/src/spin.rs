//! Computes for ever.

use contract::{Answer, Arguments};

pub(crate) fn run(_: &Arguments) -> Answer {
    loop {
        std::hint::black_box(0);
    }
}
