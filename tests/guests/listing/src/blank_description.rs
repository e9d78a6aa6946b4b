//! Says nothing of what it does.

use contract::{Tool, tool};

pub(crate) fn list() -> Vec<Tool> {
    let mut blank = tool("blank");
    blank.description = " \n\t".to_owned();
    vec![blank]
}
