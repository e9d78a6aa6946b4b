//! Hides the host behind user information, or an interface in a zone id.

use contract::{Answer, Arguments, Attempts};

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let granted = arguments.text("authority");
    let mut attempts = Attempts::default();
    for authority in [
        format!("user@{granted}"),
        format!("user:word@{granted}"),
        format!("{granted}@example.com"),
        format!("example.com@{granted}"),
        format!("@{granted}"),
        format!("{granted}\\@example.com"),
        "[fe80::1%eth0]".to_owned(),
        "[fe80::1%25eth0]".to_owned(),
        "[::1%lo]:80".to_owned(),
    ] {
        attempts.note(&authority, Ask::get("http", &authority, "/").send());
    }
    attempts.answer()
}
