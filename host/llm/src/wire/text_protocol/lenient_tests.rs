#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn one_possible_reading_is_read() {
    for (text, expected) in [
        ("{}", json!({})),
        (
            "{\"a\": 1, // one\n /* two */ \"b\": [true, null,],}",
            json!({"a": 1, "b": [true, null]}),
        ),
        ("{\"a\": \"line\none\ttab\"}", json!({"a": "line\none\ttab"})),
        (r#"{"re": "\d+\.\w*", "b": "x"}"#, json!({"re": r"\d+\.\w*", "b": "x"})),
        (r#"{"a": "he said "hi" to me"}"#, json!({"a": "he said \"hi\" to me"})),
        (
            r#"{"a": "x "y" z", "b": ["p "q" r", 2]}"#,
            json!({"a": "x \"y\" z", "b": ["p \"q\" r", 2]}),
        ),
        (
            r#"{"a": "é\u00e9\ud83e\udd80\n", "b": -1.5e3}"#,
            json!({"a": "éé🦀\n", "b": -1500.0}),
        ),
        (
            r#"{"a": "null and None // no comment", "b": "</arguments>"}"#,
            json!({"a": "null and None // no comment", "b": "</arguments>"}),
        ),
    ] {
        assert_eq!(object(text, false).map(Value::Object), Ok(expected), "{text}");
    }
    assert_eq!(
        object("{\"a\": \"find it\n", true).map(Value::Object),
        Ok(json!({"a": "find it"}))
    );
    assert_eq!(
        object("{\"k\": 1, \"a\": \"find it", true).map(Value::Object),
        Ok(json!({"k": 1, "a": "find it"}))
    );
}

#[test]
fn b103_repair_never_rewrites_content() {
    for (text, closed, part) in [
        // Two readings of where a string ends.
        (r#"{"cmd": "echo "x"}"#, false, "unclear where"),
        (r#"{"cmd": "echo "a", b"}"#, false, "escape the quotes"),
        (r#"{"a": "x, "b": "y"}"#, false, "escape the quotes"),
        (r#"{"a": "print("a": 1)"}"#, false, "escape the quotes"),
        (r#"{"cmd": "f() { echo "a" } "}"#, false, "escape the quotes"),
        // Two readings of a backslash.
        (r#"{"path": "C:\new\dir"}"#, false, "unclear whether"),
        (r#"{"path": "C:\dir\u0041"}"#, false, "unclear whether"),
        (r#"{"a": "it\'s"}"#, false, "unclear whether"),
        // Two readings of the end.
        ("{\"a\": \"find it}", true, "has no end"),
        ("{\"a\": \"find it\n}", true, "has no end"),
        ("{\"a\": \"find it", false, "has no end"),
        ("{\"a\": {\"b\": \"find it", true, "has no end"),
        ("{\"a\": [\"find it", true, "has no end"),
        ("{\"a\": \"", true, "has no end"),
        // Numbers and words that are not JSON.
        ("{\"a\": None}", false, "write `null`"),
        ("{\"a\": True}", false, "write `true`"),
        ("{\"a\": 007}", false, "a value must stand"),
        ("{\"a\": .5}", false, "a value must stand"),
        ("{\"a\": 12345678901234567890123}", false, "would be altered"),
        ("{\"a\": NaN}", false, "a value must stand"),
        ("{'a': 1}", false, "double quotes"),
        ("{\"a\": 'x'}", false, "double quotes"),
        ("{\"a\": 1, \"a\": 2}", false, "occurs twice"),
        ("{\"a\": 1", false, "breaks off"),
        ("{\"a\" 1}", false, "`:` must stand"),
        ("{\"a\": 1} x", false, "follows the JSON object"),
        ("{\"a\": 1 /* ", false, "a comment has no end"),
        ("{\"a\nb\": 1}", false, "a key holds"),
        ("{\"a\": \"\\ud800x\"}", false, "hexadecimal"),
        ("[1]", false, "must be a JSON object"),
        ("{\"a\": \"x\\", false, "breaks off in an escape"),
    ] {
        let why = object(text, closed).map(Value::Object).unwrap_err();
        assert!(why.contains(part), "{text}: {why}");
    }
    assert!(object(&"{\"a\":".repeat(1000), false).is_err());
    assert!(object(&format!("{{\"a\":{}", "[".repeat(1000)), false).is_err());
}

#[test]
fn the_end_of_an_object_is_found() {
    for (text, end) in [
        ("{} x", Some(2)),
        (r#"{"a": "}"} rest"#, Some(10)),
        (r#"{"a": "\"}"} rest"#, Some(12)),
        ("{ // } \"\n} x", Some(10)),
        ("{ /* } */ } x", Some(11)),
        ("{\"a\": {", None),
        ("{\"a", None),
        ("{\"a\\", None),
        ("{ // x", None),
        ("{ /* x", None),
    ] {
        assert_eq!(object_end(text), end, "{text}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~\\n\\t\u{e9}\u{1f980}]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z\"\\\\]{0,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// What is sound JSON is read as JSON reads it: the repairs never touch it.
    #[test]
    fn sound_json_reads_as_json(value in prop::collection::btree_map("[a-z]{1,4}", any_json(), 0..5)) {
        let value = Value::Object(value.into_iter().collect());
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            prop_assert_eq!(object_end(&text), Some(text.len()));
            prop_assert_eq!(object(&text, true).map(Value::Object), Ok(value.clone()));
        }
    }

    #[test]
    fn nothing_panics(text in ".{0,60}", closed: bool) {
        let _ = object(&format!("{{{text}"), closed);
        let _ = object(&format!("{{\"a\": \"{text}"), closed);
        let _ = object_end(&format!("{{{text}"));
    }
}
