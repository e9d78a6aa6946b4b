//! Sends a body that is larger than a request may be, announced and unannounced.

use contract::{Answer, Arguments, Attempts};
use wasip2::http::types::Method;

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let authority = arguments.text("authority");
    let mut attempts = Attempts::default();
    for announced in [true, false] {
        let mut ask = Ask::get("http", authority, "/length");
        ask.method = Method::Post;
        ask.body = 200_000;
        if announced {
            ask = ask.header("content-length", "200000");
        }
        attempts.note(format!("announced: {announced}"), ask.send());
    }
    let path = format!("/{}", "p".repeat(20_000));
    attempts.note("a path", Ask::get("http", authority, &path).send());
    attempts.answer()
}
