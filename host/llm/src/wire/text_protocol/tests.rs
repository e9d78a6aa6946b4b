#![allow(clippy::unwrap_used)]

use fief_core::manifest::archetype::Generation;
use fief_core::message::{Assistant, CallResult, Content, Message, Served, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::script::Script;

/// What a text is read as: its prose, and each call as `name arguments` or `name ! why`.
fn read(text: &str) -> (String, Vec<String>) {
    let (answer, _) = servers().read(Answer {
        message: Assistant {
            text: text.into(),
            ..Assistant::default()
        },
        finish: Finish::Stop,
        usage: Usage::default(),
        served: Served::default(),
    });
    let calls = answer.message.calls.iter().map(|call| match &call.arguments {
        Arguments::Object(map) => format!("{} {}", call.name, Value::Object(map.clone())),
        Arguments::Malformed { why, .. } => format!("{} ! {why}", call.name),
    });
    (answer.message.text.clone(), calls.collect())
}

fn declare(name: &str) -> Declaration {
    Declaration {
        name: name.into(),
        description: format!("Does {name}."),
        input_schema: Arc::new(json!({"type": "object"})),
    }
}

fn tools() -> Vec<Declaration> {
    [
        "files.read",
        "files.write",
        "spawn_subagent",
        "dynamic_subagent",
        "agent-worker",
    ]
    .map(declare)
    .to_vec()
}

fn servers() -> Servers {
    Servers::of(&tools())
}

fn block(arguments: &str) -> String {
    format!(
        "<use_mcp_tool>\n<server_name>files</server_name>\n<tool_name>read</tool_name>\n<arguments>\n{arguments}\n\
         </arguments>\n</use_mcp_tool>"
    )
}

/// The block as users of the protocol know it.
const WORKER: &str = r#"<use_mcp_tool>
<server_name>agent-worker</server_name>
<tool_name>execute_subtask</tool_name>
<arguments>
{"subtask": "查清楚 2019 年图灵奖得主的博士导师是谁,给出来源"}
</arguments>
</use_mcp_tool>"#;

#[test]
fn an_agent_is_called_as_a_server_of_its_own() {
    let (prose, calls) = read(WORKER);
    assert_eq!(prose, "");
    assert_eq!(
        calls,
        [r#"agent-worker {"subtask":"查清楚 2019 年图灵奖得主的博士导师是谁,给出来源"}"#]
    );
}

#[test]
fn b52_every_kind_of_name_is_mapped_and_none_is_rerouted() {
    for (server, tool, name) in [
        ("files", "read", "files.read"),
        ("agents", "spawn_subagent", "spawn_subagent"),
        ("agents", "dynamic_subagent", "dynamic_subagent"),
        ("agent-worker", "execute_subtask", "agent-worker"),
        // What is not declared stays what it is, and is refused as such.
        ("web", "read", "web.read"),
        ("files", "spawn_subagent", "files.spawn_subagent"),
        ("agents", "read", "agents.read"),
        ("agent-other", "execute_subtask", "agent-other.execute_subtask"),
        ("agent-worker", "read", "agent-worker.read"),
        ("agents", "agent-worker", "agents.agent-worker"),
    ] {
        assert_eq!(servers().name(server, tool), name);
    }
}

/// Each text is read as the call of `files.read` with `a`.
fn understood(table: &[(&str, String)]) {
    for (why, text) in table {
        let (_, calls) = read(text);
        assert_eq!(calls, [r#"files.read {"path":"a"}"#], "{why}: {text}");
    }
}

#[test]
fn protocol_text_around_unterminated_strings_and_fences_are_understood_where_unambiguous() {
    let sound = || block(r#"{"path": "a"}"#);
    understood(&[
        ("text around", format!("I will read it.\n\n{}\n\nThat is all.", sound())),
        ("on the line of the text", format!("Reading: {} done", sound())),
        (
            "text behind the object",
            block("{\"path\": \"a\"}\nThis reads the file."),
        ),
        ("a fence around the object", block("```json\n{\"path\": \"a\"}\n```")),
        (
            "comments and a trailing comma",
            block("{\"path\": \"a\", /* x */ // y\n}"),
        ),
        ("a string without an end", block("{\"path\": \"a")),
        ("all in one line", sound().replace('\n', "")),
        ("indented", sound().replace('\n', "\n  ")),
        ("carriage returns", sound().replace('\n', "\r\n")),
    ]);
}

#[test]
fn protocol_a_missing_or_wrong_closing_tag_is_understood_if_the_json_is_whole() {
    let sound = || block(r#"{"path": "a"}"#);
    understood(&[
        ("no closing tag of the block", sound().replace("</use_mcp_tool>", "")),
        ("no closing tag of the arguments", sound().replace("</arguments>\n", "")),
        (
            "no closing tag at all",
            sound().replace("\n</arguments>\n</use_mcp_tool>", ""),
        ),
        (
            "a wrong closing tag of the arguments",
            sound().replace("</arguments>", "</argument>"),
        ),
        (
            "a wrong closing tag of the block",
            sound().replace("</use_mcp_tool>", "</use_tool>"),
        ),
    ]);
}

/// Each arguments are read as this call, and what follows them is prose.
fn reads_as(table: &[(&str, &str)]) {
    for (arguments, expected) in table {
        let (prose, calls) = read(&format!("{} after", block(arguments)));
        assert_eq!((prose.as_str(), calls), ("after", vec![(*expected).to_owned()]));
    }
}

#[test]
fn protocol_raw_newlines_and_quotes_inside_a_string_are_understood() {
    reads_as(&[
        ("{\"path\": \"two\nlines\"}", r#"files.read {"path":"two\nlines"}"#),
        (
            r#"{"path": "the "big" one"}"#,
            r#"files.read {"path":"the \"big\" one"}"#,
        ),
        ("", "files.read {}"),
    ]);
}

#[test]
fn protocol_a_tag_inside_a_json_string_is_part_of_the_string() {
    reads_as(&[
        (
            r#"{"path": "</arguments> and </use_mcp_tool>"}"#,
            r#"files.read {"path":"</arguments> and </use_mcp_tool>"}"#,
        ),
        (
            "{\"path\": \"raw\n</arguments>\n</use_mcp_tool>\n\"}",
            r#"files.read {"path":"raw\n</arguments>\n</use_mcp_tool>\n"}"#,
        ),
        (
            r#"{"path": "<use_mcp_tool>\n<server_name>x</server_name>"}"#,
            r#"files.read {"path":"<use_mcp_tool>\n<server_name>x</server_name>"}"#,
        ),
    ]);
}

#[test]
fn protocol_null_inside_a_string_or_code_is_untouched() {
    reads_as(&[(
        r#"{"path": "null", "code": "x = None  # null"}"#,
        r#"files.read {"path":"null","code":"x = None  # null"}"#,
    )]);
}

/// Each text is one call of that name that cannot be read, and why.
fn broken(table: &[(String, &str, &str)]) {
    for (text, name, why) in table {
        let (_, calls) = read(text);
        assert_eq!(calls.len(), 1, "{text}: {calls:?}");
        let (called, reason) = calls[0]
            .split_once(" ! ")
            .unwrap_or_else(|| panic!("{text}: {calls:?}"));
        assert_eq!(called, *name, "{text}");
        assert!(reason.contains(why), "{text}: {reason}");
    }
}

#[test]
fn protocol_python_literals_are_an_error_to_the_model() {
    broken(&[
        (block(r#"{"path": None}"#), "files.read", "write `null`"),
        (block(r#"{"path": True}"#), "files.read", "write `true`"),
        (block(r#"{"path": False}"#), "files.read", "write `false`"),
    ]);
}

#[test]
fn protocol_arguments_that_are_an_array_or_a_scalar_are_an_error_to_the_model() {
    broken(&[
        (block(r#"["a"]"#), "files.read", "not an array"),
        (block("3"), "files.read", "not a number"),
        (block("\"a\""), "files.read", "not a string"),
    ]);
}

#[test]
fn protocol_cut_off_inside_the_arguments_is_an_error_that_says_so() {
    let sound = block(r#"{"path": "a"}"#);
    let upto = |part: &str, more: usize| sound[..sound.find(part).unwrap() + more].to_owned();
    broken(&[
        (upto("{\"path", 0), "files.read", "cut off"),
        (upto("a\"}", 0), "files.read", "cut off"),
        (upto("\"}", 1), "files.read", "cut off"),
        ("<use_mcp_tool>".into(), "use_mcp_tool", "cut off"),
        ("<use_mcp_tool>\n<server_name>files".into(), "use_mcp_tool", "cut off"),
        (
            "<use_mcp_tool>\n<server_name>files</server_name>".into(),
            "use_mcp_tool",
            "cut off",
        ),
    ]);
}

#[test]
fn protocol_a_missing_server_name_or_swapped_tags_are_an_error_to_the_model() {
    let sound = block(r#"{"path": "a"}"#);
    broken(&[
        (
            sound.replace("<server_name>files</server_name>\n", ""),
            "use_mcp_tool",
            "`<server_name>` must stand",
        ),
        (sound.replace("files", " "), "use_mcp_tool", "`<server_name>` is empty"),
        (
            sound.replace("<tool_name>read</tool_name>\n", ""),
            "use_mcp_tool",
            "`<tool_name>` must stand",
        ),
        (
            sound
                .replace("server_name", "x")
                .replace("tool_name", "server_name")
                .replace("<x>", "<tool_name>")
                .replace("</x>", "</tool_name>"),
            "use_mcp_tool",
            "`<server_name>` must stand",
        ),
        (
            sound.replace("</server_name>", "</tool_name>"),
            "use_mcp_tool",
            "`</server_name>` must stand",
        ),
    ]);
}

#[test]
fn b99_a_malformed_call_is_never_a_final_answer() {
    let sound = block(r#"{"path": "a"}"#);
    broken(&[
        (block("path = a"), "files.read", "not JSON"),
        (
            block(r#"{"path": "a"}, "mode": "r"}"#),
            "files.read",
            "something follows",
        ),
        (block(r#"{"path": "C:\new\dir"}"#), "files.read", "unclear whether"),
        (block("{\"path\": \"a}"), "files.read", "has no end"),
        (
            sound.replace("<arguments>", ""),
            "files.read",
            "`<arguments>` must stand",
        ),
        (
            "<use_mcp_tool>\nfiles.read\n</use_mcp_tool>".into(),
            "use_mcp_tool",
            "`<server_name>` must stand",
        ),
        (
            "<use_mcp_tool></use_mcp_tool>".into(),
            "use_mcp_tool",
            "`<server_name>` must stand",
        ),
    ]);
}

#[test]
fn protocol_prose_or_a_code_block_that_mentions_the_tag_is_no_call() {
    for text in [
        "To call a tool I would write a <use_mcp_tool> block.",
        "It ends with </use_mcp_tool>.",
        "Blocks begin with <use_mcp_tool>",
        "Write <use_mcp_tool></use_mcp_tool> around it.",
        "Use `<use_mcp_tool><server_name>x</server_name>` for that.",
        "The tag `<use_mcp_tool>` and `<use_mcp_tool>\n` differ.",
        &format!("Like this:\n\n```xml\n{WORKER}\n```\n\nand so on."),
        &format!("Like this:\n\n~~~~\n{WORKER}\n~~~\n~~~~\nand so on."),
        &format!("```\n{WORKER}"),
        "a < b and <b>bold</b>",
        "",
    ] {
        let (prose, calls) = read(text);
        assert!(calls.is_empty(), "{text}: {calls:?}");
        assert_eq!(prose, text);
    }
    // Behind the code, calls count again.
    let (_, calls) = read(&format!("```\n{WORKER}\n```\n{}", block("{}")));
    assert_eq!(calls, ["files.read {}"]);
}

#[test]
fn b101_a_sound_call_beside_a_broken_one_runs() {
    let text = format!(
        "{}\n{}\n{}",
        block(r#"{"path": None}"#),
        block(r#"{"path": "b"}"#),
        block("{\"path\": \"c")
    );
    let (_, calls) = read(&text);
    assert!(calls[0].contains("write `null`"), "{calls:?}");
    assert_eq!(calls[1], r#"files.read {"path":"b"}"#);
    assert_eq!(calls[2], r#"files.read {"path":"c"}"#);
    // A broken string does not swallow the next block.
    let (_, calls) = read(&format!("{}\n{}", block(r#"{"path": "x}"#), block(r#"{"path": "b"}"#)));
    assert!(calls[0].contains("has no end"), "{calls:?}");
    assert_eq!(calls[1], r#"files.read {"path":"b"}"#);
    let cut = block("{\"path\": \"x").replace("\n</arguments>\n</use_mcp_tool>", "");
    let (_, calls) = read(&format!("{cut}\n{}", block(r#"{"path": "b"}"#)));
    assert!(calls[0].contains("cut off"), "{calls:?}");
    assert_eq!(calls[1], r#"files.read {"path":"b"}"#);
}

#[test]
fn b102_every_broken_call_is_reported() {
    let text = format!(
        "{0}\n{0} and\n<use_mcp_tool>\n<tool_name>x</tool_name>\n</use_mcp_tool>\nbye",
        block("[1]")
    );
    let (prose, calls) = read(&text);
    assert_eq!(calls.len(), 3, "{calls:?}");
    assert!(calls.iter().all(|call| call.contains(" ! ")), "{calls:?}");
    assert_eq!(prose, "and\n\nbye");
}

#[test]
fn what_is_broken_is_quoted() {
    let (answer, _) = servers().read(Answer {
        message: Assistant {
            text: block("{\"path\": None}"),
            ..Assistant::default()
        },
        finish: Finish::Stop,
        usage: Usage::default(),
        served: Served::default(),
    });
    assert_eq!(answer.finish, Finish::ToolCalls);
    let Arguments::Malformed { raw, .. } = &answer.message.calls[0].arguments else {
        panic!()
    };
    assert_eq!(raw, "{\"path\": None}");
}

proptest! {
    /// Wherever a text is split, what is shown is the beginning of its prose, and the blocks are the same.
    #[test]
    fn pieces_read_as_the_whole(
        parts in prop::collection::vec(prop_oneof![
            Just(block("{\"path\": \"a <b> `c`\"}")),
            Just(block("{\"path\": None}")),
            Just(WORKER.to_owned()),
            Just("<use_mcp_tool>".to_owned()),
            Just("</use_mcp_tool>\n".to_owned()),
            Just("\n```\n".to_owned()),
            Just("`".to_owned()),
            Just("<arguments>{".to_owned()),
            "[a-z <>\\n\u{e9}]{0,8}",
        ], 0..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let text: String = parts.concat();
        let mut whole = Parser::default();
        whole.push(&text);
        let whole = whole.finish();
        let mut places: Vec<usize> = cuts.iter().map(|cut| block::boundary(&text, cut.index(text.len() + 1))).collect();
        places.extend([0, text.len()]);
        places.sort_unstable();
        let mut parser = Parser::default();
        let mut shown = String::new();
        for pair in places.windows(2) {
            shown.push_str(&parser.push(&text[pair[0]..pair[1]]));
        }
        let pieces = parser.finish();
        prop_assert!(pieces.prose.starts_with(&shown), "{:?} does not start with {:?}", pieces.prose, shown);
        prop_assert_eq!(pieces, whole);
    }
}

#[test]
fn a_hundred_thousand_pieces_take_linear_time() {
    let mut parser = Parser::default();
    let long = block(&format!("{{\"path\": \"{}\"}}", "</use_mcp_tool> ".repeat(40_000)));
    for piece in long.as_bytes().chunks(8) {
        parser.push(std::str::from_utf8(piece).unwrap());
    }
    for _ in 0..100_000 {
        parser.push("word ");
    }
    assert_eq!(parser.finish().blocks.len(), 1);
    let tags = "<use_mcp_tool> ` ".repeat(60_000);
    assert!(read(&tags).1.is_empty());
}

fn request(tools: Vec<Declaration>, history: Vec<Message>) -> Request {
    Request {
        session: "main".parse().unwrap(),
        system: "Be brief.".into(),
        history: Arc::new(history),
        tools: tools.into(),
        generation: Generation::default(),
        parallel_tool_calls: None,
    }
}

#[test]
fn tools_and_history_become_text() {
    let call = ToolCall {
        id: "c1".into(),
        name: "agent-worker".into(),
        arguments: Arguments::Object(json!({"subtask": "x"}).as_object().unwrap().clone()),
    };
    let history = vec![
        Message::User {
            content: vec![Content::Text("go".into())],
        },
        Message::Assistant(Assistant {
            text: "I ask.".into(),
            calls: vec![call],
            ..Assistant::default()
        }),
        Message::Results {
            results: vec![CallResult {
                call: "c1".into(),
                name: "agent-worker".into(),
                content: vec![Content::Text("found".into())],
                is_error: false,
            }],
        },
    ];
    let asked = rewrite(&request(tools(), history));
    assert!(asked.tools.is_empty());
    insta::assert_snapshot!("system", asked.system);
    let texts: Vec<String> = asked
        .history
        .iter()
        .map(|message| match message {
            Message::User { content } => format!("user: {}", fief_core::message::to_text(content)),
            Message::Assistant(answer) => {
                assert!(answer.calls.is_empty());
                format!("assistant: {}", answer.text)
            }
            Message::Results { .. } => panic!("no results may be left"),
        })
        .collect();
    insta::assert_snapshot!("history", texts.join("\n\n"));
    let closing = rewrite(&request(Vec::new(), Vec::new()));
    assert_eq!(&*closing.system, "Be brief.");
}

#[tokio::test]
async fn a_watcher_sees_prose_only_and_the_calls_arrive() {
    let text = format!("Let me see.\n\n{WORKER}");
    let line = json!({"session": "main", "text": text}).to_string();
    let model = over(Script::from_text("x", &line).unwrap());
    let events: Vec<ModelEvent> = model.ask(request(tools(), Vec::new())).collect().await;
    let shown: String = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::Delta(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(shown, "Let me see.\n\n");
    let Some(ModelEvent::Done(answer)) = events.last() else {
        panic!("{events:?}")
    };
    assert_eq!(answer.message.text, "Let me see.");
    assert_eq!(answer.message.calls[0].name, "agent-worker");
    assert_eq!(answer.finish, Finish::ToolCalls);
}
