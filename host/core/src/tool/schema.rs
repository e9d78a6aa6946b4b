//! What an input schema may be. Schemas come from guests, which nobody vouches for: one that is huge, that refers to
//! other documents, or that makes a small argument cost a long time to check, is refused where it is loaded.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The most nodes of a schema. The largest honest one that was met, of a tool with some hundred options, has 3,000.
pub const MAX_NODES: usize = 20_000;
/// The deepest nesting of a schema.
pub const MAX_DEPTH: usize = 64;
/// The most subschemas that one value may be checked against.
const MAX_FANOUT: u64 = 2_000;
/// The most subschemas that arguments may be checked against in all, a list counted as one of its entries.
const MAX_TOTAL: u64 = 200_000;
/// The longest chain of subschemas: each takes a frame of the stack.
const MAX_CHAIN: usize = 300;

/// Why a schema is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the schema is refused: {0}")]
pub struct BadSchema(pub String);

/// What checking arguments against a schema can cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cost {
    /// The deepest arguments that are checked; deeper ones are refused unread.
    pub max_depth: usize,
}

/// Measures a schema.
///
/// # Errors
/// [`BadSchema`] with what is too much, and how much is allowed.
pub fn measure(schema: &Value) -> Result<Cost, BadSchema> {
    size(schema)?;
    let mut walk = Walk {
        root: schema,
        here: HashMap::new(),
        total: HashMap::new(),
        cyclic: false,
        widest: 1,
    };
    let total = walk.total(schema, 0)?;
    if !walk.cyclic && total > MAX_TOTAL {
        return Err(BadSchema(format!(
            "nested arguments would be checked against more than {MAX_TOTAL} subschemas"
        )));
    }
    let max_depth = if walk.cyclic && walk.widest > 1 {
        // Each level of the arguments multiplies the checks of the next.
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let levels = ((MAX_TOTAL as f64).ln() / (walk.widest as f64).ln()) as usize;
        levels.max(3)
    } else {
        usize::MAX
    };
    Ok(Cost { max_depth })
}

/// How deep a value is nested: 1 for a scalar.
#[must_use]
pub fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(list) => open.extend(list.iter().map(|value| (value, depth + 1))),
            Value::Object(map) => open.extend(map.values().map(|value| (value, depth + 1))),
            _ => {}
        }
    }
    deepest
}

