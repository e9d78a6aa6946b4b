//! Redaction of answers that come in pieces: a secret that is split over two of them stands in neither.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use fief_core::event::EventKind;
use fief_core::id::SessionId;
use fief_sandbox::redact::{RedactStream, Redactor};

/// The answers that are coming in, one for each session.
///
/// The pieces of an answer are read as one text. The end of one is held back only while it reads like the beginning of
/// a secret, and is shown with the piece that proves it to be none, or when the answer is whole.
#[derive(Default)]
pub(super) struct Deltas(Mutex<HashMap<SessionId, RedactStream>>);

impl Deltas {
    /// What can be shown now that `kind` happens in `session`: what was held back until now, and the event itself.
    pub(super) fn settle(
        &self,
        redactor: &Redactor,
        session: &SessionId,
        kind: EventKind,
    ) -> (Option<String>, Option<EventKind>) {
        if redactor.is_empty() {
            return (None, Some(kind));
        }
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match kind {
            EventKind::ModelDelta { content } => {
                let answer = answers.entry(session.clone()).or_insert_with(|| redactor.stream());
                let shown = text(answer.push(content.as_bytes()));
                (None, shown.map(|content| EventKind::ModelDelta { content }))
            }
            // The attempt is void, and what was held back of it too.
            EventKind::ModelRetry { .. } => {
                answers.remove(session);
                (None, Some(kind))
            }
            EventKind::ModelMessage { .. }
            | EventKind::TurnStarted { .. }
            | EventKind::AgentFinished { .. }
            | EventKind::RunFinished { .. } => {
                let rest = answers.remove(session).and_then(|mut answer| text(answer.finish()));
                (rest, Some(kind))
            }
            other => (None, Some(other)),
        }
    }
}

/// The pieces end between characters, and so does what is held back of them.
fn text(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use fief_core::message::{Finish, Usage};

    use super::*;

    /// What a watcher is shown of answers in pieces; `!` stands for a retry, `.` for the whole message.
    fn shown(sessions: &[(&str, &str)]) -> Vec<String> {
        let redactor = Redactor::new(&["abcdefghijkl".into(), "pässword-ü".into()]);
        let deltas = Deltas::default();
        let mut seen = Vec::new();
        for (session, piece) in sessions {
            let session = SessionId::child(session, 1);
            let kind = match *piece {
                "!" => EventKind::ModelRetry {
                    attempt: 1,
                    wait_ms: 0,
                    error: String::new(),
                },
                "." => EventKind::ModelMessage {
                    content: String::new(),
                    tool_calls: Vec::new(),
                    finish: Finish::Stop,
                    usage: Usage::default(),
                },
                piece => EventKind::ModelDelta { content: piece.into() },
            };
            let (rest, kind) = deltas.settle(&redactor, &session, kind);
            seen.extend(rest);
            match kind {
                Some(EventKind::ModelDelta { content }) => seen.push(content),
                Some(EventKind::ModelRetry { .. }) => seen.push("!".into()),
                Some(EventKind::ModelMessage { .. }) => seen.push(".".into()),
                _ => {}
            }
        }
        seen
    }

    fn of_one(pieces: &[&str]) -> Vec<String> {
        shown(&pieces.iter().map(|piece| ("a", *piece)).collect::<Vec<_>>())
    }

    #[test]
    fn a_secret_over_two_pieces_or_twelve_is_in_none() {
        assert_eq!(of_one(&["is abcdef", "ghijkl!", "."]), ["is ", "[redacted]!", "."]);
        let single: Vec<String> = "xabcdefghijkly".chars().map(String::from).collect();
        let single: Vec<&str> = single.iter().map(String::as_str).chain(["."]).collect();
        assert_eq!(of_one(&single).concat(), "x[redacted]y.");
        assert_eq!(of_one(&["is päss", "word-ü", "."]), ["is ", "[redacted]", "."]);
        assert_eq!(of_one(&["is abcdef", "ghijkl", "."]), ["is ", "[redacted]", "."]);
    }

    #[test]
    fn what_is_none_is_shown_whole_and_ordinary_text_at_once() {
        assert_eq!(of_one(&["one ", "two", "."]), ["one ", "two", "."]);
        assert_eq!(of_one(&["ends in abc", "."]), ["ends in ", "abc", "."]);
        assert_eq!(
            of_one(&["ends in abc", " and goes on", "."]),
            ["ends in ", "abc and goes on", "."]
        );
    }

    #[test]
    fn an_attempt_that_failed_leaves_nothing_to_the_next_and_sessions_are_apart() {
        assert_eq!(of_one(&["is abcdef", "!", "ghijkl", "."]), ["is ", "!", "ghijkl", "."]);
        let two = [
            ("a", "is abcdef"),
            ("b", "ghijkl"),
            ("a", "ghijkl"),
            ("a", "."),
            ("b", "."),
        ];
        assert_eq!(shown(&two), ["is ", "ghijkl", "[redacted]", ".", "."]);
    }
}
