//! Redaction of what a call says while it runs: its log, its progress, its audit.

use std::sync::{Arc, Mutex, PoisonError};

use fief_core::event::CallNote;
use fief_core::port::CallSink;

use super::{RedactStream, Redactor};

/// Passes notes on without the secrets. A log is read as one text for each level, so that a value which is split over two
/// lines is found; a line is held back only while its end reads like the beginning of a secret, and whatever is left
/// when this is dropped is passed on then.
pub(crate) struct RedactingSink {
    sink: Arc<dyn CallSink>,
    redactor: Redactor,
    logs: Mutex<Vec<Log>>,
}

struct Log {
    level: &'static str,
    redaction: RedactStream,
    /// Clean text whose line is not complete.
    line: Vec<u8>,
}

impl RedactingSink {
    /// In front of `sink`; where there is nothing to find, `sink` itself.
    pub(crate) fn wrap(sink: Arc<dyn CallSink>, redactor: &Redactor) -> Arc<dyn CallSink> {
        if redactor.is_empty() {
            return sink;
        }
        Arc::new(Self {
            sink,
            redactor: redactor.clone(),
            logs: Mutex::default(),
        })
    }

    fn log(&self, level: &'static str, message: &str) {
        let clean = {
            let mut logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
            let index = logs.iter().position(|log| log.level == level).unwrap_or_else(|| {
                logs.push(Log {
                    level,
                    redaction: self.redactor.stream(),
                    line: Vec::new(),
                });
                logs.len() - 1
            });
            logs[index].push(message)
        };
        if let Some(message) = clean {
            self.sink.note(CallNote::Log { level, message });
        }
    }
}

impl Log {
    /// Takes one message and gives the lines that are complete by now.
    fn push(&mut self, message: &str) -> Option<String> {
        let clean = self.redaction.push(message.as_bytes());
        self.line.extend(clean);
        let end = self.redaction.push(b"\n");
        self.line.extend(end);
        let complete = self.line.iter().rposition(|&byte| byte == b'\n')?;
        let rest = self.line.split_off(complete + 1);
        let mut lines = std::mem::replace(&mut self.line, rest);
        lines.pop();
        Some(String::from_utf8_lossy(&lines).into_owned())
    }

    fn finish(&mut self) -> Option<String> {
        let rest = self.redaction.finish();
        self.line.extend(rest);
        let text = String::from_utf8_lossy(&self.line).trim_end_matches('\n').to_owned();
        (!text.is_empty()).then_some(text)
    }
}

impl CallSink for RedactingSink {
    fn note(&self, note: CallNote) {
        let clean = |text: String| match self.redactor.text(&text) {
            std::borrow::Cow::Borrowed(_) => text,
            std::borrow::Cow::Owned(clean) => clean,
        };
        self.sink.note(match note {
            CallNote::Log { level, message } => return self.log(level, &message),
            CallNote::Progress { message, done, total } => CallNote::Progress {
                message: clean(message),
                done,
                total,
            },
            CallNote::Capability {
                kind,
                target,
                allowed,
                rule,
                count,
            } => CallNote::Capability {
                kind,
                target: clean(target),
                allowed,
                rule: clean(rule),
                count,
            },
        });
    }
}

impl Drop for RedactingSink {
    fn drop(&mut self) {
        let logs = std::mem::take(self.logs.get_mut().unwrap_or_else(PoisonError::into_inner));
        for mut log in logs {
            if let Some(message) = log.finish() {
                self.sink.note(CallNote::Log {
                    level: log.level,
                    message,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use fief_core::event::CapabilityKind;

    use super::*;

    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl CallSink for Notes {
        fn note(&self, note: CallNote) {
            self.0.lock().unwrap().push(match note {
                CallNote::Log { level, message } => format!("{level}: {message}"),
                CallNote::Progress { message, .. } => format!("progress: {message}"),
                CallNote::Capability { target, rule, .. } => format!("use: {target} by {rule}"),
            });
        }
    }

    /// What is left of these notes.
    fn notes(notes: Vec<CallNote>) -> Vec<String> {
        let kept = Arc::new(Notes::default());
        let redactor = Redactor::new(&["abcdefghijkl".into()]);
        let sink = RedactingSink::wrap(kept.clone(), &redactor);
        notes.into_iter().for_each(|note| sink.note(note));
        drop(sink);
        let kept = kept.0.lock().unwrap();
        kept.clone()
    }

    fn log(level: &'static str, message: &str) -> CallNote {
        CallNote::Log {
            level,
            message: message.into(),
        }
    }

    #[test]
    fn a_secret_is_found_in_one_line_in_two_and_between_lines_of_another_level() {
        assert_eq!(
            notes(vec![log("info", "is abcdefghijkl."), log("info", "b")]),
            ["info: is [redacted].", "info: b"]
        );
        assert_eq!(
            notes(vec![log("info", "is abcdef"), log("info", "ghijkl.")]),
            ["info: is [redacted]."]
        );
        let between = vec![log("info", "is abcdef"), log("debug", "-"), log("info", "ghijkl.")];
        assert_eq!(notes(between), ["debug: -", "info: is [redacted]."]);
    }

    #[test]
    fn lines_that_hold_none_stay_whole_and_none_is_lost() {
        let lines = vec![
            log("info", "one"),
            log("info", "ends in abc"),
            log("info", "two"),
            log("warn", "a"),
        ];
        assert_eq!(notes(lines), ["info: one", "info: ends in abc\ntwo", "warn: a"]);
    }

    #[test]
    fn progress_and_audit_are_redacted_too() {
        let progress = CallNote::Progress {
            message: "at abcdefghijkl".into(),
            done: None,
            total: None,
        };
        let used = CallNote::Capability {
            kind: CapabilityKind::File,
            target: "/abcdefghijkl".into(),
            allowed: false,
            rule: "no".into(),
            count: None,
        };
        assert_eq!(
            notes(vec![progress, used]),
            ["progress: at [redacted]", "use: /[redacted] by no"]
        );
    }

    #[test]
    fn without_secrets_the_sink_is_passed_through() {
        let sink: Arc<dyn CallSink> = Arc::new(Notes::default());
        assert!(Arc::ptr_eq(
            &sink,
            &RedactingSink::wrap(sink.clone(), &Redactor::default())
        ));
    }
}
