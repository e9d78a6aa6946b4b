//! Calls that wait in the host, as many as there are places.

use std::time::{Duration, Instant};

use fief::core::tool::OutcomeKind;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{apart, memory, number};
use crate::pair::Fief;
use crate::place::{self, Ended};
use crate::table::{Bar, Row, Table, Unit, median};

pub(crate) const NAME: &str = "flight";

/// The row.
pub(crate) const ROWS: &[Row] = &[Row::new(
    "flight",
    "memory of each of 8,000 calls in flight, which wait in the host; the next waits its turn, none fails",
    Bar::AtMost(80.0),
    Unit::KiB,
)];

/// As many as a machine with the usual `vm.max_map_count` has places for.
const CALLS: usize = 8_000;
/// How long each waits: longer than it takes to start them all.
const WAIT: Duration = Duration::from_secs(5);

/// Measures it.
pub(crate) fn measure(table: &mut Table) -> Ended<()> {
    let mut sizes = Vec::new();
    for _ in 0..5 {
        let told = apart(NAME)?;
        if let Some(places) = told["places"].as_u64() {
            table.skip(ROWS, &format!("this machine has places for {places} calls"));
            return Ok(());
        }
        sizes.push(number(&told, "bytes_each")? / 1024.0);
    }
    table.put(&ROWS[0], median(&sizes), "median of five processes");
    Ok(())
}

/// All calls and one more, in this process.
pub(crate) fn alone() -> Ended<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let fief = Fief::open(place::plugins()?).await?;
        let places = fief.places();
        if places < CALLS {
            return Ok(json!({ "places": places }));
        }
        // What is there once, and what a call leaves for the next.
        fief.caller().call("bench.sleep", json!({ "ms": 1 })).await?;
        let before = memory()?;
        let started = Instant::now();
        let mut calls = JoinSet::new();
        for _ in 0..=places {
            let caller = fief.caller();
            calls.spawn(async move {
                let outcome = caller
                    .call("bench.sleep", json!({ "ms": WAIT.as_millis() as u64 }))
                    .await?;
                Ended::Ok((outcome.kind, Instant::now()))
            });
        }
        let (mut most, mut ends) = (0.0_f64, Vec::new());
        while !calls.is_empty() {
            tokio::select! {
                Some(ended) = calls.join_next() => {
                    let (kind, at) = ended??;
                    if kind != OutcomeKind::Ok {
                        return Err(format!("a call ended as {kind:?}").into());
                    }
                    ends.push(at - started);
                }
                () = tokio::time::sleep(Duration::from_millis(20)) => most = most.max(memory()?),
            }
        }
        ends.sort();
        let (first, last) = (ends.first(), ends.last());
        if last.is_none_or(|last| *last < 2 * WAIT) || first.is_none_or(|first| *first >= 2 * WAIT) {
            return Err(format!("the last call did not wait its turn: {first:?}, {last:?}").into());
        }
        #[allow(clippy::cast_precision_loss)] // Some thousands.
        Ok(json!({ "bytes_each": (most - before) / places as f64 }))
    })
}
