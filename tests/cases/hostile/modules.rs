//! Guests that Rust cannot write, as core modules within the shells of component text that the sandbox's own tests use.

use fief_core::grant::Grant;
use fief_core::tool::OutcomeKind::{Limit, Ok};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

use super::stage::{Stage, sandbox, scratch, soak};

/// Imports nothing but types.
const PLAIN: &str = include_str!("../../../host/sandbox/src/testing/plain.wat");
/// Imports one item of a newer WASI.
const RANDOM: &str = include_str!("../../../host/sandbox/src/testing/random.wat");

/// What every one of them needs to be a plugin, around `{trick}`, which defines `$call`.
const FRAME: &str = r#"(core module $main
  {trick}
  (memory (export "memory") 1)
  (table $table 1 funcref)
  (global $next (mut i32) (i32.const 4096))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
    (global.set $next (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (data (i32.const 1024) "run")
  (data (i32.const 1040) "Does something.")
  (data (i32.const 1072) "{\"type\":\"object\"}")
  (func (export "fief:plugin/tools@0.1.0#list-tools") (result i32)
    (i32.store (i32.const 1200) (i32.const 1024)) (i32.store (i32.const 1204) (i32.const 3))
    (i32.store (i32.const 1220) (i32.const 1040)) (i32.store (i32.const 1224) (i32.const 15))
    (i32.store (i32.const 1228) (i32.const 1072)) (i32.store (i32.const 1232) (i32.const 17))
    (i32.store (i32.const 1260) (i32.const 1200)) (i32.store (i32.const 1264) (i32.const 1))
    (i32.const 1260))
  (func $ok (param $at i32) (param $length i32) (result i32)
    (i32.store (i32.const 1304) (i32.const 1340)) (i32.store (i32.const 1308) (i32.const 1))
    (i32.store (i32.const 1344) (local.get $at)) (i32.store (i32.const 1348) (local.get $length))
    (i32.const 1300))
  (export "fief:plugin/tools@0.1.0#call-tool" (func $call)))"#;

fn component(shell: &str, trick: &str) -> PathBuf {
    let path = scratch().join("module.wasm");
    let text = shell.replace("{module}", &FRAME.replace("{trick}", trick));
    std::fs::write(&path, wat::parse_str(text).unwrap()).unwrap();
    path
}

async fn stage(trick: &str) -> Stage {
    let path = component(PLAIN, trick);
    Stage {
        plugin: Arc::new(sandbox().inspect(&path).await.unwrap()),
        grant: Grant::default(),
    }
}

pub async fn grow_table() {
    let stage = stage(include_str!("../../guests/wat/grow_table.wat")).await;
    stage
        .limits(|limits| limits.tables = 5_000)
        .call_beside_another("run", json!({}))
        .await
        .is(
            Limit,
            &["`module.run` grew its tables beyond its limit of 5000 elements"],
        );
}

pub async fn keep_state() {
    let stage = stage(include_str!("../../guests/wat/keep_state.wat")).await;
    for _ in 0..200 * soak() {
        let report = stage.call("run", json!({})).await.is(Ok, &[]);
        assert_eq!(report.outcome.text(), "run");
    }
}

pub async fn newer_wasi() {
    let shell = RANDOM.replace("get-random-u64", "get-true-random-u64");
    let path = component(&shell, include_str!("../../guests/wat/newer_wasi.wat"));
    let error = sandbox().inspect(&path).await.unwrap_err().to_string();
    for says in [
        "`wasi:random/random@0.2.99`",
        "the host has version 0.2.",
        "`get-true-random-u64` is missing",
    ] {
        assert!(error.contains(says), "{error}");
    }
}
