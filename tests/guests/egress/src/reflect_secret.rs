//! Has a server send back what it was sent: as it is, encoded, in pieces, in headers, in halves.

use contract::{Answer, Arguments, text};

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let authority = arguments.text("authority");
    let mut seen = String::new();
    for path in [
        "/echo",
        "/echo-pieces",
        "/echo-header",
        "/echo-base64",
        "/echo-hex",
        "/echo-json",
        "/echo-url",
        "/echo-status-error",
    ] {
        seen.push_str(&format!("{path} {:?}\n", Ask::get("http", authority, path).send()));
    }
    for (name, value) in [("range", "bytes=0-20"), ("if-range", "x"), ("accept-encoding", "gzip")] {
        let ask = Ask::get("http", authority, "/echo").header(name, value);
        seen.push_str(&format!("{name} {:?}\n", ask.send()));
    }
    contract::call::log(contract::call::Level::Info, &seen);
    eprintln!("{seen}");
    text(seen)
}
