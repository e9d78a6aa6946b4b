//! The reader of manifests: asks a table for its keys, checks each value's type, collects every error with its place.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use super::error::{ManifestError, ManifestWarning, Parsed, Place, Source};
use super::tree::{Key, Node, Value};
use super::units;
use crate::id::BadName;
use crate::nearest::suggestion;

/// Collects what is found while one manifest is read.
pub(crate) struct Reader {
    pub(crate) source: Source,
    errors: RefCell<Vec<ManifestError>>,
    warnings: RefCell<Vec<ManifestWarning>>,
    /// Where each key stands that was there and was asked for, by its whole path.
    places: RefCell<BTreeMap<String, Place>>,
}

impl Reader {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            source,
            errors: RefCell::default(),
            warnings: RefCell::default(),
            places: RefCell::default(),
        }
    }

    pub(crate) fn push(&self, error: ManifestError) {
        self.errors.borrow_mut().push(error);
    }

    pub(crate) fn warn(&self, warning: ManifestWarning) {
        self.warnings.borrow_mut().push(warning);
    }

    pub(crate) fn places(&self) -> BTreeMap<String, Place> {
        self.places.borrow().clone()
    }

    /// The result, if nothing was wrong. `value` is absent only where an error says why.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<Parsed<T>, Vec<ManifestError>> {
        let mut errors = self.errors.into_inner();
        errors.sort_by_key(|error| error.place.span.start);
        match value {
            Some(value) if errors.is_empty() => {
                let mut warnings = self.warnings.into_inner();
                warnings.sort_by_key(|warning| warning.place.span.start);
                Ok(Parsed { value, warnings })
            }
            _ => Err(errors),
        }
    }
}

/// One table that is being read. Every key that may stand in it is asked for once; [`Table::finish`] refuses the rest.
pub(crate) struct Table<'r> {
    reader: &'r Reader,
    /// Empty for the root.
    path: String,
    span: Range<usize>,
    entries: &'r [(Key, Node)],
    asked: RefCell<Vec<&'static str>>,
    unlisted: RefCell<Vec<&'r str>>,
}

impl<'r> Table<'r> {
    /// The table that a whole file is.
    pub(crate) fn root(reader: &'r Reader, node: &'r Node) -> Option<Self> {
        Field {
            reader,
            path: String::new(),
            key_span: node.span.clone(),
            node,
        }
        .table()
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// The field `key`, if the table has it.
    pub(crate) fn get(&self, key: &'static str) -> Option<Field<'r>> {
        self.asked.borrow_mut().push(key);
        self.entries
            .iter()
            .find(|(name, _)| name.name == key)
            .map(|(name, node)| self.field(name, node))
    }

    /// As [`Table::get`], for a key that is understood and never right: it is not offered as a choice.
    pub(crate) fn get_unlisted(&self, key: &str) -> Option<Field<'r>> {
        let (name, node) = self.entries.iter().find(|(name, _)| name.name == key)?;
        self.unlisted.borrow_mut().push(name.name.as_str());
        Some(self.field(name, node))
    }

    /// The field `key`, whose absence is an error; `hint` says what is wanted.
    pub(crate) fn require(&self, key: &'static str, hint: &str) -> Option<Field<'r>> {
        let field = self.get(key);
        if field.is_none() {
            self.missing(key, hint);
        }
        field
    }

    /// Reports that `key` is missing.
    pub(crate) fn missing(&self, key: &str, hint: &str) {
        let place = self.reader.source.place(self.span.clone());
        self.reader.push(
            ManifestError::at(place, format!("`{key}` is missing"))
                .with_key(self.path_of(key))
                .with_hint(hint),
        );
    }

    /// Every field, for a table whose keys are names.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'r str, Field<'r>)> {
        self.entries
            .iter()
            .map(|(key, node)| (key.name.as_str(), self.field(key, node)))
    }

    fn field(&self, key: &'r Key, node: &'r Node) -> Field<'r> {
        let field = Field {
            reader: self.reader,
            path: self.path_of(&key.name),
            key_span: key.span.clone(),
            node,
        };
        let place = self.reader.source.place(key.span.clone());
        self.reader.places.borrow_mut().insert(field.path.clone(), place);
        field
    }

