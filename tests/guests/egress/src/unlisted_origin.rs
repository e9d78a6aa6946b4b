//! Asks origins that nobody granted.

use contract::{Answer, Arguments, Attempts};

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let granted = arguments.text("authority");
    let port = granted.rsplit(':').next().unwrap_or_default();
    let mut attempts = Attempts::default();
    for (scheme, authority) in [
        ("https", granted.to_owned()),
        ("http", "127.0.0.1".to_owned()),
        ("http", "127.0.0.1:1".to_owned()),
        ("http", format!("127.0.0.2:{port}")),
        ("http", format!("example.com:{port}")),
        ("http", format!("127.0.0.1.example.com:{port}")),
        ("http", format!("{granted}.example.com")),
        ("http", format!("example.com#{granted}")),
        ("http", format!("example.com/{granted}")),
        ("ftp", granted.to_owned()),
        ("file", granted.to_owned()),
        ("ws", granted.to_owned()),
        ("http", String::new()),
    ] {
        attempts.note(format!("{scheme}://{authority}"), Ask::get(scheme, &authority, "/").send());
    }
    attempts.answer()
}
