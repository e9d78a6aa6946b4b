//! A crowd of children.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fief::core::message::Request;
use fief::core::port::{BoxStream, Model, ModelEvent};
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::{answer, apart, children, host, memory, number, run};
use crate::place::Ended;
use crate::table::{Bar, Row, Table, Unit, median};

pub(crate) const NAME: &str = "crowd";

/// The rows.
pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "crowd-time",
        "1,000 children at once, one turn each, whose model answers after 50 ms, against one child",
        Bar::AtMost(1.5),
        Unit::Ratio,
    ),
    Row::new(
        "crowd-memory",
        "what they take above the idle process",
        Bar::AtMost(150.0),
        Unit::MiB,
    ),
];

const CHILDREN: usize = 1_000;
const WAIT: Duration = Duration::from_millis(50);

/// Main starts all children in one answer; each of them answers after a while.
struct Crowd {
    children: usize,
    /// When main was asked.
    asked: Mutex<Vec<Instant>>,
}

impl Model for Crowd {
    fn ask(&self, request: Request) -> BoxStream<'static, ModelEvent> {
        if request.session.as_str() != "main" {
            return futures::stream::once(async {
                tokio::time::sleep(WAIT).await;
                ModelEvent::Done(answer("I found it.", Vec::new()))
            })
            .boxed();
        }
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(Instant::now());
        let answer = match asked.len() % 2 {
            1 => answer("", children(self.children)),
            _ => answer("done", Vec::new()),
        };
        futures::stream::iter([ModelEvent::Done(answer)]).boxed()
    }
}

/// Measures them.
pub(crate) fn measure(table: &mut Table) -> Ended<()> {
    let (mut ratios, mut sizes, mut of) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        let told = apart(NAME)?;
        let (all, one) = (number(&told, "all_ms")?, number(&told, "one_ms")?);
        ratios.push(all / one);
        of.push((all, one));
        sizes.push(number(&told, "bytes")? / f64::from(1 << 20));
    }
    let (all, one) = (
        of.iter().map(|of| of.0).collect::<Vec<_>>(),
        of.iter().map(|of| of.1).collect::<Vec<_>>(),
    );
    table.put(
        &ROWS[0],
        median(&ratios),
        format!("{:.1} ms against {:.1} ms", median(&all), median(&one)),
    );
    table.put(&ROWS[1], median(&sizes), "median of five processes");
    Ok(())
}

/// One after the other in this process: one child, and all.
pub(crate) fn alone() -> Ended<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let one = time(1).await?.0;
        let (all, bytes) = time(CHILDREN).await?;
        Ok(json!({ "one_ms": one, "all_ms": all, "bytes": bytes }))
    })
}

/// Milliseconds from the answer that starts them to the request that holds their results, and the memory beyond that
/// of the process before.
async fn time(children: usize) -> Ended<(f64, f64)> {
    let work = tempfile::tempdir()?;
    let model = Arc::new(Crowd {
        children,
        asked: Mutex::default(),
    });
    let host = host(work.path(), model.clone()).await?;
    let before = memory()?;
    let (_, most) = run(&host, |mut events| {
        Box::pin(async move {
            let mut most = 0.0_f64;
            let mut seen = 0_usize;
            while events.recv().await.is_some() {
                seen += 1;
                if seen.is_multiple_of(100) {
                    most = most.max(memory().unwrap_or_default());
                }
            }
            most.max(memory().unwrap_or_default())
        })
    })
    .await?;
    let asked = model.asked.lock().unwrap_or_else(PoisonError::into_inner);
    let [start, end] = asked[..] else {
        return Err(format!("main was asked {} times", asked.len()).into());
    };
    Ok(((end - start).as_secs_f64() * 1e3, most - before))
}
