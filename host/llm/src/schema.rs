//! Input schemas made acceptable to providers.
//!
//! Tools may use all of JSON Schema 2020-12; each provider takes a part of it, and none the same. So every schema is
//! rewritten into what all of them take. The rewriting only loosens (with one exception, an absent `type`, which is
//! inferred): what a tool accepts stays possible to write, and what a looser schema lets through is refused by the
//! host's own check of the arguments, which uses the tool's schema as it is.

use std::collections::BTreeSet;

use fief_core::id::Digest;
use serde_json::{Map, Value, json};

/// Whose rules a schema must satisfy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dialect {
    /// OpenAI and Azure.
    OpenAi,
    /// Those who copied OpenAI, llama.cpp with its grammars among them.
    Compatible,
    /// Anthropic.
    Anthropic,
}

/// The deepest nesting that is kept; below it anything is allowed.
const DEEPEST: usize = 16;
/// The most nodes that are written, 64 bytes of text counting as one more: references that refer to each other can
/// describe a schema that is exponentially larger than its text.
const MAX_NODES: usize = 4000;
/// The largest bound on a length that servers with grammars can turn into one (llama.cpp refuses large repetitions).
const MAX_REPETITION: u64 = 256;
/// The longest name of a property (Anthropic).
const LONGEST_KEY: usize = 64;

/// The schema as the dialect takes it: an object with `properties`.
pub(crate) fn acceptable(schema: &Value, dialect: Dialect) -> Value {
    let mut rewriter = Rewriter {
        root: schema,
        dialect,
        nodes: 0,
        above: Vec::new(),
    };
    root(rewriter.node(schema, 0))
}

/// The name of a property as every provider takes it: another one becomes what is left of it and a digest of itself.
pub(crate) fn wire_key(key: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if (1..=LONGEST_KEY).contains(&key.len()) && key.chars().all(allowed) {
        return key.to_owned();
    }
    let kept: String = key
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .take(LONGEST_KEY - 9)
        .collect();
    format!("{kept}_{}", &Digest::of(key.as_bytes()).hex()[..8])
}

