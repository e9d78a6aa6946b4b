//! More calls than this machine has room for wait their turn, and none fails.
#![allow(clippy::unwrap_used)]

use std::process::Command;
use std::time::Duration;

use fief_core::grant::Grant;
use fief_core::tool::OutcomeKind;
use futures::future::join_all;

use super::Size;
use crate::testing::{Wat, context, invocation, sandbox};

/// Set in the process whose addresses are few.
const NARROW: &str = "FIEF_TEST_NARROW";
/// More than the pool's first, smaller attempts have.
const CALLS: usize = 24;

const SPIN: &str = "(loop $forever (br $forever)) unreachable";

/// As many calls at once, each of which the clock has to end.
async fn spin(guest: Wat<'_>) {
    let bytes = guest.component();
    let mut grant = Grant::default();
    grant.limits.cpu = Duration::from_millis(20);
    grant.limits.wall = Duration::from_secs(60);
    let path = crate::testing::write("guest.wasm", &bytes);
    let plugin = std::sync::Arc::new(sandbox().inspect(&path).await.unwrap());
    let linked = sandbox().link(&plugin, &grant).await.unwrap();
    let calls = (0..CALLS).map(|_| linked.call(invocation(""), context(&std::sync::Arc::default())));
    for outcome in join_all(calls.collect::<Vec<_>>()).await {
        assert_eq!(outcome.kind, OutcomeKind::Limit, "{outcome:?}");
        assert!(outcome.text().contains("computed for longer"), "{outcome:?}");
    }
}

/// Far more static data than a small component's, which no memory needs to hold.
fn data() -> String {
    format!("(data $image \"{}\")", "x".repeat(300 << 10))
}

#[tokio::test(flavor = "multi_thread")]
async fn few_addresses_mean_few_calls_at_once_and_none_that_fails() {
    if std::env::var_os(NARROW).is_some() {
        let calls = sandbox().capacity().calls as usize;
        assert!(calls < CALLS, "{calls} calls at once fit into few addresses");
        let (small, large) = (SPIN, data());
        spin(Wat {
            body: small,
            ..Wat::default()
        })
        .await;
        spin(Wat {
            body: small,
            imports: &large,
            ..Wat::default()
        })
        .await;
        return;
    }
    // In KiB: room for five memories of 4 GiB, the same again for the pool, and the process itself.
    let name = "engine::tests::few_addresses_mean_few_calls_at_once_and_none_that_fails";
    let limited = format!("ulimit -v 48000000 && exec \"$0\" {name} --exact --nocapture");
    let exe = std::env::current_exe().unwrap();
    let output = Command::new("sh")
        .args(["-c", &limited])
        .arg(exe)
        .env(NARROW, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn a_component_is_large_by_its_static_data_alone() {
    let image = data();
    let large = Wat {
        imports: &image,
        ..Wat::default()
    };
    assert_eq!(Size::of(&large.component()), Size::Large);
    assert_eq!(Size::of(&Wat::default().component()), Size::Small);
    assert_eq!(Size::of(b"no component"), Size::Small);
}
