#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

const ALL: [Dialect; 3] = [Dialect::OpenAi, Dialect::Compatible, Dialect::Anthropic];

/// The rules that providers publish for `parameters` and `input_schema`, and what their servers were seen to refuse.
pub(crate) fn check_root(schema: &Value, dialect: Dialect) -> Result<(), String> {
    let map = schema.as_object().ok_or("the root is no object")?;
    if map.get("type") != Some(&json!("object")) {
        return Err("the root's type is not `object`".into());
    }
    if !map.get("properties").is_some_and(Value::is_object) {
        return Err("the root has no properties".into());
    }
    for key in ["anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref"] {
        if map.contains_key(key) {
            return Err(format!("the root holds `{key}`"));
        }
    }
    if !jsonschema::meta::is_valid(schema) {
        return Err("not a JSON Schema".into());
    }
    check_node(schema, dialect, 0)
}

fn check_node(schema: &Value, dialect: Dialect, depth: usize) -> Result<(), String> {
    const KEYWORDS: &[&str] = &[
        "type",
        "title",
        "description",
        "default",
        "enum",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "uniqueItems",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "format",
        "anyOf",
    ];
    let map = schema.as_object().ok_or("a schema is no object")?;
    if depth > 2 * DEEPEST + 4 {
        return Err("too deep".into());
    }
    if let Some(key) = map.keys().find(|key| !KEYWORDS.contains(&key.as_str())) {
        return Err(format!("the keyword `{key}`"));
    }
    let is = |name: &str| match map.get("type") {
        Some(Value::String(own)) => own == name,
        Some(Value::Array(names)) => names.iter().any(|own| own == name),
        _ => false,
    };
    if is("array") && !map.get("items").is_some_and(Value::is_object) {
        return Err("an array without items".into());
    }
    if map
        .get("enum")
        .is_some_and(|values| values.as_array().is_none_or(Vec::is_empty))
    {
        return Err("an empty enum".into());
    }
    let properties = map.get("properties").and_then(Value::as_object);
    for (key, property) in properties.into_iter().flatten() {
        if dialect == Dialect::Anthropic && wire_key(key) != *key {
            return Err(format!("the property `{key}`"));
        }
        check_node(property, dialect, depth + 1)?;
    }
    if let Some(required) = map.get("required") {
        let names = required.as_array().unwrap();
        let distinct: BTreeSet<&str> = names.iter().filter_map(Value::as_str).collect();
        if names.is_empty() || distinct.len() != names.len() {
            return Err("an empty or repeating `required`".into());
        }
        if distinct
            .iter()
            .any(|name| !properties.is_some_and(|map| map.contains_key(*name)))
        {
            return Err("`required` names what is no property".into());
        }
    }
    if dialect == Dialect::Compatible {
        for key in ["minLength", "maxLength", "minItems", "maxItems"] {
            if map
                .get(key)
                .and_then(Value::as_u64)
                .is_some_and(|bound| bound > MAX_REPETITION)
            {
                return Err(format!("a large `{key}`"));
            }
        }
    }
    if let Some(items) = map.get("items") {
        check_node(items, dialect, depth + 1)?;
    }
    match map.get("additionalProperties") {
        Some(node @ Value::Object(_)) => check_node(node, dialect, depth + 1)?,
        Some(Value::Bool(_)) | None => {}
        Some(_) => return Err("`additionalProperties`".into()),
    }
    for part in map.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        check_node(part, dialect, depth + 1)?;
    }
    Ok(())
}

#[test]
fn schemas_that_providers_refuse_become_acceptable() {
    let rows = [
        json!(true),
        json!({}),
        json!({"type": "object"}),
        json!({"properties": {"a": {}, "b": true, "c": false}, "required": ["a", "c", "d", "a"]}),
        json!({"type": ["object", "null"], "properties": {"a": {"type": ["array", "null"]}}}),
        json!({"anyOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]},
                         {"properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a", "b"]}]}),
        json!({"oneOf": [{"type": "string"}, {"type": "object", "oneOf": [{"properties": {"x": {}}}]}]}),
        json!({"allOf": [{"$ref": "#/$defs/a"}, {"required": ["y"]}],
               "$defs": {"a": {"properties": {"y": {"$ref": "#/$defs/a"}, "z": {"$ref": "https://x.example/s"}}}}}),
        json!({"type": "object", "properties": {"tree": {"$ref": "#"}}}),
        json!({"type": "array", "items": {"type": "string"}, "enum": [1]}),
        json!({"properties": {"größe": {"type": "number"}, "$filter": {}, "": {}, "a b": {}}, "required": ["größe"]}),
        json!({"properties": {"t": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}],
               "items": false}, "u": {"type": "array", "items": [{"type": "string"}]}}}),
        json!({"properties": {"s": {"type": "string", "pattern": "(?=x)", "format": "odd", "maxLength": 100_000}}}),
        json!({"properties": {"n": {"exclusiveMinimum": true, "minimum": "x", "multipleOf": 0}, "e": {"enum": []}}}),
        json!({"not": {"type": "object"}, "if": {}, "then": {}, "patternProperties": {"^x": {}}, "dependentRequired": {}}),
        json!({"type": "nonsense", "properties": 3, "required": "a", "items": 1, "anyOf": 7, "$ref": 1}),
        json!({"properties": {"a": {"const": {"x": 1}}, "b": {"enum": ["x", "x", 1]}}}),
    ];
    for schema in &rows {
        for dialect in ALL {
            let written = acceptable(schema, dialect);
            check_root(&written, dialect).unwrap_or_else(|why| panic!("{dialect:?}: {schema}\n{written}\n{why}"));
        }
    }
    insta::assert_snapshot!(
        rows.iter()
            .map(|schema| format!("{schema}\n→ {}\n", acceptable(schema, Dialect::Anthropic)))
            .collect::<String>()
    );
}

