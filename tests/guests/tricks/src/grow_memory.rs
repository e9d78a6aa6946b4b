//! Takes memory until there is none.

use contract::{Answer, Arguments};

pub(crate) fn run(_: &Arguments) -> Answer {
    let mut held = Vec::new();
    loop {
        held.push(std::hint::black_box(vec![1_u8; 1 << 20]));
    }
}
