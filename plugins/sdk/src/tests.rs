//! Tools and filters as the host meets them.
#![allow(clippy::unwrap_used)]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::export::{after_call, before_call, call, describe};
use crate::filter::{CallVerdict, Filter, OutcomeVerdict, Subject};
use crate::{Hints, Json, Output, Tool, ToolError, schema_of};

/// Not for the model.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// How often.
    times: u32,
    #[serde(default)]
    way: Option<Way>,
    #[serde(default)]
    #[allow(dead_code)] // Of interest is only its schema.
    most: Option<u32>,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Way {
    Loud,
    Soft,
}

#[derive(Serialize, JsonSchema)]
struct Said {
    times: u32,
    way: Option<Way>,
}

fn say(args: Arguments) -> Result<Json<Said>, ToolError> {
    if args.times == 0 {
        return Err(ToolError::failed("nothing to say"));
    }
    Ok(Json(Said {
        times: args.times,
        way: args.way,
    }))
}

fn tools() -> Vec<Tool> {
    vec![
        Tool::new("say", "Say it.", say)
            .title("Say")
            .returns::<Said>()
            .read_only()
            .open_world(),
    ]
}

#[test]
fn a_schema_is_in_one_piece_and_says_only_what_a_model_needs() {
    let schema = schema_of::<Arguments>();
    assert_eq!(
        (&schema["type"], &schema["additionalProperties"], &schema["required"]),
        (&json!("object"), &json!(false), &json!(["times"]))
    );
    let times = json!({"type": "integer", "minimum": 0, "maximum": u32::MAX, "description": "How often."});
    let mut bare = schema["properties"]["times"].clone();
    bare.as_object_mut()
        .unwrap()
        .entry("maximum")
        .or_insert(json!(u32::MAX));
    assert_eq!(bare, times);
    let text = schema.to_string();
    for absent in [
        "$ref",
        "$schema",
        "$defs",
        "title",
        "Not for the model",
        "format",
        "default",
    ] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }
}

#[test]
fn tools_are_described_and_called() {
    let described = describe(&tools());
    let tool = &described[0];
    assert_eq!((tool.name.as_str(), tool.title.as_deref()), ("say", Some("Say")));
    assert_eq!(tool.hints, Hints::READ_ONLY | Hints::OPEN_WORLD);
    assert!(tool.output_schema.as_deref().unwrap().contains("\"times\""));
    let output = call(&tools(), "say", r#"{"times":2,"way":"soft"}"#).unwrap();
    assert_eq!(output.structured.as_deref(), Some(r#"{"times":2,"way":"soft"}"#));
    assert_eq!(output.as_text(), r#"{"times":2,"way":"soft"}"#);
    let table = [
        ("say", r#"{"times":0}"#, ToolError::failed("nothing to say")),
        (
            "shout",
            "{}",
            ToolError::UnknownTool("no tool `shout`; there are `say`".into()),
        ),
        (
            "say",
            "{}",
            ToolError::invalid("`say`: missing field `times` at line 1 column 2"),
        ),
    ];
    for (name, arguments, expected) in table {
        assert_eq!(
            call(&tools(), name, arguments).unwrap_err(),
            expected,
            "{name} {arguments}"
        );
    }
}

struct Upper;

impl Filter for Upper {
    fn before_call(&self, subject: &Subject) -> CallVerdict {
        match subject.arguments["x"].as_str() {
            Some("no") => CallVerdict::Refuse("no".into()),
            Some(text) => CallVerdict::Change(json!({"x": text.to_uppercase()})),
            None => CallVerdict::Pass,
        }
    }

    fn after_call(&self, _: &Subject, outcome: Result<Output, ToolError>) -> OutcomeVerdict {
        outcome.map_or(OutcomeVerdict::Pass, |output| {
            OutcomeVerdict::Change(output.as_text().to_uppercase().into())
        })
    }
}

#[test]
fn filters_judge_and_refuse_what_they_cannot_read() {
    use crate::contract::guard::exports::fief::plugin::filter as contract;
    let subject = |arguments: &str| contract::Subject {
        session: "main".into(),
        tool: "a.b".into(),
        arguments: arguments.into(),
    };
    assert!(matches!(
        before_call(&Upper, subject("{}")),
        contract::CallVerdict::Pass
    ));
    let changed = before_call(&Upper, subject(r#"{"x":"a"}"#));
    assert!(matches!(changed, contract::CallVerdict::Change(text) if text == r#"{"x":"A"}"#));
    assert!(matches!(
        before_call(&Upper, subject(r#"{"x":"no"}"#)),
        contract::CallVerdict::Refuse(_)
    ));
    assert!(matches!(
        before_call(&Upper, subject("{")),
        contract::CallVerdict::Refuse(_)
    ));
    let changed = after_call(&Upper, subject("{}"), Ok("a".into()));
    assert!(matches!(changed, contract::OutcomeVerdict::Change(output) if output == Output::text("A")));
    let passed = after_call(&Upper, subject("{}"), Err(ToolError::failed("x")));
    assert!(matches!(passed, contract::OutcomeVerdict::Pass));
}