/// The properties anywhere in a schema whose names are rewritten, as (rewritten, original).
pub(crate) fn renamed_keys(schema: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![schema];
    while let Some(node) = open.pop() {
        match node {
            Value::Object(map) => {
                if let Some(Value::Object(properties)) = map.get("properties") {
                    let keys = properties.keys().map(|key| (wire_key(key), key.clone()));
                    found.extend(keys.filter(|(wire, key)| wire != key));
                }
                open.extend(map.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found
}

struct Rewriter<'a> {
    root: &'a Value,
    dialect: Dialect,
    nodes: usize,
    /// References that are being followed: one that occurs twice would never end.
    above: Vec<String>,
}

type Node = Map<String, Value>;

impl Rewriter<'_> {
    fn node(&mut self, schema: &Value, depth: usize) -> Node {
        self.nodes += 1;
        // `true`, and `false` too: nothing can be written for it, and the host refuses it anyway.
        let Value::Object(schema) = schema else {
            return Node::new();
        };
        if depth > DEEPEST || self.nodes > MAX_NODES {
            return Node::new();
        }
        let mut out = Node::new();
        for key in ["title", "description"] {
            if let Some(Value::String(text)) = schema.get(key) {
                self.nodes += text.len() / 64;
                out.insert(key.into(), text.clone().into());
            }
        }
        self.scalars(schema, &mut out);
        self.object_keywords(schema, &mut out, depth);
        self.array_keywords(schema, &mut out, depth);
        if let Some(Value::String(reference)) = schema.get("$ref") {
            let target = self.follow(reference, depth);
            conjoin(&mut out, target);
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            for part in parts {
                let part = self.node(part, depth + 1);
                conjoin(&mut out, part);
            }
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(parts)) = schema.get(key) {
                let parts: Vec<Node> = parts.iter().map(|part| self.node(part, depth + 1)).collect();
                disjoin(&mut out, parts);
            }
        }
        infer_type(&mut out);
        out
    }

    fn scalars(&mut self, schema: &Node, out: &mut Node) {
        let mut types: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let known = ["object", "array", "string", "number", "integer", "boolean", "null"];
        types.retain(|name| known.contains(name));
        let mut seen = BTreeSet::new();
        types.retain(|name| seen.insert(*name));
        match types.as_slice() {
            [] => {}
            [one] => {
                out.insert("type".into(), (*one).into());
            }
            several => {
                out.insert("type".into(), several.to_vec().into());
            }
        }
        let values = match (schema.get("enum"), schema.get("const")) {
            (_, Some(value)) => vec![value.clone()],
            (Some(Value::Array(values)), None) => values.clone(),
            _ => Vec::new(),
        };
        let mut distinct: Vec<Value> = Vec::new();
        for value in values.into_iter().take(1000) {
            if !distinct.contains(&value) {
                self.nodes += value.to_string().len() / 64;
                distinct.push(value);
            }
        }
        if !distinct.is_empty() {
            out.insert("enum".into(), distinct.into());
        }
        for key in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
            if let Some(number @ Value::Number(_)) = schema.get(key) {
                out.insert(key.into(), number.clone());
            }
        }
        if let Some(number) = schema
            .get("multipleOf")
            .filter(|number| number.as_f64().is_some_and(|n| n > 0.0))
        {
            out.insert("multipleOf".into(), number.clone());
        }
        if let Some(value) = schema.get("default") {
            self.nodes += value.to_string().len() / 64;
            out.insert("default".into(), value.clone());
        }
        for key in ["minLength", "maxLength", "minItems", "maxItems"] {
            if let Some(bound) = schema.get(key).and_then(Value::as_u64) {
                if self.dialect == Dialect::Compatible && bound > MAX_REPETITION {
                    note(out, &format!("{key}: {bound}"));
                } else {
                    out.insert(key.into(), bound.into());
                }
            }
        }
        // Each provider knows another flavour of expressions; as words all models know them.
        if let Some(Value::String(pattern)) = schema.get("pattern") {
            note(out, &format!("pattern: {pattern}"));
        }
        if let Some(Value::String(format)) = schema.get("format") {
            if FORMATS.contains(&format.as_str()) {
                out.insert("format".into(), format.clone().into());
            } else {
                note(out, &format!("format: {format}"));
            }
        }
    }

    fn object_keywords(&mut self, schema: &Node, out: &mut Node, depth: usize) {
        if let Some(Value::Object(properties)) = schema.get("properties") {
            let written: Node = properties
                .iter()
                .filter(|(_, property)| **property != Value::Bool(false))
                .map(|(key, property)| (self.key(key), Value::Object(self.node(property, depth + 1))))
                .collect();
            out.insert("properties".into(), written.into());
        }
        if let Some(Value::Array(required)) = schema.get("required") {
            let names = required
                .iter()
                .filter_map(Value::as_str)
                .map(|name| self.key(name))
                .collect();
            require(out, names);
        }
        // Other properties may be allowed by their patterns, which no provider knows.
        if !schema.contains_key("patternProperties") {
            match schema.get("additionalProperties") {
                Some(Value::Bool(allowed)) => {
                    out.insert("additionalProperties".into(), (*allowed).into());
                }
                Some(schema @ Value::Object(_)) => {
                    let node = self.node(schema, depth + 1);
                    let value = if node.is_empty() {
                        Value::Bool(true)
                    } else {
                        node.into()
                    };
                    out.insert("additionalProperties".into(), value);
                }
                _ => {}
            }
        }
    }

    fn array_keywords(&mut self, schema: &Node, out: &mut Node, depth: usize) {
        let items = schema.get("items");
        let tuple = schema.get("prefixItems").or(items).and_then(Value::as_array);
        if let Some(tuple) = tuple {
            let mut parts: Vec<Node> = tuple.iter().map(|item| self.node(item, depth + 1)).collect();
            match schema
                .get("prefixItems")
                .and(items)
                .or_else(|| schema.get("additionalItems"))
            {
                Some(Value::Bool(false)) => {}
                Some(rest) => parts.push(self.node(rest, depth + 1)),
                None => parts.push(Node::new()),
            }
            let mut node = Node::new();
            disjoin(&mut node, parts);
            out.insert("items".into(), node.into());
        } else if let Some(items) = items {
            out.insert("items".into(), self.node(items, depth + 1).into());
        }
        if let Some(unique @ Value::Bool(_)) = schema.get("uniqueItems") {
            out.insert("uniqueItems".into(), unique.clone());
        }
    }

    fn key(&self, key: &str) -> String {
        if self.dialect == Dialect::Anthropic {
            wire_key(key)
        } else {
            key.to_owned()
        }
    }

    /// What a reference refers to. One that leads outside of the schema, or back to itself, allows anything.
    fn follow(&mut self, reference: &str, depth: usize) -> Node {
        let target = reference
            .strip_prefix('#')
            .and_then(|pointer| self.root.pointer(pointer));
        let Some(target) = target else { return Node::new() };
        if self.above.iter().any(|other| other == reference) {
            let mut node = Node::new();
            if let Some(Value::String(name)) = target.get("type") {
                node.insert("type".into(), name.clone().into());
            }
            infer_type(&mut node);
            note(
                &mut node,
                &format!("as {} above", reference.rsplit('/').next().unwrap_or(reference)),
            );
            return node;
        }
        self.above.push(reference.to_owned());
        let node = self.node(&target.clone(), depth + 1);
        self.above.pop();
        node
    }
}

