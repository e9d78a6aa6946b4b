//! The record of a run: a folder that is written as the run goes.
//!
//! `run.json` says what the run is and how it ended, `events.jsonl` holds its whole stream of events, whatever the
//! watcher was shown, and `sessions/SESSION.jsonl` the message history of each agent, so that one child's course can
//! be read apart from the rest. Each line is handed to the system at once: a killed process leaves all up to its
//! last event. The folder and all in it belong to the user alone.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use fief_core::event::Event;
use fief_core::id::SessionId;
use fief_core::message::Usage;
use fief_core::report::Status;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{clock, private};

mod read;

pub use read::{Past, PastError, find, list};

/// `run.json`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RunInfo {
    /// The run's name.
    pub run: String,
    /// When it started.
    pub started: String,
    /// The first task.
    pub task: String,
    /// The main agent's archetype.
    pub archetype: String,
    /// The main agent's model.
    pub model: String,
    /// Where it ran.
    pub working_directory: PathBuf,
    /// The version of Fief that ran it.
    pub version: String,
    /// When it ended; absent while it runs, and after a killed process.
    #[serde(default)]
    pub finished: Option<String>,
    /// How it ended.
    #[serde(default)]
    pub status: Option<Status>,
    /// What its whole tree cost.
    #[serde(default)]
    pub usage: Option<Usage>,
}

/// A record that is being written.
#[derive(Debug)]
pub struct Record {
    folder: PathBuf,
    info: Mutex<RunInfo>,
    events: Mutex<File>,
    sessions: Mutex<HashMap<SessionId, Session>>,
}

#[derive(Debug)]
struct Session {
    file: File,
    lines: u64,
}

impl Record {
    /// Starts the record of a run below `runs`, or goes on with the one that a past run left there.
    ///
    /// # Errors
    /// What the system says of the folder or its files.
    pub fn open(runs: &Path, info: RunInfo) -> io::Result<Self> {
        let folder = runs.join(&info.run);
        private::create_dir(&folder.join("sessions"))?;
        let record = Self {
            events: Mutex::new(private::append(&folder.join("events.jsonl"))?),
            sessions: Mutex::default(),
            info: Mutex::new(info),
            folder,
        };
        record.write_info()?;
        Ok(record)
    }

    /// The run's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps one event.
    ///
    /// # Errors
    /// What the system says of the write.
    pub fn event(&self, event: &Event) -> io::Result<()> {
        write_line(&mut lock(&self.events), event)
    }

    /// Keeps the start of a session: who it is, its system prompt and its tools.
    ///
    /// # Errors
    /// What the system says of the write.
    pub fn session_start(&self, session: &SessionId, start: Value) -> io::Result<()> {
        self.session_line(session, "start", start)
    }

    /// Keeps one [`Message`](fief_core::message::Message) of a session's history, as JSON.
    ///
    /// # Errors
    /// What the system says of the write.
    pub fn message(&self, session: &SessionId, message: Value) -> io::Result<()> {
        self.session_line(session, "message", message)
    }

    /// Keeps the end of a session.
    ///
    /// # Errors
    /// What the system says of the write.
    pub fn session_end(&self, session: &SessionId, end: Value) -> io::Result<()> {
        self.session_line(session, "end", end)?;
        lock(&self.sessions).remove(session);
        Ok(())
    }

    /// Names the task of a run that has none yet.
    ///
    /// # Errors
    /// What the system says of the write.
    pub fn set_task(&self, task: &str) -> io::Result<()> {
        {
            let mut info = lock(&self.info);
            if info.task.is_empty() {
                info.task = task.into();
            }
        }
        self.write_info()
    }

    /// Writes how the run ended.
    ///
    /// # Errors
    /// What the system says of the write.
    pub fn finish(&self, status: Status, usage: Usage) -> io::Result<()> {
        {
            let mut info = lock(&self.info);
            info.finished = Some(clock::now());
            info.status = Some(status);
            info.usage = Some(usage);
        }
        self.write_info()
    }

    fn write_info(&self) -> io::Result<()> {
        let text = serde_json::to_string_pretty(&*lock(&self.info))?;
        private::replace(&self.folder.join("run.json"), text.as_bytes())
    }

    fn session_line(&self, session: &SessionId, kind: &str, content: Value) -> io::Result<()> {
        let mut sessions = lock(&self.sessions);
        if !sessions.contains_key(session) {
            let path = self.folder.join("sessions").join(format!("{session}.jsonl"));
            let lines = read::count_lines(&path)?;
            let file = private::append(&path)?;
            sessions.insert(session.clone(), Session { file, lines });
        }
        let Some(open) = sessions.get_mut(session) else {
            return Ok(());
        };
        open.lines += 1;
        let mut line = json!({ "n": open.lines, "time": clock::now() });
        line[kind] = content;
        write_line(&mut open.file, &line)
    }
}

/// One write for one line, so that a killed process leaves whole lines.
fn write_line(file: &mut File, line: &impl Serialize) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    file.write_all(&bytes)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
