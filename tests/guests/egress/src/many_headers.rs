//! Sends more headers than a server takes, and one that is larger than all.

use contract::{Answer, Arguments, Attempts};

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let authority = arguments.text("authority");
    let mut attempts = Attempts::default();
    let mut many = Ask::get("http", authority, "/");
    for number in 0..500 {
        many = many.header(format!("x-{number}"), "y");
    }
    attempts.note("500 headers", many.send());
    let large = Ask::get("http", authority, "/").header("x-large", "y".repeat(40_000));
    attempts.note("a header of 40,000 bytes", large.send());
    attempts.answer()
}
