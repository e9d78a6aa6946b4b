//! Standard input, a line at a time, read by one thread: a line that was typed while one reader gave up waiting is not
//! lost to the next. Or all of it at once, for an argument `-`.

use std::collections::VecDeque;
use std::io::{BufRead, Read};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;

use crate::exit::Fault;

/// The most that is read of standard input at once, in bytes: beyond what any model takes, and bounded so that
/// `/dev/zero` ends.
const LONGEST: u64 = 16 << 20;

/// All of standard input.
///
/// # Errors
/// A fault of usage where it is too long, or no text.
pub(crate) fn all() -> Result<String, Fault> {
    text(std::io::stdin().lock())
}

fn text(input: impl Read) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    input
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Fault::usage(format!("standard input cannot be read: {error}")))?;
    if bytes.len() as u64 > LONGEST {
        return Err(Fault::usage(format!(
            "standard input is longer than {} MiB",
            LONGEST >> 20
        )));
    }
    String::from_utf8(bytes).map_err(|_| Fault::usage("standard input is not UTF-8 text"))
}

/// The next line; none at the end, or where it is longer than anybody types.
fn next(input: impl BufRead) -> Option<String> {
    let mut line = String::new();
    match input.take(LONGEST + 1).read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(length) => (length as u64 <= LONGEST).then_some(line),
    }
}

/// What was read and nobody has taken.
#[derive(Default)]
struct Input {
    waiting: Mutex<Waiting>,
    arrived: Notify,
    taken: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// Each with its number; no text is the end. On a terminal there may be more after it.
    lines: VecDeque<(u64, Option<String>)>,
    read: u64,
}

impl Input {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the first line whose number is at least `least`.
    fn take(&self, least: u64) -> Option<Option<String>> {
        let mut waiting = self.lock();
        let at = waiting.lines.iter().position(|(number, _)| *number >= least)?;
        let (_, line) = waiting.lines.remove(at)?;
        self.taken.notify_one();
        Some(line)
    }

    async fn line(&self, least: u64) -> Option<String> {
        loop {
            let arrived = self.arrived.notified();
            if let Some(line) = self.take(least) {
                return line;
            }
            arrived.await;
        }
    }

    fn read(&self) {
        loop {
            let line = next(std::io::stdin().lock());
            let ended = line.is_none();
            let mut waiting = self.lock();
            waiting.read += 1;
            let number = waiting.read;
            waiting.lines.push_back((number, line));
            self.arrived.notify_waiters();
            // At its end standard input is only asked again when somebody has seen that end: it would say it for ever.
            while ended && waiting.lines.iter().any(|(_, line)| line.is_none()) {
                waiting = self.taken.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// Starts reading at the first use: a run in the background that never asks must not be stopped for reading.
fn input() -> &'static Input {
    static INPUT: OnceLock<Input> = OnceLock::new();
    static THREAD: OnceLock<()> = OnceLock::new();
    let input = INPUT.get_or_init(Input::default);
    THREAD.get_or_init(|| drop(std::thread::spawn(|| INPUT.get_or_init(Input::default).read())));
    input
}

/// The next line; none at the end.
pub(crate) async fn line() -> Option<String> {
    input().line(0).await
}

/// Where an answer may begin, asked before its question is shown. What was typed until then is no answer, and is left
/// for [`line`].
pub(crate) fn from_now() -> u64 {
    crate::terminal::forget_what_is_typed();
    input().lock().read + 1
}

/// The next line that was typed after `from`.
pub(crate) async fn answer(from: u64) -> Option<String> {
    input().line(from).await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{BufReader, repeat};

    use super::*;

    #[test]
    fn what_never_ends_is_not_read_for_ever() {
        assert_eq!(text(&b"a\nb"[..]).unwrap(), "a\nb");
        let error = text(repeat(b'a')).unwrap_err();
        assert_eq!(error.message, "standard input is longer than 16 MiB");
        assert_eq!(
            text(&b"\xff"[..]).unwrap_err().message,
            "standard input is not UTF-8 text"
        );
        assert_eq!(next(&b"a\nb"[..]).as_deref(), Some("a\n"));
        assert_eq!(next(&b""[..]), None);
        assert_eq!(next(BufReader::new(repeat(b'a'))), None);
    }
}
