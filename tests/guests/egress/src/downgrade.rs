//! Asks over plain HTTP what is granted over TLS alone.

use contract::{Answer, Arguments, Attempts};

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let authority = arguments.text("authority");
    let mut attempts = Attempts::default();
    for scheme in ["http", "HTTP", "https:http"] {
        attempts.note(scheme, Ask::get(scheme, authority, "/").send());
    }
    attempts.answer()
}