    /// Refuses every key that was not asked for. `explain` may know better than the nearest name.
    pub(crate) fn finish(self, explain: impl Fn(&str) -> Option<String>) {
        let asked = self.asked.into_inner();
        let unlisted = self.unlisted.into_inner();
        for (key, _) in self.entries {
            if asked.contains(&key.name.as_str()) || unlisted.contains(&key.name.as_str()) {
                continue;
            }
            let message = if self.path.is_empty() {
                format!("unknown key `{}`", key.name)
            } else {
                format!("unknown key `{}` in `{}`", key.name, self.path)
            };
            let hint = explain(&key.name).unwrap_or_else(|| suggestion(&key.name, "keys", asked.iter().copied()));
            let path = if self.path.is_empty() {
                key.name.clone()
            } else {
                format!("{}.{}", self.path, key.name)
            };
            let place = self.reader.source.place(key.span.clone());
            self.reader
                .push(ManifestError::at(place, message).with_key(path).with_hint(hint));
        }
    }

    pub(crate) fn reader(&self) -> &'r Reader {
        self.reader
    }

    /// The place of the table's head.
    pub(crate) fn place(&self) -> Place {
        self.reader.source.place(self.span.clone())
    }
}

/// One value that is being read.
#[derive(Clone)]
pub(crate) struct Field<'r> {
    pub(crate) reader: &'r Reader,
    pub(crate) path: String,
    key_span: Range<usize>,
    pub(crate) node: &'r Node,
}

impl<'r> Field<'r> {
    /// Where the value stands. A table's or a list's place is that of its key.
    pub(crate) fn place(&self) -> Place {
        let span = match self.node.value {
            Value::Table(_) | Value::List(_) | Value::Null => &self.key_span,
            _ => &self.node.span,
        };
        self.reader.source.place(span.clone())
    }

    /// Refuses the value, with what would be right.
    pub(crate) fn refuse(&self, message: impl Into<String>, hint: impl Into<String>) {
        self.reader.push(
            ManifestError::at(self.place(), message)
                .with_key(self.path.clone())
                .with_hint(hint),
        );
    }

    /// Says that the value has no effect, or less than it may seem.
    pub(crate) fn warn(&self, message: impl Into<String>, hint: Option<&str>) {
        let mut warning = ManifestWarning::at(self.place(), message).with_key(self.path.clone());
        warning.hint = hint.map(str::to_owned);
        self.reader.warn(warning);
    }

    /// Refuses the type of the value.
    pub(crate) fn mismatch(&self, wanted: &str) {
        let path = if self.path.is_empty() { "the file" } else { &self.path };
        let quote = if self.path.is_empty() { "" } else { "`" };
        let message = format!("{quote}{path}{quote} must be {wanted}, not {}", self.node.value.kind());
        self.reader
            .push(ManifestError::at(self.place(), message).with_key(self.path.clone()));
    }

