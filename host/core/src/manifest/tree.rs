//! TOML and YAML as one tree in which every key and value knows its place.
//!
//! Both forms are walked by the same reader ([`super::read`]). A derived `Deserialize` would stop at the first error
//! and could not say where an unknown key stands; here all errors of a file are found at once, each with its line.

use std::ops::Range;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::error::{ManifestError, Source};

/// Deeper nesting is no manifest, and would cost stack for nothing.
const DEEPEST: usize = 32;

/// A value with its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

/// A key with its place.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) span: Range<usize>,
    pub(crate) name: String,
}

/// What TOML and YAML have in common.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// YAML's `null`, or nothing after a colon.
    Null,
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    /// A date or time, which no manifest has a use for.
    Date,
    List(Vec<Node>),
    Table(Vec<(Key, Node)>),
}

impl Value {
    /// As a message names it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Text(_) => "a text",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number with a fraction",
            Self::Bool(_) => "a boolean",
            Self::Date => "a date",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Parses TOML. Every syntax error is reported, not only the first.
pub(crate) fn parse_toml(source: &Source) -> Result<Node, Vec<ManifestError>> {
    // An editor's byte-order mark is no part of the text; replaced by as many spaces it moves no place.
    let text = match source.text.strip_prefix('\u{feff}') {
        Some(rest) => Arc::from(format!("   {rest}")),
        None => Arc::clone(&source.text),
    };
    let (table, errors) = DeTable::parse_recoverable(&text);
    if !errors.is_empty() {
        return Err(errors
            .into_iter()
            .map(|error| {
                let span = error.span().unwrap_or(0..0);
                let message = error.message().trim().replace('\n', ": ");
                ManifestError::at(source.place(span), message).with_hint("the file must be TOML: https://toml.io")
            })
            .collect());
    }
    let mut errors = Vec::new();
    let root = toml_table(table.get_ref(), 0..0, source, 0, &mut errors);
    if errors.is_empty() { Ok(root) } else { Err(errors) }
}

fn toml_table(
    table: &DeTable<'_>,
    span: Range<usize>,
    source: &Source,
    depth: usize,
    errors: &mut Vec<ManifestError>,
) -> Node {
    let mut entries: Vec<(Key, Node)> = table
        .iter()
        .map(|(key, value)| {
            let key = Key {
                span: key.span(),
                name: key.get_ref().to_string(),
            };
            (
                key,
                toml_value(value.get_ref(), value.span(), source, depth + 1, errors),
            )
        })
        .collect();
    // The parser keeps tables sorted by key; errors are wanted in the order of the text.
    entries.sort_by_key(|(key, _)| key.span.start);
    Node {
        span,
        value: Value::Table(entries),
    }
}

fn toml_value(
    value: &DeValue<'_>,
    span: Range<usize>,
    source: &Source,
    depth: usize,
    errors: &mut Vec<ManifestError>,
) -> Node {
    let mut refuse = |message: String| {
        errors.push(ManifestError::at(source.place(span.clone()), message));
        Value::Null
    };
    if depth > DEEPEST {
        let value = refuse(format!("nested more than {DEEPEST} deep"));
        return Node { span, value };
    }
    let value = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => refuse(format!("`{number}` is beyond the integers of TOML")),
        },
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(number) => Value::Float(number),
            Err(_) => refuse(format!("`{number}` is no number")),
        },
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => Value::List(
            items
                .iter()
                .map(|item| toml_value(item.get_ref(), item.span(), source, depth + 1, errors))
                .collect(),
        ),
        DeValue::Table(table) => return toml_table(table, span, source, depth, errors),
    };
    Node { span, value }
}

/// Parses the YAML of a front matter, which starts at byte `start` of the source.
pub(crate) fn parse_yaml(source: &Source, range: Range<usize>) -> Result<Node, ManifestError> {
    let mut options = serde_saphyr::Options::default();
    // `tools: no` is a text to whoever writes it.
    options.strict_booleans = true;
    let text = &source.text[range.clone()];
    let parsed: Result<serde_saphyr::Spanned<yaml::Raw>, _> = serde_saphyr::from_str_with_options(text, options);
    match parsed {
        Ok(raw) => yaml::node(raw, text, range.start, 0)
            .map_err(|span| ManifestError::at(source.place(span), format!("nested more than {DEEPEST} deep"))),
        Err(error) => {
            let span = error.location().map_or(0..0, |location| yaml::span(location, text));
            let span = range.start + span.start..range.start + span.end;
            let message = error.without_snippet().to_string();
            // The place is said already, and the library's own settings mean nothing to an author.
            let message = message.split(" at line ").next().unwrap_or_default();
            let message = message
                .split(", set ")
                .next()
                .unwrap_or_default()
                .trim()
                .replace('\n', ": ");
            let message = format!("the front matter is not valid YAML: {message}");
            let hint = "a text that holds `: ` or starts with a sign stands in quotes; each key stands once";
            Err(ManifestError::at(source.place(span), message).with_hint(hint))
        }
    }
}

