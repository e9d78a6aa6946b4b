//! Whole processes: what a shell that calls `fief` waits for, and the binary itself.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::place::{self, Ended};
use crate::table::{Bar, Row, Table, Unit, median};

/// The rows.
pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "process",
        "`fief call` as a whole process, compiled store warm, against a bare program that maps the same code",
        Bar::AtMost(2.0),
        Unit::Ratio,
    ),
    Row::new(
        "start-200",
        "start with 200 plugins in the directory, one used, against start with that one alone",
        Bar::AtMost(1.3),
        Unit::Ratio,
    ),
    Row::new(
        "first-sight",
        "first sight of 20 new plugins, against a bare program that compiles the same 20",
        Bar::AtMost(1.1),
        Unit::Ratio,
    ),
    Row::new("binary", "the release binary, stripped", Bar::AtMost(30.0), Unit::MB),
];

/// Of each side, in turns.
const PROCESSES: usize = 40;
const SIGHTS: usize = 3;
const ARGUMENTS: &str =
    r#"{"text":"a hundred bytes, more or less, of text that goes to a guest and comes back from it"}"#;

/// Measures them.
pub(crate) fn measure(table: &mut Table) -> Ended<()> {
    if table.wants(&ROWS[..1]) {
        process(table)?;
    }
    if table.wants(&ROWS[1..2]) {
        start(table)?;
    }
    if table.wants(&ROWS[2..3]) {
        sight(table)?;
    }
    if table.wants(&ROWS[3..]) {
        #[allow(clippy::cast_precision_loss)] // Some ten million.
        let bytes = std::fs::metadata(place::fief()?)?.len() as f64;
        table.put(&ROWS[3], bytes / 1e6, "as `cargo build --release` leaves it");
    }
    Ok(())
}

fn process(table: &mut Table) -> Ended<()> {
    let plugins = place::plugins()?;
    let cache = place::kept("cache")?;
    let code = place::kept("bare")?.join("bench.code");
    place::finished(
        Command::new(place::bare()?)
            .arg("save")
            .args([&plugins.join("bench.wasm"), &code]),
    )?;
    let mut bare = Command::new(place::bare()?);
    bare.arg("call").arg(&code).args(["echo", ARGUMENTS]);
    let [fief, bare] = in_turns(&mut call(&cache, &plugins, "bench")?, &mut bare)?;
    table.put(&ROWS[0], fief / bare, format!("{fief:.1} ms, bare {bare:.1} ms"));
    Ok(())
}

fn start(table: &mut Table) -> Ended<()> {
    let (many, one) = (place::kept("many")?, place::kept("one")?);
    for number in 0..200 {
        let bytes = place::variant(place::guest()?, number);
        place::put(&many.join(format!("bench-{number}.wasm")), &bytes)?;
        if number == 77 {
            place::put(&one.join(format!("bench-{number}.wasm")), &bytes)?;
        }
    }
    let cache = place::kept("cache")?;
    let [many, one] = in_turns(
        &mut call(&cache, &many, "bench-77")?,
        &mut call(&cache, &one, "bench-77")?,
    )?;
    table.put(&ROWS[1], many / one, format!("{many:.1} ms, alone {one:.1} ms"));
    Ok(())
}

fn sight(table: &mut Table) -> Ended<()> {
    let cores = std::thread::available_parallelism()?.to_string();
    let (mut ratios, mut both) = (Vec::new(), [Vec::new(), Vec::new()]);
    for round in 0..SIGHTS {
        let (cache, plugins) = (place::emptied("fresh-cache")?, place::emptied("fresh")?);
        let files: Vec<PathBuf> = (0..20)
            .map(|number| plugins.join(format!("bench-{number}.wasm")))
            .collect();
        for (number, file) in files.iter().enumerate() {
            place::put(file, &place::variant(place::guest()?, 1_000 + round * 20 + number))?;
        }
        let fief = time(&mut call(&cache, &plugins, "bench-0")?)?;
        let bare = time(Command::new(place::bare()?).args(["compile", &cores]).args(&files))?;
        ratios.push(fief / bare);
        both[0].push(fief);
        both[1].push(bare);
    }
    let [fief, bare] = both.map(|times| median(&times));
    table.put(&ROWS[2], median(&ratios), format!("{fief:.0} ms, bare {bare:.0} ms"));
    Ok(())
}

/// `fief call` of a plugin's echo.
fn call(cache: &Path, plugins: &Path, plugin: &str) -> Ended<Command> {
    let tool = format!("{plugin}.echo");
    let mut command = place::at_home(cache, ["call", &tool, ARGUMENTS, "--plugins"])?;
    command.arg(plugins);
    Ok(command)
}

/// The medians, in milliseconds, of two commands that take turns; the first of each is for caches.
fn in_turns(one: &mut Command, other: &mut Command) -> Ended<[f64; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    time(one)?;
    time(other)?;
    for _ in 0..PROCESSES {
        times[0].push(time(one)?);
        times[1].push(time(other)?);
    }
    Ok(times.map(|times| median(&times)))
}

/// Milliseconds.
fn time(command: &mut Command) -> Ended<f64> {
    let started = Instant::now();
    place::finished(command)?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}
