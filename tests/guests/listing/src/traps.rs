//! Crashes when it is asked.

use contract::Tool;

pub(crate) fn list() -> Vec<Tool> {
    panic!("ask me something else")
}
