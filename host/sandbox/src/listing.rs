//! What a plugin says of its tools, checked before anybody sees it: names, sizes, schemas.

use std::collections::BTreeSet;
use std::sync::Arc;

use fief_core::id::ToolName;
use fief_core::tool::{Hints, ToolSpec};
use serde_json::Value;

use crate::bindings::types;

/// Tools of one plugin at most: what providers allow in one request.
const TOOLS: usize = 128;
/// The longest description, in bytes: every request of every agent that holds the tool carries it.
const DESCRIPTION: usize = 8 << 10;
/// The longest title, in bytes.
const TITLE: usize = 256;
/// The longest schema, in bytes.
const SCHEMA: usize = 64 << 10;
/// How deep a schema may nest.
const DEPTH: usize = 32;

/// Turns a guest's list into tools.
pub(crate) fn accept(tools: Vec<types::Tool>) -> Result<Vec<ToolSpec>, String> {
    if tools.len() > TOOLS {
        return Err(format!("it lists {} tools; a plugin has at most {TOOLS}", tools.len()));
    }
    let mut names = BTreeSet::new();
    let mut accepted = Vec::with_capacity(tools.len());
    for tool in tools {
        let name = ToolName::new(&tool.name).map_err(|bad| bad.to_string())?;
        if !names.insert(name.clone()) {
            return Err(format!("it lists the tool `{name}` twice"));
        }
        accepted.push(spec(name, tool)?);
    }
    Ok(accepted)
}

fn spec(name: ToolName, tool: types::Tool) -> Result<ToolSpec, String> {
    if tool.description.trim().is_empty() {
        return Err(format!("tool `{name}` has no description; a model chooses by it"));
    }
    if tool.description.len() > DESCRIPTION {
        let size = tool.description.len();
        return Err(format!(
            "the description of tool `{name}` has {size} bytes; at most {DESCRIPTION} are allowed"
        ));
    }
    if tool.title.as_ref().is_some_and(|title| title.len() > TITLE) {
        return Err(format!("the title of tool `{name}` has more than {TITLE} bytes"));
    }
    let input_schema = schema(&tool.input_schema).map_err(|why| format!("the input schema of tool `{name}` {why}"))?;
    // Providers take objects alone, and arguments are one.
    if input_schema.get("type") != Some(&Value::from("object")) {
        return Err(format!(
            "the input schema of tool `{name}` is not of `\"type\": \"object\"`"
        ));
    }
    let output_schema = tool.output_schema.as_deref().map(schema).transpose();
    let output_schema = output_schema.map_err(|why| format!("the output schema of tool `{name}` {why}"))?;
    Ok(ToolSpec {
        name,
        title: tool.title,
        description: tool.description,
        input_schema: Arc::new(input_schema),
        output_schema: output_schema.map(Arc::new),
        hints: Hints {
            read_only: tool.hints.contains(types::Hints::READ_ONLY),
            destructive: tool.hints.contains(types::Hints::DESTRUCTIVE),
            idempotent: tool.hints.contains(types::Hints::IDEMPOTENT),
            open_world: tool.hints.contains(types::Hints::OPEN_WORLD),
        },
    })
}

/// Reads a schema: an object of JSON, no larger and no deeper than allowed, that refers to itself alone and never in a
/// circle.
fn schema(text: &str) -> Result<Value, String> {
    if text.len() > SCHEMA {
        return Err(format!("has {} bytes; at most {SCHEMA} are allowed", text.len()));
    }
    let schema: Value = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
    if !schema.is_object() {
        return Err("is not a JSON object".into());
    }
    inspect(&schema, DEPTH)?;
    circle(&schema, &schema, &mut Vec::new())?;
    Ok(schema)
}

fn inspect(value: &Value, depth: usize) -> Result<(), String> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!("nests deeper than {DEPTH}"));
    };
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| inspect(item, depth)),
        Value::Object(map) => map.iter().try_for_each(|(key, value)| {
            match (key.as_str(), value) {
                ("$ref", Value::String(to)) if !to.starts_with('#') => {
                    return Err(format!(
                        "refers to `{to}`; only references within the schema (`#/…`) are followed"
                    ));
                }
                ("$dynamicRef" | "$recursiveRef", Value::String(_)) => {
                    return Err(format!("holds `{key}`, which is not followed"));
                }
                // Another base would turn a reference within the schema into one to elsewhere.
                ("$id", Value::String(_)) => return Err("holds `$id`, which changes what its references mean".into()),
                ("$schema", Value::String(dialect)) if !dialect.contains("json-schema.org/") => {
                    return Err(format!("is in the unknown dialect `{dialect}`"));
                }
                _ => {}
            }
            inspect(value, depth)
        }),
        _ => Ok(()),
    }
}

