//! Never answers.

use contract::Tool;

pub(crate) fn list() -> Vec<Tool> {
    loop {
        std::hint::black_box(0);
    }
}
