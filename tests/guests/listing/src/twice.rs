//! Lists a name twice.

use contract::{Tool, tool};

pub(crate) fn list() -> Vec<Tool> {
    vec![tool("same"), tool("other"), tool("same")]
}
