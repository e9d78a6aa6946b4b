//! Writes a second request into a header, a path, a method, a body that is longer than announced.

use contract::{Answer, Arguments, Attempts};
use wasip2::http::types::Method;

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let authority = arguments.text("authority");
    let mut attempts = Attempts::default();
    let second = "x\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: example.com\r\n\r\n";
    attempts.note("a value", Ask::get("http", authority, "/").header("x-a", second).send());
    attempts.note("a name", Ask::get("http", authority, "/").header(second, "x").send());
    attempts.note("a lone line feed", Ask::get("http", authority, "/").header("x-a", "x\ny: z").send());
    attempts.note("a zero", Ask::get("http", authority, "/").header("x-a", "x\0y").send());
    let path = format!("/{second}");
    attempts.note("a path", Ask::get("http", authority, &path).send());
    attempts.note("a blank in a path", Ask::get("http", authority, "/ HTTP/1.1").send());
    let mut ask = Ask::get("http", authority, "/");
    ask.method = Method::Other(format!("GET /smuggled HTTP/1.1\r\n{second}"));
    attempts.note("a method", ask.send());
    for length in ["3", "3000"] {
        let mut ask = Ask::get("http", authority, "/length").header("content-length", length);
        ask.method = Method::Post;
        ask.body = 300;
        attempts.note(format!("a body of 300 announced as {length}"), ask.send());
    }
    attempts.answer()
}
