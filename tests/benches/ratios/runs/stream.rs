//! Tokens of the model on their way to who watches.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fief::core::event::{Event, EventKind};
use fief::core::message::Request;
use fief::core::port::{BoxStream, Model, ModelEvent};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{answer, apart, children, host, number, run};
use crate::place::Ended;
use crate::table::{Bar, Row, Table, Unit, median, share};

pub(crate) const NAME: &str = "stream";

/// The row.
pub(crate) const ROWS: &[Row] = &[Row::new(
    "stream",
    "the model's first token shown after it arrived, while 100 children stream and their guests are idle",
    Bar::AtMost(5.0),
    Unit::Ms,
)];

const CHILDREN: usize = 100;
/// Of each child: a token every few milliseconds, as servers send them.
const TOKENS: u32 = 200;
const GAP: Duration = Duration::from_millis(10);

/// Every token says when it arrived, in nanoseconds after `start`.
struct Streamer {
    start: Instant,
}

impl Model for Streamer {
    fn ask(&self, request: Request) -> BoxStream<'static, ModelEvent> {
        if request.session.as_str() == "main" {
            let answer = match request.history.len() {
                1 => answer("", children(CHILDREN)),
                _ => answer("done", Vec::new()),
            };
            return futures::stream::iter([ModelEvent::Done(answer)]).boxed();
        }
        let start = self.start;
        let tokens = futures::stream::unfold(0, move |token| async move {
            tokio::time::sleep(GAP).await;
            let arrived = start.elapsed().as_nanos();
            (token < TOKENS).then(|| (ModelEvent::Delta(format!("{arrived} a token ")), token + 1))
        });
        let end = futures::stream::once(async { ModelEvent::Done(answer("all of it", Vec::new())) });
        tokens.chain(end).boxed()
    }
}

/// Measures it.
pub(crate) fn measure(table: &mut Table) -> Ended<()> {
    let (mut firsts, mut all, mut most) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        let told = apart(NAME)?;
        firsts.push(number(&told, "first_ms")?);
        all.push(number(&told, "all_ms")?);
        most.push(number(&told, "most_ms")?);
    }
    let made_of = format!(
        "the latest of 100 first tokens; of all tokens the 99th percentile {:.2} ms, the latest {:.2} ms",
        median(&all),
        median(&most)
    );
    table.put(&ROWS[0], median(&firsts), made_of);
    Ok(())
}

/// One run in this process.
pub(crate) fn alone() -> Ended<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let work = tempfile::tempdir()?;
        let start = Instant::now();
        let host = host(work.path(), Arc::new(Streamer { start })).await?;
        let (_, (first, all)) = run(&host, move |events| Box::pin(lateness(start, events))).await?;
        if first.len() != CHILDREN {
            return Err(format!("{} children were heard", first.len()).into());
        }
        Ok(json!({ "first_ms": share(&first, 1.0), "all_ms": share(&all, 0.99), "most_ms": share(&all, 1.0) }))
    })
}

/// Milliseconds from a token's arrival to who watches: of each session's first, and of all.
async fn lateness(start: Instant, mut events: UnboundedReceiver<Event>) -> (Vec<f64>, Vec<f64>) {
    let (mut first, mut all) = (Vec::new(), Vec::new());
    let mut heard = std::collections::HashSet::new();
    while let Some(event) = events.recv().await {
        let now = start.elapsed();
        let EventKind::ModelDelta { content } = &event.kind else {
            continue;
        };
        let Some(arrived) = content.split(' ').next().and_then(|text| text.parse().ok()) else {
            continue;
        };
        let late = now.saturating_sub(Duration::from_nanos(arrived)).as_secs_f64() * 1e3;
        all.push(late);
        if heard.insert(event.session.clone()) {
            first.push(late);
        }
    }
    (first, all)
}
