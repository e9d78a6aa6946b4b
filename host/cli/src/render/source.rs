//! Errors of manifests with the line that they are about, and carets under what is wrong in it.
//!
//! Written by hand: a manifest may be a stranger's, so that the line must be sanitised and cut like any other text,
//! which renderers of diagnostics do not do.

use fief_core::manifest::error::{ManifestError, ManifestWarning, Place};
use unicode_width::UnicodeWidthStr as _;

use super::text::{fit, sanitise, width};

/// How wide a line may be where no terminal says.
const WIDEST: usize = 160;

pub(crate) fn error(error: &ManifestError) -> String {
    format!("{error}{}", pointer(&error.place))
}

pub(crate) fn warning(warning: &ManifestWarning) -> String {
    let hint = warning
        .hint
        .as_ref()
        .map(|hint| format!("\nhint: {hint}"))
        .unwrap_or_default();
    format!("{warning}{}{hint}", pointer(&warning.place))
}

/// The line of a place and the carets below it; nothing where the text is not known or must not be shown.
fn pointer(place: &Place) -> String {
    let text = &place.source.text;
    if text.trim().is_empty() {
        return String::new();
    }
    let start = text[..place.span.start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
    let line = &text[start..end];
    if line.trim().is_empty() {
        return String::new();
    }
    let at = place.span.start - start;
    let marked = &line[at.min(line.len())..(place.span.end.min(end) - start).max(at).min(line.len())];
    // A tab is as wide as its terminal likes; one blank keeps the carets below what they mean.
    let shown = |text: &str| sanitise(&text.replace(['\t', '\r'], " "));
    let number = place.line.to_string();
    let margin = " ".repeat(number.len());
    let room = width().unwrap_or(WIDEST).saturating_sub(number.len() + 5).max(20);
    let before = shown(&line[..at.min(line.len())]).width();
    let carets = shown(marked.trim_end()).width().max(1);
    let mut out = format!("\n  {number} | {}", fit(shown(line).trim_end(), room));
    if before < room {
        let carets = "^".repeat(carets.min(room - before));
        out.push_str(&format!("\n  {margin} | {}{carets}", " ".repeat(before)));
    }
    out
}

#[cfg(test)]
mod tests {
    use fief_core::manifest::error::Source;

    use super::*;

    fn shown(text: &str, what: &str) -> String {
        let at = text.find(what).expect("it is there");
        let place = Source::new("a.toml", text).place(at..at + what.len());
        error(&ManifestError::at(place, "wrong"))
    }

    #[test]
    fn a_manifest_error_points_at_its_line() {
        assert_eq!(
            shown("name = \"a\"\nmax_turn = 3\n", "max_turn"),
            "a.toml:2:1: wrong\n  2 | max_turn = 3\n    | ^^^^^^^^"
        );
        assert_eq!(
            shown("\tnäme = \"日本\" # 3", "\"日本\""),
            "a.toml:1:9: wrong\n  1 |  näme = \"日本\" # 3\n    |         ^^^^^^"
        );
        assert_eq!(
            shown("a = [\n1,\n]", "[\n1,\n]"),
            "a.toml:1:5: wrong\n  1 | a = [\n    |     ^"
        );
    }

    #[test]
    fn a_strangers_line_moves_no_terminal_and_is_cut() {
        let text = shown(&format!("x = \"\u{1b}[2J{}\"", "y".repeat(10_000)), "x");
        assert!(!text.contains('\u{1b}') && text.len() < 600, "{text}");
    }

    #[test]
    fn what_must_not_be_shown_or_is_not_there_points_nowhere() {
        let place = Source::new("a.toml", "key = \"sk-1\"").place(0..3);
        let hidden = ManifestError::at(place, "wrong").without_text();
        assert!(!error(&hidden).contains('\n'));
        assert_eq!(error(&ManifestError::of_file("a.toml", "wrong")), "a.toml: wrong");
        let end = Source::new("a.toml", "a\n").place(2..2);
        assert_eq!(error(&ManifestError::at(end, "wrong")), "a.toml:2:1: wrong");
    }
}
