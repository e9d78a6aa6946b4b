//! Uses what it can reach while nobody holds it to a grant.

use contract::{Tool, tool};

pub(crate) fn list() -> Vec<Tool> {
    let found = std::fs::read_to_string("/etc/passwd").is_ok()
        || std::fs::read_dir("/").is_ok()
        || std::fs::write("/tmp/planted", "x").is_ok()
        || std::env::vars_os().next().is_some();
    vec![tool(if found { "broke_out" } else { "found_nothing" })]
}
