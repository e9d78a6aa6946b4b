//! A recorded model: it answers from a file, for demonstrations and tests, and checks what it is asked.
//!
//! The file is JSON Lines; blank lines are skipped. Each line is one answer:
//!
//! | key | meaning |
//! |---|---|
//! | `session` | whose answer it is: `main`, or a child such as `explore_1`; a name without number, such as `explore`, stands for every `explore_N` without lines of its own, and each of them reads all of its lines |
//! | `text` | the answer's text |
//! | `calls` | the calls it asks for: `[{"tool": "files.read", "arguments": {…}}]`; `arguments` may be left out, or be a string that stands for what a model wrote, sound or not; `id` may be given |
//! | `expect` | a text, or a list of texts, each of which must occur in what came since the session's last answer: the results of its calls, or the task |
//! | `absent` | a text, or a list of texts, none of which may occur anywhere in the request, the system prompt included |
//! | `error` | in place of an answer, `{"kind": "overflow" \| "unavailable" \| "refused", "message": "…"}` |
//! | `finish` | how the answer ends: `stop`, `tool-calls`, `length`, `filter`, `other`; absent: by its calls |
//! | `usage` | what it costs: `{"input_tokens": 10, "output_tokens": 2, …}`; absent: nothing |
//! | `delay_ms` | how long the answer takes |
//!
//! ```json
//! {"session": "main", "calls": [{"tool": "files.read", "arguments": {"path": "/work/notes.txt"}}]}
//! {"session": "main", "expect": "buy milk", "text": "The note says to buy milk."}
//! ```
//!
//! Each session reads its own lines in order. A request in which a call has no result, or an `expect` is not met, and
//! a session whose lines have run out, fail the run with [`ModelErrorKind::Script`], and the message names file, line
//! and session.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fief_core::id::SessionId;
use fief_core::message::{
    Answer, Arguments, Assistant, CallResult, Finish, Message, Request, Served, ToolCall, Usage, to_text,
};
use fief_core::port::{BoxStream, Model, ModelError, ModelErrorKind, ModelEvent};
use serde::Deserialize;
use serde_json::Value;

use crate::arguments;
use crate::ask::{emit, send};

/// The largest file that is read, in bytes: far beyond any recording, and a bound on a device that never ends.
const LARGEST: u64 = 64 << 20;

/// A recorded model.
#[derive(Debug)]
pub struct Script(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    label: String,
    /// The lines of each session, in order, each with its number in the file.
    lines: BTreeMap<String, Vec<(usize, Line)>>,
    /// How many lines, and how many calls, each session has had.
    read: Mutex<HashMap<SessionId, (usize, usize)>>,
}

/// Why a file is no recorded model.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the recorded model `{}`: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A FIFO would wait for ever, and a device may never end.
    #[error("the recorded model `{}` is not a regular file", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// It is larger than any recording.
    #[error("the recorded model `{}` is larger than {} MiB, the most that is read", path.display(), LARGEST >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A line is not as it must be.
    #[error("{file}:{line}: {why}")]
    Line {
        /// The file, as it was named.
        file: String,
        /// From 1.
        line: usize,
        /// What is wrong and what would be right.
        why: String,
    },
    /// There is no line at all.
    #[error(
        "{file}: holds no line: a recorded model needs at least one answer, such as {{\"session\": \"main\", \"text\": \"done\"}}"
    )]
    Empty {
        /// The file, as it was named.
        file: String,
    },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    session: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    calls: Vec<Call>,
    #[serde(default)]
    expect: Texts,
    #[serde(default)]
    absent: Texts,
    error: Option<Failure>,
    finish: Option<Finish>,
    #[serde(default)]
    usage: Counts,
    #[serde(default)]
    delay_ms: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    #[serde(default)]
    arguments: Value,
    id: Option<String>,
}

