//! A plugin in Python: CPython and all, 18 MB.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::calls::small;
use crate::pair::{Fief, Pair, fief_times, times};
use crate::place::{self, Ended};
use crate::table::{Bar, Row, Table, Unit, median};

/// The rows.
pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "python-call",
        "a call of a component in Python, warm, against bare wasmtime",
        Bar::AtMost(1.2),
        Unit::Ratio,
    ),
    Row::new(
        "python-load",
        "loading it from the compiled store: what the first call in a new host takes beyond one that follows",
        Bar::AtMost(3.0),
        Unit::Ms,
    ),
];

const COMPONENTIZE: &str = "componentize-py==0.25.1";
const ROUNDS: usize = 40;
const CALLS: usize = 5;

/// Measures them.
pub(crate) fn measure(table: &mut Table) -> Ended<()> {
    let plugins = match built() {
        Ok(plugins) => plugins,
        Err(why) => {
            table.skip(ROWS, &why.to_string());
            return Ok(());
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let component = std::fs::read(plugins.join("bench.wasm"))?;
    let mut pair = runtime.block_on(Pair::of(plugins.clone(), &component))?;
    let work = small();
    let (mut fief, mut bare) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let [ours, theirs] = runtime.block_on(times(&mut pair, &work, CALLS))?;
        // The first calls fault everything in, on both sides.
        if round > 0 {
            fief.extend(ours);
            bare.extend(theirs);
        }
    }
    let (warm, bare) = (median(&fief), median(&bare));
    table.put(&ROWS[0], warm / bare, format!("{warm:.0} µs, bare {bare:.0} µs"));

    let mut loads = Vec::new();
    for _ in 0..5 {
        let mut host = runtime.block_on(Fief::open(plugins.clone()))?;
        let first = runtime.block_on(fief_times(&mut host, &work, 1))?;
        loads.extend(first.first().map(|first| (first - warm) / 1e3));
    }
    table.put(&ROWS[1], median(&loads), "median of five hosts, linking included");
    Ok(())
}

/// A plugin directory with the component alone, which is built once.
fn built() -> Ended<PathBuf> {
    let tools = place::python(COMPONENTIZE)?.with_file_name("componentize-py");
    let directory = place::kept("snakes")?;
    let component = directory.join("bench.wasm");
    if !component.exists() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/ratios/python");
        let mut build = Command::new(tools);
        build
            .arg("-d")
            .arg(place::root().join("wit"))
            .args(["-w", "plugin", "componentize", "app", "--stub-wasi"]);
        place::finished(build.arg("-p").arg(source).arg("-o").arg(&component))?;
    }
    Ok(directory)
}
