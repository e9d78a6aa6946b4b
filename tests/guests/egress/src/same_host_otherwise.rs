//! Writes the granted host and others in upper case, with a trailing dot, in other alphabets, in escapes: the one must
//! be found the same, the others must stay others.

use contract::{Answer, Arguments, Attempts};

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let port = arguments.number("port");
    let mut attempts = Attempts::default();
    for host in ["LOCALHOST", "localhost.", "LocalHost.", "%6cocalhost", "ⓛocalhost"] {
        // The same origin: what comes back is no break, so that it is told as an error.
        match Ask::get("http", &format!("{host}:{port}"), "/").send() {
            Ok(reply) => attempts.note(host, Err::<(), _>(format!("same {}", reply.status))),
            Err(error) => attempts.note(host, Err::<(), _>(error)),
        }
    }
    for host in ["localhost..", "xlocalhost", "localhost.example", "lоcalhost", "local host", "localhost\u{0}"] {
        attempts.note(host, Ask::get("http", &format!("{host}:{port}"), "/").send());
    }
    attempts.answer()
}
