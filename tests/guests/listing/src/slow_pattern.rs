//! Describes an argument by a pattern that backtracks.

use contract::{Tool, tool};

pub(crate) fn list() -> Vec<Tool> {
    let mut slow = tool("slow");
    slow.input_schema = r#"{"type":"object","properties":{"a":{"type":"string","pattern":"^(a+)+$"}}}"#.to_owned();
    vec![slow]
}
