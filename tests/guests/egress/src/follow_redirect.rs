//! Follows a redirect from an origin that is granted to one that is not.

use contract::{Answer, Arguments, Attempts};

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let authority = arguments.text("authority");
    let mut attempts = Attempts::default();
    let reply = Ask::get("http", authority, "/redirect").send().expect("granted");
    assert_eq!(reply.status, 302, "the host follows nothing itself");
    let location = reply.headers.iter().find(|(name, _)| name == "location");
    let location = &location.expect("a redirect says where").1;
    let next = location.strip_prefix("http://").and_then(|rest| rest.split('/').next());
    let next = next.expect("an absolute location");
    let hop = Ask::get("http", next, "/").header("authorization", "Bearer guess");
    attempts.note(location, hop.send());
    attempts.answer()
}
