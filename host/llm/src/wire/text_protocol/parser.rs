//! Finds the blocks in a model's text, while it comes.
//!
//! A block begins where its opening tag stands outside of code (fenced or inline) and another tag follows it, or where
//! the opening tag stands alone on its line. A mention in prose is neither. Each block becomes a call or, if anything
//! about it is wrong, a broken call that says what ([`super::block`]): a malformed block is never taken as text.

use super::block::{self, Block, CLOSE, OPEN};

/// How often an unfinished block is looked at before the text is whole: a model must not make the host read a long
/// block again and again.
const MAX_LOOKS: usize = 16;

/// A whole text.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Parsed {
    /// What is outside of blocks.
    pub(super) prose: String,
    /// The blocks, in order.
    pub(super) blocks: Vec<Block>,
}

/// The state while the text comes.
#[derive(Debug, Default)]
pub(super) struct Parser {
    text: String,
    /// Everything before is decided: prose or block.
    at: usize,
    /// No line feed lies between `at` and here.
    searched: usize,
    /// The length of the text when a block was last found unfinished; 0: none is waited for.
    waiting: usize,
    looks: usize,
    fence: Option<Fence>,
    parsed: Parsed,
    /// How much of the prose, and of the undecided line after it, has been shown.
    shown: usize,
}

/// An open code fence: its character and length.
#[derive(Clone, Copy, Debug)]
struct Fence(u8, usize);

/// What a look at a line brings.
enum Look {
    /// All of it is prose.
    Prose,
    /// A block begins and ends at these places.
    Block(usize, usize, Block),
    /// More text must come.
    Wait,
}

impl Parser {
    /// Takes a piece, and gives what may be shown by now: prose, and of an unfinished line what comes before any tag.
    pub(super) fn push(&mut self, piece: &str) -> String {
        self.text.push_str(piece);
        self.scan(false);
        let decided = self.parsed.prose.len();
        let mut visible = self.parsed.prose.get(self.shown..).unwrap_or_default().to_owned();
        let from = self.at + self.shown.saturating_sub(decided);
        let rest = &self.text[from..];
        visible.push_str(&rest[..rest.find('<').unwrap_or(rest.len())]);
        self.shown += visible.len();
        visible
    }

    /// The text is whole. What [`Parser::push`] gave is the beginning of the prose.
    pub(super) fn finish(mut self) -> Parsed {
        self.scan(true);
        self.parsed
    }

    fn scan(&mut self, whole: bool) {
        while self.at < self.text.len() {
            if self.waiting > 0 && !whole {
                // A block is looked at again only when a closing tag has come.
                let from = block::boundary(&self.text, self.waiting.saturating_sub(CLOSE.len()));
                self.waiting = self.text.len();
                if self.looks >= MAX_LOOKS || !self.text[from..].contains(CLOSE) {
                    return;
                }
            }
            let end = match self.text[self.searched.max(self.at)..].find('\n') {
                Some(length) => self.searched.max(self.at) + length + 1,
                None if whole => self.text.len(),
                None => {
                    self.searched = self.text.len();
                    return;
                }
            };
            match self.look(end, whole) {
                Look::Prose => {
                    self.parsed.prose.push_str(&self.text[self.at..end]);
                    self.at = end;
                }
                Look::Block(start, end, block) => {
                    self.parsed.prose.push_str(&self.text[self.at..start]);
                    self.parsed.blocks.push(block);
                    self.at = end;
                }
                Look::Wait => {
                    self.waiting = self.text.len();
                    self.looks += 1;
                    return;
                }
            }
            (self.waiting, self.looks, self.searched) = (0, 0, self.at);
        }
    }

    /// Looks at the line from `at` to `end`.
    fn look(&mut self, end: usize, whole: bool) -> Look {
        let starts_line = self.at == 0 || self.text.as_bytes()[self.at - 1] == b'\n';
        if starts_line && self.fences(self.at, end) {
            return Look::Prose;
        }
        if self.fence.is_some() {
            return Look::Prose;
        }
        let line = &self.text[self.at..end];
        let last_tick = line.rfind('`');
        let (mut ticks, mut counted) = (0, 0);
        for (start, _) in line.match_indices(OPEN) {
            ticks += line[counted..start].bytes().filter(|byte| *byte == b'`').count();
            counted = start;
            let in_code = ticks % 2 == 1 && last_tick.is_some_and(|tick| tick > start);
            if in_code {
                continue;
            }
            let first = line[..start].trim().is_empty();
            let alone = line[start + OPEN.len()..].trim().is_empty();
            let start = self.at + start;
            match block::begins(&self.text[start + OPEN.len()..], first, alone, whole) {
                Some(false) => {}
                Some(true) => match block::read(&self.text, start, whole) {
                    Some((block, end)) => return Look::Block(start, end, block),
                    None => return Look::Wait,
                },
                None => return Look::Wait,
            }
        }
        Look::Prose
    }

    /// Whether the line opens or closes a code fence.
    fn fences(&mut self, start: usize, end: usize) -> bool {
        let line = self.text[start..end].trim();
        let Some(mark) = line.bytes().next().filter(|byte| matches!(byte, b'`' | b'~')) else {
            return false;
        };
        let length = line.bytes().take_while(|byte| *byte == mark).count();
        let after = &line[length..];
        match self.fence {
            Some(Fence(open, least)) if open == mark && length >= least && after.is_empty() => {
                self.fence = None;
                true
            }
            None if length >= 3 && !(mark == b'`' && after.contains('`')) => {
                self.fence = Some(Fence(mark, length));
                true
            }
            _ => false,
        }
    }
}
