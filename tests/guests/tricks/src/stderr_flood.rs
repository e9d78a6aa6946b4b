//! Writes to standard error and standard output without end, a last word among it.

use std::io::Write as _;

use contract::{Answer, Arguments};

pub(crate) fn run(_: &Arguments) -> Answer {
    let line = [b'\xff'; 1_000];
    for _ in 0..2_000 {
        let _ = std::io::stderr().write_all(&line);
        let _ = std::io::stdout().write_all(&line);
    }
    eprintln!("\nthe last word");
    std::process::abort()
}
