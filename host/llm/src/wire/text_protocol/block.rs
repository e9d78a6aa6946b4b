//! One block: its header, its arguments, its end.

use fief_core::message::Arguments;
use serde_json::{Map, Value};

use super::lenient;
use crate::arguments;

pub(super) const OPEN: &str = "<use_mcp_tool>";
pub(super) const CLOSE: &str = "</use_mcp_tool>";
const ARGUMENTS: &str = "<arguments>";
const ARGUMENTS_END: &str = "</arguments>";
/// How many closing tags are tried as the end of arguments that do not parse.
const MAX_ENDS: usize = 8;
const CUT: &str = "the call was cut off: write the whole block again";

/// What a block came to.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Block {
    /// A sound call.
    Call {
        server: String,
        tool: String,
        arguments: Map<String, Value>,
    },
    /// A call that cannot be carried out.
    Broken {
        server: Option<String>,
        tool: Option<String>,
        raw: String,
        why: String,
    },
}

/// Whether a block begins before `after`, where an opening tag has just ended; `None` if that cannot be said yet.
/// `first` and `alone` say whether the tag stands first, and alone, on its line.
pub(super) fn begins(after: &str, first: bool, alone: bool, whole: bool) -> Option<bool> {
    let next = after.trim_start();
    if next.is_empty() || (next.len() < CLOSE.len() && CLOSE.starts_with(next)) {
        return whole.then_some(first);
    }
    Some(if next.starts_with(CLOSE) {
        first
    } else if next.starts_with('<') {
        true
    } else {
        first && alone
    })
}

/// Reads the block whose opening tag stands at `start`: the block, and where it ends. `None` if it is not at its end
/// yet and more text may come.
pub(super) fn read(text: &str, start: usize, whole: bool) -> Option<(Block, usize)> {
    let mut header = Header::default();
    let at = match header.read(text, start + OPEN.len()) {
        Ok(at) => at,
        Err(_) if !whole => return None,
        Err(why) => {
            let end = end_of_broken(text, start + OPEN.len());
            return Some((header.broken(&text[start..end], why), end));
        }
    };
    let body = Body::new(text, at);
    let (outcome, end) = body.read(whole)?;
    let block = match outcome {
        Ok(arguments) => Block::Call {
            server: header.server.unwrap_or_default(),
            tool: header.tool.unwrap_or_default(),
            arguments,
        },
        Err((raw, why)) => header.broken(&raw, why),
    };
    Some((block, end))
}

/// The nearest place at or before `at` between two characters.
pub(super) fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

#[derive(Default)]
struct Header {
    server: Option<String>,
    tool: Option<String>,
}

impl Header {
    /// Reads up to the beginning of the arguments.
    fn read(&mut self, text: &str, at: usize) -> Result<usize, String> {
        let (server, at) = element(text, at, "server_name")?;
        self.server = Some(server);
        let (tool, at) = element(text, at, "tool_name")?;
        self.tool = Some(tool);
        let at = skip_blank(text, at);
        if text[at..].starts_with(ARGUMENTS) {
            return Ok(at + ARGUMENTS.len());
        }
        Err(misplaced(text, at, ARGUMENTS))
    }

    fn broken(self, raw: &str, why: String) -> Block {
        Block::Broken {
            server: self.server,
            tool: self.tool,
            raw: raw.to_owned(),
            why,
        }
    }
}

/// An element that holds one name, and where it ends.
fn element(text: &str, at: usize, name: &str) -> Result<(String, usize), String> {
    let at = skip_blank(text, at);
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    if !text[at..].starts_with(&open) {
        return Err(misplaced(text, at, &open));
    }
    let at = at + open.len();
    let length = text[at..].find('<').ok_or(CUT)?;
    let value = text[at..at + length].trim();
    if !text[at + length..].starts_with(&close) {
        return Err(misplaced(text, at + length, &close));
    }
    if value.is_empty() {
        return Err(format!("`{open}` is empty"));
    }
    Ok((value.to_owned(), at + length + close.len()))
}

fn misplaced(text: &str, at: usize, wanted: &str) -> String {
    let found: String = text[at..].chars().take(24).collect();
    if found.is_empty() {
        return CUT.to_owned();
    }
    format!(
        "`{wanted}` must stand where `{}` stands: a block holds `<server_name>`, `<tool_name>` and `<arguments>`, in \
         this order, each with its closing tag",
        found.trim_end()
    )
}

fn skip_blank(text: &str, at: usize) -> usize {
    text.len() - text[at..].trim_start().len()
}

/// The next opening tag that begins a block, first on its line.
fn next_opening(text: &str, from: usize) -> usize {
    let opens = |at: &usize| {
        let before = text[from..*at].trim_end_matches([' ', '\t']);
        (before.is_empty() || before.ends_with('\n')) && text[*at + OPEN.len()..].trim_start().starts_with('<')
    };
    let found = text[from..].match_indices(OPEN).map(|(at, _)| from + at).find(opens);
    found.unwrap_or(text.len())
}

