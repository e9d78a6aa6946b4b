//! A conversation with a main agent: one task or many, in one history.
//!
//! ```no_run
//! # async fn example(host: fief::Host) -> Result<(), fief::Error> {
//! let mut session = host.session(fief::SessionOptions::default()).await?;
//! let mut events = session.events();
//! let handle = session.handle();
//! let watcher = tokio::spawn(async move {
//!     while let Some(event) = events.recv().await {
//!         println!("{}", serde_json::to_string(&event).unwrap_or_default());
//!     }
//! });
//! let report = session.task("Where is the harbour mentioned?").await; // `handle.cancel()` would end it
//! println!("{}: {}", report.status.as_str(), report.text);
//! # drop((handle, watcher));
//! # Ok(())
//! # }
//! ```

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use fief_core::agent::Start;
use fief_core::event::Event;
use fief_core::id::SessionId;
use fief_core::message::Message;
use fief_core::plan::{self, PlanError, PlanErrorKind, Planned};
use fief_core::report::Report;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::drive::Run;
use crate::drive::agent::{Body, Course};
use crate::drive::ask::{Asker, Question};
use crate::drive::kit::Kit;
use crate::drive::stream::{Emitter, EventStream, Source};
use crate::error::Error;
use crate::host::Host;
use crate::record::{Past, Record, RunInfo};
use crate::{clock, private};

/// How a session starts. The default: the configured archetype and model, no record, nobody to ask.
#[derive(Debug, Default)]
pub struct SessionOptions {
    /// The main agent's archetype; absent: what the configuration says, else `main`.
    pub archetype: Option<String>,
    /// Where the record goes: a folder below this one. Absent: nowhere.
    pub record: Option<PathBuf>,
    /// A past run that is gone on with. Its record is added to.
    pub past: Option<Past>,
    /// Takes what the person who watches is asked; absent: nobody is there, and every answer is no.
    pub questions: Option<UnboundedSender<Question>>,
}

/// A main agent with its history.
#[derive(Debug)]
pub struct Session {
    course: Course,
    started: bool,
    system: String,
    history: Vec<Message>,
    /// Where the record is to go: it is begun by the first task, since what never ran is no run.
    runs: Option<PathBuf>,
    kept: Option<Arc<Record>>,
    info: RunInfo,
    events: Option<UnboundedReceiver<Event>>,
    current: Arc<Mutex<CancellationToken>>,
}

/// Cancels what a session runs at the moment.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Mutex<CancellationToken>>);

impl Handle {
    /// Ends the current task: its model's requests, its guests and all its children stop, what finished is kept.
    pub fn cancel(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }
}

impl Host {
    /// A session with a main agent, everything resolved, nothing started.
    ///
    /// # Errors
    /// [`Error`] if the archetype is unknown, or the agent cannot start.
    pub async fn session(&self, options: SessionOptions) -> Result<Session, Error> {
        let SessionOptions {
            archetype,
            record,
            past,
            questions,
        } = options;
        let past_archetype = past.as_ref().map(|past| past.info.archetype.clone());
        let archetype = self.archetype(archetype.or(past_archetype).as_deref())?;
        let Planned { spec, warnings, .. } = plan::main(self.world(), &archetype)?;
        let (mut history, mut children, mut recorded) = (Vec::new(), 0, 0);
        let mut info = RunInfo {
            run: clock::run_id(),
            started: clock::now(),
            archetype: spec.label.clone(),
            model: spec.model.clone(),
            working_directory: self.world().policy.working_directory.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            ..RunInfo::default()
        };
        let mut record = record;
        if let Some(past) = past {
            let read = || -> Result<_, crate::record::PastError> {
                let events = past.events()?;
                let last = events.last().map_or(0, |event| event.seq);
                Ok((past.history(&SessionId::main())?, past.children()?, last))
            };
            (history, children, recorded) = read().map_err(|error| Error::usage(error.to_string()))?;
            if record.is_some() {
                record = past.folder.parent().map(PathBuf::from);
            }
            info = RunInfo {
                finished: None,
                status: None,
                ..past.info
            };
        }
        let (sender, events) = unbounded_channel();
        let stream = EventStream::traced(
            info.run.clone(),
            self.redactor(),
            None,
            recorded,
            Some(sender),
            self.trace(|| &info.run),
        );
        let asker = Asker::new(questions);
        let run = Run::new(
            self.world().clone(),
            self.supply(),
            stream.clone(),
            asker,
            self.instructions(),
            self.validators(),
            children,
        );
        let emitter = Emitter::new(stream, Source::default());
        let supplied = run.supply.model(&spec.model).map_err(Error::usage)?;
        let kit = Kit::new(&*run.supply, spec, warnings).await.map_err(Error::usage)?;
        let body = Body::new(run, kit, supplied, emitter, crate::drive::Slot::default());
        let system = body.system("", false).await.map_err(Error::usage)?;
        if let Some(runs) = &record {
            private::create_dir(runs).map_err(|error| Error::Io {
                path: runs.clone(),
                error,
            })?;
        }
        Ok(Session {
            course: Course::new(body),
            started: false,
            system,
            history,
            runs: record,
            kept: None,
            info,
            events: Some(events),
            current: Arc::default(),
        })
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        match error.kind {
            PlanErrorKind::Strict => Self::Strict { message: error.message },
            PlanErrorKind::Configuration | PlanErrorKind::Request => Self::usage(error.message),
        }
    }
}

impl Session {
    /// The events of all its tasks, in order. They can be taken once; later calls give a stream that has ended.
    pub fn events(&mut self) -> UnboundedReceiver<Event> {
        self.events.take().unwrap_or_else(|| unbounded_channel().1)
    }

    /// What cancels the task that runs at the moment.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(self.current.clone())
    }

    /// The run's name.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.info.run
    }

    /// The folder of the record, if one is kept; from the first task on.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        self.kept.as_ref().map(|record| record.folder().to_path_buf())
    }

    /// Runs a task to its end, in the history of those before it.
    pub async fn task(&mut self, task: impl Into<String>) -> Report {
        let task = task.into();
        let token = CancellationToken::new();
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = token.clone();
        let report = if self.started {
            self.course.go_on(task, token).await
        } else {
            self.started = true;
            self.begin_record();
            self.first(task, token).await
        };
        if let Some(record) = &self.kept {
            let stream = self.course.body().emitter.stream();
            stream.check_record(record.finish(report.status, report.usage));
        }
        report
    }

    fn begin_record(&mut self) {
        let Some(runs) = self.runs.take() else { return };
        let stream = self.course.body().emitter.stream();
        match Record::open(&runs, self.info.clone()) {
            Ok(record) => {
                let record = Arc::new(record);
                stream.keep(record.clone());
                self.kept = Some(record);
            }
            Err(error) => stream.check_record(Err(error)),
        }
    }

    async fn first(&mut self, task: String, token: CancellationToken) -> Report {
        if let Some(record) = &self.kept {
            let stream = self.course.body().emitter.stream();
            stream.check_record(record.set_task(&stream.redact(task.clone())));
        }
        let start = Start {
            task,
            system: std::mem::take(&mut self.system),
            history: Arc::new(std::mem::take(&mut self.history)),
            warnings: self.course.body().kit.warnings.clone(),
            ..Start::default()
        };
        self.course.start(start, token).await
    }
}
