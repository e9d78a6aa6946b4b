//! `edit`: exact replacement, which refuses to guess.

use std::io::Read as _;

use fief_plugin::{Output, ToolError};
use memchr::memmem;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::place::{Deed, Place};
use crate::text;
use crate::write::replace;

/// What is replaced.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// Relative to the working directory, or absolute.
    pub(crate) path: String,
    /// The text to replace, exactly as it stands in the file.
    pub(crate) old: String,
    /// What to put in its place.
    pub(crate) new: String,
    /// Replace every occurrence; absent: `old` must occur once.
    #[serde(default)]
    pub(crate) all: Option<bool>,
}

/// More than any text that people edit; a call holds old and new content at once.
const LARGEST: u64 = 16 << 20;
/// Lines shown around a change, or as the nearest text.
const AROUND: usize = 3;
/// Occurrences whose lines are named.
const NAMED: usize = 10;

pub(crate) fn edit(place: &Place, args: &Edit) -> Result<Output, ToolError> {
    if args.old.is_empty() {
        return Err(ToolError::invalid(
            "`old` is empty: quote the text to replace, or create a file with write",
        ));
    }
    if args.old == args.new {
        return Err(ToolError::invalid("`old` and `new` are the same: nothing would change"));
    }
    let spot = place.find(&args.path)?;
    let shown = &spot.shown;
    let (mut file, size) = place.open(&spot)?;
    if size > LARGEST {
        return Err(ToolError::failed(format!(
            "`{shown}` has {size} bytes; at most {LARGEST} can be edited"
        )));
    }
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.read_to_end(&mut content)
        .map_err(|error| place.explain(&spot, Deed::Read, &error))?;
    drop(file);
    let change = replaced(&content, &args.old, &args.new, args.all.unwrap_or(false))
        .map_err(|refusal| ToolError::failed(format!("`{shown}`: {refusal}; nothing was changed")))?;
    replace(&spot, &change.content).map_err(|error| place.explain(&spot, Deed::Write, &error))?;
    let replacements = text::count(change.lines.len() as u64, "replacement", "replacements");
    let around = excerpt(&change.content, change.lines[0], change.height);
    Ok(Output::text(format!("edited `{shown}`: {replacements}\n{around}")))
}

/// What an edit comes to.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) content: Vec<u8>,
    /// The line on which each replacement starts, from 1, in the new content.
    pub(crate) lines: Vec<usize>,
    /// Lines of the replacement.
    height: usize,
}

/// `content` with `new` in place of `old`; or why not.
pub(crate) fn replaced(content: &[u8], old: &str, new: &str, all: bool) -> Result<Change, String> {
    let (old, new) = match line_breaks(content) {
        // A file that ends its lines with CR LF keeps doing so, whatever the model wrote.
        Breaks::CrLf => (with_crlf(old), with_crlf(new)),
        Breaks::Lf => (old.to_owned(), new.to_owned()),
        Breaks::Mixed if memmem::find(content, old.as_bytes()).is_some() => (old.to_owned(), new.to_owned()),
        Breaks::Mixed => (with_crlf(old), with_crlf(new)),
    };
    if old == new {
        return Err("`old` and `new` differ only in line breaks, which the file keeps as they are".to_owned());
    }
    let found: Vec<usize> = memmem::find_iter(content, old.as_bytes()).collect();
    match found.len() {
        0 => return Err(format!("`old` does not occur{}", nearest(content, &old))),
        1 => {}
        _ if all => {}
        times => {
            let lines: Vec<_> = found
                .iter()
                .take(NAMED)
                .map(|at| line_at(content, *at).to_string())
                .collect();
            let more = if times > NAMED { ", …" } else { "" };
            return Err(format!(
                "`old` occurs {times} times, on lines {}{more}: take in more of the lines around the one you mean, or \
                 pass `all`",
                lines.join(", ")
            ));
        }
    }
    let mut changed = Vec::with_capacity(content.len() + new.len());
    let (mut copied, mut counted, mut line, mut lines) = (0, 0, 1, Vec::new());
    for at in found {
        changed.extend_from_slice(&content[copied..at]);
        line += breaks(&changed[counted..]);
        lines.push(line);
        counted = changed.len();
        changed.extend_from_slice(new.as_bytes());
        copied = at + old.len();
    }
    changed.extend_from_slice(&content[copied..]);
    Ok(Change {
        content: changed,
        lines,
        height: new.lines().count().max(1),
    })
}

enum Breaks {
    Lf,
    CrLf,
    Mixed,
}

fn line_breaks(content: &[u8]) -> Breaks {
    let lf = breaks(content);
    let crlf = memmem::find_iter(content, b"\r\n").count();
    match crlf {
        0 => Breaks::Lf,
        _ if crlf == lf => Breaks::CrLf,
        _ => Breaks::Mixed,
    }
}

fn breaks(content: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', content).count()
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn line_at(content: &[u8], position: usize) -> usize {
    1 + breaks(&content[..position])
}

/// The lines around a change, numbered as read shows them.
fn excerpt(content: &[u8], line: usize, height: usize) -> String {
    let first = line.saturating_sub(AROUND).max(1);
    let last = line + height.min(20) - 1 + AROUND;
    numbered(content, first, last)
}

fn numbered(content: &[u8], first: usize, last: usize) -> String {
    let lines = content.split_inclusive(|byte| *byte == b'\n').enumerate();
    let wanted = lines.skip(first - 1).take(last + 1 - first);
    let show = |(index, line): (usize, &[u8])| {
        let (line, beyond) = text::cut(text::without_break(line), 300);
        let more = if beyond > 0 { "…" } else { "" };
        format!("{:>6}\t{line}{more}", index + 1)
    };
    wanted.map(show).collect::<Vec<_>>().join("\n")
}

/// Where the text that was probably meant stands, and how it reads there.
fn nearest(content: &[u8], old: &str) -> String {
    const HINT: &str = "\nhint: read the file again and copy `old` from it, without line numbers";
    let wanted: Vec<&str> = old.lines().map(str::trim).collect();
    let Some(anchor) = wanted.iter().position(|line| !line.is_empty()) else {
        return HINT.to_owned();
    };
    let lines: Vec<String> = content
        .split(|byte| *byte == b'\n')
        .map(|line| String::from_utf8_lossy(line).trim().to_owned())
        .collect();
    let alike = |at: &usize| {
        lines[*at..]
            .iter()
            .zip(&wanted[anchor..])
            .all(|(line, wanted)| line == wanted)
    };
    let height = wanted.len();
    let from = |at: usize| {
        (
            at.saturating_sub(anchor) + 1,
            at.saturating_sub(anchor) + height.min(12),
        )
    };
    if let Some(at) = (0..lines.len())
        .find(alike)
        .filter(|at| lines.len() - at >= height - anchor)
    {
        let (first, last) = from(at);
        return format!(
            ", but for white space it does, on line {first}:\n{}",
            numbered(content, first, last)
        );
    }
    // Comparing every line of a big file would take longer than reading it again.
    let compared = lines
        .iter()
        .take(5_000)
        .enumerate()
        .filter(|(_, line)| line.len() <= 400);
    let scored = compared.map(|(at, line)| (strsim::normalized_levenshtein(line, wanted[anchor]), at));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    match best.filter(|(likeness, _)| *likeness > 0.6) {
        Some((_, at)) => {
            let (first, last) = from(at);
            format!(
                "; the nearest text is on line {first}:\n{}",
                numbered(content, first, last)
            )
        }
        None => HINT.to_owned(),
    }
}
