//! `list`: one directory.

use std::fs;

use fief_plugin::{Output, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::place::{Deed, Place};
use crate::text;

/// What is listed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// The directory; absent: the working directory.
    #[serde(default)]
    pub(crate) path: Option<String>,
}

/// More entries than a model reads.
const LIMIT: usize = 1_000;

pub(crate) fn list(place: &Place, args: &List) -> Result<Output, ToolError> {
    let (start, metadata) = place.start(args.path.as_deref())?;
    let shown = &start.shown;
    if !metadata.is_dir() {
        return Ok(Output::text(format!(
            "`{shown}` is a file of {}",
            text::count(metadata.len(), "byte", "bytes")
        )));
    }
    let failed = |error: std::io::Error| place.explain(&start, Deed::Read, &error);
    let (mut directories, mut files, mut unreadable) = (Vec::new(), Vec::new(), 0);
    for entry in fs::read_dir(&start.path).map_err(failed)? {
        match entry.and_then(|entry| Ok((entry.file_type()?, entry.file_name()))) {
            Ok((kind, name)) if kind.is_dir() => directories.push(name),
            Ok((kind, name)) => files.push((name, kind)),
            Err(_) => unreadable += 1,
        }
    }
    directories.sort();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    let mut out = format!(
        "`{shown}`: {}, {}\n",
        text::count(directories.len() as u64, "directory", "directories"),
        text::count(files.len() as u64, "file", "files")
    );
    let total = directories.len() + files.len();
    for name in directories.iter().take(LIMIT) {
        out += &format!("{}/\n", name.to_string_lossy());
    }
    for (name, kind) in files.iter().take(LIMIT.saturating_sub(directories.len())) {
        let path = start.path.join(name);
        let name = name.to_string_lossy();
        if kind.is_symlink() {
            let leads = fs::read_link(&path).map_or_else(
                |_| "(outside what is granted)".to_owned(),
                |to| to.to_string_lossy().into_owned(),
            );
            out += &format!("{name} -> {leads}\n");
        } else if kind.is_file() {
            let size =
                fs::symlink_metadata(&path).map_or_else(|_| "?".to_owned(), |metadata| metadata.len().to_string());
            out += &format!("{name} ({size} bytes)\n");
        } else {
            out += &format!("{name} (no regular file)\n");
        }
    }
    let mut notes = Vec::new();
    if total > LIMIT {
        notes.push(format!(
            "the first {LIMIT} of {total}: use glob with a pattern for the rest"
        ));
    }
    if unreadable > 0 {
        notes.push(format!(
            "{} could not be read",
            text::count(unreadable, "entry", "entries")
        ));
    }
    if !notes.is_empty() {
        out += &format!("({})\n", notes.join("; "));
    }
    Ok(Output::text(out))
}
