//! Names and call ids made acceptable to providers, and mapped back exactly.

use std::collections::HashMap;

use fief_core::id::Digest;
use fief_core::message::Arguments;
use fief_core::tool::{Declaration, wire_name};
use serde_json::Value;

use crate::schema::renamed_keys;

/// The tools of one request, by the name that the model sees, and their properties whose names had to be rewritten.
#[derive(Debug, Default)]
pub(crate) struct Names {
    tools: HashMap<String, String>,
    /// Tool, as people write it, to its properties: rewritten, original.
    keys: HashMap<String, HashMap<String, String>>,
}

impl Names {
    /// The names of what is declared.
    pub(crate) fn of(tools: &[Declaration]) -> Self {
        let renamed = |tool: &Declaration| {
            let keys: HashMap<_, _> = renamed_keys(&tool.input_schema).into_iter().collect();
            (!keys.is_empty()).then(|| (tool.name.clone(), keys))
        };
        Self {
            tools: tools
                .iter()
                .map(|tool| (wire_name(&tool.name), tool.name.clone()))
                .collect(),
            keys: tools.iter().filter_map(renamed).collect(),
        }
    }

    /// The name as people write it, for what the model wrote: either form of a declared name, whole. Anything else is
    /// kept as it is, so that the agent can say what is unknown.
    pub(crate) fn back(&self, name: &str) -> String {
        self.tools.get(name).map_or_else(|| name.to_owned(), Clone::clone)
    }

    /// Gives the properties of a call of `tool` their own names back. A rewritten name holds a digest of the original,
    /// so that it is never a name of the model's own.
    pub(crate) fn restore(&self, tool: &str, arguments: &mut Arguments) {
        if let (Some(keys), Arguments::Object(map)) = (self.keys.get(tool), arguments) {
            restore_keys(map, keys);
        }
    }
}

fn restore_keys(map: &mut serde_json::Map<String, Value>, keys: &HashMap<String, String>) {
    for (key, mut value) in std::mem::take(map) {
        restore_value(&mut value, keys);
        map.insert(keys.get(&key).cloned().unwrap_or(key), value);
    }
}

fn restore_value(value: &mut Value, keys: &HashMap<String, String>) {
    match value {
        Value::Object(map) => restore_keys(map, keys),
        Value::Array(items) => items.iter_mut().for_each(|item| restore_value(item, keys)),
        _ => {}
    }
}

/// The longest call id that providers take (OpenAI: 40).
const LONGEST_ID: usize = 40;

/// A call's id as providers accept it: their alphabet and length; any other id becomes a digest of itself, the same
/// for the call and for its result.
pub(crate) fn wire_id(id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(plain) {
        return id.to_owned();
    }
    format!("call_{}", &Digest::of(id.as_bytes()).hex()[..24])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    fn declare(name: &str) -> Declaration {
        Declaration {
            name: name.into(),
            description: String::new(),
            input_schema: Arc::new(serde_json::json!({})),
        }
    }

    #[test]
    fn declared_names_come_back_and_others_stay() {
        let names = Names::of(&[declare("files.read"), declare("spawn_subagent"), declare("a.b__c")]);
        assert_eq!(names.back("files__read"), "files.read");
        assert_eq!(names.back("files.read"), "files.read");
        assert_eq!(names.back("spawn_subagent"), "spawn_subagent");
        assert_eq!(names.back("files__write"), "files__write");
        assert_eq!(names.back("FILES__READ"), "FILES__READ");
        assert_eq!(names.back(&wire_name("a.b__c")), "a.b__c");
        assert_eq!(names.back(""), "");
    }

    #[test]
    fn rewritten_properties_get_their_names_back() {
        let mut tool = declare("a.b");
        tool.input_schema =
            Arc::new(serde_json::json!({"properties": {"größe": {}, "list": {"items": {"properties": {"$x": {}}}}}}));
        let names = Names::of(&[tool]);
        let (size, x) = (crate::schema::wire_key("größe"), crate::schema::wire_key("$x"));
        let text = format!(r#"{{"{size}": 1, "list": [{{"{x}": 2, "y": 3}}]}}"#);
        let mut arguments = crate::arguments::parse(&text);
        names.restore("a.b", &mut arguments);
        assert_eq!(
            arguments.to_value(),
            serde_json::json!({"größe": 1, "list": [{"$x": 2, "y": 3}]})
        );
        let mut other = crate::arguments::parse(&text);
        names.restore("a.c", &mut other);
        assert_eq!(other, crate::arguments::parse(&text));
    }

    proptest! {
        #[test]
        fn any_name_is_acceptable_and_comes_back(name in ".{1,120}", other in ".{1,120}") {
            let names = Names::of(&[declare(&name), declare(&other)]);
            let wire = wire_name(&name);
            prop_assert!((1..=64).contains(&wire.len()));
            prop_assert!(wire.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
            prop_assert_eq!(names.back(&wire), name);
        }

        #[test]
        fn any_id_is_acceptable_and_stable(id in ".{0,80}") {
            let wire = wire_id(&id);
            prop_assert!((1..=LONGEST_ID).contains(&wire.len()));
            prop_assert!(wire.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
            prop_assert_eq!(wire_id(&wire), wire);
        }
    }
}
