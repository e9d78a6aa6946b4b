//! `read`: a part of a file, whose size does not matter: it is never held whole.

use std::io::{self, BufRead, BufReader, Read as _};

use encoding_rs_io::DecodeReaderBytesBuilder;
use fief_plugin::{Output, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::patience::Patience;
use crate::place::{Deed, Place, Spot};
use crate::text;

/// What is read.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    /// Relative to the working directory, or absolute.
    pub(crate) path: String,
    /// The first line to show; absent: 1.
    #[schemars(range(min = 1))]
    #[serde(default)]
    pub(crate) offset: Option<u64>,
    /// How many lines to show at most; absent: 2000.
    #[schemars(range(min = 1))]
    #[serde(default)]
    pub(crate) limit: Option<u64>,
}

/// About as much as a model reads with profit at once.
const LINES: u64 = 2_000;
/// A quarter of what a call may return by default, some 16,000 tokens.
const BYTES: usize = 64 << 10;
/// Of one line. What is longer was written by a program.
const LINE: usize = 2_000;
/// What models accept at most, in base64 5 MiB.
const IMAGE: u64 = 3_900_000;
/// How far beyond what is shown lines are counted.
const COUNTED: u64 = 16 << 20;
/// Enough to tell text from anything else.
const HEAD: usize = 8 << 10;

pub(crate) fn read(place: &Place, args: &Read) -> Result<Output, ToolError> {
    for (key, value) in [("offset", args.offset), ("limit", args.limit)] {
        if value == Some(0) {
            return Err(ToolError::invalid(format!("`{key}` is 0: lines are counted from 1")));
        }
    }
    let spot = place.find(&args.path)?;
    let (mut file, size) = place.open(&spot)?;
    let mut head = Vec::with_capacity(HEAD);
    let failed = |error: io::Error| place.explain(&spot, Deed::Read, &error);
    file.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
    if head.is_empty() {
        return Ok(Output::text(format!("(`{}` is empty)", spot.shown)));
    }
    if let Some(media_type) = image(&head) {
        if size > IMAGE {
            let shown = &spot.shown;
            return Err(ToolError::failed(format!(
                "`{shown}` is an image ({media_type}) of {size} bytes; at most {IMAGE} can be shown"
            )));
        }
        file.read_to_end(&mut head).map_err(failed)?;
        return Ok(Output::image(media_type, head));
    }
    let wide = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
    if !wide && head.contains(&0) {
        return Ok(Output::text(format!(
            "(`{}` is {}, {size} bytes; not shown)",
            spot.shown,
            binary(&head)
        )));
    }
    // UTF-16 is decoded where the file says that it is; everything else is taken for UTF-8.
    let decoder = DecodeReaderBytesBuilder::new()
        .utf8_passthru(true)
        .strip_bom(true)
        .build(head.as_slice().chain(file));
    let lines = Lines {
        reader: BufReader::with_capacity(256 << 10, decoder),
        patience: Patience::new(),
        read: 0,
    };
    window(&spot, lines, args.offset.unwrap_or(1), args.limit.unwrap_or(LINES)).map_err(|fault| match fault {
        Fault::System(error) => failed(error),
        Fault::Told(error) => error,
    })
}

