//! Redaction of a stream: what may still become a secret is held back, everything else goes on at once.

use std::sync::Arc;

use super::REDACTED;
use super::pattern::Patterns;
use super::view::{Escapes, View};

/// Redacts what is pushed through it. At most as many bytes are held back as the longest form of a secret has, escapes
/// included, and only while the end of what was pushed reads like the beginning of one.
pub struct RedactStream {
    /// Empty if there is nothing to find.
    views: Vec<View>,
    /// Raw bytes that were not passed on yet.
    held: Vec<u8>,
    /// The place of the first of them in the stream.
    base: u64,
    /// Found and not passed on.
    spans: Vec<(u64, u64)>,
    /// Raw bytes before this place are covered by a mark that was passed on.
    masked_to: u64,
}

impl RedactStream {
    pub(super) fn new(patterns: Option<Arc<Patterns>>) -> Self {
        let views = patterns.into_iter().flat_map(|patterns| {
            [Escapes::None, Escapes::Percent, Escapes::Json].map(|escapes| View::new(escapes, patterns.clone()))
        });
        Self {
            views: views.collect(),
            held: Vec::new(),
            base: 0,
            spans: Vec::new(),
            masked_to: 0,
        }
    }

    /// Takes the next piece and gives what can be passed on.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.views.is_empty() {
            return bytes.to_vec();
        }
        let first = self.base + self.held.len() as u64;
        for view in &mut self.views {
            for (position, &byte) in (first..).zip(bytes) {
                view.feed(byte, position, &mut |start, end| self.spans.push((start, end)));
            }
        }
        self.held.extend_from_slice(bytes);
        let end = self.base + self.held.len() as u64;
        let final_to = self.views.iter().filter_map(View::held_from).min().unwrap_or(end);
        self.pass_on(final_to)
    }

    /// The stream is over: gives what was held back.
    pub fn finish(&mut self) -> Vec<u8> {
        for view in &mut self.views {
            view.finish(&mut |start, end| self.spans.push((start, end)));
        }
        self.pass_on(self.base + self.held.len() as u64)
    }

    /// Passes on all raw bytes before `final_to`: no secret that is not found yet can begin there.
    fn pass_on(&mut self, final_to: u64) -> Vec<u8> {
        self.spans.sort_unstable();
        let mut passed = Vec::new();
        let mut cursor = self.base;
        let mut done = 0;
        loop {
            if cursor < self.masked_to {
                cursor = self.masked_to.min(final_to).max(cursor);
            }
            match self.spans.get(done) {
                // One that begins inside what is masked widens the mask, also one beyond `final_to`.
                Some(&(start, end)) if start < self.masked_to => {
                    self.masked_to = self.masked_to.max(end);
                    done += 1;
                }
                Some(&(start, end)) if start < final_to => {
                    passed.extend_from_slice(self.raw(cursor, start));
                    passed.extend_from_slice(REDACTED.as_bytes());
                    cursor = start;
                    self.masked_to = end;
                    done += 1;
                }
                _ => break,
            }
        }
        if cursor < final_to {
            passed.extend_from_slice(self.raw(cursor, final_to));
            cursor = final_to;
        }
        self.spans.drain(..done);
        self.held.drain(..Self::index(self.base, cursor));
        self.base = cursor;
        passed
    }

    fn raw(&self, start: u64, end: u64) -> &[u8] {
        &self.held[Self::index(self.base, start)..Self::index(self.base, end)]
    }

    fn index(base: u64, position: u64) -> usize {
        usize::try_from(position - base).expect("a place in the bytes that are held fits in memory")
    }
}
