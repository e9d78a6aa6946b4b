//! Fief as a library: what an embedder writes.

use fief::core::event::{Event, EventKind};
use fief::core::manifest::archetype::Archetype;
use fief::core::report::Status;
use fief::{Host, HostOptions, NativePlugin, SessionOptions};
use serde_json::json;

use super::support::plugins;

const LINES: &str = r#"
{"session": "main", "calls": [{"tool": "spawn_subagent", "arguments": {"subagent_type": "counter", "prompt": "Count: a b c"}}]}
{"session": "counter", "calls": [{"tool": "words.count", "arguments": {"text": "a b c"}}, {"tool": "calculator.evaluate", "arguments": {"expression": "2 + 2"}}]}
{"session": "counter", "expect": ["3", "4"], "text": "three words"}
{"session": "main", "expect": "three words", "text": "3"}
"#;

/// The example of the documentation, run: archetypes, native tools, plugins, events, in under 30 lines.
#[tokio::test]
async fn an_embedder_builds_a_host_runs_an_agent_and_reads_its_events() {
    let work = tempfile::tempdir().unwrap();
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    let words = NativePlugin::new("words")
        .unwrap()
        .tool("count", "Counts words.", schema, |arguments| async move {
            Ok(arguments["text"]
                .as_str()
                .unwrap_or_default()
                .split_whitespace()
                .count()
                .to_string())
        })
        .unwrap();
    let counter = Archetype::new("counter".parse().unwrap(), "Counts things.", "You count.");
    let options = HostOptions::embedded(work.path().to_owned())
        .plugins_in(plugins::directory())
        .native(words)
        .archetype(counter)
        .instruct("counter", |about| async move {
            Ok(format!("You count, in {}.", about.session))
        })
        .model_made("recorded", fief::script("embedding", LINES).unwrap());
    let host = Host::open(options).await.unwrap();
    let mut session = host.session(SessionOptions::default()).await.unwrap();
    let mut events = session.events();
    let report = session.task("How many words?").await;
    assert_eq!((report.status, report.text.as_str()), (Status::Done, "3"));

    drop(session);
    let mut seen: Vec<Event> = Vec::new();
    while let Some(event) = events.recv().await {
        seen.push(event);
    }
    // Children are silent by default in the Rust API, but for their start and end.
    let of_child: Vec<&Event> = seen.iter().filter(|event| event.depth == 1).collect();
    assert_eq!(of_child.len(), 2, "{of_child:?}");
    assert!(matches!(seen.last().unwrap().kind, EventKind::RunFinished { .. }));
}

#[tokio::test]
async fn a_handle_cancels_what_runs_and_the_session_goes_on() {
    let work = tempfile::tempdir().unwrap();
    let lines = "{\"session\": \"main\", \"text\": \"late\", \"delay_ms\": 60000}\n{\"session\": \"main\", \"text\": \"here\"}\n";
    let options = HostOptions::embedded(work.path().to_owned())
        .model_made("recorded", fief::script("cancelling", lines).unwrap());
    let host = Host::open(options).await.unwrap();
    let mut session = host.session(SessionOptions::default()).await.unwrap();
    let handle = session.handle();
    let mut events = session.events();
    tokio::spawn(async move {
        while let Some(event) = events.recv().await {
            if matches!(event.kind, EventKind::TurnStarted { .. }) {
                handle.cancel();
                break;
            }
        }
    });
    assert_eq!(session.task("Wait.").await.status, Status::Cancelled);
    let report = session.task("And now?").await;
    assert_eq!((report.status, report.text.as_str()), (Status::Done, "here"));
}
