//! Any tool that the host accepts gives a request that each provider's published rules accept, and what a model writes
//! for it comes back under the tool's own names.
//!
//! The rules, as their owners publish them:
//! - OpenAI and Azure: `name` of letters, digits, `_` and `-`, 64 at most; `description` of 1,024 characters at most;
//!   `parameters` an object whose root has `"type": "object"` and no `anyOf`, `oneOf`, `allOf`, `not`, `enum`; `items` at
//!   every array. `strict` is never sent: its part of JSON Schema cannot say what tools say, and absent it is off.
//! - Anthropic: `name` of the same letters; a root as above; names of properties of letters, digits, `_`, `.` and `-`,
//!   64 at most; a schema of the 2020-12 draft.
//! - Servers with grammars, and those that read schemas into types of their own: one type or a list of types, no
//!   references, no large repetitions.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use fief_core::message::Arguments;
use fief_core::tool::Declaration;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{PROVIDERS, Question};
use crate::fake;
use crate::names::Names;
use crate::schema::Dialect;
use crate::schema::tests::{any_schema, check_root};

/// A server of each dialect.
const SERVERS: [(&str, &str, Dialect); 5] = [
    ("openai", "https://api.openai.com/v1", Dialect::OpenAi),
    ("openai", "https://x.openai.azure.com/openai/v1", Dialect::OpenAi),
    ("openai", "https://openrouter.ai/api/v1", Dialect::Compatible),
    ("openai", "http://127.0.0.1:8080/v1", Dialect::Compatible),
    ("anthropic", "https://api.anthropic.com/v1", Dialect::Anthropic),
];

/// Names as people write them: of plugins' tools, of the ways to a child, and worse.
fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        ("[a-z0-9-]{1,64}", "[a-z0-9-]{1,64}").prop_map(|(plugin, tool)| format!("{plugin}.{tool}")),
        Just("spawn_subagent".to_owned()),
        "agent-[a-z]{1,90}",
        ".{1,100}",
    ]
}

fn any_tool() -> impl Strategy<Value = Declaration> {
    let keys = prop::collection::vec(".{0,80}", 0..4);
    let description = prop_oneof!["[ -~]{1,40}", "[a-zé🦀 ]{1000,1400}"];
    (any_name(), description, any_schema(false), keys).prop_map(|(name, description, schema, keys)| {
        let mut schema = match schema {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        schema.insert("type".into(), "object".into());
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            properties.extend(keys.iter().map(|key| (key.clone(), json!({"type": "string"}))));
        }
        Declaration {
            name,
            description,
            input_schema: Arc::new(schema.into()),
        }
    })
}

/// The name, description and schema of each declared tool, in whichever format.
fn declared(body: &Value) -> Vec<(String, String, Value)> {
    let tools = body["tools"].as_array().unwrap();
    let one = |tool: &Value| {
        let (tool, schema) = match tool.get("function") {
            Some(function) => (function, "parameters"),
            None => (tool, "input_schema"),
        };
        assert!(tool.get("strict").is_none(), "{tool}");
        let text = |key: &str| tool[key].as_str().unwrap().to_owned();
        (text("name"), text("description"), tool[schema].clone())
    };
    tools.iter().map(one).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_tool_is_declared_as_each_provider_takes_it(tools in prop::collection::vec(any_tool(), 1..4)) {
        let mut seen = HashSet::new();
        let tools: Vec<Declaration> = tools.into_iter().filter(|tool| seen.insert(tool.name.clone())).collect();
        let mut request = fake::request();
        request.tools = tools.clone().into();
        let names = Names::of(&tools);
        for (provider, base, dialect) in SERVERS {
            let provider = PROVIDERS.iter().find(|known| known.name == provider).unwrap();
            let format = (provider.format)(&base.parse().unwrap());
            let generation = request.generation.clone();
            let body = format.body(&Question { model: "m", request: &request, generation, stream: true });
            let declared = declared(&body);
            prop_assert_eq!(declared.len(), tools.len());
            let distinct: BTreeSet<&str> = declared.iter().map(|(name, ..)| name.as_str()).collect();
            prop_assert_eq!(distinct.len(), tools.len(), "two tools under one name");
            for ((name, description, schema), tool) in declared.iter().zip(&tools) {
                let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                prop_assert!((1..=64).contains(&name.len()) && name.chars().all(plain), "{}", name);
                prop_assert_eq!(names.back(name), tool.name.as_str());
                if dialect == Dialect::OpenAi {
                    prop_assert!(description.chars().count() <= 1024);
                    let kept = description.trim_end_matches(" (goes on in the system prompt)");
                    let rest = tool.description.strip_prefix(kept).unwrap();
                    prop_assert!(body["messages"][0]["content"].as_str().unwrap().contains(rest));
                } else {
                    prop_assert_eq!(description, &tool.description);
                }
                if let Err(why) = check_root(schema, dialect) {
                    prop_assert!(false, "{base}: {why}\n{}\n{schema}", tool.input_schema);
                }
                // A model that fills in every property by the name it was given is understood by the tool's own names.
                let shown = schema["properties"].as_object().unwrap().keys();
                let mut arguments = Arguments::Object(shown.map(|key| (key.clone(), Value::Null)).collect());
                names.restore(&tool.name, &mut arguments);
                let own = tool.input_schema["properties"].as_object().unwrap();
                for key in arguments.to_value().as_object().unwrap().keys() {
                    let inner = tool.input_schema.to_string();
                    prop_assert!(own.contains_key(key) || inner.contains(&json!(key).to_string()), "{}", key);
                }
                let back = arguments.to_value();
                for key in own.iter().filter(|(_, property)| **property != Value::Bool(false)).map(|(key, _)| key) {
                    prop_assert!(back.get(key).is_some(), "`{}` is lost", key);
                }
            }
        }
    }
}
