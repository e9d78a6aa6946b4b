//! A span as it is told, before any wire format.

use serde_json::Value;

/// One finished operation.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Span {
    pub(crate) trace: [u8; 16],
    pub(crate) id: [u8; 8],
    pub(crate) parent: Option<[u8; 8]>,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Nanoseconds since 1970.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) attributes: Attributes,
    pub(crate) events: Vec<Mark>,
    /// What went wrong; absent: nothing did.
    pub(crate) error: Option<Failure>,
}

/// Which side of which call it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Inside this process.
    Internal,
    /// A request to a server.
    Client,
}

/// Something that happened within a span.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Mark {
    pub(crate) name: &'static str,
    /// Nanoseconds since 1970.
    pub(crate) at: u64,
    pub(crate) attributes: Attributes,
}

/// What `error.type` and the status say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    /// One of a small set.
    pub(crate) kind: &'static str,
    /// In words, which may quote what a model or a tool said: content.
    pub(crate) words: Option<String>,
}

/// The longest attribute that is no content, in bytes: names and ids are short, and what a server or a model puts in
/// their place must not fill the queue.
const LONGEST_NAME: usize = 512;

/// Keys and values, in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Attributes(pub(crate) Vec<(&'static str, Value)>);

impl Attributes {
    /// Adds a name or an id.
    pub(crate) fn name(&mut self, key: &'static str, value: &str) {
        self.0
            .push((key, value[..value.floor_char_boundary(LONGEST_NAME)].into()));
    }

    /// Adds a name or an id, if there is one.
    pub(crate) fn name_if(&mut self, key: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.name(key, value);
        }
    }

    /// Adds a number, a list of names, or a text whose length is bounded elsewhere, unless there is none.
    pub(crate) fn value(&mut self, key: &'static str, value: impl Into<Value>) {
        let value = value.into();
        if !value.is_null() {
            self.0.push((key, value));
        }
    }
}

impl Span {
    /// About how many bytes it holds.
    pub(crate) fn size(&self) -> usize {
        let of = |attributes: &Attributes| -> usize {
            attributes.0.iter().map(|(key, value)| key.len() + size(value)).sum()
        };
        let words = self
            .error
            .as_ref()
            .and_then(|error| error.words.as_ref())
            .map_or(0, String::len);
        let events: usize = self.events.iter().map(|mark| 32 + of(&mark.attributes)).sum();
        128 + self.name.len() + words + events + of(&self.attributes)
    }

    /// Changes every text in it.
    pub(crate) fn map_texts(&mut self, change: &dyn Fn(&str) -> String) {
        self.name = change(&self.name);
        let marks = self.events.iter_mut().map(|mark| &mut mark.attributes);
        for (_, value) in marks
            .chain([&mut self.attributes])
            .flat_map(|attributes| attributes.0.iter_mut())
        {
            map(value, change);
        }
        if let Some(words) = self.error.as_mut().and_then(|error| error.words.as_mut()) {
            *words = change(words);
        }
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        _ => 8,
    }
}

fn map(value: &mut Value, change: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| map(item, change)),
        _ => {}
    }
}
