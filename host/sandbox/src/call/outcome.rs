//! What a call came to, in words: the limit with its value, the crash with the guest's last words, the result checked.

use std::fmt;

use fief_core::grant::Limits;
use fief_core::message::{Blob, Content};
use fief_core::tool::{Outcome, OutcomeKind};
use wasmtime::Trap;

use crate::bindings::types;
use crate::clock::TimeUp;
use crate::engine::CALL_STACK;
use crate::instance::Guest;
use crate::limits::Denial;

/// How much of a guest's last words a model is shown, in bytes.
const SHOWN_WORDS: usize = 400;
/// The most parts of one result. Providers take some dozen images in a request; empty parts cost no output, and each
/// becomes a part of every request that follows.
const MOST_PARTS: usize = 1_000;

/// A call that the sandbox ended.
pub(crate) struct Stopped {
    pub(crate) kind: OutcomeKind,
    /// For the model.
    pub(crate) text: String,
    /// For the log.
    pub(crate) detail: Option<String>,
}

impl Stopped {
    pub(super) fn limit(text: String) -> Self {
        Self {
            kind: OutcomeKind::Limit,
            text,
            detail: None,
        }
    }

    fn trap(text: String) -> Self {
        Self {
            kind: OutcomeKind::Trap,
            text,
            detail: None,
        }
    }
}

impl From<Stopped> for Outcome {
    fn from(stopped: Stopped) -> Self {
        let mut outcome = Self::refused(stopped.kind, stopped.text);
        outcome.detail = stopped.detail;
        outcome
    }
}

/// Says which clock ran out.
pub(super) fn time_up(subject: &str, up: TimeUp, guest: &Guest, limits: &Limits) -> Stopped {
    let mut stopped = Stopped::limit(match up {
        TimeUp::Cpu => format!("`{subject}` computed for longer than its limit of {}", Span(limits.cpu)),
        TimeUp::Wall => format!("`{subject}` took longer than its limit of {}", Span(limits.wall)),
    });
    let words = guest.words.last();
    stopped.detail = (!words.is_empty()).then(|| format!("its last words: {words}"));
    stopped
}

/// Says what ended a guest: the limit with its value, or the crash with the guest's last words.
pub(super) fn explain(subject: &str, error: &wasmtime::Error, guest: &Guest, limits: &Limits) -> Stopped {
    let words = guest.words.last();
    let mut stopped = reason(subject, error, guest, limits);
    if stopped.kind == OutcomeKind::Trap && !words.is_empty() {
        stopped.text.push_str("\nits last words: ");
        stopped.text.push_str(shortened(&words));
    }
    let words = if words.is_empty() {
        String::new()
    } else {
        format!("\nits last words: {words}")
    };
    stopped.detail = Some(format!("{error:?}{words}"));
    stopped
}

fn reason(subject: &str, error: &wasmtime::Error, guest: &Guest, limits: &Limits) -> Stopped {
    let memory = || format!("`{subject}` ran out of memory: its limit is {}", Size(limits.memory));
    if let Some(exit) = error.downcast_ref::<wasmtime_wasi::I32Exit>() {
        return Stopped::trap(format!(
            "`{subject}` exited with status {} instead of answering",
            exit.0
        ));
    }
    let text = format!("{error:#}");
    if text.contains("fuel allocated for hostcalls") {
        return Stopped::limit(format!(
            "`{subject}` passed more to the host than its limit: a result is at most {}",
            Size(limits.output)
        ));
    }
    if error
        .downcast_ref::<wasmtime::component::ResourceTableError>()
        .is_some()
        || text.contains("component handles")
    {
        return Stopped::limit(format!(
            "`{subject}` held more handles open than its limit of {}",
            limits.handles
        ));
    }
    if text.contains("resource limit exceeded") {
        return Stopped::limit(format!(
            "`{subject}` needs more instances, memories or tables than its limit of {} each",
            limits.instances
        ));
    }
    let trap = error.downcast_ref::<Trap>().copied();
    match (trap, guest.limiter.denial) {
        (Some(Trap::StackOverflow), _) => Stopped::limit(format!(
            "`{subject}` recursed beyond its call stack of {}",
            Size(CALL_STACK as u64)
        )),
        // An allocation that fails ends most guests: what they show of it is a trap.
        (_, Some(Denial::Memory)) => Stopped::limit(memory()),
        (_, Some(Denial::Tables)) => Stopped::limit(format!(
            "`{subject}` grew its tables beyond its limit of {} elements",
            limits.tables
        )),
        (Some(Trap::MemoryOutOfBounds), None) => Stopped::trap(format!(
            "`{subject}` crashed: it touched memory that it does not have, or overflowed the stack that it keeps there"
        )),
        (Some(Trap::UnreachableCodeReached), None) => Stopped::trap(format!("`{subject}` crashed")),
        (Some(trap), None) => Stopped::trap(format!("`{subject}` crashed: {trap}")),
        (None, None) => Stopped::trap(format!("`{subject}` failed: {}", error.root_cause())),
    }
}