/// Follows every reference and refuses one that leads back to where it stands. `path` holds the references that led
/// here; its length is bounded, so that a schema in which each reference doubles the work ends too.
fn circle<'a>(root: &'a Value, at: &'a Value, path: &mut Vec<&'a str>) -> Result<(), String> {
    match at {
        Value::Array(items) => items.iter().try_for_each(|item| circle(root, item, path)),
        Value::Object(map) => {
            if let Some(Value::String(to)) = map.get("$ref") {
                if path.contains(&to.as_str()) || path.len() >= DEPTH {
                    return Err(format!("refers to itself through `{to}`"));
                }
                let pointer = to.trim_start_matches('#');
                let Some(target) = root.pointer(pointer) else {
                    return Err(format!("refers to `{to}`, which it does not hold"));
                };
                path.push(to);
                circle(root, target, path)?;
                path.pop();
            }
            map.iter()
                .filter(|(key, _)| !matches!(key.as_str(), "$ref" | "$defs" | "definitions"))
                .try_for_each(|(_, value)| circle(root, value, path))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn tool(name: &str, schema: &str) -> types::Tool {
        types::Tool {
            name: name.into(),
            title: None,
            description: "Does something.".into(),
            input_schema: schema.into(),
            output_schema: None,
            hints: types::Hints::READ_ONLY,
        }
    }

    const OBJECT: &str = r#"{"type":"object"}"#;

    #[test]
    fn an_honest_list_is_accepted() {
        let schema = r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/text"},"b":{"$ref":"#/$defs/text"}},
            "$defs":{"text":{"type":"string"}},"$schema":"https://json-schema.org/draft/2020-12/schema"}"##;
        let tools = accept(vec![tool("read", OBJECT), tool("write_all", schema)]).unwrap();
        assert_eq!(tools.len(), 2);
        assert!(tools[0].hints.read_only && !tools[0].hints.destructive);
    }

    #[test]
    fn names_that_collide_or_deceive_are_refused() {
        for name in [
            "",
            "a.b",
            "agent-x",
            "a b",
            "a\nb",
            "\u{1b}[31mred",
            "ünder",
            &"x".repeat(49),
        ] {
            let error = accept(vec![tool(name, OBJECT)]).unwrap_err();
            assert!(error.contains("is not a tool name"), "{error}");
        }
        let error = accept(vec![tool("read", OBJECT), tool("read", OBJECT)]).unwrap_err();
        assert!(error.contains("twice"), "{error}");
        let error = accept((0..200).map(|i| tool(&format!("t{i}"), OBJECT)).collect()).unwrap_err();
        assert!(error.contains("200 tools"), "{error}");
    }

    #[test]
    fn schemas_that_are_huge_recursive_or_remote_are_refused() {
        let deep = format!(
            "{}{}{}",
            r#"{"type":"object","a":"#,
            "[".repeat(40),
            "]".repeat(40) + "}"
        );
        let huge = format!(r#"{{"type":"object","description":"{}"}}"#, "x".repeat(70_000));
        let bomb: String = (0..40)
            .map(|i| {
                format!(
                    r##""d{i}":{{"a":{{"$ref":"#/$defs/d{n}"}},"b":{{"$ref":"#/$defs/d{n}"}}}},"##,
                    n = i + 1
                )
            })
            .collect();
        let bomb = format!(r##"{{"type":"object","x":{{"$ref":"#/$defs/d0"}},"$defs":{{{bomb}"d40":{{}}}}}}"##);
        for (schema, says) in [
            ("nonsense", "is not JSON"),
            ("[]", "is not a JSON object"),
            ("{}", "is not of `\"type\": \"object\"`"),
            (r#"{"type":"string"}"#, "is not of"),
            (
                r#"{"type":"object","$ref":"https://evil.example/s"}"#,
                "refers to `https://evil.example/s`",
            ),
            (
                r#"{"type":"object","x":{"$ref":"file:///etc/passwd"}}"#,
                "refers to `file:",
            ),
            (r##"{"type":"object","x":{"$ref":"#"}}"##, "refers to itself"),
            (r##"{"type":"object","x":{"$ref":"#/x"}}"##, "refers to itself"),
            (
                r##"{"type":"object","x":{"$ref":"#/$defs/a"},"$defs":{"a":{"b":{"$ref":"#/$defs/b"}},"b":{"$ref":"#/$defs/a"}}}"##,
                "refers to itself",
            ),
            (r##"{"type":"object","x":{"$ref":"#/nowhere"}}"##, "does not hold"),
            (r#"{"type":"object","$id":"https://evil.example/"}"#, "holds `$id`"),
            (
                r#"{"type":"object","$schema":"https://evil.example/"}"#,
                "unknown dialect",
            ),
            (r##"{"type":"object","x":{"$dynamicRef":"#a"}}"##, "not followed"),
            (deep.as_str(), "nests deeper"),
            (huge.as_str(), "at most 65536"),
            (bomb.as_str(), "refers to itself"),
        ] {
            let error = accept(vec![tool("t", schema)]).unwrap_err();
            assert!(error.contains(says), "{schema}: {error}");
        }
    }

    #[test]
    fn descriptions_are_there_and_bounded() {
        let mut blank = tool("t", OBJECT);
        blank.description = " \n".into();
        assert!(accept(vec![blank]).unwrap_err().contains("no description"));
        let mut long = tool("t", OBJECT);
        long.description = "x".repeat(DESCRIPTION + 1);
        assert!(accept(vec![long]).unwrap_err().contains("bytes"));
    }
}
