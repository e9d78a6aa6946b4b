//! `write`: a whole file, and how a file is stored.

use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write as _};

use fief_plugin::{Output, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::place::{Deed, Place, Spot};
use crate::text;

/// What is written.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    /// Relative to the working directory, or absolute.
    pub(crate) path: String,
    /// The whole content of the file.
    pub(crate) content: String,
}

pub(crate) fn write(place: &Place, args: &Write) -> Result<Output, ToolError> {
    let spot = place.find(&args.path)?;
    let shown = &spot.shown;
    if args.path.ends_with('/') {
        return Err(ToolError::invalid(format!(
            "`{}` ends in a slash: name a file",
            args.path
        )));
    }
    let old = match fs::metadata(&spot.path) {
        Ok(metadata) if metadata.is_dir() => {
            return Err(ToolError::failed(format!(
                "`{shown}` is a directory: name a file in it"
            )));
        }
        Ok(metadata) if !metadata.is_file() => {
            return Err(ToolError::failed(format!("`{shown}` is no regular file")));
        }
        Ok(metadata) => Some(metadata.len()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(place.explain(&spot, Deed::Write, &error)),
    };
    let stored = match old {
        Some(_) => replace(&spot, args.content.as_bytes()),
        None => create(&spot, args.content.as_bytes()),
    };
    stored.map_err(|error| place.explain(&spot, Deed::Write, &error))?;
    let lines = text::count(args.content.lines().count() as u64, "line", "lines");
    let bytes = text::count(args.content.len() as u64, "byte", "bytes");
    Ok(Output::text(match old {
        Some(old) => format!("overwrote `{shown}`: {lines}, {bytes} (there were {old})"),
        None => format!("created `{shown}`: {lines}, {bytes}"),
    }))
}

/// A new file appears whole or not at all: it is written beside its place, then renamed.
fn create(spot: &Spot, content: &[u8]) -> io::Result<()> {
    let Some((directory, name)) = spot.path.parent().zip(spot.path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    fs::create_dir_all(directory)?;
    let chance = RandomState::new().hash_one(content);
    // A name that is almost too long for the system leaves no room for more.
    let name: String = name.to_string_lossy().chars().take(40).collect();
    let beside = directory.join(format!(".{name}.{chance:016x}"));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
        file.write_all(content)?;
        drop(file);
        fs::rename(&beside, &spot.path)
    })();
    if written.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A file that exists is written in place. Renaming another over it would take away its mode, which WASI can neither
/// read nor set (a script would no longer run), and would replace a link instead of what it leads to.
pub(crate) fn replace(spot: &Spot, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(&spot.path)?;
    file.write_all(content)?;
    file.set_len(content.len() as u64)
}
