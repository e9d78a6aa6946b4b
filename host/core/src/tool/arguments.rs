//! Checks arguments against a tool's input schema, with an error from which a model can mend them.
//!
//! Nothing is coerced: a number in quotes is not a number, and a guess could be a wrong action. No schema is fetched,
//! no pattern backtracks, and no argument is checked more often than [`super::schema`] allows.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Retrieve, Uri};
use serde_json::Value;

use super::schema::{BadSchema, depth, measure};
use crate::nearest::nearest;

/// The most errors that one text names.
const MAX_ERRORS: usize = 8;
/// The most characters of one error, and of the part of the schema beside it.
const MAX_PART: usize = 300;
/// Bytes of one compiled pattern, and of the states that are kept of it.
const PATTERN_SIZE: usize = 1 << 20;

/// A compiled input schema.
pub struct Validator {
    schema: Arc<Value>,
    compiled: jsonschema::Validator,
    max_depth: usize,
}

/// Why arguments were refused: one line for each fault, with its place and what was expected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadArguments(pub String);

impl std::fmt::Debug for Validator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Validator")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

struct NoRetriever;

impl Retrieve for NoRetriever {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("`{uri}` is not fetched: a schema stands alone").into())
    }
}

impl Validator {
    /// Compiles a schema. Also how a plugin's schemas are checked when it is loaded.
    ///
    /// # Errors
    /// [`BadSchema`] if it is no schema, refers to others, or costs too much.
    pub fn new(schema: &Arc<Value>) -> Result<Self, BadSchema> {
        if !schema.is_object() {
            return Err(BadSchema("it must be an object".into()));
        }
        let cost = measure(schema)?;
        let compiled = jsonschema::options()
            .with_retriever(NoRetriever)
            // The linear engine: no look-around, no back-references, and so nothing that backtracks.
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(PATTERN_SIZE)
                    .dfa_size_limit(PATTERN_SIZE),
            )
            .should_validate_formats(false)
            .build(schema)
            .map_err(|error| BadSchema(shorten(&error.to_string())))?;
        Ok(Self {
            schema: Arc::clone(schema),
            compiled,
            max_depth: cost.max_depth,
        })
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// [`BadArguments`] with every fault, eight at most: its place, what is wrong, what the schema says there.
    pub fn check(&self, arguments: &Value) -> Result<(), BadArguments> {
        if !arguments.is_object() {
            return Err(BadArguments("the arguments must be one JSON object".into()));
        }
        self.check_value(arguments)
    }

