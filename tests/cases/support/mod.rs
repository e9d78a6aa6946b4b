//! What the cases share: the binary, the first-party plugins, a home of one's own, servers.

pub mod binary;
pub mod collector;
pub mod llmock;
pub mod plugins;
pub mod server;
#[cfg(unix)]
pub mod terminal;

pub use fief_tests::guests;

use std::path::PathBuf;

/// The checkout's root.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_path_buf()
}

/// Whether a missing tool chain is a failure: it is in CI, and a skipped test on a user's machine.
pub fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// Says plainly that a test did not run and why, or fails where it must run.
pub fn skip(what: &str, why: &str) {
    assert!(!is_ci(), "{what} needs what is missing here: {why}");
    eprintln!("skipped: {what}: {why}");
}