/// A text or a list of them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(untagged, expecting = "must be a text or a list of texts")]
enum Texts {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    kind: FailureKind,
    message: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FailureKind {
    Overflow,
    Unavailable,
    Refused,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Counts {
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
    reasoning_tokens: u64,
    cost: Option<f64>,
}

impl Texts {
    fn as_slice(&self) -> &[String] {
        match self {
            Self::None => &[],
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

impl Script {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with it, by line.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let unreadable = |source| ScriptError::Unreadable {
            path: path.to_owned(),
            source,
        };
        // Asked before it is opened: opening a FIFO waits for whoever writes to it.
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(ScriptError::NotAFile { path: path.to_owned() });
        }
        let mut text = String::new();
        let file = File::open(path).map_err(unreadable)?;
        file.take(LARGEST + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > LARGEST {
            return Err(ScriptError::TooLarge { path: path.to_owned() });
        }
        Self::parse(&path.display().to_string(), &text)
    }

    /// Makes a model of a file's text; messages call the file `label`.
    ///
    /// # Errors
    /// What is wrong with it, by line.
    pub fn from_text(label: &str, text: &str) -> Result<Arc<dyn Model>, ScriptError> {
        Ok(Arc::new(Self::parse(label, text)?))
    }

    fn parse(label: &str, text: &str) -> Result<Self, ScriptError> {
        let mut lines: BTreeMap<String, Vec<(usize, Line)>> = BTreeMap::new();
        for (index, text) in text.lines().enumerate() {
            let text = text.trim_start_matches('\u{feff}').trim();
            if text.is_empty() {
                continue;
            }
            let bad = |why: String| ScriptError::Line {
                file: label.to_owned(),
                line: index + 1,
                why,
            };
            let line: Line = serde_json::from_str(text).map_err(|error| bad(reason(&error)))?;
            line.check().map_err(bad)?;
            lines.entry(line.session.clone()).or_default().push((index + 1, line));
        }
        if lines.is_empty() {
            return Err(ScriptError::Empty { file: label.to_owned() });
        }
        Ok(Self(Arc::new(Inner {
            label: label.to_owned(),
            lines,
            read: Mutex::default(),
        })))
    }

    /// The lines that no session has read, as `FILE:LINE`: a test can ask whether a run went all the way. Lines that
    /// stand for several sessions are left out.
    #[must_use]
    pub fn unread(&self) -> Vec<String> {
        let read = self.0.read.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unread = Vec::new();
        for (session, lines) in &self.0.lines {
            let shared = read
                .keys()
                .any(|id| id.as_str() != session && self.0.key(id) == Some(session.as_str()));
            let done = read
                .iter()
                .find(|(id, _)| id.as_str() == session)
                .map_or(0, |(_, (done, _))| *done);
            if !shared {
                unread.extend(
                    lines
                        .iter()
                        .skip(done)
                        .map(|(number, _)| format!("{}:{number}", self.0.label)),
                );
            }
        }
        unread
    }
}

/// What serde says, without the place, which is the line's own.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text).to_owned();
    format!("{text} (column {})", error.column())
}

impl Line {
    fn check(&self) -> Result<(), String> {
        SessionId::new(&self.session).map_err(|error| error.to_string())?;
        if self.error.is_some() && !(self.text.is_empty() && self.calls.is_empty()) {
            return Err("`error` stands in place of an answer: leave out `text` and `calls`".into());
        }
        for call in &self.calls {
            if call.tool.is_empty() {
                return Err("`tool` is empty: it must name a tool, such as `files.read`".into());
            }
            if !matches!(call.arguments, Value::Null | Value::Object(_) | Value::String(_)) {
                return Err(format!("`arguments` of `{}` must be an object", call.tool));
            }
        }
        Ok(())
    }
}

impl Model for Script {
    fn ask(&self, request: Request) -> BoxStream<'static, ModelEvent> {
        let taken = self.0.take(&request);
        emit(move |mut events| async move {
            let (line, calls_before) = match taken {
                Ok(taken) => taken,
                Err(error) => return send(&mut events, ModelEvent::Failed(error)).await,
            };
            drop(request);
            if line.delay_ms > 0 {
                tokio::time::sleep(Duration::from_millis(line.delay_ms)).await;
            }
            if !line.text.is_empty() {
                send(&mut events, ModelEvent::Delta(line.text.clone())).await;
            }
            let event = match line.error {
                Some(failure) => ModelEvent::Failed(failure.into()),
                None => ModelEvent::Done(line.answer(calls_before)),
            };
            send(&mut events, event).await;
        })
    }
}

impl From<Failure> for ModelError {
    fn from(failure: Failure) -> Self {
        Self {
            kind: match failure.kind {
                FailureKind::Overflow => ModelErrorKind::ContextOverflow,
                FailureKind::Unavailable => ModelErrorKind::Unavailable,
                FailureKind::Refused => ModelErrorKind::Refused,
            },
            message: failure.message,
        }
    }
}

impl Line {
    fn answer(self, calls_before: usize) -> Answer {
        let calls: Vec<ToolCall> = self
            .calls
            .into_iter()
            .enumerate()
            .map(|(index, call)| ToolCall {
                id: call.id.unwrap_or_else(|| format!("call_{}", calls_before + index + 1)),
                name: call.tool,
                arguments: match call.arguments {
                    Value::Object(object) => Arguments::Object(object),
                    Value::String(raw) => arguments::parse(&raw),
                    _ => Arguments::Object(serde_json::Map::new()),
                },
            })
            .collect();
        let by_calls = if calls.is_empty() {
            Finish::Stop
        } else {
            Finish::ToolCalls
        };
        Answer {
            finish: self.finish.unwrap_or(by_calls),
            usage: Usage {
                input_tokens: self.usage.input_tokens,
                output_tokens: self.usage.output_tokens,
                cached_tokens: self.usage.cached_tokens,
                reasoning_tokens: self.usage.reasoning_tokens,
                cost: self.usage.cost,
            },
            message: Assistant {
                text: self.text,
                reasoning: Vec::new(),
                calls,
            },
            served: Served::default(),
        }
    }
}

impl Inner {
    /// The name under which a session's lines stand.
    fn key(&self, session: &SessionId) -> Option<&str> {
        let whole = session.as_str();
        let stem = whole
            .rsplit_once('_')
            .filter(|(_, count)| count.bytes().all(|byte| byte.is_ascii_digit()))
            .map(|(stem, _)| stem);
        [Some(whole), stem]
            .into_iter()
            .flatten()
            .find_map(|name| self.lines.get_key_value(name))
            .map(|(name, _)| name.as_str())
    }

    /// The session's next line, once the request fits it, and how many calls the session has made before it.
    fn take(&self, request: &Request) -> Result<(Line, usize), ModelError> {
        let session = &request.session;
        let fail = |place: &str, why: String| ModelError {
            kind: ModelErrorKind::Script,
            message: format!("{}{place}: session `{session}`: {why}", self.label),
        };
        let Some(lines) = self.key(session).and_then(|key| self.lines.get(key)) else {
            let known: Vec<String> = self.lines.keys().map(|name| format!("`{name}`")).collect();
            return Err(fail(
                "",
                format!("has no line; there are lines for {}", known.join(", ")),
            ));
        };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let (done, calls) = read.entry(session.clone()).or_default();
        let Some((number, line)) = lines.get(*done) else {
            return Err(fail(
                "",
                format!("has had all its {} lines and asks once more", lines.len()),
            ));
        };
        let place = format!(":{number}");
        check_pairing(&request.history).map_err(|why| fail(&place, why))?;
        line.check_request(request).map_err(|why| fail(&place, why))?;
        let before = *calls;
        *done += 1;
        *calls += line.calls.len();
        Ok((line.clone(), before))
    }
}

/// Each call must have its result, right behind it, once and in order.
fn check_pairing(history: &[Message]) -> Result<(), String> {
    let mut ids = HashSet::new();
    for (index, message) in history.iter().enumerate() {
        let results: &[CallResult] = match history.get(index + 1) {
            Some(Message::Results { results }) => results,
            _ => &[],
        };
        match message {
            Message::Assistant(answer) => {
                for call in &answer.calls {
                    if !ids.insert(call.id.as_str()) {
                        return Err(format!("the call id `{}` occurs twice in the history", call.id));
                    }
                    if !results.iter().any(|result| result.call == call.id) {
                        return Err(format!("the call `{}` of `{}` has no result", call.id, call.name));
                    }
                }
                let called: Vec<&str> = answer.calls.iter().map(|call| call.id.as_str()).collect();
                let answered: Vec<&str> = results.iter().map(|result| result.call.as_str()).collect();
                if called != answered {
                    return Err(format!(
                        "the results ({}) are not those of the calls ({})",
                        answered.join(", "),
                        called.join(", ")
                    ));
                }
            }
            Message::Results { .. }
                if !matches!(index.checked_sub(1).map(|i| &history[i]), Some(Message::Assistant(_))) =>
            {
                return Err("results stand in the history without their calls".into());
            }
            Message::Results { .. } | Message::User { .. } => {}
        }
    }
    Ok(())
}

impl Line {
    fn check_request(&self, request: &Request) -> Result<(), String> {
        let history = &request.history;
        let since = history
            .iter()
            .rposition(|message| matches!(message, Message::Assistant(_)))
            .map_or(0, |at| at + 1);
        let newest: Vec<String> = history[since..].iter().map(text_of).collect();
        let newest = newest.join("\n");
        for text in self.expect.as_slice() {
            if !newest.contains(text.as_str()) {
                return Err(format!(
                    "expected `{text}` in what came since the last answer, which is `{}`",
                    cut(&newest)
                ));
            }
        }
        for text in self.absent.as_slice() {
            let found = request.system.contains(text.as_str())
                || history.iter().any(|message| text_of(message).contains(text.as_str()));
            if found {
                return Err(format!("`{text}` must not occur in the request, and does"));
            }
        }
        Ok(())
    }
}

fn text_of(message: &Message) -> String {
    match message {
        Message::User { content } => to_text(content),
        Message::Assistant(answer) => {
            let calls = answer
                .calls
                .iter()
                .map(|call| format!("\n{} {}", call.name, call.arguments.to_value()));
            std::iter::once(answer.text.clone()).chain(calls).collect()
        }
        Message::Results { results } => {
            let texts: Vec<String> = results.iter().map(|result| to_text(&result.content)).collect();
            texts.join("\n")
        }
    }
}

/// Enough of a text to see what came instead.
fn cut(text: &str) -> String {
    const LONGEST: usize = 600;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
