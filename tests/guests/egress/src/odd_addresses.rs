//! Writes this machine's address in every way that some program somewhere understands.

use contract::{Answer, Arguments, Attempts};

use crate::web::Ask;

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let port = arguments.number("port");
    let mut attempts = Attempts::default();
    for host in [
        "127.0.0.1",
        "2130706433",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "017700000001",
        "127.1",
        "127.0.1",
        "127.0.0.1.",
        "0",
        "0.0.0.0",
        "１２７.０.０.１",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::80ff:fffe]",
        "[fe80::1]",
        "[fc00::1]",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "169.254.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "localhost",
    ] {
        attempts.note(host, Ask::get("http", &format!("{host}:{port}"), "/").send());
    }
    attempts.answer()
}