#[test]
fn a_schema_that_is_acceptable_stays_as_it_is() {
    let schema = json!({
        "type": "object",
        "description": "d",
        "properties": {
            "path": {"type": "string", "description": "p", "minLength": 1},
            "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 3},
            "any": {},
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    for dialect in ALL {
        let mut expected = schema.clone();
        // The order of keys is nobody's business.
        let written = acceptable(&schema, dialect);
        assert_eq!(written, std::mem::take(&mut expected), "{dialect:?}");
    }
}

#[test]
fn a_schema_that_explodes_is_bounded() {
    let mut definitions = Map::new();
    for level in 0..30 {
        let next = format!("#/$defs/l{}", level + 1);
        definitions.insert(
            format!("l{level}"),
            json!({"properties": {"a": {"$ref": next}, "b": {"$ref": next}}, "description": "x".repeat(1000)}),
        );
    }
    definitions.insert("l30".into(), json!({"type": "string"}));
    let schema = json!({"$ref": "#/$defs/l0", "$defs": definitions});
    for dialect in ALL {
        let written = acceptable(&schema, dialect);
        check_root(&written, dialect).unwrap();
        assert!(written.to_string().len() < 2 << 20);
    }
    let deep = (0..100).fold(json!({}), |inner, _| json!({"type": "array", "items": inner}));
    check_root(
        &acceptable(&json!({"properties": {"a": deep}}), Dialect::OpenAi),
        Dialect::OpenAi,
    )
    .unwrap();
}

#[test]
fn renamed_properties_are_found_and_distinct() {
    let schema = json!({"properties": {"größe": {"properties": {"a b": {}}}, "ok": {}, "gr__e": {}}});
    let mut found = renamed_keys(&schema);
    found.sort();
    assert_eq!(
        found.iter().map(|(_, key)| key.as_str()).collect::<Vec<_>>(),
        ["a b", "größe"]
    );
    assert!(found.iter().all(|(wire, _)| wire_key(wire) == *wire));
}

pub(crate) fn any_schema(typed: bool) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "minLength": 2, "pattern": "^[a-c]*$"})),
        Just(json!({"type": "integer", "minimum": 3})),
        Just(json!({"type": ["null", "boolean"]})),
        Just(json!({"enum": ["a", 1, null]})),
        Just(json!({"const": "b"})),
        Just(json!({"type": "array", "maxItems": 2})),
        Just(
            json!({"type": "object", "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": false})
        ),
        Just(json!(true)),
        Just(json!({"$ref": "#/properties/a"})),
        Just(json!({"$ref": "#"})),
        Just(if typed {
            json!({})
        } else {
            json!({"minimum": 3, "items": true, "required": ["x", "x"], "type": 3})
        }),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        let key = prop_oneof![Just("a".to_owned()), Just("b".to_owned()), Just("ü".to_owned())];
        let properties = prop::collection::btree_map(key, inner.clone(), 0..3);
        prop_oneof![
            (properties, any::<bool>(), any::<bool>()).prop_map(|(properties, closed, required)| {
                let names: Vec<String> = if required {
                    properties.keys().cloned().collect()
                } else {
                    Vec::new()
                };
                let map: Map<String, Value> = properties.into_iter().collect();
                json!({"type": "object", "properties": map, "required": names, "additionalProperties": !closed})
            }),
            inner.clone().prop_map(|item| json!({"type": "array", "items": item})),
            list.clone()
                .prop_map(|parts| json!({"type": "array", "prefixItems": parts, "items": false})),
            list.clone().prop_map(|parts| json!({"anyOf": parts})),
            list.clone().prop_map(|parts| json!({"oneOf": parts})),
            list.prop_map(|parts| json!({"allOf": parts})),
            inner.prop_map(|part| json!({"not": part})),
        ]
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(1)),
        Just(json!(7)),
        Just(json!("a")),
        Just(json!("b")),
        Just(json!("abc")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(prop_oneof![Just("a".to_owned()), Just("b".to_owned())], inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Any schema gives one that each provider's rules accept.
    #[test]
    fn any_schema_becomes_acceptable(schema in any_schema(false)) {
        for dialect in ALL {
            let written = acceptable(&schema, dialect);
            if let Err(why) = check_root(&written, dialect) {
                prop_assert!(false, "{dialect:?}: {schema}\n{written}\n{why}");
            }
        }
    }

    /// What a tool accepts stays possible to write.
    #[test]
    fn rewriting_only_loosens(schema in any_schema(true), value in any_value()) {
        prop_assume!(value.is_object());
        let Ok(original) = jsonschema::validator_for(&schema) else { return Ok(()) };
        if original.is_valid(&value) {
            for dialect in ALL {
                let written = acceptable(&schema, dialect);
                let loose = jsonschema::validator_for(&written).unwrap();
                prop_assert!(loose.is_valid(&value), "{dialect:?}: {value}\n{schema}\n{written}");
            }
        }
    }
}
