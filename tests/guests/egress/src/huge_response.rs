//! Reads a response that is larger than one may be, announced and unannounced, and one with a huge head.

use contract::{Answer, Arguments, Attempts};

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let authority = arguments.text("authority");
    let mut attempts = Attempts::default();
    for path in ["/huge", "/huge-chunked", "/huge-head", "/many-headers"] {
        let came_to = Ask::get("http", authority, path).send();
        attempts.note(path, came_to.map(|reply| reply.body.len()));
    }
    attempts.answer()
}
