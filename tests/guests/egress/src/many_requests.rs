//! Sends one request after the other, without end.

use contract::{Answer, Arguments, text};

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let authority = arguments.text("authority");
    let (mut answered, mut last) = (0, String::new());
    for _ in 0..50 {
        match Ask::get("http", authority, "/").send() {
            Ok(_) => answered += 1,
            Err(error) => last = error,
        }
    }
    text(format!("{answered} answered; {last}"))
}
