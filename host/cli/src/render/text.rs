//! Text that a terminal can show: without escapes, no wider than the line, in the colours that are wanted.

use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The text with everything that a terminal would obey rather than show made visible: control characters and escape
/// sequences (C0 but for line feed and tab, DEL, C1) and the marks that turn the direction of writing, with which a
/// text can be made to read as another.
pub(crate) fn sanitise(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            '\u{0}'..='\u{1f}' => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
            '\u{7f}' => out.push('\u{2421}'),
            _ if obeyed(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out
}

/// One line of JSON with the same marks escaped: JSON itself escapes only C0, and a line of it may end on a terminal.
pub(crate) fn json(value: &impl serde::Serialize) -> serde_json::Result<String> {
    let line = serde_json::to_string(value)?;
    if !line.contains(obeyed) {
        return Ok(line);
    }
    let mut out = String::with_capacity(line.len() + 64);
    for c in line.chars() {
        if obeyed(c) {
            // All of them are in the basic plane, so that one escape holds each; they stand only inside strings.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Ok(out)
}

/// What a terminal obeys beside C0: DEL, C1, and the marks that turn the direction of writing or end a line.
fn obeyed(c: char) -> bool {
    matches!(
        c,
        '\u{7f}'..='\u{9f}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{061c}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{2028}'
            | '\u{2029}'
    )
}

/// The text on one line: sanitised, white space of any length one blank.
pub(crate) fn one_line(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
        if out.len() > 4_000 {
            break; // No line is as wide; a megabyte of text is not worth laying out.
        }
    }
    sanitise(&out)
}

/// The text as lines of at most `width` columns, sanitised: for words that must not pass for the host's own.
pub(crate) fn quoted(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let (mut out, mut used) = (String::new(), 0);
        // A tab is as wide as the terminal likes.
        for c in sanitise(&line.replace('\t', " ")).chars() {
            let columns = c.width().unwrap_or(0);
            if used + columns > width {
                lines.push(std::mem::take(&mut out));
                used = 0;
            }
            used += columns;
            out.push(c);
        }
        lines.push(out);
    }
    lines
}

/// The start of a line that fits `width` columns, with `…` where something is missing.
pub(crate) fn fit(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in line.chars() {
        let columns = c.width().unwrap_or(0);
        if used + columns + 1 > width {
            break;
        }
        used += columns;
        out.push(c);
    }
    out.push('…');
    out
}

/// The end of a text that fits `width` columns.
pub(crate) fn fit_end(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let mut kept: Vec<char> = Vec::new();
    let mut used = 0;
    for c in line.chars().rev() {
        let columns = c.width().unwrap_or(0);
        if used + columns + 1 > width {
            break;
        }
        used += columns;
        kept.push(c);
    }
    std::iter::once('…').chain(kept.into_iter().rev()).collect()
}

/// How wide the terminal of standard error is.
pub(crate) fn width() -> Option<usize> {
    let (columns, _) = terminal_size::terminal_size_of(std::io::stderr())?;
    (columns.0 > 0).then_some(usize::from(columns.0))
}

/// `1,234,567`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `12 ms`, `3.4 s`, `2 min 05 s`.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min {:02} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

/// `1 turn`, `2 turns`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let end = if number == 1 { "" } else { "s" };
    format!("{} {noun}{end}", thousands(number))
}

/// Colours, where they are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(bool);

impl Paint {
    /// As standard error, `NO_COLOR` and their kin say.
    pub(crate) fn for_stderr() -> Self {
        Self(!matches!(
            anstream::AutoStream::choice(&std::io::stderr()),
            anstream::ColorChoice::Never
        ))
    }

    /// As standard output, `NO_COLOR` and their kin say.
    pub(crate) fn for_stdout() -> Self {
        Self(!matches!(
            anstream::AutoStream::choice(&std::io::stdout()),
            anstream::ColorChoice::Never
        ))
    }

    /// None.
    pub(crate) fn plain() -> Self {
        Self(false)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.0 {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_made_visible() {
        for (text, shown) in [
            ("plain\n\ttext", "plain\n\ttext"),
            ("\u{1b}[2J\u{1b}]0;title\u{7}", "␛[2J␛]0;title␇"),
            ("over\rwritten\u{8}", "over␍written␈"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("exe\u{202e}txt.", "exe\\u{202e}txt."),
            ("ünï 漢字", "ünï 漢字"),
        ] {
            assert_eq!(sanitise(text), shown);
        }
    }

    #[test]
    fn json_holds_nothing_that_a_terminal_would_obey_and_reads_back_as_it_was() {
        let text = "\u{9b}31m\u{7f} \u{202e}txt\u{2028}\u{1b}[0m plain é 字";
        let line = json(&text).unwrap();
        assert!(!line.contains(|c: char| c.is_control() || obeyed(c)), "{line:?}");
        assert!(line.contains("\\u009b31m") && line.contains("é 字"));
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }

    #[test]
    fn lines_fit_their_width() {
        assert_eq!(fit("short", 10), "short");
        assert_eq!(fit("a long line", 6), "a lon…");
        assert_eq!(fit("漢字漢字", 5), "漢字…");
        assert_eq!(fit_end("a long line", 5), "…line");
        assert_eq!(one_line("  two\n\n lines\u{1b} "), "two lines␛");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(12), "12");
        assert_eq!(
            (duration(12), duration(3_450), duration(125_000)),
            ("12 ms".into(), "3.4 s".into(), "2 min 05 s".into())
        );
        assert_eq!(
            (count(1, "turn"), count(2_000, "turn")),
            ("1 turn".into(), "2,000 turns".into())
        );
    }
}
