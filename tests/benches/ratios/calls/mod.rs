//! A call: what Fief adds to one, small and large.

use serde_json::{Value, json};

use crate::pair::{Pair, Work, times};
use crate::place::Ended;
use crate::table::{Bar, Row, Table, Unit, median, share};

pub(crate) mod scan;
pub(crate) mod threads;

/// The rows.
pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "calls-median",
        "a call of 100 bytes through Fief's own path, against bare wasmtime with the same guest and engine settings",
        Bar::AtMost(1.5),
        Unit::Ratio,
    ),
    Row::new(
        "calls-p99",
        "the same at the 99th percentile",
        Bar::AtMost(2.0),
        Unit::Ratio,
    ),
    Row::new(
        "calls-string",
        "a call with one string of 100 KB, which the guest parses",
        Bar::AtMost(1.15),
        Unit::Ratio,
    ),
    Row::new(
        "calls-rows",
        "a call with 100 KB of rows of objects",
        Bar::AtMost(1.5),
        Unit::Ratio,
    ),
];

/// Rounds, and calls of each side in one of them: short turns, so that whatever else the machine does hits both.
const ROUNDS: usize = 200;
const SMALL: usize = 100;
const LARGE: usize = 5;

/// Measures them.
pub(crate) fn measure(table: &mut Table) -> Ended<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut pair = runtime.block_on(Pair::new())?;
    let mut side_by_side = |work: &Work, calls: usize| -> Ended<[Vec<f64>; 2]> {
        let mut all = [Vec::new(), Vec::new()];
        // The first calls fault everything in, on both sides.
        runtime.block_on(times(&mut pair, work, 50))?;
        for _ in 0..ROUNDS {
            let [fief, bare] = runtime.block_on(times(&mut pair, work, calls))?;
            all[0].extend(fief);
            all[1].extend(bare);
        }
        Ok(all)
    };

    if table.wants(&ROWS[..2]) {
        let [fief, bare] = side_by_side(&small(), SMALL)?;
        for (row, at) in [(&ROWS[0], 0.5), (&ROWS[1], 0.99)] {
            put(table, row, share(&fief, at), share(&bare, at));
        }
    }
    for (row, work) in [(&ROWS[2], string()), (&ROWS[3], rows())] {
        if table.wants(std::slice::from_ref(row)) {
            let [fief, bare] = side_by_side(&work, LARGE)?;
            put(table, row, median(&fief), median(&bare));
        }
    }
    Ok(())
}

fn put(table: &mut Table, row: &'static Row, fief: f64, bare: f64) {
    table.put(row, fief / bare, format!("{fief:.1} µs, bare {bare:.1} µs"));
}

/// 100 bytes.
pub(crate) fn small() -> Work {
    Work::new("echo", json!({ "text": "a".repeat(89) }))
}

fn string() -> Work {
    // Quotes and line ends as in a file's text: a parser that only copies would be no parser.
    let line = "let greeting = \"hello\"; // one line of a file as it is passed to a tool, eighty long\n";
    let text: String = line.chars().cycle().take(96_000).collect();
    Work::new("size", json!({ "text": text }))
}

fn rows() -> Work {
    let row =
        |id: usize| json!({ "id": id, "name": format!("row number {id}"), "price": 0.25, "tags": ["red", "heavy"] });
    let rows: Vec<Value> = (0..1_350).map(row).collect();
    Work::new("sum", json!({ "rows": rows }))
}
