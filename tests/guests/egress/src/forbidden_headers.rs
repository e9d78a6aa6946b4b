//! Sets the headers that steer a connection, and opens tunnels.

use contract::{Answer, Arguments, Attempts};
use wasip2::http::types::Method;

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let authority = arguments.text("authority");
    let mut attempts = Attempts::default();
    for (name, value) in [
        ("host", "example.com"),
        ("Host", "example.com"),
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("transfer-encoding", "chunked"),
        ("te", "trailers"),
        ("trailer", "x"),
        ("expect", "100-continue"),
        ("keep-alive", "timeout=1000"),
        ("proxy-authorization", "Basic eA=="),
        ("proxy-connection", "keep-alive"),
        ("http2-settings", "AAMAAABk"),
        ("content-length", "5, 5"),
        ("content-length", "-1"),
    ] {
        attempts.note(name, Ask::get("http", authority, "/").header(name, value).send());
    }
    for method in [Method::Connect, Method::Trace, Method::Other("CONNECT".to_owned())] {
        let what = format!("{method:?}");
        let mut ask = Ask::get("http", authority, "/");
        ask.method = method;
        attempts.note(what, ask.send());
    }
    attempts.answer()
}
