//! Turns of the loop.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fief::core::message::Request;
use fief::core::port::{BoxStream, Model, ModelEvent};
use futures::StreamExt as _;
use serde_json::json;

use super::{answer, call, count, host, run};
use crate::pair::micros;
use crate::place::Ended;
use crate::table::{Bar, Row, Table, Unit, median};

/// The rows.
pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "turns-cost",
        "one turn of the loop, model and tool at zero cost, history of 1,000 messages, beyond serialising the request",
        Bar::AtMost(100.0),
        Unit::Us,
    ),
    Row::new(
        "turns-linear",
        "a run of 1,000 turns against one of 100, beyond its requests and the record",
        Bar::AtMost(12.0),
        Unit::Ratio,
    ),
];

/// Calls one tool in every turn, and notes when it was asked.
struct Turner {
    turns: usize,
    asked: Mutex<Vec<Instant>>,
}

impl Model for Turner {
    fn ask(&self, _: Request) -> BoxStream<'static, ModelEvent> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(Instant::now());
        let number = asked.len();
        let answer = if number > self.turns {
            answer("done", Vec::new())
        } else {
            let text =
                "a hundred bytes of text, more or less, as a call of a tool has them in any ordinary conversation";
            let one = call(format!("call_{number}"), "native.echo", &json!({ "text": text }));
            answer("I go on.", vec![one])
        };
        futures::stream::iter([ModelEvent::Done(answer)]).boxed()
    }
}

/// When the model was asked in a run of so many turns.
async fn asked(turns: usize) -> Ended<Vec<Instant>> {
    let work = tempfile::tempdir()?;
    let model = Arc::new(Turner {
        turns,
        asked: Mutex::default(),
    });
    let host = host(work.path(), model.clone()).await?;
    run(&host, count).await?;
    Ok(std::mem::take(
        &mut *model.asked.lock().unwrap_or_else(PoisonError::into_inner),
    ))
}

/// Measures them.
pub(crate) fn measure(table: &mut Table) -> Ended<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // A turn adds two messages: the answer, and the results.
    let mut costs = Vec::new();
    let mut ratios = Vec::new();
    let (mut longs, mut shorts) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let long = runtime.block_on(asked(1_000))?;
        let span = |asked: &[Instant]| {
            asked
                .last()
                .zip(asked.first())
                .map_or(Duration::ZERO, |(end, start)| *end - *start)
        };
        let turns: Vec<f64> = long[475..525]
            .windows(2)
            .map(|pair| micros(pair[1] - pair[0]))
            .collect();
        costs.push(median(&turns));
        let mut short = Vec::new();
        for _ in 0..5 {
            short.push(micros(span(&runtime.block_on(asked(100))?)));
        }
        let (long, short) = (micros(span(&long)), median(&short));
        ratios.push(long / short);
        longs.push(long);
        shorts.push(short);
    }
    table.put(&ROWS[0], median(&costs), "median of the turns around it, of five runs");
    let made_of = format!("{:.1} ms against {:.2} ms", median(&longs) / 1e3, median(&shorts) / 1e3);
    table.put(&ROWS[1], median(&ratios), made_of);
    Ok(())
}
