//! Tells of progress without end, and without a text.

use contract::call::progress;
use contract::{Answer, Arguments, text};

pub(crate) fn run(_: &Arguments) -> Answer {
    for step in 0..50_000 {
        progress(Some(step), Some(1), "");
    }
    text("flooded")
}