/// Where a block ends whose header is broken: behind its closing tag, which is sought behind its arguments if these can
/// be told apart, since they may hold the tag as well.
fn end_of_broken(text: &str, from: usize) -> usize {
    let limit = next_opening(text, from);
    let behind = text[from..limit].find(ARGUMENTS).and_then(|at| {
        let body = skip_blank(text, from + at + ARGUMENTS.len());
        lenient::object_end(text.get(body..limit)?).map(|length| body + length)
    });
    let from = behind.unwrap_or(from);
    text[from..limit]
        .find(CLOSE)
        .map_or(limit, |at| from + at + CLOSE.len())
}

/// The arguments of a block, and everything to its end.
struct Body<'a> {
    text: &'a str,
    /// Where the arguments begin, behind white space and a code fence.
    start: usize,
}

/// The arguments, or what stands in their place and why it cannot be read.
type Outcome = Result<Map<String, Value>, (String, String)>;

impl<'a> Body<'a> {
    fn new(text: &'a str, at: usize) -> Self {
        let mut start = skip_blank(text, at);
        if text[start..].starts_with("```") {
            let line = text[start..].find('\n').unwrap_or(text.len() - start);
            start = skip_blank(text, start + line);
        }
        Self { text, start }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.start..]
    }

    fn read(&self, whole: bool) -> Option<(Outcome, usize)> {
        if self.rest().starts_with(ARGUMENTS_END) {
            let (end, closed) = self.end(self.start);
            return (whole || closed).then(|| (Ok(Map::new()), end));
        }
        // No sound JSON string holds a line break, so that no opening tag first on its line lies inside of one.
        let opening = next_opening(self.text, self.start);
        if self.rest().starts_with('{')
            && let Some(length) = lenient::object_end(&self.text[self.start..opening])
        {
            return self.object(length, opening, whole);
        }
        whole.then(|| self.doubtful())
    }

    /// Arguments whose end is known.
    fn object(&self, length: usize, opening: usize, whole: bool) -> Option<(Outcome, usize)> {
        let (body, after) = (&self.rest()[..length], self.start + length);
        let ahead = &self.text[after..opening];
        let closer = [ARGUMENTS_END, CLOSE]
            .iter()
            .filter_map(|tag| ahead.find(tag))
            .min()
            .unwrap_or(ahead.len());
        let (end, closed) = self.end(after + closer);
        if !whole && !closed {
            return None;
        }
        let trailing = without_tags(ahead[..closer].trim().trim_start_matches("```"));
        let outcome = if trailing.contains(['{', '}', '[', ']', '"', ':']) {
            Err(format!(
                "something follows the JSON object: `{}`",
                trailing.chars().take(40).collect::<String>()
            ))
        } else {
            object(body)
        };
        Some((
            outcome.map_err(|why| (self.rest()[..length + closer].trim_end().to_owned(), why)),
            end,
        ))
    }

    /// Arguments whose end only a closing tag shows.
    fn doubtful(&self) -> (Outcome, usize) {
        let region = &self.text[self.start..next_opening(self.text, self.start)];
        let ends = |tag: &str| -> Vec<usize> { region.match_indices(tag).map(|(at, _)| at).take(MAX_ENDS).collect() };
        let mut found = ends(ARGUMENTS_END);
        let closed = found.len() == 1;
        if found.is_empty() {
            found = ends(CLOSE);
        }
        let Some(last) = found.last().copied() else {
            return (
                Err((region.trim_end().to_owned(), CUT.to_owned())),
                self.start + region.len(),
            );
        };
        let mut first_error = None;
        for end in found {
            let body = region[..end].trim_end().trim_end_matches("```").trim_end();
            let outcome = if body.starts_with('{') {
                lenient::object(body, closed)
            } else {
                object(body)
            };
            match outcome {
                Ok(arguments) => return (Ok(arguments), self.end(self.start + end).0),
                Err(why) => first_error = first_error.or(Some(why)),
            }
        }
        let why = first_error.unwrap_or_default();
        (
            Err((region[..last].trim_end().to_owned(), why)),
            self.end(self.start + last).0,
        )
    }

    /// Where the block ends whose arguments end at `at`, and whether both closing tags are there. A tag in their place
    /// that is neither is part of the block as well.
    fn end(&self, at: usize) -> (usize, bool) {
        let mut at = at;
        let mut closed = true;
        for tag in [ARGUMENTS_END, CLOSE] {
            let next = skip_blank(self.text, at);
            let rest = &self.text[next..];
            if rest.starts_with(tag) {
                at = next + tag.len();
            } else {
                closed = false;
                if !rest.starts_with(CLOSE)
                    && let Some(length) = tag_length(rest)
                {
                    at = next + length;
                }
            }
        }
        (at, closed)
    }
}

/// A JSON object, strictly if that is possible, else as far as only one reading is.
fn object(body: &str) -> Result<Map<String, Value>, String> {
    match arguments::parse(body) {
        Arguments::Object(map) => Ok(map),
        Arguments::Malformed { why, .. } if !body.starts_with('{') => Err(why),
        Arguments::Malformed { .. } => lenient::object(body, false),
    }
}

/// The length of a closing tag at the start of `text`.
fn tag_length(text: &str) -> Option<usize> {
    let name = text.strip_prefix("</")?;
    let length = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    name[length..].starts_with('>').then_some(length + 3)
}

/// A text without the closing tags at its start.
fn without_tags(mut text: &str) -> &str {
    while let Some(length) = tag_length(text) {
        text = text[length..].trim_start();
    }
    text
}
