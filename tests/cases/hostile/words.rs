//! What a guest says: its last words, floods, forgeries, and results that are none.

use fief_core::event::{CallNote, CapabilityKind};
use fief_core::message::Content;
use fief_core::tool::OutcomeKind::{Ok, ToolError, Trap};
use serde_json::{Value, json};

use super::stage::{Report, Stage};

async fn call(tool: &str) -> Report {
    Stage::new("tricks").await.call_beside_another(tool, json!({})).await
}

/// Bytes of what was kept of a guest's words, and whether the host said that it kept no more.
fn kept(report: &Report, limit: u64) -> usize {
    let said = format!("the log limit of {limit} bytes is reached; the rest is dropped");
    let cut = |note: &&CallNote| matches!(note, CallNote::Log { level: "warn", message } if *message == said);
    assert_eq!(report.notes.iter().filter(cut).count(), 1, "the cut is told once");
    let bytes = report.notes.iter().map(|note| match note {
        CallNote::Log { message, .. } | CallNote::Progress { message, .. } => message.len(),
        CallNote::Capability { .. } => 0,
    });
    bytes.sum()
}

pub async fn panic_with_words() {
    let report = call("panic_with_words").await.is(
        Trap,
        &[
            "`tricks.panic_with_words` crashed\nits last words: panicked at",
            "the anchor dragged",
        ],
    );
    let detail = report.outcome.detail.unwrap();
    assert!(detail.contains("the anchor dragged"), "{detail}");
}

pub async fn exit_zero() {
    call("exit_zero")
        .await
        .is(Trap, &["exited with status 0 instead of answering"]);
}

pub async fn exit_one() {
    call("exit_one")
        .await
        .is(Trap, &["exited with status 1 instead of answering"]);
}

pub async fn run_into_unreachable() {
    call("run_into_unreachable")
        .await
        .is(Trap, &["`tricks.run_into_unreachable` crashed"]);
}

pub async fn log_flood() {
    let report = call("log_flood").await.is(Ok, &["flooded"]);
    assert!(kept(&report, 64 << 10) < 80 << 10);
    assert!(report.notes.len() < 3_000, "{}", report.notes.len());
}

pub async fn progress_flood() {
    let report = call("progress_flood").await.is(Ok, &["flooded"]);
    kept(&report, 64 << 10);
    assert!(report.notes.len() < 3_000, "{}", report.notes.len());
}

pub async fn stderr_flood() {
    let report = call("stderr_flood")
        .await
        .is(Trap, &["its last words", "the last word"]);
    assert!(kept(&report, 64 << 10) < 300 << 10, "bytes that are no text may triple");
    assert!(report.outcome.text().len() < 2_000, "{}", report.outcome.text().len());
}

pub async fn forge_audit() {
    let report = call("forge_audit").await.is(Ok, &["capability"]);
    let forged = report
        .notes
        .iter()
        .filter(|note| matches!(note, CallNote::Capability { .. }));
    assert_eq!(forged.count(), 0, "{:#?}", report.notes);
    assert!(report.notes.len() >= 4, "each is told as what it is: a guest's words");
}

pub async fn terminal_escapes() {
    // A model is shown what the tool returned; a terminal is not, which `binary.rs` holds the program to.
    let report = call("terminal_escapes").await.is(Ok, &["done"]);
    assert!(report.refused(CapabilityKind::Person).is_empty());
    assert!(
        report
            .notes
            .iter()
            .all(|note| !matches!(note, CallNote::Capability { .. }))
    );
}

pub async fn bad_structured() {
    call("bad_structured").await.is(
        ToolError,
        &["`tricks.bad_structured` returned a structured result that is not JSON"],
    );
}

pub async fn deep_structured() {
    call("deep_structured")
        .await
        .is(ToolError, &["not JSON", "recursion limit"]);
}

pub async fn bad_media_type() {
    let report = call("bad_media_type").await.is(Ok, &[]);
    let [Content::Image(blob)] = &report.outcome.content[..] else {
        panic!("{:?}", report.outcome)
    };
    assert_eq!(blob.media_type, "application/octet-stream");
    assert_eq!(report.outcome.structured, None::<Value>);
}

pub async fn say_anything() {
    let stage = Stage::new("tricks").await.limits(|limits| limits.output = 1_000);
    let long = "no ".repeat(2_000);
    for (kind, starts) in [
        ("unknown-tool", "unknown tool: no no"),
        ("invalid-arguments", "invalid arguments: no no"),
        // What a guest calls denied is its own word: only the host denies.
        ("denied", "denied by the tool: no no"),
        ("failed", "no no"),
    ] {
        let report = stage.call("say_anything", json!({ "kind": kind, "text": long })).await;
        let report = report.is(ToolError, &[]);
        let text = report.outcome.text();
        assert!(
            text.starts_with(starts) && text.ends_with('…') && text.len() < 1_100,
            "{kind}: {text}"
        );
    }
    let report = stage
        .call("say_anything", json!({ "kind": "failed", "text": " " }))
        .await;
    report.is(ToolError, &["the tool failed and did not say why"]);
    for (media_type, becomes) in [
        ("image/png", "image/png"),
        ("png", "application/octet-stream"),
        ("a/b/c", "application/octet-stream"),
    ] {
        let arguments = json!({ "kind": "image", "media_type": media_type, "text": "x" });
        let report = stage.call("say_anything", arguments).await.is(Ok, &[]);
        let [Content::Image(blob)] = &report.outcome.content[..] else {
            panic!("{:?}", report.outcome)
        };
        assert_eq!(blob.media_type, becomes);
    }
}
