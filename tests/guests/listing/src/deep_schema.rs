//! Describes arguments that nest ten thousand deep.

use contract::{Tool, tool};

pub(crate) fn list() -> Vec<Tool> {
    let mut deep = tool("deep");
    let (open, close) = (r#"{"items":"#.repeat(3_000), "}".repeat(3_000));
    deep.input_schema = format!(r#"{{"type":"object","properties":{open}{{}}{close}}}"#);
    vec![deep]
}
