//! Imports that a guest should not have: named, and refused before it runs.

use std::sync::Arc;

use fief_core::event::CapabilityKind::{Person, Toolbox};
use fief_core::port::{BoxFuture, CallContext, Person as Asked, Toolbox as Tools};
use fief_core::tool::{Declaration, Outcome, OutcomeKind};
use serde_json::{Value, json};

use super::stage::{Notes, Report, Stage, context, sandbox, scratch};
use crate::support::guests;

/// Fails unless the component is refused when it is looked at, with all of this.
async fn is_no_plugin(name: &str, says: &[&str]) {
    // A copy whose name is a plugin's.
    let path = scratch().join("guest.wasm");
    std::fs::copy(guests::component(&format!("examples/{name}")), &path).unwrap();
    let error = sandbox().inspect(&path).await.unwrap_err().to_string();
    for says in says {
        assert!(error.contains(says), "{error}");
    }
}

/// Fails unless the component does not link without a grant, with all of this.
async fn is_not_linked(stage: &Stage, says: &[&str]) {
    let error = sandbox()
        .link(&stage.plugin, &stage.grant)
        .await
        .err()
        .unwrap()
        .to_string();
    for says in says {
        assert!(error.contains(says), "{error}");
    }
}

async fn call(stage: &Stage, arguments: Value, change: impl FnOnce(&mut CallContext)) -> Report {
    let linked = sandbox().link(&stage.plugin, &stage.grant).await.unwrap();
    let notes = Arc::<Notes>::default();
    let mut context = context(&notes);
    change(&mut context);
    let outcome = linked.call(stage.invocation("run", arguments), context).await;
    Report {
        outcome,
        notes: notes.take(),
    }
}

pub async fn sockets() {
    is_no_plugin(
        "sockets",
        &[
            "`wasi:sockets/tcp@0.2",
            "`wasi:sockets/network@0.2",
            "no grant links it",
        ],
    )
    .await;
}

pub async fn name_lookup() {
    is_no_plugin(
        "name_lookup",
        &["`wasi:sockets/ip-name-lookup@0.2", "no grant links it"],
    )
    .await;
}

pub async fn unknown() {
    is_no_plugin("unknown", &["`evil:host/backdoor@1.0.0`: no grant links it"]).await;
}

/// The toolbox of an agent that may call one tool.
struct One;

impl Tools for One {
    fn list(&self) -> Vec<Declaration> {
        vec![Declaration {
            name: "files.read".into(),
            description: "Reads.".into(),
            input_schema: Arc::new(json!({ "type": "object" })),
        }]
    }

    fn call(&self, name: String, _: Value) -> BoxFuture<'static, Outcome> {
        let text = format!("`{name}` cannot be called: it is not granted to this agent");
        Box::pin(async move { Outcome::refused(OutcomeKind::Denied, text) })
    }
}

pub async fn toolbox() {
    let mut stage = Stage::new("examples/toolbox").await;
    let line = "`toolbox = true` in `[tools.grant]` would grant it";
    is_not_linked(&stage, &["plugin `toolbox`", "`fief:plugin/toolbox@0.1.0`", line]).await;

    stage.grant.toolbox = true;
    // Granted, and nobody there.
    let report = call(&stage, json!({}), |_| ()).await.held();
    report.refuses(Toolbox, 4, "no toolbox is granted");
    // Granted, in an agent that may call something else.
    let report = call(&stage, json!({}), |context| context.toolbox = Some(Arc::new(One)))
        .await
        .held();
    let text = report.outcome.text();
    assert!(text.contains("held see files.read"), "{text}");
    assert!(
        text.contains("held call toolbox.run []: ToolError::InvalidArguments"),
        "{text}"
    );
    let report = report.refuses(Toolbox, 3, "it is not granted to this agent");
    assert!(report.allowed(Toolbox).is_empty());
}

/// Says yes to whatever is asked.
struct Yes;

impl Asked for Yes {
    fn confirm(&self, _: String) -> BoxFuture<'static, bool> {
        Box::pin(async { true })
    }
}

pub async fn person() {
    let mut stage = Stage::new("examples/person").await;
    let line = "`person = true` in `[tools.grant]` would grant it";
    is_not_linked(&stage, &["plugin `person`", "`fief:plugin/person@0.1.0`", line]).await;

    stage.grant.person = true;
    let report = call(&stage, json!({}), |_| ()).await.is(OutcomeKind::Ok, &["false"]);
    report.refuses(Person, 1, "nobody can be asked here");
    let there = |context: &mut CallContext| context.person = Some(Arc::new(Yes));
    let report = call(&stage, json!({}), there).await.is(OutcomeKind::Ok, &["true"]);
    assert_eq!(report.allowed(Person).len(), 1);
    // A question that scrolls what matters out of sight.
    let report = call(&stage, json!({ "length": 10_000 }), there)
        .await
        .is(OutcomeKind::Ok, &["false"]);
    report.refuses(Person, 1, "a question is at most 2000 bytes");
}
