//! Calls on two threads against one, saturated: what Fief gains by the second, and what the bare program does.

use std::time::Duration;

use crate::pair::{Pair, Saturated, bare_rate, fief_rate};
use crate::place::Ended;
use crate::table::{Bar, Row, Table, Unit, median};

/// The rows.
pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "calls-threads",
        "calls on two threads against one, saturated",
        Bar::AtLeast(1.8),
        Unit::Ratio,
    ),
    Row::new(
        "calls-threads-bare",
        "that gain against bare wasmtime's own",
        Bar::AtLeast(0.95),
        Unit::Ratio,
    ),
];

const ROUNDS: usize = 15;
/// Of one side on so many threads, in one round.
const LENGTH: Duration = Duration::from_millis(150);

/// Measures them.
pub(crate) fn measure(table: &mut Table) -> Ended<()> {
    let opening = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut pair = opening.block_on(Pair::new())?;
    let threads = [Saturated::new(1)?, Saturated::new(2)?];
    let work = super::small();
    let mut rates = [const { [const { Vec::new() }; 2] }; 2];
    for _ in 0..ROUNDS {
        for (runtime, [fief, bare]) in threads.iter().zip(&mut rates) {
            fief.push(fief_rate(runtime, &mut pair.fief, &work, LENGTH)?);
            bare.push(bare_rate(runtime, &pair.bare, &work, LENGTH)?);
        }
    }
    let [[fief_one, bare_one], [fief_two, bare_two]] = rates.map(|sides| sides.map(|rates| median(&rates)));
    let (fief, bare) = (fief_two / fief_one, bare_two / bare_one);
    table.put(
        &ROWS[0],
        fief,
        format!("{fief_two:.0} calls/s on two threads, {fief_one:.0} on one"),
    );
    table.put(
        &ROWS[1],
        fief / bare,
        format!("bare gains {bare:.2} ×: {bare_two:.0} calls/s, {bare_one:.0} on one"),
    );
    Ok(())
}
