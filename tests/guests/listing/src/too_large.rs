//! Lists more than the host takes from a guest at once.

use contract::{Tool, tool};

pub(crate) fn list() -> Vec<Tool> {
    let mut large = tool("large");
    large.description = "x".repeat(32 << 20);
    vec![large]
}
