//! The one stream of events of a run: stamped, redacted, recorded, and shown to whoever watches.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fief_core::event::{Event, EventKind, Forwarded};
use fief_core::id::SessionId;
use fief_sandbox::redact::Redactor;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::deltas::Deltas;
use crate::clock;
use crate::record::Record;
use crate::telemetry::{Note, Trace};

/// Where the events of one run go.
///
/// The watcher's queue has no bound: an event is smaller than the message or result that it tells of, which the
/// history holds anyway, and a bound would let a stopped terminal stop the agents.
pub struct EventStream {
    run: String,
    redact: Arc<Redactor>,
    record: OnceLock<Arc<Record>>,
    record_failed: AtomicBool,
    deltas: Deltas,
    trace: Option<Trace>,
    state: Mutex<State>,
}

struct State {
    recorded: u64,
    watched: u64,
    watcher: Option<UnboundedSender<Event>>,
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventStream")
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

impl EventStream {
    /// A stream for `run`, whose record has `recorded` events already.
    #[must_use]
    pub fn new(
        run: String,
        redact: Arc<Redactor>,
        record: Option<Arc<Record>>,
        recorded: u64,
        watcher: Option<UnboundedSender<Event>>,
    ) -> Arc<Self> {
        Self::traced(run, redact, record, recorded, watcher, None)
    }

    /// The same, which tells a collector too.
    pub(crate) fn traced(
        run: String,
        redact: Arc<Redactor>,
        record: Option<Arc<Record>>,
        recorded: u64,
        watcher: Option<UnboundedSender<Event>>,
        trace: Option<Trace>,
    ) -> Arc<Self> {
        let state = Mutex::new(State {
            recorded,
            watched: 0,
            watcher,
        });
        Arc::new(Self {
            run,
            redact,
            record: record.map(OnceLock::from).unwrap_or_default(),
            record_failed: AtomicBool::new(false),
            deltas: Deltas::default(),
            trace,
            state,
        })
    }

    /// Keeps a record from now on, in which a past run left as many events as [`Self::new`] was told. One that is kept
    /// already goes on.
    pub(crate) fn keep(&self, record: Arc<Record>) {
        let _ = self.record.set(record);
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The record, if one is kept.
    #[must_use]
    pub fn record(&self) -> Option<&Arc<Record>> {
        self.record.get()
    }

    /// Takes the values of secrets out of a text.
    #[must_use]
    pub fn redact(&self, text: String) -> String {
        if let Cow::Owned(clean) = self.redact.text(&text) {
            return clean;
        }
        text
    }

    /// Takes the values of secrets out of every text inside `value`.
    #[must_use]
    pub fn redact_json(&self, mut value: Value) -> Value {
        if !self.redact.is_empty() {
            self.redact.value(&mut value);
        }
        value
    }

    /// Says once that the record cannot be written; the run goes on without it.
    pub(crate) fn check_record(&self, written: std::io::Result<()>) {
        let Err(error) = written else { return };
        if !self.record_failed.swap(true, Ordering::Relaxed) {
            tracing::error!(%error, "the record cannot be written");
            let source = Source::main();
            let message = format!("the record of this run cannot be written, it is not complete: {error}");
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.show(self.stamp(&source, EventKind::Warning { message }), &source);
        }
    }

    fn stamp(&self, source: &Source, kind: EventKind) -> Event {
        Event {
            kind,
            run: self.run.clone(),
            session: source.session.clone(),
            parent: source.parent.clone(),
            depth: source.depth,
            seq: 0,
            time: clock::now(),
            forwarded: None,
        }
    }

    fn redacted(&self, event: Event) -> Event {
        if self.redact.is_empty() {
            return event;
        }
        let Ok(value) = serde_json::to_value(&event) else {
            return event;
        };
        match serde_json::from_value(self.redact_json(value)) {
            Ok(event) => event,
            // A secret whose value is a word of the event's own form, such as `main`, cannot be taken out of it.
            Err(_) => Event {
                kind: EventKind::Warning {
                    message: "an event was withheld: it held a secret".into(),
                },
                ..event
            },
        }
    }
}

impl State {
    fn show(&mut self, mut event: Event, source: &Source) {
        let lifecycle = matches!(
            event.kind,
            EventKind::AgentStarted { .. } | EventKind::AgentFinished { .. }
        );
        if !source.forward && !lifecycle {
            return;
        }
        let Some(watcher) = &self.watcher else { return };
        self.watched += 1;
        event.seq = self.watched;
        event.forwarded = source.author.as_ref().map(|author| Forwarded {
            tool_progress: true,
            author: author.to_string(),
            partial: matches!(event.kind, EventKind::ModelDelta { .. }),
        });
        if watcher.send(event).is_err() {
            self.watcher = None; // Nobody watches any more.
        }
    }
}

/// Whose events they are.
#[derive(Clone, Debug)]
pub struct Source {
    /// The session.
    pub session: SessionId,
    /// The session that started it.
    pub parent: Option<SessionId>,
    /// 0 for main.
    pub depth: u32,
    /// The child's archetype; absent for main.
    pub author: Option<Arc<str>>,
    /// Whether more than its start and end reaches the watcher.
    pub forward: bool,
}

impl Source {
    fn main() -> Self {
        Self {
            session: SessionId::main(),
            parent: None,
            depth: 0,
            author: None,
            forward: true,
        }
    }
}

impl Default for Source {
    fn default() -> Self {
        Self::main()
    }
}

/// The end of the stream that one session holds.
#[derive(Clone, Debug)]
pub struct Emitter {
    stream: Arc<EventStream>,
    source: Arc<Source>,
}

impl Emitter {
    /// The end of `stream` for `source`.
    #[must_use]
    pub fn new(stream: Arc<EventStream>, source: Source) -> Self {
        Self {
            stream,
            source: Arc::new(source),
        }
    }

