//! Leaves.

use contract::Tool;

pub(crate) fn list() -> Vec<Tool> {
    std::process::exit(0)
}