/// The formats of JSON Schema 2020-12.
const FORMATS: &[&str] = &[
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "uuid",
];

/// Adds words to a description.
fn note(out: &mut Node, words: &str) {
    let text = match out.get("description") {
        Some(Value::String(text)) if !text.is_empty() => format!("{text} ({words})"),
        _ => format!("({words})"),
    };
    out.insert("description".into(), text.into());
}

/// Names `names` as required, as far as they are properties.
fn require(out: &mut Node, names: Vec<String>) {
    let mut all: Vec<String> = match out.remove("required") {
        Some(Value::Array(old)) => old.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    all.extend(names);
    let properties = out.get("properties").and_then(Value::as_object);
    let mut seen = BTreeSet::new();
    all.retain(|name| properties.is_some_and(|map| map.contains_key(name)) && seen.insert(name.clone()));
    if !all.is_empty() {
        out.insert("required".into(), all.into());
    }
}

/// Adds what must hold as well. Where both say something, the first stays: leaving one out only loosens.
fn conjoin(out: &mut Node, other: Node) {
    let mut required = Vec::new();
    for (key, value) in other {
        match (key.as_str(), value) {
            ("properties", Value::Object(more)) => {
                let Value::Object(properties) = out.entry("properties").or_insert_with(|| json!({})) else {
                    continue;
                };
                for (key, value) in more {
                    properties.entry(key).or_insert(value);
                }
            }
            ("required", Value::Array(names)) => {
                required.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            (_, value) => {
                out.entry(key).or_insert(value);
            }
        }
    }
    require(out, required);
}

/// Adds alternatives, of which one must hold.
fn disjoin(out: &mut Node, mut parts: Vec<Node>) {
    // An alternative that allows anything makes the others idle.
    let bare = |part: &Node| {
        part.keys()
            .all(|key| matches!(key.as_str(), "title" | "description" | "default"))
    };
    if parts.is_empty() || parts.iter().any(bare) || out.contains_key("anyOf") {
        return;
    }
    if parts.len() == 1 {
        conjoin(out, parts.remove(0));
    } else {
        out.insert("anyOf".into(), parts.into());
    }
}

/// Adds the type that a schema means without saying it, and the items that every array must have.
fn infer_type(out: &mut Node) {
    if !out.contains_key("type") {
        let has = |keys: &[&str]| keys.iter().any(|key| out.contains_key(*key));
        let inferred = match out.get("enum").and_then(Value::as_array) {
            Some(values) => type_of_all(values),
            None if has(&["anyOf"]) => None,
            None if has(&["properties", "required", "additionalProperties"]) => Some("object"),
            None if has(&["items", "minItems", "maxItems", "uniqueItems"]) => Some("array"),
            None if has(&["minLength", "maxLength", "format"]) => Some("string"),
            None if has(&[
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "multipleOf",
            ]) =>
            {
                Some("number")
            }
            None => None,
        };
        if let Some(name) = inferred {
            out.insert("type".into(), name.into());
        }
    }
    let array = match out.get("type") {
        Some(Value::String(name)) => name == "array",
        Some(Value::Array(names)) => names.iter().any(|name| name == "array"),
        _ => false,
    };
    if array {
        out.entry("items").or_insert_with(|| json!({}));
    }
}

fn type_of_all(values: &[Value]) -> Option<&'static str> {
    let name = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let first = name(values.first()?);
    values.iter().all(|value| name(value) == first).then_some(first)
}

/// The root: an object with properties, without alternatives. Those are merged: every property of any of them, and what
/// all of them require.
fn root(mut node: Node) -> Value {
    node.remove("enum");
    node.remove("default");
    if let Some(Value::Array(parts)) = node.remove("anyOf") {
        let mut common: Option<BTreeSet<String>> = None;
        for part in parts {
            let Value::Object(mut part) = part else { continue };
            // An alternative that is no object can never be written: arguments are one.
            if part.get("type").is_some_and(|name| name != "object") {
                continue;
            }
            flatten(&mut part);
            let required: BTreeSet<String> = match part.remove("required") {
                Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                _ => BTreeSet::new(),
            };
            common = Some(match common {
                None => required,
                Some(known) => known.intersection(&required).cloned().collect(),
            });
            if let Some(Value::Object(properties)) = part.remove("properties") {
                merge_properties(&mut node, properties);
            }
            // One alternative's bound on other properties is not the others'.
            if part.get("additionalProperties") != node.get("additionalProperties") {
                node.remove("additionalProperties");
            }
        }
        require(&mut node, common.into_iter().flatten().collect());
    }
    for key in [
        "items",
        "uniqueItems",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
    ] {
        node.remove(key);
    }
    node.insert("type".into(), "object".into());
    node.entry("properties").or_insert_with(|| json!({}));
    Value::Object(node)
}

/// Takes the alternatives of an alternative away: what they say is left to the host's check.
fn flatten(part: &mut Node) {
    if let Some(Value::Array(parts)) = part.remove("anyOf") {
        part.remove("additionalProperties");
        for inner in parts {
            if let Value::Object(mut inner) = inner
                && let Some(Value::Object(properties)) = inner.remove("properties")
            {
                merge_properties(part, properties);
            }
        }
    }
}

/// Adds properties; one that is there already in another form allows both.
fn merge_properties(node: &mut Node, more: Node) {
    let Value::Object(properties) = node.entry("properties").or_insert_with(|| json!({})) else {
        return;
    };
    for (key, value) in more {
        let Some(known) = properties.get_mut(&key) else {
            properties.insert(key, value);
            continue;
        };
        if *known == value {
            continue;
        }
        let mut parts = match known.take() {
            Value::Object(mut map) if map.len() == 1 && map.contains_key("anyOf") => match map.remove("anyOf") {
                Some(Value::Array(parts)) => parts,
                _ => Vec::new(),
            },
            other => vec![other],
        };
        if !parts.contains(&value) {
            parts.push(value);
        }
        let nodes = parts.into_iter().map(|part| {
            if let Value::Object(part) = part {
                part
            } else {
                Node::new()
            }
        });
        let mut both = Node::new();
        disjoin(&mut both, nodes.collect());
        *known = both.into();
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
pub(crate) mod tests;
