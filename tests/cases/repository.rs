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

/// Every test function of the host and of these cases, by name.
fn tests() -> std::collections::BTreeSet<String> {
    let mut names = std::collections::BTreeSet::new();
    for path in files(".rs") {
        for piece in read(&path).split("fn ").skip(1) {
            let end = piece.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            names.insert(piece[..end.unwrap_or(piece.len())].to_owned());
        }
    }
    names
}

#[test]
fn every_behaviour_has_a_test_named_after_its_number() {
    let (tests, list) = (tests(), read(Path::new("tests/behaviours.md")));
    let numbers: Vec<usize> = list
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok())
        .collect();
    assert!(numbers.len() >= 103, "{}", numbers.len());
    assert_eq!(
        numbers,
        (1..=numbers.len()).collect::<Vec<_>>(),
        "in order, without gaps"
    );
    for number in numbers {
        let own = format!("b{number}_");
        let inside = format!("_b{number}_");
        let has = |name: &&String| name.starts_with(&own) || (name.starts_with('b') && name.contains(&inside));
        assert!(tests.iter().any(|name| has(&name)), "no test holds behaviour {number}");
    }
    let kinds = ["b", "protocol_", "never_", "words_"];
    for word in list.split('`').skip(1).step_by(2) {
        let is_test = word.contains('_')
            && word
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            && kinds.iter().any(|kind| {
                word.strip_prefix(kind)
                    .is_some_and(|rest| *kind != "b" || rest.starts_with(|c: char| c.is_ascii_digit()))
            });
        assert!(
            !is_test || tests.contains(word),
            "`{word}` of tests/behaviours.md is no test"
        );
    }
}

#[test]
fn the_first_party_plugins_are_those_that_hints_name() {
    let mut there: Vec<String> = files("plugin.toml")
        .iter()
        .filter_map(|path| {
            let folder = path.parent()?.strip_prefix("plugins").ok()?;
            Some(folder.to_str()?.to_owned())
        })
        .collect();
    there.sort();
    assert_eq!(there, fief_core::plan::FIRST_PARTY);
}
