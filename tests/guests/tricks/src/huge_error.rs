//! Fails with an endless explanation.

use contract::{Answer, Arguments, ToolError};

pub(crate) fn run(_: &Arguments) -> Answer {
    Err(ToolError::Failed("sorry ".repeat(100_000)))
}
