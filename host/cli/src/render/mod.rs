//! What a person sees of a run: lines, or a live view on a terminal. The only place from which events are printed.

use std::io::{IsTerminal as _, Write as _};

use fief_core::event::Event;

mod lines;
mod live;
pub(crate) mod source;
pub(crate) mod text;
pub(crate) mod tree;

use lines::Narrator;
use live::Live;
use text::Paint;

/// How a run is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// One event a line on standard output.
    Json,
    /// Nothing but the report.
    Quiet,
    /// Lines on standard error, live where it is a terminal.
    People,
}

/// Shows the events of a run, one after the other.
pub(crate) struct View {
    shape: Shape,
}

enum Shape {
    Json,
    Quiet,
    Plain(Box<Narrator>),
    Live(Box<Live>),
}

impl View {
    pub(crate) fn new(mode: Mode) -> Self {
        let shape = match mode {
            Mode::Json => Shape::Json,
            Mode::Quiet => Shape::Quiet,
            Mode::People if std::io::stderr().is_terminal() => {
                Shape::Live(Box::new(Live::new(Narrator::new(Paint::for_stderr(), text::width()))))
            }
            Mode::People => Shape::Plain(Box::new(Narrator::new(Paint::plain(), None))),
        };
        Self { shape }
    }

    /// Shows one event. An output that was closed ends nothing: the run goes on, and its record has it all.
    pub(crate) fn event(&mut self, event: &Event) {
        match &mut self.shape {
            Shape::Json => json(event),
            Shape::Quiet => {}
            Shape::Plain(narrator) => {
                let mut out = std::io::stderr().lock();
                for line in narrator.event(event) {
                    let _ = writeln!(out, "{line}");
                }
            }
            Shape::Live(live) => live.event(event),
        }
    }

    /// Takes what moves off the screen, so that a question or the report can be printed.
    pub(crate) fn pause(&mut self) {
        if let Shape::Live(live) = &mut self.shape {
            live.clear();
        }
    }
}

/// Prints a report, or other data, on standard output: as it is into a file or a pipe, sanitised on a terminal.
pub(crate) fn data(content: &str) {
    let mut out = std::io::stdout().lock();
    let shown = if out.is_terminal() {
        text::sanitise(content)
    } else {
        content.to_owned()
    };
    let end = if shown.ends_with('\n') { "" } else { "\n" };
    let _ = write!(out, "{shown}{end}").and_then(|()| out.flush());
}

/// Prints one line of JSON on standard output.
pub(crate) fn json(value: &impl serde::Serialize) {
    if let Ok(mut line) = text::json(value) {
        line.push('\n');
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    }
}

/// Prints lines on standard output that are sanitised, and perhaps painted, already.
pub(crate) fn painted(lines: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{lines}").and_then(|()| out.flush());
}

/// Prints lines for people on standard error that are sanitised, and perhaps painted, already.
pub(crate) fn painted_note(lines: &str) {
    let mut err = std::io::stderr().lock();
    let _ = writeln!(err, "{lines}");
}

/// Prints a line for people on standard error.
pub(crate) fn note(line: &str) {
    let mut err = std::io::stderr().lock();
    let _ = writeln!(err, "{}", text::sanitise(line));
}

/// Prints a warning on standard error; its lines that start with `hint: ` are hints.
pub(crate) fn warn(message: &str) {
    let paint = Paint::for_stderr();
    let mut err = std::io::stderr().lock();
    let (hints, lines): (Vec<&str>, Vec<&str>) = message.lines().partition(|line| line.starts_with("hint: "));
    let _ = writeln!(
        err,
        "{} {}",
        paint.yellow("warning:"),
        text::sanitise(&lines.join("\n"))
    );
    for hint in hints {
        let hint = hint.trim_start_matches("hint: ");
        let _ = writeln!(err, "{} {}", paint.cyan("hint:"), text::sanitise(hint));
    }
}

/// Prints why a command failed, and what to do about it on a line of its own.
pub(crate) fn fault(message: &str, hints: &[String]) {
    let paint = Paint::for_stderr();
    let mut err = std::io::stderr().lock();
    let _ = writeln!(err, "{} {}", paint.red("error:"), text::sanitise(message));
    for hint in hints {
        let _ = writeln!(err, "{} {}", paint.cyan("hint:"), text::sanitise(hint));
    }
}