enum Fault {
    System(io::Error),
    Told(ToolError),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// `limit` lines from line `offset` on.
fn window<R: io::Read>(spot: &Spot, mut lines: Lines<R>, offset: u64, limit: u64) -> Result<Output, Fault> {
    let shown = &spot.shown;
    let mut number = 1;
    while number < offset {
        match lines.skip()? {
            Skipped::Line => number += 1,
            Skipped::End => {
                let there_are = text::count(number - 1, "line", "lines");
                let error = format!("`{shown}` has {there_are}: line {offset} is past its end");
                return Err(Fault::Told(ToolError::invalid(error)));
            }
            Skipped::Impatient => {
                let error =
                    format!("`{shown}` is too big: line {number} was reached after 4 s; search it with grep instead");
                return Err(Fault::Told(ToolError::failed(error)));
            }
        }
    }
    let (mut out, mut long, mut lossy) = (String::new(), false, false);
    let mut ended = false;
    let mut line = Vec::new();
    while number - offset < limit && out.len() < BYTES {
        line.clear();
        let left_out = lines.next(&mut line)?;
        let Some(left_out) = left_out else {
            ended = true;
            break;
        };
        let (line, beyond) = text::cut(text::without_break(&line), LINE);
        lossy |= line.contains('\u{fffd}');
        out += &format!("{number:>6}\t{line}");
        if left_out + beyond as u64 > 0 {
            long = true;
            out += &format!("… (+{} bytes)", left_out + beyond as u64);
        }
        out.push('\n');
        number += 1;
    }
    if number == offset {
        let there_are = text::count(number - 1, "line", "lines");
        let error = format!("`{shown}` has {there_are}: line {offset} is past its end");
        return Err(Fault::Told(ToolError::invalid(error)));
    }
    let last = number - 1;
    let mut notes = Vec::new();
    if !ended && let Some(total) = lines.count_rest(last)? {
        match total {
            Total::Exactly(total) if total == last => {}
            Total::Exactly(total) => {
                notes.push(format!("lines {offset}-{last} of {total}; to go on: `offset` {number}"));
            }
            Total::AtLeast(total) => {
                notes.push(format!(
                    "lines {offset}-{last} of more than {total}; to go on: `offset` {number}"
                ));
            }
        }
    }
    if long {
        notes.push(format!("lines longer than {LINE} bytes are cut"));
    }
    if lossy {
        notes.push("what is no UTF-8 is shown as \u{fffd}".to_owned());
    }
    if !notes.is_empty() {
        out += &format!("({})\n", notes.join("; "));
    }
    Ok(Output::text(out))
}

struct Lines<R: io::Read> {
    reader: BufReader<encoding_rs_io::DecodeReaderBytes<R, Vec<u8>>>,
    patience: Patience,
    /// Buffers read since the clock was last looked at.
    read: u64,
}

enum Skipped {
    Line,
    End,
    Impatient,
}

enum Total {
    Exactly(u64),
    AtLeast(u64),
}

impl<R: io::Read> Lines<R> {
    /// Moves past one line. The last one needs no line break.
    fn skip(&mut self) -> io::Result<Skipped> {
        let mut any = false;
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(if any { Skipped::Line } else { Skipped::End });
            }
            any = true;
            if let Some(end) = memchr::memchr(b'\n', buffer) {
                self.reader.consume(end + 1);
                return Ok(Skipped::Line);
            }
            let length = buffer.len();
            self.reader.consume(length);
            self.read += 1;
            if self.patience.is_over() {
                return Ok(Skipped::Impatient);
            }
        }
    }

    /// Reads one line into `line`, at most a little more than is shown, and says how many bytes were left out.
    fn next(&mut self, line: &mut Vec<u8>) -> io::Result<Option<u64>> {
        const KEPT: usize = LINE + 8;
        let (mut any, mut left_out) = (false, 0);
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(any.then_some(left_out));
            }
            any = true;
            let (end, length) = match memchr::memchr(b'\n', buffer) {
                Some(end) => (true, end + 1),
                None => (false, buffer.len()),
            };
            let kept = length.min(KEPT - line.len());
            line.extend_from_slice(&buffer[..kept]);
            // The line break is no part of what is missing.
            left_out += (length - kept - usize::from(end && kept < length)) as u64;
            self.reader.consume(length);
            if end || self.patience.is_over() {
                return Ok(Some(left_out));
            }
        }
    }

    /// How many lines there are, if `counted` were read; absent where nothing is left to read.
    fn count_rest(&mut self, counted: u64) -> io::Result<Option<Total>> {
        let (mut lines, mut bytes, mut open) = (counted, 0, false);
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                let total = lines + u64::from(open);
                return Ok((bytes > 0).then_some(Total::Exactly(total)));
            }
            lines += memchr::memchr_iter(b'\n', buffer).count() as u64;
            open = buffer.last() != Some(&b'\n');
            let length = buffer.len();
            bytes += length as u64;
            self.reader.consume(length);
            if bytes > COUNTED || self.patience.is_over() {
                return Ok(Some(Total::AtLeast(lines)));
            }
        }
    }
}

/// The media type of an image that models can look at, by its first bytes.
fn image(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// What a binary file is, by its first bytes.
fn binary(head: &[u8]) -> &'static str {
    match head {
        [0x7f, b'E', b'L', b'F', ..] => "a binary file (ELF executable)",
        [0, b'a', b's', b'm', ..] => "a binary file (WebAssembly)",
        [b'%', b'P', b'D', b'F', ..] => "a PDF document",
        [b'P', b'K', 3, 4, ..] => "a binary file (ZIP archive, or a document in one)",
        [0x1f, 0x8b, ..] => "a binary file (gzip)",
        [b'S', b'Q', b'L', b'i', b't', b'e', ..] => "a binary file (SQLite database)",
        _ => "a binary file",
    }
}
