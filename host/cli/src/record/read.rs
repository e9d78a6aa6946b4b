//! Reading what past runs left, also those that were killed.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use fief_core::event::Event;
use fief_core::id::SessionId;
use fief_core::message::Message;
use serde_json::Value;

use super::RunInfo;

/// Why a past run cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PastError {
    /// There is no such run.
    #[error("there is no run `{run}` in {folder}", folder = .folder.display())]
    Unknown {
        /// What was asked for.
        run: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// More than one run starts like this.
    #[error("`{run}` is the start of more than one run: {}", .names.join(", "))]
    Ambiguous {
        /// What was asked for.
        run: String,
        /// What it may mean.
        names: Vec<String>,
    },
    /// A file of it cannot be read.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file of it holds something else.
    #[error("{path}, line {line}: {why}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

/// A past run.
#[derive(Debug)]
pub struct Past {
    /// Its folder.
    pub folder: PathBuf,
    /// Its `run.json`.
    pub info: RunInfo,
}

impl Past {
    /// Opens the run in `folder`.
    ///
    /// # Errors
    /// [`PastError`] if `run.json` is missing or damaged.
    pub fn open(folder: PathBuf) -> Result<Self, PastError> {
        let path = folder.join("run.json");
        let mut text = String::new();
        regular(&path)
            .and_then(|mut file| file.read_to_string(&mut text))
            .map_err(|error| PastError::Io {
                path: path.clone(),
                error,
            })?;
        let info = serde_json::from_str(&text).map_err(|error| PastError::Damaged {
            path,
            line: error.line(),
            why: error.to_string(),
        })?;
        Ok(Self { folder, info })
    }

    /// All its events. A last line without an end, which a killed process can leave, is left out.
    ///
    /// # Errors
    /// [`PastError`] if the file cannot be read or another line is damaged.
    pub fn events(&self) -> Result<Vec<Event>, PastError> {
        lines(&self.folder.join("events.jsonl"))?
            .into_iter()
            .map(|(place, value)| serde_json::from_value(value).map_err(|error| place.damaged(error.to_string())))
            .collect()
    }

    /// The history of one session, in order, over all its tasks.
    ///
    /// # Errors
    /// [`PastError`] if the file cannot be read or a line is damaged.
    pub fn history(&self, session: &SessionId) -> Result<Vec<Message>, PastError> {
        let mut history = Vec::new();
        for (place, mut value) in lines(&self.folder.join("sessions").join(format!("{session}.jsonl")))? {
            if let Some(message) = value.get_mut("message") {
                let message =
                    serde_json::from_value(message.take()).map_err(|error| place.damaged(error.to_string()))?;
                history.push(message);
            }
        }
        Ok(history)
    }

    /// How many children the run has started.
    ///
    /// # Errors
    /// [`PastError`] if the folder cannot be read.
    pub fn children(&self) -> Result<u64, PastError> {
        let folder = self.folder.join("sessions");
        let failed = |error| PastError::Io {
            path: folder.clone(),
            error,
        };
        let mut highest = 0;
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let number = name
                .to_str()
                .and_then(|name| name.strip_suffix(".jsonl")?.rsplit_once('_')?.1.parse().ok());
            highest = highest.max(number.unwrap_or(0));
        }
        Ok(highest)
    }
}

/// Every run below `runs`, newest first; folders that hold no readable run are left out.
///
/// # Errors
/// What the system says of the folder; one that does not exist holds no runs.
pub fn list(runs: &Path) -> io::Result<Vec<Past>> {
    let entries = match fs::read_dir(runs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut folders: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    // A run's name starts with its time.
    folders.sort_unstable_by(|one, other| other.cmp(one));
    Ok(folders
        .into_iter()
        .filter_map(|folder| Past::open(folder).ok())
        .collect())
}

/// Finds a run by its name, the start of its name, `last`, or the path of its folder.
///
/// # Errors
/// [`PastError`] if there is none, or more than one.
pub fn find(runs: &Path, run: &str) -> Result<Past, PastError> {
    let path = Path::new(run);
    if path.join("run.json").is_file() {
        let path = path.canonicalize().map_err(|error| PastError::Io {
            path: path.into(),
            error,
        })?;
        return Past::open(path);
    }
    let all = list(runs).map_err(|error| PastError::Io {
        path: runs.into(),
        error,
    })?;
    let unknown = || PastError::Unknown {
        run: run.into(),
        folder: runs.into(),
    };
    if run == "last" {
        return all.into_iter().next().ok_or_else(unknown);
    }
    let mut found: Vec<Past> = all.into_iter().filter(|past| past.info.run.starts_with(run)).collect();
    match found.len() {
        0 => Err(unknown()),
        1 => found.pop().ok_or_else(unknown),
        _ => Err(PastError::Ambiguous {
            run: run.into(),
            names: found.into_iter().map(|past| past.info.run).collect(),
        }),
    }
}

/// Opens what ends: a record may be of any size, but a FIFO or a device in its place would be read for ever.
fn regular(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    File::open(path)
}

/// How many lines a file has; none if it is missing.
pub(super) fn count_lines(path: &Path) -> io::Result<u64> {
    match regular(path) {
        Ok(file) => {
            let mut count = 0;
            for line in BufReader::new(file).split(b'\n') {
                line?;
                count += 1;
            }
            Ok(count)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

struct Place<'a> {
    path: &'a Path,
    line: usize,
}

impl Place<'_> {
    fn damaged(&self, why: String) -> PastError {
        PastError::Damaged {
            path: self.path.into(),
            line: self.line,
            why,
        }
    }
}

fn lines(path: &Path) -> Result<Vec<(Place<'_>, Value)>, PastError> {
    let failed = |error| PastError::Io {
        path: path.into(),
        error,
    };
    let mut bytes = Vec::new();
    regular(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(failed)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    bytes[..whole]
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
        .map(|(index, line)| {
            let place = Place { path, line: index + 1 };
            match serde_json::from_slice(line) {
                Ok(value) => Ok((place, value)),
                Err(error) => Err(place.damaged(error.to_string())),
            }
        })
        .collect()
}