    pub(crate) fn text(&self) -> Option<&'r str> {
        if let Value::Text(text) = &self.node.value {
            return Some(text);
        }
        self.mismatch("a text");
        None
    }

    /// A text that is more than white space.
    pub(crate) fn filled(&self) -> Option<&'r str> {
        let text = self.text()?;
        if text.trim().is_empty() {
            self.refuse(
                format!("`{}` is blank", self.path),
                "write it, or leave the key out where it is optional",
            );
            return None;
        }
        Some(text)
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        if let Value::Bool(value) = self.node.value {
            return Some(value);
        }
        self.mismatch("`true` or `false`");
        None
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self.node.value {
            #[allow(clippy::cast_precision_loss)] // A manifest's numbers are small.
            Value::Integer(value) => Some(value as f64),
            Value::Float(value) if value.is_finite() => Some(value),
            _ => {
                self.mismatch("a finite number");
                None
            }
        }
    }

    /// A number within bounds.
    pub(crate) fn number_in(&self, range: std::ops::RangeInclusive<f64>) -> Option<f64> {
        let number = self.number()?;
        if !range.contains(&number) {
            let hint = if range.end().is_finite() {
                format!("from {} to {}", range.start(), range.end())
            } else {
                format!("{} or more", range.start())
            };
            self.refuse(format!("`{}` cannot be `{number}`", self.path), hint);
            return None;
        }
        Some(number)
    }

    /// An integer that is not negative and not below `least`.
    pub(crate) fn count<T: TryFrom<i64>>(&self, least: i64) -> Option<T> {
        let Value::Integer(number) = self.node.value else {
            self.mismatch("an integer");
            return None;
        };
        let counted = if number < least.max(0) {
            None
        } else {
            T::try_from(number).ok()
        };
        if counted.is_none() {
            let hint = if number < least {
                format!("{least} or more")
            } else {
                "a smaller number".to_owned()
            };
            self.refuse(format!("`{}` cannot be `{number}`", self.path), hint);
        }
        counted
    }

    /// A limit: -1 for none, else `least` or more.
    pub(crate) fn limit(&self, least: i64) -> Option<i64> {
        let Value::Integer(number) = self.node.value else {
            self.mismatch("an integer");
            return None;
        };
        if number == -1 || (least..=i64::from(u32::MAX)).contains(&number) {
            return Some(number);
        }
        let hint = if number > least {
            "a smaller number, or -1 for no limit".into()
        } else {
            format!("{least} or more, or -1 for no limit")
        };
        self.refuse(format!("`{}` cannot be `{number}`", self.path), hint);
        None
    }

    /// A size in bytes, `least` or more.
    pub(crate) fn size(&self, least: u64) -> Option<u64> {
        let size = match &self.node.value {
            Value::Integer(number) => u64::try_from(*number).map_err(|_| "a size is not negative".to_owned()),
            Value::Text(text) => units::size(text),
            _ => {
                self.mismatch("a size such as \"64MiB\", or a number of bytes");
                return None;
            }
        };
        match size {
            Ok(size) if size >= least => Some(size),
            Ok(size) => {
                self.refuse(
                    format!("`{}` cannot be `{size}`", self.path),
                    format!("{least} or more"),
                );
                None
            }
            Err(hint) => {
                self.refuse(format!("`{}` cannot be `{}`", self.path, self.shown()), hint);
                None
            }
        }
    }

    /// A time span that is longer than nothing.
    pub(crate) fn duration(&self) -> Option<Duration> {
        let Value::Text(text) = &self.node.value else {
            self.mismatch("a duration such as \"30s\"");
            return None;
        };
        match units::duration(text) {
            Ok(duration) if !duration.is_zero() => Some(duration),
            Ok(_) => {
                self.refuse(
                    format!("`{}` cannot be `{text}`", self.path),
                    "leave the key out for the default",
                );
                None
            }
            Err(hint) => {
                self.refuse(format!("`{}` cannot be `{}`", self.path, self.shown()), hint);
                None
            }
        }
    }

    /// A name, whose rule is the hint.
    pub(crate) fn name<T: FromStr<Err = BadName>>(&self) -> Option<T> {
        self.name_of(self.text()?)
    }

    /// As [`Field::name`], of a text that is a part of the value.
    pub(crate) fn name_of<T: FromStr<Err = BadName>>(&self, text: &str) -> Option<T> {
        match text.parse() {
            Ok(name) => Some(name),
            Err(error) => {
                self.refuse(format!("`{}` is not {}", error.name, error.what()), error.rule);
                None
            }
        }
    }

    /// One of a closed set.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&'static str, T)]) -> Option<T> {
        let text = self.text()?;
        let found = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        if found.is_none() {
            let hint = suggestion(text, "choices", choices.iter().map(|(name, _)| *name));
            self.refuse(format!("`{}` cannot be `{text}`", self.path), hint);
        }
        found
    }

    /// The list's items, each a field of its own.
    pub(crate) fn list(&self) -> Option<Vec<Field<'r>>> {
        let Value::List(items) = &self.node.value else {
            self.mismatch("a list");
            return None;
        };
        let item = |(index, node): (usize, &'r Node)| Field {
            reader: self.reader,
            path: format!("{}[{index}]", self.path),
            key_span: node.span.clone(),
            node,
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    /// A list of which every item must be right.
    pub(crate) fn list_of<T>(&self, each: impl Fn(&Field<'r>) -> Option<T>) -> Option<Vec<T>> {
        // All are read, so that all errors are found.
        let items: Vec<Option<T>> = self.list()?.iter().map(each).collect();
        items.into_iter().collect()
    }

    /// As [`Field::list_of`], refusing two that `same` holds for.
    pub(crate) fn distinct<T: PartialEq>(&self, each: impl Fn(&Field<'r>) -> Option<T>) -> Option<Vec<T>> {
        let mut seen = Vec::new();
        let mut sound = true;
        for field in self.list()? {
            match each(&field) {
                Some(value) if seen.contains(&value) => {
                    field.refuse(
                        format!("`{}` stands in `{}` twice", field.shown(), self.path),
                        "leave one of the two out",
                    );
                    sound = false;
                }
                Some(value) => seen.push(value),
                None => sound = false,
            }
        }
        sound.then_some(seen)
    }

    pub(crate) fn table(&self) -> Option<Table<'r>> {
        let Value::Table(entries) = &self.node.value else {
            self.mismatch("a table");
            return None;
        };
        Some(Table {
            reader: self.reader,
            path: self.path.clone(),
            span: self.key_span.clone(),
            entries,
            asked: RefCell::default(),
            unlisted: RefCell::default(),
        })
    }

    /// The value, short enough for a message.
    pub(crate) fn shown(&self) -> String {
        const LONGEST: usize = 80;
        let text = match &self.node.value {
            Value::Text(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Bool(value) => value.to_string(),
            other => other.kind().to_owned(),
        };
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }
}
