//! What is wrong with a manifest, and where: everything that is needed to show the line to a person.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A text that was read, with the label by which people know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// The path as it was given, or a word such as `built in`.
    pub file: Arc<str>,
    /// The whole text; empty where it must not be shown or could not be read.
    pub text: Arc<str>,
}

impl Source {
    /// A text with its label.
    #[must_use]
    pub fn new(file: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self {
            file: file.into(),
            text: text.into(),
        }
    }

    /// The place of `span`, bytes of the text. A span that the text does not have is moved inside it.
    #[must_use]
    pub fn place(&self, span: Range<usize>) -> Place {
        let inside = |offset: usize| {
            let mut offset = offset.min(self.text.len());
            while !self.text.is_char_boundary(offset) {
                offset -= 1;
            }
            offset
        };
        let (start, end) = (inside(span.start), inside(span.end.max(span.start)));
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Place {
            line: count(before.matches('\n').count() + 1),
            column: count(before[line_start..].chars().count() + 1),
            span: start..end,
            source: self.clone(),
        }
    }
}

/// A place in a manifest.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    /// The file and its text.
    pub source: Source,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    /// Bytes of the text, for a renderer that shows the line.
    pub span: Range<usize>,
}

impl Place {
    /// A file as a whole: one that cannot be read, or a collision of two.
    #[must_use]
    pub fn file(file: impl Into<Arc<str>>) -> Self {
        Source::new(file, "").place(0..0)
    }

    /// The same place without the text, where the line holds what must not be shown.
    fn without_text(self) -> Self {
        Self {
            source: Source::new(self.source.file, ""),
            span: 0..0,
            ..self
        }
    }
}

impl fmt::Display for Place {
    /// `FILE:LINE:COLUMN`, or the file alone where no text is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source.file)?;
        if self.source.text.is_empty() && self.line == 1 {
            return Ok(());
        }
        write!(f, ":{}:{}", self.line, self.column)
    }
}

impl fmt::Debug for Place {
    // The text would drown every failed assertion.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

macro_rules! finding {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct $type {
            /// Where.
            pub place: Box<Place>,
            /// The key as a path, such as `tools[0].grant.http`; absent for what concerns the whole file.
            pub key: Option<String>,
            /// What is wrong.
            pub message: String,
            /// What would be right.
            pub hint: Option<String>,
        }

        impl $type {
            /// One that concerns a file as a whole.
            #[must_use]
            pub fn of_file(file: impl Into<Arc<str>>, message: impl Into<String>) -> Self {
                Self::at(Place::file(file), message)
            }

            /// One at a place.
            #[must_use]
            pub fn at(place: Place, message: impl Into<String>) -> Self {
                Self { place: Box::new(place), key: None, message: message.into(), hint: None }
            }

            /// With the key that it is about.
            #[must_use]
            pub fn with_key(mut self, key: impl Into<String>) -> Self {
                self.key = Some(key.into());
                self
            }

            /// With what would be right.
            #[must_use]
            pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
                self.hint = Some(hint.into());
                self
            }

            /// Without the manifest's text, where the line holds a secret.
            #[must_use]
            pub fn without_text(mut self) -> Self {
                self.place = Box::new(self.place.without_text());
                self
            }

            /// The file's label.
            #[must_use]
            pub fn file(&self) -> &str {
                &self.place.source.file
            }

            /// All of it for a person: the hint on a line of its own that starts with `hint: `.
            #[must_use]
            pub fn with_its_hint(&self) -> String {
                match &self.hint {
                    Some(hint) => format!("{self}\nhint: {hint}"),
                    None => self.to_string(),
                }
            }

            /// The line, from 1.
            #[must_use]
            pub fn line(&self) -> u32 {
                self.place.line
            }
        }

        impl fmt::Display for $type {
            /// `FILE:LINE:COLUMN: MESSAGE`; the hint has a line of its own and is left to who prints.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}: {}", self.place, self.message)
            }
        }
    };
}

finding!(
    /// Why a manifest is refused.
    ManifestError
);
finding!(
    /// What a manifest says that has no effect, or less than it may seem.
    ManifestWarning
);

impl std::error::Error for ManifestError {}

/// What a manifest came to, with what its author should know.
#[derive(Clone, PartialEq, Debug)]
pub struct Parsed<T> {
    /// The result.
    pub value: T,
    /// In the order of the text.
    pub warnings: Vec<ManifestWarning>,
}

/// Every error of one or more manifests, in the order of the files and of their text.
pub type ManifestErrors = Vec<ManifestError>;

/// For tests: what differs between the one error of `text` and what is expected of it, if anything does.
#[cfg(test)]
pub(crate) fn misfit<T: fmt::Debug>(
    text: &str,
    result: &Result<T, ManifestErrors>,
    (line, key, message, hint): (u32, &str, &str, &str),
) -> Option<String> {
    let holds = |text: &Option<String>, part: &str| text.as_deref().unwrap_or_default().contains(part);
    match result.as_ref().map_err(Vec::as_slice) {
        Err([error])
            if error.line() == line
                && error.key.as_deref().unwrap_or_default() == key
                && error.message.contains(message)
                && holds(&error.hint, hint) =>
        {
            None
        }
        other => Some(format!("{text}\nwants {line} {key} {message} {hint}\nfound {other:#?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let source = Source::new("a.toml", "näme = 1\r\nü = 2\n");
        let place = source.place(16..17);
        assert_eq!((place.line, place.column), (2, 5));
        assert_eq!(place.to_string(), "a.toml:2:5");
        assert_eq!(Place::file("a.toml").to_string(), "a.toml");
    }

    #[test]
    fn a_place_outside_the_text_or_inside_a_character_is_moved() {
        let source = Source::new("a.toml", "ü");
        assert_eq!(source.place(1..1).span, 0..0);
        assert_eq!(source.place(900..901).span, 2..2);
    }
}
