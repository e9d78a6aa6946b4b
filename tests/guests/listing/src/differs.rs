//! Lists other tools each time.

use contract::{Tool, tool};

pub(crate) fn list() -> Vec<Tool> {
    let number = wasip2::random::random::get_random_u64();
    vec![tool(&format!("tool_{number:x}")), tool("always")]
}