fn size(schema: &Value) -> Result<(), BadSchema> {
    let mut nodes = 0;
    let mut open = vec![(schema, 1)];
    while let Some((value, depth)) = open.pop() {
        nodes += 1;
        if nodes > MAX_NODES {
            return Err(BadSchema(format!("it has more than {MAX_NODES} nodes")));
        }
        if depth > MAX_DEPTH {
            return Err(BadSchema(format!("it is nested deeper than {MAX_DEPTH}")));
        }
        match value {
            Value::Array(list) => open.extend(list.iter().map(|value| (value, depth + 1))),
            Value::Object(map) => open.extend(map.values().map(|value| (value, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

/// What checking one value against a subschema comes to, the value's own parts aside.
#[derive(Clone, Copy)]
struct Here {
    /// Subschemas that the same value is checked against.
    checks: u64,
    /// How often each part of the value is checked.
    parts: u64,
}

struct Walk<'a> {
    root: &'a Value,
    /// `None` while it is being measured: reaching it again without going into a part of the value never ends.
    here: HashMap<*const Value, Option<Here>>,
    /// `None` while it is being counted: reaching it again is recursion into parts of the value.
    total: HashMap<*const Value, Option<u64>>,
    cyclic: bool,
    widest: u64,
}

/// Keywords whose subschemas see the same value: one, a list, a map.
const SAME_ONE: [&str; 4] = ["not", "if", "then", "else"];
const SAME_LIST: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SAME_MAP: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose subschemas see parts of the value.
const PART_ONE: [&str; 9] = [
    "items",
    "additionalItems",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contentSchema",
    "prefixItems",
];
const PART_MAP: [&str; 2] = ["properties", "patternProperties"];

impl<'a> Walk<'a> {
    /// How many checks a value costs in all, lists counted once; measures every subschema on the way.
    fn total(&mut self, schema: &'a Value, depth: usize) -> Result<u64, BadSchema> {
        let key: *const Value = schema;
        match self.total.get(&key) {
            Some(Some(total)) => return Ok(*total),
            Some(None) => {
                self.cyclic = true;
                return Ok(0);
            }
            None => {}
        }
        if depth > MAX_CHAIN {
            return Err(BadSchema(format!(
                "`$ref` leads through more than {MAX_CHAIN} subschemas"
            )));
        }
        let Value::Object(map) = schema else {
            return Ok(1);
        };
        self.total.insert(key, None);
        forbidden(map, depth == 0)?;
        let here = self.here(schema, depth)?;
        self.widest = self.widest.max(here.parts);
        let mut total: u64 = 1;
        for next in same(map).chain(parts(map)).chain(self.target(map)?) {
            total = total.saturating_add(self.total(next, depth + 1)?);
        }
        if rechecks(map) {
            total = total.saturating_mul(2);
        }
        self.total.insert(key, Some(total));
        Ok(total)
    }

    /// What one value costs, its parts aside.
    fn here(&mut self, schema: &'a Value, depth: usize) -> Result<Here, BadSchema> {
        let key: *const Value = schema;
        match self.here.get(&key) {
            Some(Some(here)) => return Ok(*here),
            Some(None) => return Err(BadSchema("a `$ref` leads back to itself".into())),
            None => {}
        }
        if depth > MAX_CHAIN {
            return Err(BadSchema(format!(
                "`$ref` leads through more than {MAX_CHAIN} subschemas"
            )));
        }
        let Value::Object(map) = schema else {
            return Ok(Here { checks: 1, parts: 0 });
        };
        self.here.insert(key, None);
        let mut here = Here {
            checks: 1,
            parts: own_parts(map),
        };
        for next in same(map).chain(self.target(map)?) {
            let one = self.here(next, depth + 1)?;
            here.checks = here.checks.saturating_add(one.checks);
            here.parts = here.parts.saturating_add(one.parts);
        }
        if rechecks(map) {
            here.checks = here.checks.saturating_mul(2);
            here.parts = here.parts.saturating_mul(2);
        }
        if here.checks > MAX_FANOUT || here.parts > MAX_FANOUT {
            return Err(BadSchema(format!(
                "one value would be checked against more than {MAX_FANOUT} subschemas"
            )));
        }
        self.here.insert(key, Some(here));
        Ok(here)
    }

    fn target(&self, map: &Map<String, Value>) -> Result<Option<&'a Value>, BadSchema> {
        let Some(reference) = map.get("$ref") else {
            return Ok(None);
        };
        let text = reference.as_str().unwrap_or_default();
        let bad = || {
            let shown: String = text.chars().take(80).collect();
            BadSchema(format!(
                "`$ref` to `{shown}`: only parts of the same schema, as `#/$defs/NAME`, can be referred to"
            ))
        };
        let pointer = text.strip_prefix('#').ok_or_else(bad)?;
        self.root.pointer(pointer).ok_or_else(bad).map(Some)
    }
}

/// Whether a schema object checks all else again, to find what is left over.
fn rechecks(map: &Map<String, Value>) -> bool {
    map.contains_key("unevaluatedProperties") || map.contains_key("unevaluatedItems")
}

fn forbidden(map: &Map<String, Value>, root: bool) -> Result<(), BadSchema> {
    for key in [
        "$dynamicRef",
        "$recursiveRef",
        "$dynamicAnchor",
        "$recursiveAnchor",
        "$vocabulary",
    ] {
        if map.contains_key(key) {
            return Err(BadSchema(format!("`{key}` is not supported")));
        }
    }
    if !root && map.contains_key("$id") {
        return Err(BadSchema("`$id` inside a schema is not supported".into()));
    }
    Ok(())
}

/// How many keywords of one schema object see the same part of a value, at most.
fn own_parts(map: &Map<String, Value>) -> u64 {
    let objects = u64::from(map.contains_key("properties") || map.contains_key("additionalProperties"))
        + map
            .get("patternProperties")
            .and_then(Value::as_object)
            .map_or(0, |patterns| patterns.len() as u64)
        + u64::from(map.contains_key("unevaluatedProperties"));
    let lists = u64::from(map.contains_key("items") || map.contains_key("prefixItems"))
        + u64::from(map.contains_key("contains"))
        + u64::from(map.contains_key("unevaluatedItems"));
    objects.max(lists)
}

fn same(map: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let one = SAME_ONE.iter().filter_map(|key| map.get(*key));
    let list = SAME_LIST.iter().filter_map(|key| map.get(*key)?.as_array()).flatten();
    let maps = SAME_MAP
        .iter()
        .filter_map(|key| map.get(*key)?.as_object())
        .flat_map(Map::values);
    one.chain(list).chain(maps)
}

fn parts(map: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let one = PART_ONE
        .iter()
        .filter_map(|key| map.get(*key))
        .flat_map(|value| match value {
            Value::Array(list) => list.iter().collect::<Vec<_>>(),
            other => vec![other],
        });
    let maps = PART_MAP
        .iter()
        .filter_map(|key| map.get(*key)?.as_object())
        .flat_map(Map::values);
    one.chain(maps)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn honest_schemas_pass_and_recursion_through_parts_is_unbounded_where_it_multiplies_nothing() {
        let tree = json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}});
        assert_eq!(measure(&tree).unwrap().max_depth, usize::MAX);
        let union = json!({
            "$defs": {"node": {"anyOf": [
                {"type": "string"},
                {"type": "object", "properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/node"}}}},
                {"type": "object", "properties": {"or": {"type": "array", "items": {"$ref": "#/$defs/node"}}}},
            ]}},
            "type": "object", "properties": {"query": {"$ref": "#/$defs/node"}},
        });
        assert_eq!(measure(&union).unwrap().max_depth, 17);
    }

    #[test]
    fn what_would_not_end_or_cost_too_much_is_refused() {
        let mut doubling = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {}});
        for level in 0..40 {
            let next = format!("#/$defs/d{}", level + 1);
            doubling["$defs"][format!("d{level}")] = json!({"allOf": [{"$ref": next}, {"$ref": next}]});
        }
        doubling["$defs"]["d40"] = json!(true);
        let mut deep_doubling = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {}});
        for level in 0..40 {
            let next = json!({"properties": {"a": {"$ref": format!("#/$defs/d{}", level + 1)}}});
            deep_doubling["$defs"][format!("d{level}")] = json!({"allOf": [next, next]});
        }
        deep_doubling["$defs"]["d40"] = json!(true);
        let mut nested = json!({"type": "object"});
        for _ in 0..70 {
            nested = json!({"not": nested});
        }
        let wide: Vec<Value> = (0..30_000).map(|_| json!({})).collect();
        for (schema, why) in [
            (doubling, "more than 2000 subschemas"),
            (deep_doubling, "more than 200000 subschemas"),
            (nested, "nested deeper than 64"),
            (json!({"anyOf": wide}), "more than 20000 nodes"),
            (json!({"$ref": "#"}), "leads back to itself"),
            (
                json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}),
                "leads back to itself",
            ),
            (
                json!({"$ref": "https://example.com/schema"}),
                "only parts of the same schema",
            ),
            (json!({"$ref": "file:///etc/passwd"}), "only parts of the same schema"),
            (json!({"$ref": "#/$defs/none"}), "only parts of the same schema"),
            (json!({"$ref": 3}), "only parts of the same schema"),
            (json!({"$dynamicRef": "#a"}), "not supported"),
            (
                json!({"properties": {"a": {"$id": "https://example.com/"}}}),
                "not supported",
            ),
        ] {
            let error = measure(&schema).unwrap_err().to_string();
            assert!(error.contains(why), "{error} lacks {why}");
        }
    }
}
