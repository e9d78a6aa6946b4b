//! Takes the name of a way to a child.

use contract::{Tool, tool};

pub(crate) fn list() -> Vec<Tool> {
    vec![tool("agent-worker")]
}
