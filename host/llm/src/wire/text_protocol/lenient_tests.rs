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
        // What looks like a comment may be the rest of the string.
        ("{\"cmd\": \"echo \" // x\"\n}", false, "escape the quotes"),
        ("{\"cmd\": \"echo \"a\" \" // x\"\n}", false, "escape the quotes"),
        ("{\"cmd\": \"echo \" /* x\" */}", false, "escape the quotes"),
        ("{\"cmd\": \"echo \", // x\"\n \"b\": 1}", false, "escape the quotes"),
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

/// Text as a model writes it damaged: what was meant is known, and nothing in it looks like the form around it.
fn meant() -> impl Strategy<Value = Value> {
    let word = "[a-zA-Z0-9 ./:_$()|;&*~-]{0,10}";
    let text = prop_oneof![
        word.prop_map(String::from),
        (word, "[a-z0-9]{1,5}", "[a-z0-9./-]{1,6}").prop_map(|(a, b, c)| format!("{a} \"{b}\" {c}")),
        (word, "[dDswW.+*$-]", "[0-9]{1,3}").prop_map(|(a, b, c)| format!("{a}\\{b}{c}")),
        (word, word).prop_map(|(a, b)| format!("{a}\n{b}\t")),
        (word, word).prop_map(|(a, b)| format!("{a} \" // {b}")),
        (word, "[a-z]{1,3}", word).prop_map(|(a, b, c)| format!("{a} \"{b}\" \" /* {c}")),
    ];
    let leaf = prop_oneof![
        text.prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop::collection::vec(inner, 0..3).prop_map(Value::from)
    })
}

/// Writes a value with the damage that `flags` say, by bits.
fn write(value: &Value, flags: u8, out: &mut String) {
    let on = |bit: u8| flags & (1 << bit) != 0;
    let comment = if on(0) { " /* a, \"b\": 1 } */ " } else { "" };
    let trailing = if on(1) { "," } else { "" };
    match value {
        Value::String(text) => {
            out.push('"');
            for c in text.chars() {
                match c {
                    '"' if !on(2) => out.push_str("\\\""),
                    '\\' if !on(3) => out.push_str("\\\\"),
                    '\n' if !on(4) => out.push_str("\\n"),
                    '\t' if !on(5) => out.push_str("\\t"),
                    c => out.push(c),
                }
            }
            out.push('"');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write(item, flags, out);
                out.push_str(comment);
            }
            out.push_str(if items.is_empty() { "" } else { trailing });
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (index, (key, item)) in map.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                out.push_str(&format!("\"{key}\":{comment} "));
                write(item, flags, out);
            }
            out.push_str(if on(6) { " // end\n" } else { "" });
            out.push_str(if map.is_empty() { "" } else { trailing });
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    /// However a model damages what it means, it is read as it was meant or not at all: no path, no number and no
    /// command is ever another one.
    #[test]
    fn what_is_damaged_is_read_as_it_was_meant_or_not_at_all(
        meant in prop::collection::btree_map("[a-z]{1,4}", meant(), 0..4),
        flags: u8,
        cut in prop::option::weighted(0.3, any::<prop::sample::Index>()),
    ) {
        let meant = Value::Object(meant.into_iter().collect());
        let mut text = String::new();
        write(&meant, flags, &mut text);
        let whole = text.len();
        if let Some(cut) = cut {
            text.truncate(super::super::block::boundary(&text, cut.index(whole + 1)));
        }
        for closed in [false, true] {
            let Ok(read) = object(&text, closed).map(Value::Object) else { continue };
            if text.len() == whole {
                prop_assert_eq!(&read, &meant, "{}", text);
            } else {
                // A cut text is read only where its closing tag says that its last string ends there: then all before
                // it is as it was meant, and of the string nothing is another.
                prop_assert!(closed, "{}", text);
                let (read, meant) = (read.as_object().unwrap(), meant.as_object().unwrap());
                for (index, ((key, value), (of, full))) in read.iter().zip(meant).enumerate() {
                    prop_assert_eq!(key, of);
                    if index + 1 < read.len() {
                        prop_assert_eq!(value, full);
                    } else {
                        let (value, full) = (value.as_str().unwrap(), full.as_str().unwrap());
                        prop_assert!(full.starts_with(value), "{}", text);
                    }
                }
            }
        }
    }
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