mod yaml {
    use std::fmt;
    use std::ops::Range;

    use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
    use serde_saphyr::{Location, Spanned};

    use super::{DEEPEST, Key, Node, Value};

    /// Any YAML value, its places still in the library's own terms.
    pub(super) enum Raw {
        Plain(Value),
        List(Vec<Spanned<Raw>>),
        Table(Vec<(Spanned<String>, Spanned<Raw>)>),
    }

    impl<'de> Deserialize<'de> for Raw {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct AnyValue;
            impl<'de> Visitor<'de> for AnyValue {
                type Value = Raw;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("a YAML value")
                }
                fn visit_unit<E>(self) -> Result<Raw, E> {
                    Ok(Raw::Plain(Value::Null))
                }
                fn visit_none<E>(self) -> Result<Raw, E> {
                    Ok(Raw::Plain(Value::Null))
                }
                fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
                    Ok(Raw::Plain(Value::Bool(value)))
                }
                fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
                    Ok(Raw::Plain(Value::Integer(value)))
                }
                fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
                    Ok(Raw::Plain(
                        i64::try_from(value).map_or_else(|_| Value::Text(value.to_string()), Value::Integer),
                    ))
                }
                fn visit_i128<E>(self, value: i128) -> Result<Raw, E> {
                    Ok(Raw::Plain(Value::Text(value.to_string())))
                }
                fn visit_u128<E>(self, value: u128) -> Result<Raw, E> {
                    Ok(Raw::Plain(Value::Text(value.to_string())))
                }
                fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
                    Ok(Raw::Plain(Value::Float(value)))
                }
                fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
                    Ok(Raw::Plain(Value::Text(value.to_owned())))
                }
                fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
                    let mut list = Vec::new();
                    while let Some(item) = items.next_element()? {
                        list.push(item);
                    }
                    Ok(Raw::List(list))
                }
                fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
                    let mut table = Vec::new();
                    while let Some(key) = entries.next_key::<Spanned<String>>()? {
                        table.push((key, entries.next_value()?));
                    }
                    Ok(Raw::Table(table))
                }
            }
            deserializer.deserialize_any(AnyValue)
        }
    }

    /// Bytes of `text`, relative to its start.
    pub(super) fn span(location: Location, text: &str) -> Range<usize> {
        let usize_of = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let span = location.span();
        if let (Some(start), Some(length)) = (span.byte_offset(), span.byte_len()) {
            let start = usize_of(start).min(text.len());
            return start..start.saturating_add(usize_of(length)).min(text.len());
        }
        let line = usize_of(location.line()).saturating_sub(1);
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        start..start
    }

    /// The tree, with places in bytes of the whole file; an error is the place that is nested too deep.
    pub(super) fn node(raw: Spanned<Raw>, text: &str, base: usize, depth: usize) -> Result<Node, Range<usize>> {
        let shifted = |location: Location| {
            let span = span(location, text);
            base + span.start..base + span.end
        };
        let place = shifted(raw.referenced);
        if depth > DEEPEST {
            return Err(place);
        }
        let value = match raw.value {
            Raw::Plain(value) => value,
            Raw::List(items) => Value::List(
                items
                    .into_iter()
                    .map(|item| node(item, text, base, depth + 1))
                    .collect::<Result<_, _>>()?,
            ),
            Raw::Table(entries) => Value::Table(
                entries
                    .into_iter()
                    .map(|(key, value)| {
                        let span = shifted(key.referenced);
                        Ok::<_, Range<usize>>((Key { span, name: key.value }, node(value, text, base, depth + 1)?))
                    })
                    .collect::<Result<_, _>>()?,
            ),
        };
        Ok(Node { span: place, value })
    }
}
