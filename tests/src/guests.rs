//! The hostile guests of `tests/guests`, built once.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const TARGET: &str = "wasm32-wasip2";

/// The component `name`: `tricks`, or `examples/sockets`. All are built at the first call.
///
/// # Panics
/// If they do not build.
#[must_use]
pub fn component(name: &str) -> PathBuf {
    directory().join(format!("{name}.wasm"))
}

fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests");
        add_target(&guests);
        let mut cargo = command("CARGO", "cargo", &guests);
        cargo.args([
            "build",
            "--locked",
            "--release",
            "--workspace",
            "--lib",
            "--examples",
            "--target",
            TARGET,
        ]);
        let status = cargo.status().expect("cargo runs");
        assert!(status.success(), "the hostile guests do not build");
        guests.join("target").join(TARGET).join("release")
    })
}

/// Has rustup bring the target's standard library, where it is missing and rustup is there.
fn add_target(guests: &Path) {
    let mut rustc = command("RUSTC", "rustc", guests);
    let found = rustc.args(["--print", "target-libdir", "--target", TARGET]).output();
    let there = found
        .is_ok_and(|found| found.status.success() && Path::new(String::from_utf8_lossy(&found.stdout).trim()).is_dir());
    if there {
        return;
    }
    let added = command("RUSTUP", "rustup", guests)
        .args(["target", "add", TARGET])
        .status();
    assert!(
        added.is_ok_and(|status| status.success()),
        "the target {TARGET} is missing and cannot be added; `rustup target add {TARGET}` brings it"
    );
}

/// A command in the guests' workspace, whose builds go where it says itself and with no flags of the host's.
fn command(variable: &str, name: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::var_os(variable).unwrap_or_else(|| name.into()));
    command.current_dir(directory);
    for variable in [
        "CARGO_TARGET_DIR",
        "CARGO_BUILD_TARGET_DIR",
        "CARGO_BUILD_TARGET",
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
    ] {
        command.env_remove(variable);
    }
    command
}
