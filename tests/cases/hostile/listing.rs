//! Lists of tools that are none: refused with their reason when the plugin is looked at, before anybody is shown them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fief_core::grant::{Grant, Holding};
use fief_core::port::Tools as _;
use fief_core::tool::arguments::Validator;
use fief_core::tool::{OutcomeKind, PluginInfo};
use serde_json::json;

use super::stage::{Notes, Stage, context, sandbox, scratch};
use crate::support::guests;

/// The component, with the name of the trick written into it.
fn component(trick: &str) -> PathBuf {
    const MARK: &[u8] = b"<trick:";
    const ROOM: usize = 40;
    let mut bytes = std::fs::read(guests::component("listing")).unwrap();
    let at = bytes.windows(MARK.len()).position(|window| window == MARK).unwrap() + MARK.len();
    bytes[at..at + ROOM].copy_from_slice(format!("{trick:<ROOM$}").as_bytes());
    let path = scratch().join("listing.wasm");
    std::fs::write(&path, bytes).unwrap();
    path
}

async fn found(trick: &str) -> PluginInfo {
    sandbox().inspect(&component(trick)).await.unwrap()
}

fn names(plugin: &PluginInfo) -> Vec<&str> {
    plugin.tools.iter().map(|tool| tool.name.as_str()).collect()
}

async fn is_refused(trick: &str, says: &[&str]) {
    let path = component(trick);
    let error = sandbox().inspect(&path).await.unwrap_err().to_string();
    assert!(
        error.contains(&path.display().to_string()),
        "the file is named: {error}"
    );
    for says in says {
        assert!(error.contains(says), "{error}");
    }
    assert!(error.len() < 2_000, "{} bytes: {error:.500}", error.len());
}

pub async fn traps() {
    is_refused(
        "traps",
        &["could not list its tools", "crashed", "ask me something else"],
    )
    .await;
}

pub async fn spins() {
    is_refused(
        "spins",
        &["could not list its tools", "computed for longer than its limit of 5 s"],
    )
    .await;
}

pub async fn exits() {
    is_refused("exits", &["could not list its tools", "exited with status 0"]).await;
}

pub async fn reads_files() {
    assert_eq!(names(&found("reads_files").await), ["found_nothing"]);
}

pub async fn differs() {
    let plugin = found("differs").await;
    let frozen: Vec<String> = names(&plugin).iter().map(ToString::to_string).collect();
    assert_eq!(frozen.len(), 2);
    // What it lists another time changes nothing of what an agent holds, and none of it can be called.
    let holding = Holding {
        digest: plugin.digest,
        tools: plugin
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect::<BTreeSet<_>>(),
        grant: Grant::default(),
    };
    let stage = Stage {
        plugin: Arc::new(plugin),
        grant: Grant::default(),
    };
    let name = stage.plugin.name.clone();
    let plugins = BTreeMap::from([(name.clone(), Arc::clone(&stage.plugin))]);
    let tools = sandbox().tools(plugins, &BTreeMap::from([(name, holding)]));
    let notes = Arc::<Notes>::default();
    let call = |tool: &str| tools.call(stage.invocation(tool, json!({})), context(&notes));
    assert_eq!(call(&frozen[0]).await.text(), format!("{} was called", frozen[0]));
    let denied = call("tool_0").await;
    assert_eq!(denied.kind, OutcomeKind::Denied);
    assert!(
        denied.text().contains("it is not granted to this agent"),
        "{}",
        denied.text()
    );
}

pub async fn too_many() {
    is_refused("too_many", &["it lists 1000 tools; a plugin has at most 128"]).await;
}

pub async fn too_large() {
    is_refused(
        "too_large",
        &["could not list its tools", "passed more to the host than its limit"],
    )
    .await;
}

pub async fn twice() {
    is_refused("twice", &["it lists the tool `same` twice"]).await;
}

pub async fn control_names() {
    is_refused("control_names", &["is not a tool name"]).await;
}

pub async fn reserved_name() {
    is_refused("reserved_name", &["`agent-worker` is not a tool name", "reserved"]).await;
}

pub async fn blank_description() {
    is_refused("blank_description", &["tool `blank` has no description"]).await;
}

pub async fn huge_schema() {
    is_refused("huge_schema", &["the input schema of tool `huge` has", "at most 65536"]).await;
}

pub async fn deep_schema() {
    is_refused("deep_schema", &["the input schema of tool `deep`", "recursion limit"]).await;
}

pub async fn recursive_schema() {
    is_refused(
        "recursive_schema",
        &["the input schema of tool `recursive` refers to itself"],
    )
    .await;
}

pub async fn remote_schema() {
    is_refused(
        "remote_schema",
        &[
            "refers to `http://127.0.0.1:9/schema`",
            "only references within the schema",
        ],
    )
    .await;
}

pub async fn slow_pattern() {
    // Such a pattern is fine, since nothing here backtracks.
    let plugin = found("slow_pattern").await;
    let validator = Validator::new(&plugin.tools[0].input_schema).unwrap();
    let start = Instant::now();
    let text = "a".repeat(50_000) + "!";
    assert!(validator.check(&json!({ "a": text })).is_err());
    assert!(validator.check(&json!({ "a": "aaaa" })).is_ok());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}
