//! Whole runs, with a model in the process that answers at once: what the loop, its children and its watcher cost.

use std::path::Path;
use std::sync::Arc;

use fief::core::event::Event;
use fief::core::manifest::archetype::{Agents, Archetype, GrantRequest, ToolGrant};
use fief::core::message::{Answer, Arguments, Assistant, Finish, Served, ToolCall, Usage};
use fief::core::port::Model;
use fief::core::report::{Report, Status};
use fief::folders::Folders;
use fief::{Host, HostOptions, NativePlugin, SessionOptions};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::place::{self, Broken, Ended};

pub(crate) mod crowd;
pub(crate) mod flight;
pub(crate) mod stream;
pub(crate) mod turns;

/// Figures, by name.
type Measure = fn() -> Ended<Value>;

/// What a process of its own measures, whose memory no other row has used before: `--alone NAME`.
pub(crate) const ALONE: &[(&str, Measure)] = &[
    (crowd::NAME, crowd::alone),
    (flight::NAME, flight::alone),
    (stream::NAME, stream::alone),
];

/// Measures in a process of its own.
fn apart(name: &str) -> Ended<Value> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.args(["--alone", name]);
    if place::scans() {
        command.arg("--pagemap-scan");
    }
    Ok(serde_json::from_str(&place::finished(&mut command)?)?)
}

fn number(value: &Value, key: &str) -> Ended<f64> {
    value[key]
        .as_f64()
        .ok_or_else(|| format!("no `{key}` in {value}").into())
}

/// The bytes of memory that this process takes.
#[allow(clippy::cast_precision_loss)] // Some hundred million.
fn memory() -> Ended<f64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages = text.split_whitespace().nth(1).ok_or("no memory is told")?;
    Ok(pages.parse::<u64>()? as f64 * 4096.0)
}

/// An answer of a model: words, and calls.
fn answer(text: &str, calls: Vec<ToolCall>) -> Answer {
    Answer {
        finish: if calls.is_empty() {
            Finish::Stop
        } else {
            Finish::ToolCalls
        },
        message: Assistant {
            text: text.into(),
            calls,
            ..Assistant::default()
        },
        usage: Usage {
            input_tokens: 10,
            output_tokens: 1,
            ..Usage::default()
        },
        served: Served::default(),
    }
}

fn call(id: String, name: &str, arguments: &Value) -> ToolCall {
    ToolCall {
        id,
        name: name.into(),
        arguments: Arguments::Object(arguments.as_object().cloned().unwrap_or_default()),
    }
}

/// Calls that start so many children.
fn children(count: usize) -> Vec<ToolCall> {
    let spawn = |number| {
        let arguments = json!({ "subagent_type": "default", "prompt": format!("task {number}") });
        call(format!("child_{number}"), "spawn_subagent", &arguments)
    };
    (0..count).map(spawn).collect()
}

/// A host with a model of its own, a native tool that costs nothing, and an archetype that may use both.
async fn host(work: &Path, model: Arc<dyn Model>) -> Ended<Host> {
    place::put(&work.join("fief.toml"), place::configuration().as_bytes())?;
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    let native = NativePlugin::new("native")?.tool("echo", "Give a text back.", schema, |arguments| async move {
        Ok(arguments["text"].as_str().unwrap_or_default().to_owned())
    })?;
    let mut archetype = Archetype::new("bench".parse()?, "Works.", "Work.");
    archetype.agents = Some(Agents::All);
    archetype.tools = Some(vec![ToolGrant {
        plugin: "native".parse()?,
        digest: None,
        allow: None,
        grant: GrantRequest::Policy,
    }]);
    let mut options = HostOptions::embedded(work.to_owned())
        .native(native)
        .archetype(archetype)
        .plugins_in(place::plugins()?)
        .model_made("bench", model);
    options.configured = true;
    options.config = Some(work.join("fief.toml"));
    options.forward_events = true;
    options.folders = Folders {
        config: work.join("config"),
        data: work.join("data"),
        state: work.join("state"),
        cache: place::kept("cache")?.join("fief"),
    };
    Ok(Host::open(options).await?)
}

/// Runs one task to its end, with `watch` at the events, and no record.
async fn run<W: Send + 'static>(
    host: &Host,
    watch: impl FnOnce(UnboundedReceiver<Event>) -> std::pin::Pin<Box<dyn Future<Output = W> + Send>>,
) -> Ended<(Report, W)> {
    let options = SessionOptions {
        archetype: Some("bench".into()),
        ..SessionOptions::default()
    };
    let mut session = host.session(options).await?;
    let watcher = tokio::spawn(watch(session.events()));
    let report = tokio::spawn(async move { session.task("go").await }).await?;
    if report.status != Status::Done {
        return Err(Broken::from(format!(
            "the run ended as {:?}: {}",
            report.status, report.text
        )));
    }
    Ok((report, watcher.await?))
}

/// Reads all events, and counts them.
fn count(mut events: UnboundedReceiver<Event>) -> std::pin::Pin<Box<dyn Future<Output = usize> + Send>> {
    Box::pin(async move {
        let mut count = 0;
        while events.recv().await.is_some() {
            count += 1;
        }
        count
    })
}
