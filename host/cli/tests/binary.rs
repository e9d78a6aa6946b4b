//! What the binary says of itself. Having a test here, cargo builds the binary with the very features that the tests
//! of the whole workspace are built with; `tests/` runs it.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn fief(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fief"))
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn help_version_completions_and_the_manual_go_to_standard_output() {
    for (arguments, says) in [
        (&["--help"][..], "Usage: fief"),
        (&["--version"][..], env!("CARGO_PKG_VERSION")),
        (&["run", "--help"][..], "--allow-write"),
        (&["completions", "bash"][..], "fief"),
        (&["man"][..], ".TH"),
    ] {
        let output = fief(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(says), "{arguments:?}");
    }
}

#[test]
fn an_unknown_flag_or_command_is_exit_2_with_the_nearest() {
    for (arguments, says) in [(&["run", "--modle", "x", "y"][..], "--model"), (&["rum"][..], "run")] {
        let output = fief(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(says), "{arguments:?}");
    }
}
