//! What safety costs: Fief with settings that are safe, against bare wasmtime with `pagemap_scan`, which is not.

use std::sync::Arc;
use std::time::Duration;

use crate::bare::Bare;
use crate::pair::{Pair, Saturated, bare_rate, bare_times, fief_rate, fief_times};
use crate::place::{self, Ended};
use crate::table::{Bar, Row, Table, Unit, median};

/// The rows.
pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "calls-scan",
        "a call of Fief's with its settings, against bare wasmtime with `pagemap_scan`",
        Bar::AtMost(1.5),
        Unit::Ratio,
    )
    .goal(),
    Row::new(
        "calls-scan-threads",
        "calls on two threads, saturated, against that",
        Bar::AtLeast(0.5),
        Unit::Ratio,
    )
    .goal(),
];

const ROUNDS: usize = 100;
const CALLS: usize = 100;
const SATURATED: usize = 10;
const LENGTH: Duration = Duration::from_millis(150);

/// Measures them.
pub(crate) fn measure(table: &mut Table) -> Ended<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut pair = runtime.block_on(Pair::new())?;
    let unsafe_engine = fief_sandbox::engine(place::guest()?, true)?;
    let scanning = Arc::new(Bare::compile(&unsafe_engine, place::guest()?)?);
    let work = super::small();

    let [mut fief, mut bare, mut scan] = [const { Vec::new() }; 3];
    runtime.block_on(async {
        for _ in 0..ROUNDS {
            fief.extend(fief_times(&mut pair.fief, &work, CALLS).await?);
            bare.extend(bare_times(&pair.bare, &work, CALLS).await?);
            scan.extend(bare_times(&scanning, &work, CALLS).await?);
        }
        Ended::Ok(())
    })?;
    let [one, bare, scan] = [&fief, &bare, &scan].map(|times| median(times));
    table.put(
        &ROWS[0],
        one / scan,
        format!("{one:.1} µs, bare with `pagemap_scan` {scan:.1} µs, bare without {bare:.1} µs"),
    );

    let two = Saturated::new(2)?;
    let [mut fief, mut bare, mut scan] = [const { Vec::new() }; 3];
    for _ in 0..SATURATED {
        fief.push(fief_rate(&two, &mut pair.fief, &work, LENGTH)?);
        bare.push(bare_rate(&two, &pair.bare, &work, LENGTH)?);
        scan.push(bare_rate(&two, &scanning, &work, LENGTH)?);
    }
    let [fief, bare, scan] = [&fief, &bare, &scan].map(|rates| median(rates));
    table.put(
        &ROWS[1],
        fief / scan,
        format!("{fief:.0} calls/s, bare with `pagemap_scan` {scan:.0}, bare without {bare:.0}"),
    );
    Ok(())
}
