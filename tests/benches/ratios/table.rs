//! The table: each row with its figure, its bar, and whether it holds.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// What a row is measured in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// One time against another, in one run.
    Ratio,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// KiB.
    KiB,
    /// MiB.
    MiB,
    /// Millions of bytes.
    MB,
}

impl Unit {
    fn sign(self) -> &'static str {
        match self {
            Self::Ratio => "×",
            Self::Ms => "ms",
            Self::Us => "µs",
            Self::KiB => "KiB",
            Self::MiB => "MiB",
            Self::MB => "MB",
        }
    }
}

/// What must hold.
#[derive(Clone, Copy)]
pub(crate) enum Bar {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

/// One line of the table, before it is measured.
pub(crate) struct Row {
    /// By which it is chosen on the command line.
    pub(crate) name: &'static str,
    /// What is measured.
    pub(crate) what: &'static str,
    pub(crate) bar: Bar,
    pub(crate) unit: Unit,
    /// A goal may be missed: it is named, and nothing fails.
    pub(crate) goal: bool,
}

impl Row {
    pub(crate) const fn new(name: &'static str, what: &'static str, bar: Bar, unit: Unit) -> Self {
        Self {
            name,
            what,
            bar,
            unit,
            goal: false,
        }
    }

    pub(crate) const fn goal(mut self) -> Self {
        self.goal = true;
        self
    }
}

/// What became of a row.
enum Came {
    /// The figure, and what it is made of.
    To(f64, String),
    /// Not measured, and why.
    Skipped(String),
}

/// What was measured, in the order of the rows.
pub(crate) struct Table {
    wanted: Vec<String>,
    lines: Vec<(&'static Row, Came)>,
}

impl Table {
    /// A table of the rows whose names hold one of these; all, if there are none.
    pub(crate) fn new(wanted: Vec<String>) -> Self {
        Self {
            wanted,
            lines: Vec::new(),
        }
    }

    /// Whether one of these rows is asked for.
    pub(crate) fn wants(&self, rows: &[Row]) -> bool {
        rows.iter().any(|row| self.wants_one(row))
    }

    fn wants_one(&self, row: &Row) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|name| row.name.contains(name.as_str()))
    }

    /// Takes a figure and what it is made of.
    pub(crate) fn put(&mut self, row: &'static Row, figure: f64, made_of: impl Into<String>) {
        self.add(row, Came::To(figure, made_of.into()));
    }

    /// Takes note that rows could not be measured here.
    pub(crate) fn skip(&mut self, rows: &'static [Row], why: &str) {
        for row in rows {
            self.add(row, Came::Skipped(why.into()));
        }
    }

    fn add(&mut self, row: &'static Row, came: Came) {
        if self.wants_one(row) {
            self.lines.push((row, came));
            // Seen as it comes: the whole table takes minutes.
            if let Some((row, came)) = self.lines.last() {
                eprintln!("{}", line(row, came));
            }
        }
    }

    /// As Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from("| row | what | bar | measured | made of |\n|---|---|---|---|---|\n");
        for (row, came) in &self.lines {
            let _ = writeln!(text, "{}", line(row, came));
        }
        text
    }

    /// As JSON.
    pub(crate) fn json(&self, machine: &Value) -> Value {
        let rows: Vec<Value> = self
            .lines
            .iter()
            .map(|(row, came)| {
                let (most, least) = match row.bar {
                    Bar::AtMost(most) => (Some(most), None),
                    Bar::AtLeast(least) => (None, Some(least)),
                };
                let (figure, note, skipped) = match came {
                    Came::To(figure, made_of) => (Some(figure), made_of, false),
                    Came::Skipped(why) => (None, why, true),
                };
                json!({
                    "row": row.name,
                    "what": row.what,
                    "unit": row.unit.sign(),
                    "at_most": most,
                    "at_least": least,
                    "goal": row.goal,
                    "figure": figure,
                    "holds": figure.map(|figure| holds(row, *figure)),
                    "skipped": skipped,
                    "note": note,
                })
            })
            .collect();
        json!({ "machine": machine, "rows": rows })
    }

    /// The names of the rows that fall short, that miss a goal, and that were skipped.
    pub(crate) fn verdict(&self) -> [Vec<&'static str>; 3] {
        let mut verdict = [const { Vec::new() }; 3];
        for (row, came) in &self.lines {
            match came {
                Came::Skipped(_) => verdict[2].push(row.name),
                Came::To(figure, _) if !holds(row, *figure) => verdict[usize::from(row.goal)].push(row.name),
                Came::To(..) => {}
            }
        }
        verdict
    }
}

fn holds(row: &Row, figure: f64) -> bool {
    match row.bar {
        Bar::AtMost(most) => figure <= most,
        Bar::AtLeast(least) => figure >= least,
    }
}

fn line(row: &Row, came: &Came) -> String {
    let sign = row.unit.sign();
    let bar = match row.bar {
        Bar::AtMost(most) => format!("≤ {most} {sign}"),
        Bar::AtLeast(least) => format!("≥ {least} {sign}"),
    };
    let goal = if row.goal { " (a goal)" } else { "" };
    let (figure, note) = match came {
        Came::To(figure, made_of) => {
            let short = if holds(row, *figure) { "" } else { " **short**" };
            (format!("{figure:.2} {sign}{short}"), made_of)
        }
        Came::Skipped(why) => ("skipped".into(), why),
    };
    format!("| {} | {} | {bar}{goal} | {figure} | {note} |", row.name, row.what)
}

/// The median; of an even number, the upper one.
pub(crate) fn median(values: &[f64]) -> f64 {
    share(values, 0.5)
}

/// The value below which so great a share of them lies.
pub(crate) fn share(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )] // A few thousand.
    let at = (sorted.len() as f64 * share) as usize;
    sorted
        .get(at.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(f64::NAN)
}
