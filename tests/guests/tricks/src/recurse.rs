//! Calls itself for ever, with nothing in linear memory: what fills up is the engine's own call stack.

use contract::{Answer, Arguments, text};

pub(crate) fn run(_: &Arguments) -> Answer {
    text(down(1).to_string())
}

#[inline(never)]
fn down(depth: u64) -> u64 {
    std::hint::black_box(down as fn(u64) -> u64)(depth + 1) + depth
}
