//! Calls itself with large locals: what fills up is the stack that Rust keeps in linear memory.

use contract::{Answer, Arguments, text};

pub(crate) fn run(_: &Arguments) -> Answer {
    text(down(1).to_string())
}

#[inline(never)]
fn down(depth: u64) -> u64 {
    let large = std::hint::black_box([depth; 8_192]);
    if large[0] == u64::MAX { 0 } else { down(depth + 1) + large[8_191] }
}
