//! Sends a credential of its own where the host puts the secret, and asks for the secret elsewhere.

use contract::{Answer, Arguments, text};

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let (authority, other) = (arguments.text("authority"), arguments.text("other"));
    let ask = Ask::get("http", authority, "/")
        .header("authorization", "Bearer mine")
        .header("AUTHORIZATION", "Bearer mine too");
    let first = ask.send();
    let second = Ask::get("http", other, "/").header("authorization", "Bearer {}").send();
    text(format!("{first:?}\n{second:?}"))
}