    /// Checks any value, such as a report.
    ///
    /// # Errors
    /// As [`Validator::check`].
    pub fn check_value(&self, arguments: &Value) -> Result<(), BadArguments> {
        if self.max_depth != usize::MAX && depth(arguments) > self.max_depth {
            return Err(BadArguments(format!(
                "it is nested deeper than {}, which is as deep as this schema can be checked",
                self.max_depth
            )));
        }
        if self.compiled.is_valid(arguments) {
            return Ok(());
        }
        let mut text = String::from("it does not fit the schema:");
        let mut errors = self.compiled.iter_errors(arguments);
        let mut said: Vec<String> = Vec::new();
        for error in errors.by_ref().take(MAX_ERRORS) {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "/" } else { &place };
            let _ = write!(text, "\n- `{}`: {}", shorten(place), shorten(&error.to_string()));
            if let Some(meant) = self.meant(error.kind(), error.schema_path().as_str(), error.instance()) {
                let _ = write!(text, "; did you mean {meant}?");
            }
            if let Some(expected) = self.expected(error.schema_path().as_str())
                && !said.contains(&expected)
            {
                let _ = write!(text, "; the schema there: {expected}");
                said.push(expected);
            }
        }
        if errors.next().is_some() {
            text.push_str("\n- and more");
        }
        Err(BadArguments(text))
    }

    /// What a key that the schema does not know was probably meant to be.
    fn meant(&self, kind: &ValidationErrorKind, path: &str, instance: &Value) -> Option<String> {
        let known: Vec<&str> = match self.schema.pointer(path.rsplit_once('/')?.0)?.get("properties")? {
            Value::Object(properties) => properties.keys().map(String::as_str).collect(),
            _ => return None,
        };
        let name = |key: &str| shorten(&format!("`{key}`"));
        match kind {
            ValidationErrorKind::AdditionalProperties { unexpected } => unexpected
                .iter()
                .find_map(|key| nearest(key, known.iter().copied()))
                .map(name),
            ValidationErrorKind::Required { property } => {
                let wanted = property.as_str()?;
                let given = instance.as_object()?.keys();
                let mut strange = given.filter(|key| !known.contains(&key.as_str()));
                let wrong = strange.find(|key| nearest(key, [wanted]).is_some())?;
                Some(format!("{} by {}", name(wanted), name(wrong)))
            }
            _ => None,
        }
    }

    /// The subschema whose keyword stands at `path`, where it fits on a line and says more than the error does.
    fn expected(&self, path: &str) -> Option<String> {
        let (parent, keyword) = path.rsplit_once('/')?;
        let subschema = self.schema.pointer(parent)?;
        let text = match keyword {
            "required" | "additionalProperties" | "unevaluatedProperties" => {
                subschema.get("properties").unwrap_or(subschema).to_string()
            }
            _ => subschema.to_string(),
        };
        (text != "{}").then(|| shorten(&text))
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_PART) {
        None => text.into(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// Compiled schemas, each once: shared by all agents of a run, since most hold the same tools.
#[derive(Debug, Default)]
pub struct Validators {
    /// By address; the schema is held, so that no other one can take its address.
    known: Mutex<Known>,
}

type Known = HashMap<usize, (Arc<Value>, Result<Arc<Validator>, BadSchema>)>;

impl Validators {
    /// The validator of a schema.
    ///
    /// # Errors
    /// [`BadSchema`], the same each time.
    pub fn get(&self, schema: &Arc<Value>) -> Result<Arc<Validator>, BadSchema> {
        let key = Arc::as_ptr(schema) as usize;
        if let Some((_, known)) = self.lock().get(&key) {
            return known.clone();
        }
        let made = Validator::new(schema).map(Arc::new);
        self.lock().insert(key, (Arc::clone(schema), made.clone()));
        made
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn check(schema: Value, arguments: &Value) -> Result<(), String> {
        Validator::new(&Arc::new(schema))
            .unwrap()
            .check(arguments)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn an_error_names_place_fault_and_what_the_schema_says() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1},
                "mode": {"enum": ["read", "write"]},
            },
            "required": ["path"],
            "additionalProperties": false,
        });
        let error = check(schema, &json!({"limit": "5", "mode": "append", "paht": "a"})).unwrap_err();
        for part in [
            "`/limit`: \"5\" is not of type \"integer\"",
            "{\"type\":\"integer\",\"minimum\":1}",
            "`/mode`",
            "[\"read\",\"write\"]",
            "\"path\" is a required property",
            "'paht'",
        ] {
            assert!(error.contains(part), "{error}\nlacks {part}");
        }
    }

    #[test]
    fn a_misspelt_key_is_told_what_it_was_meant_to_be_and_the_schema_is_said_once() {
        for strict in [true, false] {
            let schema = json!({
                "type": "object",
                "properties": {"path": {"type": "string", "description": "Which file."}},
                "required": ["path"],
                "additionalProperties": !strict,
            });
            let error = check(schema, &json!({"paht": "a"})).unwrap_err();
            assert!(error.contains("did you mean `path`"), "{error}");
            assert_eq!(error.matches("Which file.").count(), 1, "{error}");
        }
    }

    #[test]
    fn nothing_is_coerced() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "b": {"type": "boolean"}}});
        for arguments in [
            json!({"n": "1"}),
            json!({"n": 1.5}),
            json!({"b": "true"}),
            json!({"b": 1}),
            json!([1]),
        ] {
            assert!(check(schema.clone(), &arguments).is_err(), "{arguments}");
        }
        assert!(check(schema, &json!({"n": 1, "b": true, "other": null})).is_ok());
    }

    #[test]
    fn errors_are_capped() {
        let properties: serde_json::Map<_, _> = (0..100)
            .map(|n| {
                (
                    format!("p{n}"),
                    json!({"type": "string", "description": "x".repeat(1000)}),
                )
            })
            .collect();
        let arguments: serde_json::Map<_, _> = (0..100).map(|n| (format!("p{n}"), json!(vec![0; 1000]))).collect();
        let error = check(
            json!({"type": "object", "properties": properties}),
            &Value::Object(arguments),
        )
        .unwrap_err();
        assert!(error.len() < 8 * 3 * MAX_PART, "{}", error.len());
        assert!(error.ends_with("- and more"));
    }

    #[test]
    fn hostile_patterns_neither_hang_nor_grow() {
        // Exponential in an engine that backtracks.
        let slow = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}});
        assert!(check(slow, &json!({"a": format!("{}!", "a".repeat(100_000))})).is_err());
        for pattern in [
            "(?=a)(a+)+\\1$",
            "(a{1000}){1000}",
            "(",
            "((((((((((a{10}){10}){10}){10}){10}){10}){10}){10}){10}){10}",
        ] {
            let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
            assert!(Validator::new(&Arc::new(schema)).is_err(), "{pattern}");
            let schema = json!({"type": "object", "patternProperties": {pattern: {}}});
            assert!(Validator::new(&Arc::new(schema)).is_err(), "{pattern}");
        }
    }

    #[test]
    fn arguments_that_would_multiply_are_refused_unread() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/list"}},
            "$defs": {"list": {"allOf": [{"items": {"$ref": "#/$defs/list"}}, {"items": {"$ref": "#/$defs/list"}}]}},
        });
        let mut nested = json!(1);
        for _ in 0..100 {
            nested = json!([nested]);
        }
        let error = check(schema, &json!({"a": nested})).unwrap_err();
        assert!(error.contains("nested deeper than 17"), "{error}");
    }

    #[test]
    fn nothing_is_fetched_and_what_is_no_schema_is_refused() {
        for schema in [
            json!(true),
            json!({"type": "objekt"}),
            json!({"$ref": "http://127.0.0.1:1/"}),
            json!({"$schema": "http://127.0.0.1:1/", "type": "object"}),
            json!({"type": "object", "properties": {"a": 3}}),
        ] {
            assert!(Validator::new(&Arc::new(schema.clone())).is_err(), "{schema}");
        }
    }

    #[test]
    fn a_schema_is_compiled_once() {
        let validators = Validators::default();
        let schema = Arc::new(json!({"type": "object"}));
        let first = validators.get(&schema).unwrap();
        assert!(Arc::ptr_eq(&first, &validators.get(&schema).unwrap()));
    }
}
