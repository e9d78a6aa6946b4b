//! Small guests for tests, written as core modules and made into components on the spot.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use fief_core::event::CallNote;
use fief_core::grant::Grant;
use fief_core::id::ToolRef;
use fief_core::port::{CallContext, CallSink};
use fief_core::tool::{Invocation, Outcome, PluginInfo};
use serde_json::json;

use crate::{LinkError, Options, Sandbox};

/// One for all tests: each reserves address space for thousands of calls.
pub(crate) fn sandbox() -> &'static Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| {
        let options = Options {
            store: tempfile::tempdir().unwrap().keep(),
            ..Options::default()
        };
        Sandbox::new(options).unwrap()
    })
}

/// A component around a core module that stands where `{module}` does. Made once by `wit-component` from the contract in
/// `wit/`, and kept as text: that crate in the workspace would have wasmtime compiled with other features for tests alone.
const PLAIN: &str = include_str!("testing/plain.wat");
/// Imports `fief:plugin/call`.
pub(crate) const LOG: &str = include_str!("testing/log.wat");
/// Imports `fief:plugin/person` and `fief:plugin/toolbox`.
pub(crate) const GRANTED: &str = include_str!("testing/granted.wat");
/// Imports `wasi:sockets/tcp` and `wasi:nn/graph`.
pub(crate) const NEVER: &str = include_str!("testing/never.wat");
/// Imports `get-random-u64` of `wasi:random/random@0.2.99`.
pub(crate) const RANDOM: &str = include_str!("testing/random.wat");

/// A guest: what it imports, and what `call-tool` does.
#[derive(Clone, Copy)]
pub(crate) struct Wat<'a> {
    /// The component around it.
    pub(crate) shell: &'a str,
    /// Imports of the core module.
    pub(crate) imports: &'a str,
    /// The body of `call-tool`; locals `$name $name_len $args $args_len`, result a pointer; `$ok(ptr, len)` makes one.
    pub(crate) body: &'a str,
}

impl Default for Wat<'_> {
    fn default() -> Self {
        Self {
            shell: PLAIN,
            imports: "",
            body: "(call $ok (i32.const 1024) (i32.const 3))",
        }
    }
}

impl Wat<'_> {
    pub(crate) fn component(self) -> Vec<u8> {
        let Self { shell, imports, body } = self;
        let module = format!(
            r#"(core module $main
              {imports}
              (memory (export "memory") 1)
              (table 1 funcref)
              (global $next (mut i32) (i32.const 4096))
              (func $grow (param i32) (result i32) (memory.grow (local.get 0)))
              (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
                (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
                (global.set $next (i32.add (local.get $at) (local.get 3)))
                (block $fits (loop $more
                  (br_if $fits (i32.le_u (global.get $next) (i32.mul (memory.size) (i32.const 65536))))
                  (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable))
                  (br $more)))
                (local.get $at))
              (data (i32.const 1024) "run")
              (data (i32.const 1040) "Does something.")
              (data (i32.const 1072) "{{\"type\":\"object\"}}")
              (data (i32.const 1100) "application/evil\n")
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
              (func $structured (param $at i32) (param $length i32) (result i32)
                (i32.store8 (i32.const 1312) (i32.const 1))
                (i32.store (i32.const 1316) (local.get $at)) (i32.store (i32.const 1320) (local.get $length))
                (i32.const 1300))
              (func $failed (param $kind i32) (param $at i32) (param $length i32) (result i32)
                (i32.store8 (i32.const 1300) (i32.const 1)) (i32.store8 (i32.const 1304) (local.get $kind))
                (i32.store (i32.const 1308) (local.get $at)) (i32.store (i32.const 1312) (local.get $length))
                (i32.const 1300))
              (func $deep (param i32) (result i32) (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
              (func $call (export "fief:plugin/tools@0.1.0#call-tool")
                (param $name i32) (param $name_len i32) (param $args i32) (param $args_len i32) (result i32)
                {body}))"#
        );
        wat::parse_str(shell.replace("{module}", &module)).unwrap()
    }

    /// The guest as a file of its own directory, inspected.
    pub(crate) async fn plugin(self) -> Arc<PluginInfo> {
        let path = write("guest.wasm", &self.component());
        Arc::new(sandbox().inspect(&path).await.unwrap())
    }

    /// One call under a grant.
    pub(crate) async fn call(self, grant: &Grant) -> (Outcome, Vec<CallNote>) {
        self.call_with(grant, "{}").await.unwrap()
    }

    pub(crate) async fn call_with(self, grant: &Grant, argument: &str) -> Result<(Outcome, Vec<CallNote>), LinkError> {
        let plugin = self.plugin().await;
        let linked = sandbox().link(&plugin, grant).await?;
        let notes = Arc::new(Notes::default());
        let outcome = linked.call(invocation(argument), context(&notes)).await;
        Ok((outcome, notes.take()))
    }
}

pub(crate) fn invocation(argument: &str) -> Invocation {
    Invocation {
        call: "call_1".into(),
        tool: ToolRef {
            plugin: "guest".parse().unwrap(),
            tool: "run".parse().unwrap(),
        },
        arguments: Arc::new(json!({ "argument": argument })),
    }
}

pub(crate) fn write(name: &str, bytes: &[u8]) -> PathBuf {
    let path = tempfile::tempdir().unwrap().keep().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Keeps the notes of a call.
#[derive(Default)]
pub(crate) struct Notes(Mutex<Vec<CallNote>>);

impl Notes {
    pub(crate) fn take(&self) -> Vec<CallNote> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl CallSink for Notes {
    fn note(&self, note: CallNote) {
        self.0.lock().unwrap().push(note);
    }
}

pub(crate) fn context(notes: &Arc<Notes>) -> CallContext {
    CallContext {
        sink: Arc::clone(notes) as Arc<dyn CallSink>,
        toolbox: None,
        person: None,
    }
}
