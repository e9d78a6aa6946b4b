//! The arguments of a call, read strictly: what is not a JSON object is told to the model and never guessed.

use std::fmt;

use fief_core::message::Arguments;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads what a model wrote. Nothing at all is an empty object: servers send that for tools without arguments.
pub(crate) fn parse(raw: &str) -> Arguments {
    if raw.trim().is_empty() {
        return Arguments::Object(Map::new());
    }
    match serde_json::from_str::<Unique>(raw) {
        Ok(Unique(value)) => match of_value(value) {
            Ok(object) => match first_lossy_number(raw) {
                None => Arguments::Object(object),
                Some(number) => malformed(raw, lossy(number)),
            },
            Err(why) => malformed(raw, why),
        },
        Err(error) if error.is_data() => malformed(raw, error.to_string()),
        Err(error) if error.is_eof() => malformed(raw, format!("the JSON breaks off: {error}")),
        Err(error) => malformed(raw, format!("not JSON: {error}")),
    }
}

/// A value in which no object names a key twice: which of the two is meant nobody can say.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Self)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{key}` occurs twice")));
            }
            let Unique(value) = members.next_value()?;
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

/// A parsed value as arguments, or why it is none.
pub(crate) fn of_value(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(object) => Ok(object),
        other => Err(format!("must be a JSON object, not {}", kind(&other))),
    }
}

/// Arguments that cannot be read.
pub(crate) fn malformed(raw: &str, why: impl Into<String>) -> Arguments {
    Arguments::Malformed {
        raw: raw.into(),
        why: why.into(),
    }
}

/// The sentence about a number that would be altered.
pub(crate) fn lossy(number: &str) -> String {
    format!("the number `{number}` does not fit 64 bits and would be altered: write it as a string")
}

/// The first integer outside of strings that 64 bits cannot hold: reading it would silently give another number. `raw`
/// must be valid JSON.
fn first_lossy_number(raw: &str) -> Option<&str> {
    let bytes = raw.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let end = bytes[at..]
                    .iter()
                    .position(|byte| !matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
                    .map_or(bytes.len(), |length| at + length);
                let number = &raw[at..end];
                if !fits(number) {
                    return Some(number);
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    None
}

/// Whether a JSON number keeps its value: anything with a point or an exponent is meant as a float.
pub(crate) fn fits(number: &str) -> bool {
    number.contains(['.', 'e', 'E']) || number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(raw: &str) -> String {
        match parse(raw) {
            Arguments::Malformed { raw: kept, why } => {
                assert_eq!(kept, raw);
                why
            }
            Arguments::Object(object) => panic!("`{raw}` was read as {object:?}"),
        }
    }

    #[test]
    fn objects_and_nothing_are_arguments() {
        for (raw, expected) in [
            ("", "{}"),
            ("  ", "{}"),
            ("{}", "{}"),
            (
                r#" {"a": [1, "12345678901234567890123"]} "#,
                r#"{"a":[1,"12345678901234567890123"]}"#,
            ),
            (
                r#"{"a": 18446744073709551615, "b": -1, "c": 1.5e3, "d": "\"9"}"#,
                r#"{"a":18446744073709551615,"b":-1,"c":1500.0,"d":"\"9"}"#,
            ),
        ] {
            assert_eq!(parse(raw).to_value().to_string(), expected);
            assert!(matches!(parse(raw), Arguments::Object(_)), "{raw}");
        }
    }

    #[test]
    fn b100_unparsable_arguments_are_never_executed() {
        for (raw, part) in [
            ("[1]", "not an array"),
            ("3", "not a number"),
            ("null", "not null"),
            (r#""{\"a\":1}""#, "not a string"),
            (r#"{"a": "#, "breaks off"),
            (r#"{"a": None}"#, "not JSON"),
            ("{'a': 1}", "not JSON"),
            (r#"{"a": 1} {"b": 2}"#, "not JSON"),
            (r#"{"path": "a", "path": "b"}"#, "the key `path` occurs twice"),
            (r#"{"path": "a", "\u0070ath": "a"}"#, "the key `path` occurs twice"),
            (r#"{"list": [{"x": {"y": 1, "y": 1}}]}"#, "the key `y` occurs twice"),
            (r#"{"id": 12345678901234567890123}"#, "write it as a string"),
        ] {
            let why = why(raw);
            assert!(why.contains(part), "{raw}: {why}");
        }
        let deep = format!("{}{}", r#"{"a":"#.repeat(5000), "1");
        assert!(matches!(parse(&deep), Arguments::Malformed { .. }));
    }
}
