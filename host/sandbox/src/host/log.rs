//! `fief:plugin/call` and the standard streams: what a guest says for people. None of it enters a model's context but
//! the shortened last words of a guest that crashed.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use fief_core::event::CallNote;
use fief_core::port::CallSink;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::bindings::call;
use crate::instance::Guest;

/// What is kept of the end of standard error, in bytes: some thirty lines.
const LAST_WORDS: usize = 4_096;
/// What a stream takes at once, in bytes: what a pipe takes.
const CAPACITY: usize = 64 << 10;

/// The longest line that is waited for, in bytes.
const LINE: usize = 4_096;
/// Which of a guest's streams is standard error.
const ERRORS: usize = 1;
/// The levels of lines on standard output and on standard error.
const LEVELS: [&str; 2] = ["debug", "info"];

/// All that one call says, bounded.
#[derive(Clone)]
pub(crate) struct Words(Arc<Mutex<State>>);

struct State {
    sink: Arc<dyn CallSink>,
    /// Bytes that may still be kept.
    left: u64,
    limit: u64,
    full: bool,
    /// The end of standard error.
    last: VecDeque<u8>,
    /// Lines of standard output and of standard error that have not ended.
    open: [Vec<u8>; 2],
}

impl Words {
    pub(crate) fn new(sink: Arc<dyn CallSink>, limit: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            sink,
            left: limit,
            limit,
            full: false,
            last: VecDeque::new(),
            open: [Vec::new(), Vec::new()],
        })))
    }

    /// The end of what the guest wrote to standard error.
    pub(crate) fn last(&self) -> String {
        let state = self.state();
        let (one, two) = state.last.as_slices();
        String::from_utf8_lossy(&[one, two].concat()).trim_end().to_owned()
    }

    /// Passes a message on, as long as there is room.
    fn say(&self, message: &str, note: impl FnOnce(String) -> CallNote) {
        let mut state = self.state();
        if state.take(message.len()) {
            let sink = Arc::clone(&state.sink);
            drop(state);
            sink.note(note(message.to_owned()));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether `size` more bytes are kept; the first time that they are not is told.
    fn take(&mut self, size: usize) -> bool {
        // An empty message costs something too, else a loop could send any number of them.
        let cost = size as u64 + 32;
        if !self.full && cost <= self.left {
            self.left -= cost;
            return true;
        }
        if !self.full {
            self.full = true;
            self.sink.note(CallNote::Log {
                level: "warn",
                message: format!("the log limit of {} bytes is reached; the rest is dropped", self.limit),
            });
        }
        false
    }
}

impl Drop for State {
    /// Tells what the last line without an end holds.
    fn drop(&mut self) {
        for (which, open) in std::mem::take(&mut self.open).into_iter().enumerate() {
            let message = String::from_utf8_lossy(&open);
            if !open.is_empty() && self.take(message.len()) {
                self.sink.note(CallNote::Log {
                    level: LEVELS[which],
                    message: message.into_owned(),
                });
            }
        }
    }
}

impl call::Host for Guest {
    fn log(&mut self, level: call::Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            call::Level::Trace => "trace",
            call::Level::Debug => "debug",
            call::Level::Info => "info",
            call::Level::Warn => "warn",
            call::Level::Error => "error",
        };
        self.words.say(&message, |message| CallNote::Log { level, message });
        Ok(())
    }

    fn progress(&mut self, done: Option<u64>, total: Option<u64>, message: String) -> wasmtime::Result<()> {
        self.words
            .say(&message, |message| CallNote::Progress { message, done, total });
        Ok(())
    }
}

/// Standard output or standard error of a guest.
#[derive(Clone)]
pub(crate) struct Stream {
    words: Words,
    /// 0 for output, 1 for errors.
    which: usize,
}

impl Stream {
    pub(crate) fn output(words: &Words) -> Self {
        Self {
            words: words.clone(),
            which: 0,
        }
    }

    pub(crate) fn error(words: &Words) -> Self {
        Self {
            words: words.clone(),
            which: 1,
        }
    }

    fn take(&self, bytes: &[u8]) {
        let mut state = self.words.state();
        if self.which == ERRORS {
            // The last words are kept whatever was said before: they are what explains a crash.
            let kept = &bytes[bytes.len().saturating_sub(LAST_WORDS)..];
            let excess = (state.last.len() + kept.len()).saturating_sub(LAST_WORDS);
            state.last.drain(..excess);
            state.last.extend(kept);
        }
        if state.full {
            return;
        }
        // Guests write a line in pieces; people read it whole.
        let open = &mut state.open[self.which];
        open.extend_from_slice(bytes);
        let end = match open.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None if open.len() > LINE => open.len(),
            None => return,
        };
        let ended: Vec<u8> = open.drain(..end).collect();
        drop(state);
        for line in ended.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let level = LEVELS[self.which];
            self.words.say(&String::from_utf8_lossy(line), |message| CallNote::Log {
                level,
                message,
            });
        }
    }
}

impl IsTerminal for Stream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Stream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for Stream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(CAPACITY)
    }
}

#[async_trait::async_trait]
impl Pollable for Stream {
    async fn ready(&mut self) {}
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
