//! Has the host fetch a schema.

use contract::{Tool, tool};

pub(crate) fn list() -> Vec<Tool> {
    let mut remote = tool("remote");
    remote.input_schema = r#"{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1:9/schema"}}}"#.to_owned();
    vec![remote]
}
