#![allow(clippy::unwrap_used)]

use fief_core::manifest::archetype::Generation;
use fief_core::message::Content;
use futures::StreamExt as _;

use super::*;

fn request(session: &str, history: Vec<Message>) -> Request {
    Request {
        session: session.parse().unwrap(),
        system: "be brief".into(),
        history: Arc::new(history),
        tools: Arc::new([]),
        generation: Generation::default(),
        parallel_tool_calls: None,
    }
}

fn user(text: &str) -> Message {
    Message::User {
        content: vec![Content::Text(text.into())],
    }
}

async fn ask(model: &dyn Model, request: Request) -> Result<Answer, ModelError> {
    let events: Vec<ModelEvent> = model.ask(request).collect().await;
    match events.into_iter().next_back().unwrap() {
        ModelEvent::Done(answer) => Ok(answer),
        ModelEvent::Failed(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

/// The history after an answer and results for all its calls.
fn answered(mut history: Vec<Message>, answer: &Answer, text: &str) -> Vec<Message> {
    history.push(Message::Assistant(answer.message.clone()));
    let results = answer.message.calls.iter().map(|call| CallResult {
        call: call.id.clone(),
        name: call.name.clone(),
        content: vec![Content::Text(text.into())],
        is_error: false,
    });
    history.push(Message::Results {
        results: results.collect(),
    });
    history
}

const TWO: &str = r#"{"session": "main", "calls": [{"tool": "files.read", "arguments": {"path": "a"}}, {"tool": "clock.now"}]}

{"session": "explore_1", "text": "first"}
{"session": "main", "expect": ["milk", "milk"], "text": "done", "usage": {"input_tokens": 7, "output_tokens": 2}}
{"session": "explore", "text": "any"}
"#;

#[tokio::test]
async fn each_session_reads_its_own_lines_in_order() {
    let model = Script::parse("demo.jsonl", TWO).unwrap();
    let first = ask(&model, request("main", vec![user("go")])).await.unwrap();
    assert_eq!(first.finish, Finish::ToolCalls);
    assert_eq!(first.message.calls[0].name, "files.read");
    assert_eq!(first.message.calls[0].id, "call_1");
    assert_eq!(first.message.calls[1].id, "call_2");
    assert_eq!(
        first.message.calls[1].arguments,
        Arguments::Object(serde_json::Map::new())
    );
    for (session, text) in [("explore_1", "first"), ("explore_2", "any"), ("explore_3", "any")] {
        let answer = ask(&model, request(session, vec![user("go")])).await.unwrap();
        assert_eq!(answer.message.text, text);
        assert_eq!(answer.finish, Finish::Stop);
    }
    assert_eq!(model.unread(), ["demo.jsonl:4"]);
    let history = answered(vec![user("go")], &first, "buy milk");
    let second = ask(&model, request("main", history)).await.unwrap();
    assert_eq!((second.usage.input_tokens, second.usage.output_tokens), (7, 2));
    assert!(model.unread().is_empty());
}

#[tokio::test]
async fn what_does_not_fit_the_recording_fails_the_run() {
    let model = Script::from_text("demo.jsonl", TWO).unwrap();
    let go = || vec![user("go")];
    let error = ask(&*model, request("plan_1", go())).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Script);
    assert_eq!(
        error.message,
        "demo.jsonl: session `plan_1`: has no line; there are lines for `explore`, `explore_1`, `main`"
    );

    let first = ask(&*model, request("main", go())).await.unwrap();
    let mut lacking = answered(go(), &first, "milk");
    if let Some(Message::Results { results }) = lacking.last_mut() {
        results.pop();
    }
    let error = ask(&*model, request("main", lacking)).await.unwrap_err();
    assert_eq!(
        error.message,
        "demo.jsonl:4: session `main`: the call `call_2` of `clock.now` has no result"
    );

    let error = ask(&*model, request("main", answered(go(), &first, "eggs")))
        .await
        .unwrap_err();
    assert!(
        error
            .message
            .starts_with("demo.jsonl:4: session `main`: expected `milk`"),
        "{error}"
    );
    assert!(error.message.contains("`eggs\neggs`"), "{error}");

    ask(&*model, request("main", answered(go(), &first, "milk")))
        .await
        .unwrap();
    let error = ask(&*model, request("main", answered(go(), &first, "milk")))
        .await
        .unwrap_err();
    assert_eq!(
        error.message,
        "demo.jsonl: session `main`: has had all its 2 lines and asks once more"
    );
    assert_eq!(error.kind, ModelErrorKind::Script);
}

#[tokio::test]
async fn an_expectation_is_met_by_the_newest_part_only() {
    let model = Script::from_text(
        "x",
        r#"{"session":"main","text":"a"}
        {"session":"main","expect":"go","text":"b"}"#,
    )
    .unwrap();
    let answer = ask(&*model, request("main", vec![user("go")])).await.unwrap();
    let history = vec![user("go"), Message::Assistant(answer.message), user("on")];
    assert!(ask(&*model, request("main", history)).await.is_err());
}

#[tokio::test]
async fn absent_texts_errors_delays_and_raw_arguments() {
    let text = r#"{"session":"main","absent":["secret","be brief"],"text":"a"}"#;
    let model = Script::from_text("x", text).unwrap();
    let error = ask(&*model, request("main", vec![user("go")])).await.unwrap_err();
    assert!(error.message.contains("`be brief` must not occur"), "{error}");

    let text = r#"{"session":"main","error":{"kind":"overflow","message":"too long"},"delay_ms":1}
        {"session":"main","calls":[{"tool":"a.b","arguments":"{\"x\": ","id":"k"}],"finish":"length"}"#;
    let model = Script::from_text("x", text).unwrap();
    let error = ask(&*model, request("main", vec![user("go")])).await.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ModelErrorKind::ContextOverflow, "too long")
    );
    let answer = ask(&*model, request("main", vec![user("go")])).await.unwrap();
    assert_eq!(answer.finish, Finish::Length);
    assert_eq!(answer.message.calls[0].id, "k");
    assert!(matches!(&answer.message.calls[0].arguments, Arguments::Malformed { raw, .. } if raw == "{\"x\": "));
}

