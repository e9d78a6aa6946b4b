//! Lists a thousand tools.

use contract::{Tool, tool};

pub(crate) fn list() -> Vec<Tool> {
    (0..1_000).map(|number| tool(&format!("tool_{number}"))).collect()
}
