//! Describes arguments by themselves, and so without end.

use contract::{Tool, tool};

pub(crate) fn list() -> Vec<Tool> {
    let mut recursive = tool("recursive");
    let schema = r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a"}]}}}"##;
    recursive.input_schema = schema.to_owned();
    vec![recursive]
}
