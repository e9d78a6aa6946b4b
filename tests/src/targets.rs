//! What is fuzzed: each target takes any bytes and panics where a promise is broken. `fuzz/` gives them to libFuzzer, and
//! the tests replay its corpora through the same functions.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, OnceLock};

use fief_core::event::CallNote;
use fief_core::grant::{Grant, Limits};
use fief_core::port::{CallContext, CallSink};
use fief_core::tool::arguments::Validator;
use fief_core::tool::{Invocation, OutcomeKind, PluginInfo};
use fief_sandbox::{LoadError, Options, Sandbox};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

mod grants;
mod texts;

pub use grants::{patterns, resolution};
pub use texts::{front_matter, manifests, sse};

/// Takes any bytes, and panics where a promise is broken.
pub type Target = fn(&[u8]);

/// Every target by the name of its corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("manifests", manifests),
    ("front_matter", front_matter),
    ("patterns", patterns),
    ("resolution", resolution),
    ("sse", sse),
    ("component", component),
    ("arguments", arguments),
    ("answers", answers),
];

/// What is read as text is text, with whatever is none replaced.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The first line is a schema, the rest are arguments.
///
/// # Panics
/// If what a schema takes is not what it takes a second time, or if a refusal does not say why.
pub fn arguments(bytes: &[u8]) {
    let text = text(bytes);
    let (schema, arguments) = text.split_once('\n').unwrap_or((&text, "{}"));
    let Ok(schema) = serde_json::from_str::<Value>(schema) else {
        return;
    };
    let arguments = serde_json::from_str::<Value>(arguments).unwrap_or_else(|_| json!({}));
    match Validator::new(&Arc::new(schema)) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(validator) => {
            let checked = validator.check(&arguments);
            assert_eq!(checked, validator.check(&arguments));
            if let Err(error) = checked {
                assert!(!error.0.trim().is_empty() && error.0.len() < 64 << 10, "{}", error.0);
            }
        }
    }
}

struct Stage {
    runtime: Runtime,
    sandbox: Sandbox,
    directory: TempDir,
}

fn stage() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        let options = Options {
            store: directory.path().join("store"),
            ..Options::default()
        };
        Stage {
            runtime: Runtime::new().unwrap(),
            sandbox: Sandbox::new(options).unwrap(),
            directory,
        }
    })
}

/// Any bytes as a component: loaded, listed, or refused with a reason.
///
/// # Panics
/// If the host itself fails at it.
pub fn component(bytes: &[u8]) {
    let stage = stage();
    let path = stage.directory.path().join("component.wasm");
    std::fs::write(&path, bytes).unwrap();
    match stage.runtime.block_on(stage.sandbox.inspect(&path)) {
        Err(LoadError::Host { why, .. }) => panic!("{why}"),
        Err(error) => assert!(error.to_string().contains("component.wasm"), "{error}"),
        Ok(plugin) => assert!(plugin.filter || !plugin.tools.is_empty()),
    }
}

struct Nobody;

impl CallSink for Nobody {
    fn note(&self, _: CallNote) {}
}

fn speaker() -> &'static Arc<PluginInfo> {
    static SPEAKER: OnceLock<Arc<PluginInfo>> = OnceLock::new();
    SPEAKER.get_or_init(|| {
        let stage = stage();
        let path = crate::guests::component("tricks");
        Arc::new(stage.runtime.block_on(stage.sandbox.inspect(&path)).unwrap())
    })
}

/// A guest answers with these: a byte for the kind, then media type, structured result and text, each ended by a zero.
///
/// # Panics
/// If what an agent would be given is not what the contract promises.
pub fn answers(bytes: &[u8]) {
    const KINDS: [&str; 8] = [
        "text",
        "image",
        "audio",
        "file",
        "unknown-tool",
        "invalid-arguments",
        "denied",
        "failed",
    ];
    let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let mut parts = rest.splitn(3, |byte| *byte == 0).map(text);
    let mut next = || parts.next().unwrap_or_default();
    let arguments = json!({
        "kind": KINDS[usize::from(*first) % KINDS.len()],
        "media_type": next(),
        "structured": next(),
        "text": next(),
    });
    let stage = stage();
    let grant = Grant {
        limits: Limits {
            output: 4_096,
            ..Limits::default()
        },
        ..Grant::default()
    };
    let invocation = Invocation {
        call: "call_1".into(),
        tool: "tricks.say_anything".parse().unwrap(),
        arguments: arguments.into(),
    };
    let context = CallContext {
        sink: Arc::new(Nobody),
        toolbox: None,
        person: None,
    };
    let speaker = speaker();
    let outcome = stage.runtime.block_on(async {
        let linked = stage.sandbox.link(speaker, &grant).await.unwrap();
        linked.call(invocation, context).await
    });
    assert!(matches!(
        outcome.kind,
        OutcomeKind::Ok | OutcomeKind::ToolError | OutcomeKind::Limit
    ));
    assert!(outcome.text().len() <= 2 * 4_096, "{}", outcome.text().len());
    for content in &outcome.content {
        use fief_core::message::Content::{Audio, File, Image, Text};
        match content {
            Text(_) => {}
            Image(blob) | Audio(blob) | File(blob) => {
                assert!(blob.media_type.contains('/') && !blob.media_type.contains(char::is_control));
            }
        }
    }
    assert!(outcome.kind == OutcomeKind::Ok || !outcome.text().trim().is_empty());
}
