//! Views: the ways in which one stream of bytes is read while secrets are looked for in it.
//!
//! Each view turns raw bytes into decoded ones and remembers where each came from, so that a match in decoded bytes
//! becomes a span of raw ones. Any mixture of escaped and plain characters is so found by the same automaton.

use std::collections::VecDeque;
use std::sync::Arc;

use aho_corasick::automaton::StateID;

use super::pattern::Patterns;

/// How bytes are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Escapes {
    /// As they are.
    None,
    /// `%2F` is a slash.
    Percent,
    /// `\/`, `\u002f` are one too.
    Json,
}

/// One reading of the stream.
pub(super) struct View {
    escapes: Escapes,
    patterns: Arc<Patterns>,
    state: StateID,
    /// Where the last decoded bytes began, as many as may still become a match.
    starts: VecDeque<u64>,
    /// The raw bytes of an escape that is not complete, with the place of the first.
    pending: Vec<u8>,
    pending_start: u64,
}

/// What the first bytes of `pending` are.
enum Decoded {
    /// An escape that needs more bytes.
    More,
    /// Not an escape: the first byte stands for itself.
    Literal,
    /// An escape of so many raw bytes.
    Bytes([u8; 4], usize, usize),
}

impl View {
    pub(super) fn new(escapes: Escapes, patterns: Arc<Patterns>) -> Self {
        Self {
            escapes,
            state: patterns.start(),
            patterns,
            starts: VecDeque::new(),
            pending: Vec::new(),
            pending_start: 0,
        }
    }

    /// Reads one raw byte, the one at `position`, and tells the spans that turn out to be secrets.
    pub(super) fn feed(&mut self, byte: u8, position: u64, found: &mut impl FnMut(u64, u64)) {
        let opens = match self.escapes {
            Escapes::None => false,
            Escapes::Percent => byte == b'%',
            Escapes::Json => byte == b'\\',
        };
        if self.pending.is_empty() {
            if !opens {
                return self.decoded(byte, position, position + 1, found);
            }
            self.pending_start = position;
        }
        self.pending.push(byte);
        self.settle(false, found);
    }

    /// The stream is over: an escape that was begun is none.
    pub(super) fn finish(&mut self, found: &mut impl FnMut(u64, u64)) {
        self.settle(true, found);
    }

    /// The first raw byte that may still become part of a secret; absent: none of those read so far.
    pub(super) fn held_from(&self) -> Option<u64> {
        self.starts
            .front()
            .copied()
            .or((!self.pending.is_empty()).then_some(self.pending_start))
    }

    fn settle(&mut self, over: bool, found: &mut impl FnMut(u64, u64)) {
        while !self.pending.is_empty() {
            let decoded = match self.escapes {
                Escapes::None => Decoded::Literal,
                Escapes::Percent => percent(&self.pending),
                Escapes::Json => json(&self.pending),
            };
            let start = self.pending_start;
            match decoded {
                Decoded::More if !over => return,
                Decoded::More | Decoded::Literal => {
                    let byte = self.pending.remove(0);
                    self.pending_start += 1;
                    self.decoded(byte, start, start + 1, found);
                }
                Decoded::Bytes(bytes, length, used) => {
                    self.pending.drain(..used);
                    self.pending_start += used as u64;
                    for &byte in &bytes[..length] {
                        self.decoded(byte, start, start + used as u64, found);
                    }
                }
            }
        }
    }

    fn decoded(&mut self, byte: u8, start: u64, end: u64, found: &mut impl FnMut(u64, u64)) {
        // Line ends are read over, so that a value that was wrapped, or split over two lines of a log, is found.
        if matches!(byte, b'\r' | b'\n') {
            return;
        }
        self.state = self.patterns.next(self.state, byte);
        if self.state == self.patterns.start() {
            return self.starts.clear();
        }
        self.starts.push_back(start);
        let depth = self.patterns.depth(self.state);
        while self.starts.len() > depth {
            self.starts.pop_front();
        }
        if let Some(length) = self.patterns.matched(self.state)
            && let Some(&first) = self.starts.len().checked_sub(length).and_then(|at| self.starts.get(at))
        {
            found(first, end);
        }
    }
}

fn percent(pending: &[u8]) -> Decoded {
    match pending {
        [b'%'] => Decoded::More,
        [b'%', high] if high.is_ascii_hexdigit() => Decoded::More,
        [b'%', high, low, ..] => match (hex(*high), hex(*low)) {
            (Some(high), Some(low)) => Decoded::Bytes([high << 4 | low, 0, 0, 0], 1, 3),
            _ => Decoded::Literal,
        },
        _ => Decoded::Literal,
    }
}

fn json(pending: &[u8]) -> Decoded {
    let one = |byte| Decoded::Bytes([byte, 0, 0, 0], 1, 2);
    match pending {
        [b'\\'] => Decoded::More,
        [b'\\', b'u', rest @ ..] => unicode(rest),
        [b'\\', byte @ (b'"' | b'\\' | b'/' | b'\''), ..] => one(*byte),
        [b'\\', b'n', ..] => one(b'\n'),
        [b'\\', b'r', ..] => one(b'\r'),
        [b'\\', b't', ..] => one(b'\t'),
        [b'\\', b'b', ..] => one(8),
        [b'\\', b'f', ..] => one(12),
        _ => Decoded::Literal,
    }
}

/// What follows `\u`: four digits, or a pair of surrogates.
fn unicode(rest: &[u8]) -> Decoded {
    const PREFIX: usize = 2;
    let unit = match four_digits(rest) {
        Ok(unit) => unit,
        Err(decoded) => return decoded,
    };
    let mut used = PREFIX + 4;
    let mut code = u32::from(unit);
    if (0xd800..0xdc00).contains(&unit) {
        match rest.get(4..).unwrap_or_default() {
            [] | [b'\\'] => return Decoded::More,
            [b'\\', b'u', low @ ..] => match four_digits(low) {
                Ok(low @ 0xdc00..0xe000) => {
                    code = 0x10000 + ((code - 0xd800) << 10) + (u32::from(low) - 0xdc00);
                    used += 6;
                }
                Err(Decoded::More) => return Decoded::More,
                // A surrogate without its other half stands for no character.
                Ok(_) | Err(_) => {}
            },
            _ => {}
        }
    }
    let mut bytes = [0; 4];
    let length = char::from_u32(code)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
        .encode_utf8(&mut bytes)
        .len();
    Decoded::Bytes(bytes, length, used)
}

fn four_digits(digits: &[u8]) -> Result<u16, Decoded> {
    let digits = &digits[..digits.len().min(4)];
    let mut unit = 0;
    for &digit in digits {
        unit = unit << 4 | u16::from(hex(digit).ok_or(Decoded::Literal)?);
    }
    if digits.len() == 4 {
        Ok(unit)
    } else {
        Err(Decoded::More)
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}
