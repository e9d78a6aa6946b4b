//! Asks a granted name that leads to this machine.

use contract::{Answer, Arguments, Attempts};

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let authority = arguments.text("authority");
    let mut attempts = Attempts::default();
    attempts.note(authority, Ask::get("http", authority, "/").send());
    attempts.answer()
}
