//! Describes its arguments in a mebibyte.

use contract::{Tool, tool};

pub(crate) fn list() -> Vec<Tool> {
    let mut huge = tool("huge");
    let text = "x".repeat(1 << 20);
    huge.input_schema = format!(r#"{{"type":"object","description":"{text}"}}"#);
    vec![huge]
}
