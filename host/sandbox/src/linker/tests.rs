#![allow(clippy::unwrap_used)]

use fief_core::grant::Grant;

use super::*;
use crate::testing::{GRANTED, NEVER, RANDOM, Wat, sandbox};

fn guest<'a>(shell: &'a str, imports: &'a str) -> Wat<'a> {
    Wat {
        shell,
        imports,
        ..Wat::default()
    }
}

const PERSON: &str = r#"(import "fief:plugin/person@0.1.0" "confirm" (func (param i32 i32) (result i32)))"#;
const TOOLBOX: &str = r#"(import "fief:plugin/toolbox@0.1.0" "list-tools" (func (param i32)))"#;

async fn refused(guest: Wat<'_>, grant: &Grant) -> Vec<Missing> {
    let plugin = guest.plugin().await;
    match sandbox().link(&plugin, grant).await.map(drop) {
        Err(LinkError::Missing { missing, .. }) => missing,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_granted_is_not_linked_and_all_of_it_is_named() {
    let imports = format!("{PERSON}{TOOLBOX}");
    let both = guest(GRANTED, &imports);
    let missing = refused(both, &Grant::default()).await;
    let why: Vec<_> = missing.iter().map(|missing| (&*missing.import, &missing.why)).collect();
    assert!(
        why.contains(&("fief:plugin/person@0.1.0", &Why::NotGranted(Capability::Person))),
        "{why:?}"
    );
    assert!(
        why.contains(&("fief:plugin/toolbox@0.1.0", &Why::NotGranted(Capability::Toolbox))),
        "{why:?}"
    );

    let person = Grant {
        person: true,
        ..Grant::default()
    };
    let missing = refused(both, &person).await;
    assert_eq!(missing.len(), 1, "{missing:?}");
    let toolbox = Grant {
        toolbox: true,
        ..person
    };
    let (outcome, _) = both.call(&toolbox).await;
    assert_eq!(outcome.text(), "run");
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_and_unknown_interfaces_are_never_linked() {
    let imports = r#"(import "wasi:sockets/tcp@0.2.4" "open" (func)) (import "wasi:nn/graph@0.2.0" "load" (func))"#;
    let component = guest(NEVER, imports).component();
    // Not even for listing: no grant would ever link it.
    let path = crate::testing::write("guest.wasm", &component);
    let error = sandbox().inspect(&path).await.unwrap_err().to_string();
    for says in ["`wasi:sockets/tcp@0.2.4`: no grant", "`wasi:nn/graph@0.2.0`: no grant"] {
        assert!(error.contains(says), "{error}");
    }
}

/// A guest that imports one item of `wasi:random/random` in some version.
fn random(version: &str, item: &str) -> (String, String) {
    let edit = |text: &str| text.replace("@0.2.99", version).replace("get-random-u64", item);
    let import = r#"(import "wasi:random/random@0.2.99" "get-random-u64" (func (result i64)))"#;
    (edit(RANDOM), edit(import))
}

#[tokio::test(flavor = "multi_thread")]
async fn any_wasi_of_the_track_links_if_every_item_that_it_imports_exists() {
    for version in ["@0.2.99", "@0.2.0"] {
        let (shell, imports) = random(version, "get-random-u64");
        let (outcome, _) = guest(&shell, &imports).call(&Grant::default()).await;
        assert_eq!(outcome.text(), "run", "{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn version_skew_names_the_interface_both_versions_and_the_item() {
    for (version, item, says) in [
        ("@0.2.99", "new-thing", "where `new-thing` is missing"),
        ("@0.3.0", "get-random-u64", "which does not fit"),
    ] {
        let (shell, imports) = random(version, item);
        let path = crate::testing::write("guest.wasm", &guest(&shell, &imports).component());
        let error = sandbox().inspect(&path).await.unwrap_err().to_string();
        let says = format!("`wasi:random/random{version}`: the host has version {WASI}, {says}");
        assert!(error.contains(&says), "{error}");
    }
}

#[test]
fn versions_are_compatible_within_their_track() {
    for (one, other, compatible) in [
        ("0.2.0", "0.2.12", true),
        ("0.2.99", "0.2.12", true),
        ("0.3.0", "0.2.12", false),
        ("1.0.0", "1.9.3", true),
        ("2.0.0", "1.9.3", false),
        ("0.2.0-rc-2023-11-10", "0.2.0", false),
        ("", "0.2.0", false),
    ] {
        assert_eq!(track(one) == track(other), compatible, "{one} {other}");
    }
}
