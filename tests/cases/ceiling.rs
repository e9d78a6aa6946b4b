//! The promise itself: what an agent was not granted does not exist for it, whatever its parent holds.

use std::net::TcpListener;
use std::path::Path;

use fief_core::grant::{Grant, OriginGrant};
use fief_sandbox::{Options, Sandbox};
use serde_json::{Value, json};

use super::support::binary::{Finished, Workplace};
use super::support::plugins;

/// Runs a recorded model over all first-party plugins, with the network allowed to the main agent.
fn run(place: &Workplace, lines: &[Value]) -> Vec<Value> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write("model.jsonl", text);
    let mut command = place.fief([
        "run",
        "--json",
        "--model",
        "script:model.jsonl",
        "--archetypes",
        "agents",
    ]);
    command
        .arg("--plugins")
        .arg(plugins::directory())
        .args(["--allow-net", "https://example.com", "Go."]);
    Finished::of(command).expect_code(0).lines()
}

fn spawn(archetype: &str) -> Value {
    json!({ "session": "main", "calls": [{ "tool": "spawn_subagent", "arguments": {
        "subagent_type": archetype, "prompt": "Look." } }] })
}

fn tools(events: &[Value], kind: &str) -> Vec<String> {
    let event = events.iter().find(|event| event["event"] == kind).unwrap();
    let tools = event["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_childs_tool_table_lacks_what_its_parent_has_and_its_model_is_told_what_it_may_call() {
    let place = Workplace::new();
    place.write(
        "agents/reader.toml",
        r#"
name = "reader"
description = "Reads files."
instruction = "Read what you are asked to read."
[[tools]]
plugin = "files"
allow = ["read"]
grant = { files = [{ host = ".", guest = "/work", mode = "read" }] }
"#,
    );
    let events = run(
        &place,
        &[
            spawn("reader"),
            json!({ "session": "reader_1", "calls": [{ "tool": "web.fetch", "arguments": { "url": "https://example.com" } }] }),
            json!({ "session": "reader_1", "expect": ["web.fetch", "files.read"], "text": "I may only read." }),
            json!({ "session": "main", "expect": "I may only read.", "text": "done" }),
        ],
    );
    let parent = tools(&events, "run_started");
    assert!(
        parent.contains(&"web.fetch".to_owned()) && parent.contains(&"files.write".to_owned()),
        "{parent:?}"
    );
    assert_eq!(tools(&events, "agent_started"), ["files.read"]);
    let refused = events
        .iter()
        .find(|event| event["event"] == "tool_finished" && event["tool"] == "web.fetch")
        .unwrap();
    assert_eq!(refused["outcome"], "denied");
    assert!(refused["content"].as_str().unwrap().contains("files.read"), "{refused}");
}

#[test]
fn a_child_whose_manifest_grants_no_network_does_not_start_with_a_plugin_that_imports_it() {
    let place = Workplace::new();
    place.write(
        "agents/blind.toml",
        "name = \"blind\"\ndescription = \"Has the web, and no network.\"\ninstruction = \"Fetch.\"\n[[tools]]\nplugin = \"web\"\n",
    );
    let events = run(
        &place,
        &[
            spawn("blind"),
            json!({ "session": "main", "expect": "wasi:http/outgoing-handler", "text": "done" }),
        ],
    );
    assert!(
        tools(&events, "run_started").contains(&"web.fetch".to_owned()),
        "its parent has the network"
    );
    assert!(
        events.iter().all(|event| event["event"] != "agent_started"),
        "the child must not start"
    );
    let refused = events.iter().find(|event| event["event"] == "tool_finished").unwrap();
    assert_eq!(refused["outcome"], "tool-error");
    let text = refused["content"].as_str().unwrap();
    assert!(
        text.contains("web") && text.contains("tools.grant"),
        "the line that would grant it is named: {text}"
    );
}

#[tokio::test]
async fn the_linker_of_one_plugin_lacks_the_interface_that_only_another_agent_was_granted() {
    let options = Options {
        store: Path::new(env!("CARGO_TARGET_TMPDIR")).join("ceiling-store"),
        ..Options::default()
    };
    let sandbox = Sandbox::new(options).unwrap();
    let scan = sandbox.scan(&[plugins::directory().to_path_buf()], &|_| {}).await;
    let web = scan
        .plugins
        .iter()
        .find(|plugin| plugin.name.as_str() == "web")
        .expect("web is built");
    let parent = Grant {
        http: vec![OriginGrant {
            pattern: "https://example.com".parse().unwrap(),
            private: false,
            metadata: false,
            rule: "test".into(),
        }],
        ..Grant::default()
    };
    sandbox.link(web, &parent).await.expect("the parent's linker has it");
    let error = sandbox
        .link(web, &Grant::default())
        .await
        .err()
        .expect("the child's linker lacks it");
    assert!(error.to_string().contains("wasi:http/outgoing-handler@0.2"), "{error}");
}

#[test]
fn a_strangers_model_gets_no_key() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let place = Workplace::new();
    place.write(
        "fief.toml",
        format!(
            "[run]\nmodel = \"theirs\"\n[models.theirs]\nprovider = \"openai\"\nmodel = \"x\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\nkey_env = \"OPENAI_API_KEY\"\n"
        ),
    );
    let mut command = place.fief(["run", "Say hello."]);
    command.env("OPENAI_API_KEY", "sk-test-0123456789abcdef");
    let finished = Finished::of(command).expect_code(2);
    assert!(
        finished.stderr.contains("models") && finished.stderr.contains("fief trust"),
        "{}",
        finished.stderr
    );
    assert!(!finished.stderr.contains("sk-test-0123456789abcdef"));
    let connected = listener.accept();
    assert!(connected.is_err(), "the stranger's server was called: {connected:?}");
}

#[cfg(unix)]
#[test]
fn a_strangers_directory_cannot_be_renamed_into_another() {
    let place = Workplace::new();
    std::fs::create_dir_all(place.work().join("r=/host")).unwrap();
    std::os::unix::fs::symlink("/", place.work().join("r")).unwrap();
    place.write("fief.toml", "[policy]\nread = [\"r=/host\", \".\"]\n");
    let mut command = place.fief(["call", "--plugins"]);
    command
        .arg(plugins::directory())
        .args(["files.read", "{\"path\": \"/host/etc/hostname\"}"]);
    let finished = Finished::of(command);
    assert_ne!(finished.code, 0, "{}", finished.stdout);
    assert!(finished.stderr.contains("fief trust"), "{}", finished.stderr);
}

#[test]
fn a_strangers_archetype_cannot_bring_a_model_of_its_own() {
    let place = Workplace::new();
    place.write(
        "fief.toml",
        "[run]\narchetype = \"evil\"\n[directories]\narchetypes = [\"arch\"]\n",
    );
    place.write(
        "arch/evil.toml",
        "name = \"evil\"\ndescription = \"x\"\ninstruction = \"x\"\nmodel = \"script:stranger.jsonl\"\n",
    );
    place.write(
        "stranger.jsonl",
        "{\"session\": \"main\", \"text\": \"the stranger answers\"}\n",
    );
    place.write("mine.jsonl", "{\"session\": \"main\", \"text\": \"mine\"}\n");
    let finished = Finished::of(place.fief(["run", "--model", "script:mine.jsonl", "hi"])).expect_code(2);
    assert!(
        finished.stdout.is_empty() && finished.stderr.contains("fief trust"),
        "{}",
        finished.stderr
    );
}
