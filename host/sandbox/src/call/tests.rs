#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use fief_core::event::CallNote;
use fief_core::grant::{Grant, Limits};
use fief_core::message::Content;
use fief_core::tool::OutcomeKind;
use serde_json::json;

use crate::testing::{LOG, Notes, Wat, context, invocation, sandbox};

const ECHO: &str = "(call $ok (local.get $args) (local.get $args_len))";
const SPIN: &str = "(loop $forever (br $forever)) unreachable";

fn body(body: &str) -> Wat<'_> {
    Wat { body, ..Wat::default() }
}

fn limits(change: impl FnOnce(&mut Limits)) -> Grant {
    let mut grant = Grant::default();
    change(&mut grant.limits);
    grant
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_passes_arguments_and_returns_content() {
    let (outcome, notes) = body(ECHO).call_with(&Grant::default(), "grüße").await.unwrap();
    assert_eq!(outcome.kind, OutcomeKind::Ok, "{outcome:?}");
    assert_eq!(outcome.text(), json!({ "argument": "grüße" }).to_string());
    assert_eq!(notes, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_held_between_calls() {
    let count = "(i32.store8 (i32.const 2048) (i32.add (i32.load8_u (i32.const 2048)) (i32.const 1)))
        (i32.store8 (i32.const 2049) (i32.add (i32.load8_u (i32.const 2048)) (i32.const 48)))
        (call $ok (i32.const 2049) (i32.const 1))";
    let plugin = body(count).plugin().await;
    let linked = sandbox().link(&plugin, &Grant::default()).await.unwrap();
    for _ in 0..50 {
        let outcome = linked.call(invocation(""), context(&std::sync::Arc::default())).await;
        assert_eq!(outcome.text(), "1");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_limit_has_its_own_outcome_with_its_value() {
    let cases: &[(&str, &str, Grant, &str)] = &[
        (
            "cpu",
            SPIN,
            limits(|limits| limits.cpu = Duration::from_millis(50)),
            "computed for longer than its limit of 50 ms",
        ),
        (
            "wall",
            SPIN,
            limits(|limits| limits.wall = Duration::from_millis(50)),
            "took longer than its limit of 50 ms",
        ),
        (
            "memory",
            "(if (i32.eq (call $grow (i32.const 2000)) (i32.const -1)) (then unreachable)) (i32.const 0)",
            limits(|limits| limits.memory = 64 << 20),
            "ran out of memory: its limit is 64 MiB",
        ),
        (
            "tables",
            "(if (i32.eq (table.grow (ref.null func) (i32.const 5000)) (i32.const -1)) (then unreachable)) (i32.const 0)",
            limits(|limits| limits.tables = 1_000),
            "beyond its limit of 1000 elements",
        ),
        (
            "stack",
            "(call $deep (i32.const 0))",
            Grant::default(),
            "recursed beyond its call stack of 1 MiB",
        ),
        (
            "output",
            "(drop (call $grow (i32.const 20))) (call $ok (i32.const 4096) (i32.const 300000))",
            limits(|limits| limits.output = 256 << 10),
            "returned 300000 bytes, more than its limit of 256 KiB",
        ),
        (
            "transfer",
            "(drop (call $grow (i32.const 200))) (call $ok (i32.const 4096) (i32.const 8000000))",
            limits(|limits| limits.output = 256 << 10),
            "a result is at most 256 KiB",
        ),
        (
            "instances",
            "(i32.const 0)",
            limits(|limits| limits.instances = 0),
            "needs more instances, memories or tables than its limit of 0",
        ),
    ];
    for (name, work, grant, says) in cases {
        let (outcome, _) = body(work).call(grant).await;
        assert_eq!(outcome.kind, OutcomeKind::Limit, "{name}: {outcome:?}");
        let text = outcome.text();
        assert!(text.contains(says) && text.contains("guest.run"), "{name}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_guests_limit_leaves_its_neighbour_alone() {
    let (spin, echo) = (body(SPIN), body(ECHO));
    let spinning = limits(|limits| limits.cpu = Duration::from_millis(100));
    let grant = Grant::default();
    let (spun, echoed) = tokio::join!(spin.call(&spinning), echo.call(&grant));
    assert_eq!(spun.0.kind, OutcomeKind::Limit);
    assert_eq!(echoed.0.kind, OutcomeKind::Ok, "{:?}", echoed.0);
}

#[tokio::test]
async fn a_spinning_guest_keeps_no_other_task_waiting() {
    let plugin = body(SPIN).plugin().await;
    let linked = sandbox().link(&plugin, &Grant::default()).await.unwrap();
    // On a runtime of one thread a guest that did not yield would end the test only with its CPU limit.
    let start = Instant::now();
    let call = linked.call(invocation(""), context(&std::sync::Arc::default()));
    let ended = tokio::time::timeout(Duration::from_millis(100), call).await;
    assert!(ended.is_err(), "the call was not cancelled");
    assert!(start.elapsed() < Limits::default().cpu, "{:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_is_a_trap_and_tool_errors_are_the_tools_own() {
    let crash = "(drop (i32.load (i32.const 0x7fffffff))) unreachable";
    let name = "(i32.const 1024) (i32.const 3)";
    for (work, kind, says) in [
        ("unreachable".to_owned(), OutcomeKind::Trap, "`guest.run` crashed"),
        (crash.into(), OutcomeKind::Trap, "overflowed the stack"),
        (
            format!("(call $failed (i32.const 0) {name})"),
            OutcomeKind::ToolError,
            "unknown tool: run",
        ),
        (
            format!("(call $failed (i32.const 1) {name})"),
            OutcomeKind::ToolError,
            "invalid arguments: run",
        ),
        (
            format!("(call $failed (i32.const 2) {name})"),
            OutcomeKind::ToolError,
            "denied by the tool: run",
        ),
        (
            format!("(call $failed (i32.const 3) {name})"),
            OutcomeKind::ToolError,
            "run",
        ),
        (
            "(call $failed (i32.const 3) (i32.const 0) (i32.const 0))".into(),
            OutcomeKind::ToolError,
            "did not say why",
        ),
        (format!("(call $structured {name})"), OutcomeKind::ToolError, "not JSON"),
    ] {
        let (outcome, _) = body(&work).call(&Grant::default()).await;
        assert_eq!(outcome.kind, kind, "{work}: {outcome:?}");
        assert!(outcome.text().contains(says), "{work}: {}", outcome.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn structured_results_are_json_and_media_types_are_media_types() {
    let (outcome, _) = body("(call $structured (i32.const 1072) (i32.const 17))")
        .call(&Grant::default())
        .await;
    assert_eq!(outcome.structured, Some(json!({"type": "object"})));
    let image = "(i32.store8 (i32.const 1340) (i32.const 1))
        (i32.store (i32.const 1352) (i32.const 1024)) (i32.store (i32.const 1356) (i32.const 3))
        (call $ok (i32.const 1100) (i32.const 17))";
    let (outcome, _) = body(image).call(&Grant::default()).await;
    let [Content::Image(blob)] = &outcome.content[..] else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        (&*blob.media_type, &*blob.data),
        ("application/octet-stream", &b"run"[..])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_log_lines_is_cut_and_said_to_be() {
    let imports = r#"(import "fief:plugin/call@0.1.0" "log" (func $log (param i32 i32 i32)))"#;
    let flood = "(local $i i32)
        (loop $more
          (call $log (i32.const 2) (i32.const 1040) (i32.const 15))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $more (i32.lt_u (local.get $i) (i32.const 100000))))
        (call $ok (i32.const 1024) (i32.const 3))";
    let guest = Wat {
        shell: LOG,
        imports,
        body: flood,
    };
    let (outcome, notes) = guest.call(&limits(|limits| limits.log = 1 << 10)).await;
    assert_eq!(outcome.kind, OutcomeKind::Ok, "{outcome:?}");
    assert!(notes.len() < 30, "{}", notes.len());
    assert!(matches!(notes.last(), Some(CallNote::Log { level: "warn", message }) if message.contains("1024 bytes")));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_calls_leave_no_place_taken() {
    let plugin = body(SPIN).plugin().await;
    let linked = sandbox().link(&plugin, &Grant::default()).await.unwrap();
    for _ in 0..300 {
        let notes = std::sync::Arc::<Notes>::default();
        let call = linked.call(invocation(""), context(&notes));
        let _ = tokio::time::timeout(Duration::from_micros(200), call).await;
        assert_eq!(
            std::sync::Arc::strong_count(&notes),
            1,
            "something of a cancelled call lives on"
        );
    }
}
