//! What holds for the repository itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::root;

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Every file that git tracks or would track, relative to the root.
fn files(suffix: &str) -> Vec<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git runs");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter(|path| path.ends_with(suffix) && root().join(path).is_file())
        .map(PathBuf::from)
        .collect()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

#[test]
fn no_source_file_outgrows_its_place() {
    const LONGEST: usize = 600;
    let outgrown: Vec<_> = files(".rs")
        .into_iter()
        .map(|path| (read(&path).lines().count(), path))
        .filter(|(lines, _)| *lines > LONGEST)
        .collect();
    assert!(
        outgrown.is_empty(),
        "split along a seam, they are above {LONGEST} lines: {outgrown:?}"
    );
}

#[test]
fn the_core_depends_on_no_runtime_no_network_and_no_wasm() {
    let output = cargo()
        .args([
            "tree",
            "--package",
            "fief-core",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && tree.contains("fief-core"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for forbidden in [
        "tokio", "wasmtime", "reqwest", "hyper", "http", "cap-std", "rustix", "mio",
    ] {
        let found = tree
            .lines()
            .any(|line| line.split_whitespace().next() == Some(forbidden));
        assert!(!found, "fief-core depends on `{forbidden}`");
    }
}

#[test]
fn only_the_sandbox_uses_wasmtime() {
    for manifest in files("Cargo.toml") {
        let text = read(&manifest);
        let uses = text.lines().any(|line| line.starts_with("wasmtime"));
        let allowed = [
            "Cargo.toml",
            "host/sandbox/Cargo.toml",
            "tests/Cargo.toml",
            "fuzz/Cargo.toml",
        ];
        assert!(
            !uses || allowed.iter().any(|path| Path::new(path) == manifest),
            "{} uses wasmtime",
            manifest.display()
        );
    }
}

/// The plugins are a workspace of their own, which `cargo test` at the root does not enter.
#[test]
fn the_tests_of_the_plugins_pass() {
    let output = cargo()
        .args(["test", "--quiet"])
        .current_dir(root().join("plugins"))
        // Plugins are another workspace: its artefacts stay in its own directory.
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
