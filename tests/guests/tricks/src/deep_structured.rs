//! Returns a structured result that nests so deep that whoever reads it recursively runs out of stack.

use contract::{Answer, Arguments, Output};

pub(crate) fn run(_: &Arguments) -> Answer {
    Ok(Output {
        content: Vec::new(),
        structured: Some("[".repeat(100_000) + &"]".repeat(100_000)),
    })
}