#[test]
fn a_bad_file_is_refused_by_line() {
    for (text, expected) in [
        ("", "f: holds no line"),
        ("\n{\"session\": \"main\", \"txt\": 1}", "f:2: unknown field `txt`"),
        ("{\"text\": \"a\"}", "f:1: missing field `session`"),
        ("{\"session\": \"a b\"}", "f:1: `a b` is not a session"),
        (
            "{\"session\": \"main\", \"calls\": [{\"tool\": \"\"}]}",
            "f:1: `tool` is empty",
        ),
        (
            "{\"session\": \"main\", \"calls\": [{\"tool\": \"a.b\", \"arguments\": [1]}]}",
            "f:1: `arguments` of `a.b`",
        ),
        (
            "{\"session\": \"main\", \"expect\": 3}",
            "f:1: must be a text or a list of texts",
        ),
        (
            "{\"session\": \"main\", \"text\": \"a\", \"error\": {\"kind\": \"refused\", \"message\": \"\"}}",
            "f:1: `error` stands",
        ),
        ("{\"session\": \"main\"", "f:1: EOF"),
        (
            "{\"session\": \"main\", \"finish\": \"done\"}",
            "f:1: unknown variant `done`",
        ),
    ] {
        let error = Script::parse("f", text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    let error = Script::read(Path::new("/nowhere/x.jsonl")).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read the recorded model `/nowhere/x.jsonl`: "),
        "{error}"
    );
}

#[tokio::test]
async fn results_without_their_calls_are_refused() {
    let model = Script::from_text("x", r#"{"session":"main","text":"a"}"#).unwrap();
    let orphan = Message::Results {
        results: vec![CallResult {
            call: "c".into(),
            name: "a.b".into(),
            content: vec![],
            is_error: false,
        }],
    };
    let error = ask(&*model, request("main", vec![user("go"), orphan]))
        .await
        .unwrap_err();
    assert!(error.message.contains("without their calls"), "{error}");
}

#[test]
#[cfg(unix)]
fn what_never_ends_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo.jsonl");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let link = directory.path().join("link.jsonl");
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    for path in [fifo.as_path(), Path::new("/dev/zero"), &link, directory.path()] {
        let error = Script::read(path).unwrap_err().to_string();
        let expected = format!("the recorded model `{}` is not a regular file", path.display());
        assert_eq!(error, expected);
    }
}

#[test]
fn a_file_beyond_the_cap_is_refused_by_the_cap() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large.jsonl");
    // Blank lines are skipped: it is the size alone that is wrong.
    let line = "{\"session\": \"main\", \"text\": \"a\"}\n";
    let blank = usize::try_from(LARGEST).unwrap() - line.len();
    std::fs::write(&path, format!("{line}{}", "\n".repeat(blank))).unwrap();
    assert!(Script::read(&path).is_ok());
    std::fs::write(&path, format!("{line}{}", "\n".repeat(blank + 1))).unwrap();
    let error = Script::read(&path).unwrap_err().to_string();
    assert!(
        error.ends_with("large.jsonl` is larger than 64 MiB, the most that is read"),
        "{error}"
    );
}
