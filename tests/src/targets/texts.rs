//! Texts that strangers write: manifests, and a server's events.

use std::path::{Path, PathBuf};

use fief_core::manifest::archetype::{mapping::ToolMapping, markdown, toml};
use fief_core::manifest::error::{ManifestError, Source};
use fief_core::manifest::files::{Entry, FileError, Files};
use fief_core::manifest::{config, plugin};

use super::text;

/// The parser of server-sent events, which the crate of models keeps to itself.
#[path = "../../../host/llm/src/sse.rs"]
#[allow(dead_code, unreachable_pub)]
mod events;

/// A disk with nothing on it.
struct Nothing;

impl Files for Nothing {
    fn read(&self, _: &Path) -> Result<String, FileError> {
        Err(FileError::Missing)
    }

    fn read_inside(&self, _: &Path, _: &Path) -> Result<String, FileError> {
        Err(FileError::Missing)
    }

    fn list(&self, _: &Path) -> Result<Vec<Entry>, FileError> {
        Err(FileError::Missing)
    }

    fn canonical(&self, _: &Path) -> Result<PathBuf, FileError> {
        Err(FileError::Missing)
    }
}

fn each_has_a_place(errors: &[ManifestError]) {
    assert!(!errors.is_empty());
    for error in errors {
        let place = &error.place;
        assert!(place.source.text.get(place.span.clone()).is_some(), "{error}");
        assert!(
            place.line >= 1 && place.column >= 1 && !error.message.is_empty(),
            "{error}"
        );
    }
}

/// A text as every kind of TOML manifest.
///
/// # Panics
/// If a fault is told without its place.
pub fn manifests(bytes: &[u8]) {
    let text = text(bytes);
    let source = || Source::new("/w/x.toml", text.as_str());
    if let Err(errors) = toml::parse(source(), &Nothing) {
        each_has_a_place(&errors);
    }
    if let Err(errors) = plugin::parse(source()) {
        each_has_a_place(&errors);
    }
    if let Err(errors) = config::parse(source()) {
        each_has_a_place(&errors);
    }
}

/// A text as a Markdown archetype.
///
/// # Panics
/// If a fault is told without its place.
pub fn front_matter(bytes: &[u8]) {
    let source = Source::new("/w/x.md", text(bytes));
    let known = markdown::Known {
        mapping: &ToolMapping::default(),
        tools: None,
        models: None,
    };
    match markdown::parse(source).and_then(|markdown| markdown.resolve(known)) {
        Ok(parsed) => assert!(!parsed.value.name.as_str().is_empty()),
        Err(errors) => each_has_a_place(&errors),
    }
}

/// A server's stream, whole and in pieces as the first byte says: both must read the same.
///
/// # Panics
/// If they do not.
pub fn sse(bytes: &[u8]) {
    let (first, stream) = bytes.split_first().unwrap_or((&0, &[]));
    let read = |size: usize| {
        let (mut parser, mut events) = (events::SseParser::default(), Vec::new());
        for piece in stream.chunks(size.max(1)) {
            if let Err(fault) = parser.push(piece, &mut events) {
                return (events, Err(fault));
            }
        }
        let ended = parser.finish(&mut events);
        (events, ended)
    };
    assert_eq!(read(usize::from(*first)), read(stream.len()));
}
