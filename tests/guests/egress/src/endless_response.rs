//! Waits for a server that sends a byte now and then, and never the last one.

use contract::{Answer, Arguments, Attempts};

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let mut attempts = Attempts::default();
    let came_to = Ask::get("http", arguments.text("authority"), "/endless").send();
    attempts.note("an endless response", came_to);
    attempts.answer()
}