    /// The whole stream.
    #[must_use]
    pub fn stream(&self) -> &Arc<EventStream> {
        &self.stream
    }

    /// Whose events these are.
    #[must_use]
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Lets one event out.
    pub fn emit(&self, kind: EventKind) {
        let stream = &self.stream;
        let (rest, kind) = stream.deltas.settle(&stream.redact, &self.source.session, kind);
        let rest = rest.map(|content| EventKind::ModelDelta { content });
        rest.into_iter().chain(kind).for_each(|kind| self.let_out(kind));
    }

    /// The numbers of both streams are given under one lock, so that they have neither gaps nor swaps.
    fn let_out(&self, kind: EventKind) {
        let event = self.stream.redacted(self.stream.stamp(&self.source, kind));
        self.tell(&Note::Event(&event));
        let mut state = self.stream.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut written = Ok(());
        if let Some(record) = self.stream.record() {
            state.recorded += 1;
            written = record.event(&Event {
                seq: state.recorded,
                ..event.clone()
            });
        }
        state.show(event, &self.source);
        drop(state);
        self.stream.check_record(written);
    }

    /// Tells the collector, if there is one, what no event says.
    pub(crate) fn tell(&self, note: &Note<'_>) {
        if let Some(trace) = &self.stream.trace {
            trace.take(&self.source.session, note);
        }
    }

    /// Lets a warning out.
    pub fn warn(&self, message: impl Into<String>) {
        self.emit(EventKind::Warning {
            message: message.into(),
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn child(stream: &Arc<EventStream>, forward: bool) -> Emitter {
        let source = Source {
            session: SessionId::child("explore", 1),
            parent: Some(SessionId::main()),
            depth: 1,
            author: Some("explore".into()),
            forward,
        };
        Emitter::new(stream.clone(), source)
    }

    fn delta() -> EventKind {
        EventKind::ModelDelta {
            content: "a secret: hunter2".into(),
        }
    }

    fn started() -> EventKind {
        EventKind::AgentStarted {
            call: "c1".into(),
            archetype: "explore".into(),
            task: "look".into(),
            label: None,
            tools: Vec::new(),
        }
    }

    #[test]
    fn the_record_has_all_and_the_watcher_what_is_forwarded_each_without_gaps() {
        let runs = tempfile::tempdir().unwrap();
        let info = crate::record::RunInfo {
            run: "r".into(),
            ..Default::default()
        };
        let record = Arc::new(Record::open(runs.path(), info).unwrap());
        let (sender, mut watcher) = tokio::sync::mpsc::unbounded_channel();
        let redact = Arc::new(Redactor::new(&[secrecy::SecretString::from("hunter2")]));
        let stream = EventStream::new("r".into(), redact, Some(record), 0, Some(sender));
        let (main, quiet, loud) = (
            Emitter::new(stream.clone(), Source::default()),
            child(&stream, false),
            child(&stream, true),
        );
        main.warn("first");
        quiet.emit(started());
        quiet.emit(delta());
        loud.emit(delta());
        main.warn("last");

        let seen: Vec<Event> = std::iter::from_fn(|| watcher.try_recv().ok()).collect();
        assert_eq!(seen.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(seen[0].forwarded, None);
        let mark = |partial| {
            Some(Forwarded {
                tool_progress: true,
                author: "explore".into(),
                partial,
            })
        };
        assert_eq!((&seen[1].forwarded, &seen[2].forwarded), (&mark(false), &mark(true)));

        let past = crate::record::find(runs.path(), "r").unwrap();
        let kept = past.events().unwrap();
        assert_eq!(kept.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert!(!serde_json::to_string(&kept).unwrap().contains("hunter2"));
        assert!(!serde_json::to_string(&seen).unwrap().contains("hunter2"));
    }

    #[test]
    fn b94_a_forwarded_event_says_author_partial_and_content_and_an_error_only_if_there_is_one() {
        let (sender, mut watcher) = tokio::sync::mpsc::unbounded_channel();
        let stream = EventStream::new("r".into(), Arc::new(Redactor::new([])), None, 0, Some(sender));
        let child = child(&stream, true);
        child.emit(delta());
        let finished = |error: Option<&str>| EventKind::ToolFinished {
            call: "c1".into(),
            plugin: Some("files".into()),
            tool: "files.read".into(),
            outcome: fief_core::tool::OutcomeKind::Ok,
            content: "text".into(),
            error: error.map(str::to_owned),
            ms: 1,
        };
        child.emit(finished(None));
        child.emit(finished(Some("trap")));
        let mut next = || serde_json::to_value(watcher.try_recv().unwrap()).unwrap();
        let delta = next();
        assert_eq!(
            (&delta["tool_progress"], &delta["author"], &delta["partial"]),
            (&true.into(), &"explore".into(), &true.into())
        );
        assert!(delta["content"].is_string());
        assert!(delta.get("error").is_none() && delta.get("usage").is_none(), "{delta}");
        let whole = next();
        assert_eq!(whole["partial"], false);
        assert!(whole["error"].is_null(), "{whole}");
        assert_eq!(next()["error"], "trap");
    }

    #[test]
    fn a_watcher_that_left_stops_nothing() {
        let (sender, watcher) = tokio::sync::mpsc::unbounded_channel();
        let stream = EventStream::new("r".into(), Arc::new(Redactor::new([])), None, 0, Some(sender));
        drop(watcher);
        let main = Emitter::new(stream, Source::default());
        main.warn("one");
        main.warn("two");
    }
}
