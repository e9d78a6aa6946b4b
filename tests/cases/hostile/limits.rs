//! Time, memory and whatever else a guest may use up. Each limit is told with its value, and no neighbour notices.

use fief_core::tool::OutcomeKind::{Limit, Ok, ToolError, Trap};
use serde_json::json;

use super::stage::{Stage, ms};

async fn tricks() -> Stage {
    Stage::new("tricks").await
}

pub async fn spin() {
    let stage = tricks().await.limits(|limits| limits.cpu = ms(150));
    stage
        .call_beside_another("spin", json!({}))
        .await
        .is(Limit, &["`tricks.spin` computed for longer than its limit of 150 ms"]);
}

pub async fn recurse() {
    tricks()
        .await
        .call_beside_another("recurse", json!({}))
        .await
        .is(Limit, &["recursed beyond its call stack of 1 MiB"]);
}

pub async fn overflow_stack() {
    tricks()
        .await
        .call_beside_another("overflow_stack", json!({}))
        .await
        .is(Trap, &["touched memory that it does not have, or overflowed the stack"]);
}

pub async fn grow_memory() {
    let stage = tricks().await.limits(|limits| limits.memory = 24 << 20);
    stage
        .call_beside_another("grow_memory", json!({}))
        .await
        .is(Limit, &["`tricks.grow_memory` ran out of memory: its limit is 24 MiB"]);
}

pub async fn sleep_forever() {
    let stage = tricks().await.limits(|limits| limits.wall = ms(150));
    stage
        .call_beside_another("sleep_forever", json!({}))
        .await
        .is(Limit, &["`tricks.sleep_forever` took longer than its limit of 150 ms"]);
}

pub async fn poll_for_ever() {
    let stage = tricks().await.limits(|limits| limits.wall = ms(150));
    stage
        .call_beside_another("poll_for_ever", json!({}))
        .await
        .is(Limit, &["took longer than its limit of 150 ms"]);
}

pub async fn hold_handles() {
    let stage = tricks().await.limits(|limits| limits.handles = 100);
    stage
        .call_beside_another("hold_handles", json!({}))
        .await
        .is(Limit, &["held more handles open than its limit of 100"]);
}

pub async fn huge_arguments() {
    let text = "x".repeat(8 << 20);
    let stage = tricks().await;
    let arguments = json!({ "text": text });
    stage
        .call("huge_arguments", arguments.clone())
        .await
        .is(Ok, &[&text.len().to_string()]);
    let stage = stage.limits(|limits| limits.memory = 6 << 20);
    stage
        .call_beside_another("huge_arguments", arguments)
        .await
        .is(Limit, &["ran out of memory: its limit is 6 MiB"]);
}

pub async fn huge_output() {
    let stage = tricks().await.limits(|limits| limits.output = 64 << 10);
    let call = |bytes: u64| {
        let stage = stage.clone();
        async move {
            stage
                .call_beside_another("huge_output", json!({ "bytes": bytes }))
                .await
        }
    };
    call(64 << 10).await.is(Ok, &["xxxx"]);
    call((64 << 10) + 1).await.is(
        Limit,
        &["returned 65537 bytes, more than its limit of 64 KiB: ask it for less"],
    );
    // More than the host takes over from a guest at all.
    call(32 << 20)
        .await
        .is(Limit, &["passed more to the host than its limit", "64 KiB"]);
}

pub async fn huge_error() {
    let report = tricks()
        .await
        .call("huge_error", json!({}))
        .await
        .is(ToolError, &["sorry"]);
    let length = report.outcome.text().len();
    assert!((200_000..=(256 << 10) + 4).contains(&length), "{length}");
}

pub async fn huge_random() {
    let stage = tricks().await;
    for bytes in [1_u64 << 30, u64::MAX] {
        let report = stage
            .call_beside_another("huge_random", json!({ "bytes": bytes }))
            .await;
        assert!(matches!(report.outcome.kind, Limit | Trap), "{:?}", report.outcome);
    }
}

pub async fn many_parts() {
    tricks()
        .await
        .call_beside_another("many_parts", json!({}))
        .await
        .is(Limit, &["returned 50000 parts, more than the limit of 1000"]);
}
