//! `cargo bench --bench ratios`: how fast Fief is, each figure beside that of a bare program in the same run.
//!
//! `-- ROW…` measures some rows alone, `-- --json FILE` writes the table, `-- --check` exits with 1 if a row falls short
//! and names it, `-- --pagemap-scan` measures with `[sandbox] pagemap_scan`, which is not safe.
//!
//! What takes turns is measured in turns: a batch of one, a batch of the other, so that whatever else the machine does
//! hits both. What is no ratio is the median of five.
#![allow(clippy::print_stdout, clippy::print_stderr)] // The table is what it is for.

use std::process::ExitCode;

use serde_json::{Value, json};

#[path = "../bare/wasm.rs"]
mod bare;
mod calls;
mod pair;
mod place;
mod processes;
mod python;
mod runs;
mod servers;
mod table;

use place::Ended;
use table::{Row, Table};

/// Rows that are measured together.
type Group = (&'static [Row], fn(&mut Table) -> Ended<()>);

const GROUPS: &[Group] = &[
    (calls::ROWS, calls::measure),
    (calls::threads::ROWS, calls::threads::measure),
    (calls::scan::ROWS, calls::scan::measure),
    (servers::ROWS, servers::measure),
    (python::ROWS, python::measure),
    (processes::ROWS, processes::measure),
    (runs::turns::ROWS, runs::turns::measure),
    (runs::crowd::ROWS, runs::crowd::measure),
    (runs::flight::ROWS, runs::flight::measure),
    (runs::stream::ROWS, runs::stream::measure),
];

fn main() -> ExitCode {
    match run() {
        Ok(exit) => exit,
        Err(error) => {
            eprintln!("the benches did not come to their end: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Ended<ExitCode> {
    let (mut check, mut json, mut wanted) = (false, None, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Cargo's own, and what `place::scans` looks for.
            "--bench" | "--pagemap-scan" => {}
            "--alone" => return alone(&arguments.next().unwrap_or_default()),
            "--check" => check = true,
            "--json" => json = Some(arguments.next().ok_or("`--json` takes a file")?),
            row if !row.starts_with('-') => wanted.push(row.to_owned()),
            other => {
                let known = "`--check`, `--json FILE`, `--pagemap-scan` and names of rows";
                return Err(format!("`{other}` is no argument: there are {known}").into());
            }
        }
    }
    for name in &wanted {
        let mut all = GROUPS.iter().flat_map(|(rows, _)| rows.iter());
        if !all.any(|row| row.name.contains(name.as_str())) {
            let all: Vec<&str> = GROUPS
                .iter()
                .flat_map(|(rows, _)| rows.iter())
                .map(|row| row.name)
                .collect();
            return Err(format!("there is no row `{name}`: there are {}", all.join(", ")).into());
        }
    }
    let mut table = Table::new(wanted);
    for (rows, measure) in GROUPS {
        if table.wants(rows) {
            measure(&mut table)?;
        }
    }
    let machine = machine();
    println!(
        "\n{}\n\n{}",
        machine["shown"].as_str().unwrap_or_default(),
        table.markdown()
    );
    if let Some(path) = json {
        std::fs::write(path, serde_json::to_vec_pretty(&table.json(&machine))?)?;
    }
    let [short, goals, skipped] = table.verdict();
    if check {
        for (what, rows) in [
            ("fall short", &short),
            ("miss a goal", &goals),
            ("were skipped", &skipped),
        ] {
            if !rows.is_empty() {
                println!("{what}: {}", rows.join(", "));
            }
        }
        if !short.is_empty() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A part that another process of this program asks for: its figures, as JSON.
fn alone(name: &str) -> Ended<ExitCode> {
    let part = runs::ALONE.iter().find(|(part, _)| *part == name);
    let (_, measure) = part.ok_or_else(|| format!("there is no part `{name}`"))?;
    println!("{}", measure()?);
    Ok(ExitCode::SUCCESS)
}

/// What it was measured on.
fn machine() -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let processor = read("/proc/cpuinfo");
    let processor = processor
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("an unknown processor", |line| line.trim_start_matches([' ', '\t', ':']));
    let kernel = read("/proc/sys/kernel/osrelease");
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let scan = place::scans();
    let marked = if scan {
        ", with `pagemap_scan`, which is not safe"
    } else {
        ""
    };
    let shown = format!(
        "{cores} cores of {processor}, {} {}{marked}",
        std::env::consts::OS,
        kernel.trim()
    );
    json!({
        "processor": processor,
        "cores": cores,
        "os": std::env::consts::OS,
        "kernel": kernel.trim(),
        "pagemap_scan": scan,
        "shown": shown,
    })
}