/// The end of a guest's last words, from the start of its panic message if there is one.
fn shortened(words: &str) -> &str {
    let from = words.rfind("panicked at").unwrap_or(0);
    let words = &words[from..];
    if from > 0 || words.len() <= SHOWN_WORDS {
        &words[..words.floor_char_boundary(SHOWN_WORDS)]
    } else {
        &words[words.ceil_char_boundary(words.len() - SHOWN_WORDS)..]
    }
}

/// Checks what a tool returned.
pub(super) fn accept(subject: &str, output: types::Output, limits: &Limits) -> Outcome {
    let count = output.content.len();
    if count > MOST_PARTS {
        let text = format!("`{subject}` returned {count} parts, more than the limit of {MOST_PARTS}: ask it for less");
        return Stopped::limit(text).into();
    }
    let parts = output.content.iter().map(|content| match content {
        types::Content::Text(text) => text.len(),
        types::Content::Image(blob) | types::Content::Audio(blob) | types::Content::File(blob) => {
            blob.data.len() + blob.media_type.len()
        }
    });
    let size = parts.sum::<usize>() + output.structured.as_ref().map_or(0, String::len);
    if size as u64 > limits.output {
        let (size, limit) = (Size(size as u64), Size(limits.output));
        return Stopped::limit(format!(
            "`{subject}` returned {size}, more than its limit of {limit}: ask it for less"
        ))
        .into();
    }
    let structured = match output.structured.as_deref().map(serde_json::from_str).transpose() {
        Ok(structured) => structured,
        Err(error) => {
            let text = format!("`{subject}` returned a structured result that is not JSON: {error}");
            return Outcome::refused(OutcomeKind::ToolError, text);
        }
    };
    let mut content = Vec::with_capacity(output.content.len());
    for part in output.content {
        content.push(match part {
            types::Content::Text(text) => Content::Text(text),
            types::Content::Image(part) => Content::Image(blob(part)),
            types::Content::Audio(part) => Content::Audio(blob(part)),
            types::Content::File(part) => Content::File(blob(part)),
        });
    }
    Outcome {
        kind: OutcomeKind::Ok,
        content,
        structured,
        detail: None,
    }
}

/// A blob whose media type is one: it ends up in requests to providers.
fn blob(blob: types::Blob) -> Blob {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c);
    let fits = blob.media_type.len() <= 127
        && blob.media_type.split_once('/').is_some_and(|(kind, subtype)| {
            [kind, subtype]
                .iter()
                .all(|part| !part.is_empty() && part.chars().all(allowed))
        });
    Blob {
        media_type: if fits {
            blob.media_type
        } else {
            "application/octet-stream".into()
        },
        data: blob.data,
    }
}

/// A tool's own refusal.
pub(super) fn refused(error: types::ToolError, limits: &Limits) -> Outcome {
    let (what, mut text) = match error {
        types::ToolError::UnknownTool(text) => ("unknown tool", text),
        types::ToolError::InvalidArguments(text) => ("invalid arguments", text),
        types::ToolError::Denied(text) => ("denied by the tool", text),
        types::ToolError::Failed(text) => ("", text),
    };
    let most = usize::try_from(limits.output).unwrap_or(usize::MAX);
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    let text = match (what, text.trim().is_empty()) {
        ("", true) => "the tool failed and did not say why".into(),
        (what, true) => what.into(),
        ("", false) => text,
        (what, false) => format!("{what}: {text}"),
    };
    Outcome::refused(OutcomeKind::ToolError, text)
}

/// Bytes, as people write them.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        match bytes {
            _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => write!(f, "{} MiB", bytes >> 20),
            _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => write!(f, "{} KiB", bytes >> 10),
            _ => write!(f, "{bytes} bytes"),
        }
    }
}

/// A time, as people write it.
struct Span(std::time::Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.subsec_nanos() == 0 {
            write!(f, "{} s", self.0.as_secs())
        } else {
            write!(f, "{} ms", self.0.as_millis())
        }
    }
}
