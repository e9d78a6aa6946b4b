//! Turns and tool calls.

use super::*;

const TURN_2: &[&str] = &["turn 2", "ask"];

#[test]
fn a_task_is_asked_called_and_answered() {
    let mut run = Run::begin(&spec(|_| {}));
    run.check([
        (calls(vec![read("a")]), &["call a files.read {\"path\":\"a\"}"] as &[_]),
        (ended("a", "text"), &["result a ok: text", "turn 2", "ask"]),
        (says("it says text"), &["finish done: it says text"]),
    ]);
    assert_eq!(
        run.history(),
        [
            "user: T",
            "assistant:  [a files.read {\"path\":\"a\"}]",
            "results: a=text",
            "assistant: it says text"
        ]
    );
    assert_eq!(
        run.recorded.iter().map(line).collect::<Vec<_>>(),
        run.history(),
        "the record holds every message"
    );
    let report = run.report.unwrap();
    assert_eq!(report.usage, usage(20, 10));
    assert_eq!(report.own_usage, report.usage);
}

#[test]
fn b86_one_result_per_call_in_call_order_whatever_ends_first_or_twice() {
    let mut run = Run::begin(&spec(|_| {}));
    run.check([
        (
            calls(vec![read("a"), read("b")]),
            &[
                "call a files.read {\"path\":\"a\"}",
                "call b files.read {\"path\":\"a\"}",
            ] as &[_],
        ),
        (ended("b", "B"), &["result b ok: B"]),
        (ended("b", "again"), &[]),
        (ended("x", "never asked for"), &[]),
        (ended("a", "A"), &["result a ok: A", "turn 2", "ask"]),
    ]);
    assert_eq!(run.history()[2], "results: a=A | b=B");
}

#[test]
fn without_parallel_calls_one_runs_after_the_other() {
    let mut run = Run::begin(&spec(|spec| spec.parallel_tool_calls = Some(false)));
    assert_eq!(run.request.as_ref().unwrap().parallel_tool_calls, Some(false));
    run.check([
        (
            calls(vec![read("a"), call("b", "nope", json!({})), read("c")]),
            &["result b denied: `nope` may not…", "call a files.read {\"path\":\"a\"}"] as &[_],
        ),
        (
            ended("a", "A"),
            &["result a ok: A", "call c files.read {\"path\":\"a\"}"],
        ),
        (ended("c", "C"), &["result c ok: C", "turn 2", "ask"]),
    ]);
    assert!(run.history()[2].starts_with("results: a=A | b=`nope`"));
}

#[test]
fn b48_a_call_of_what_is_not_granted_is_refused_and_told_what_may_be_called() {
    let mut run = Run::begin(&spec(|_| {}));
    run.check([(
        calls(vec![call("a", "files.writ", json!({"path": "a"}))]),
        &[
            "result a denied: `files.writ` may not be called by this agent\nit may call `files.write`, `files.read`",
            "turn 2",
            "ask",
        ],
    )]);
}

#[test]
fn b47_a_spawn_tool_that_is_not_declared_is_refused_as_any_other() {
    let mut run = Run::begin(&spec(|_| {}));
    let all = vec![
        spawn("a", "explore"),
        call("b", "agent-worker", json!({"subtask": "x"})),
        call("c", "dynamic_subagent", json!({"instruction": "x", "prompt": "x"})),
    ];
    run.check([(
        calls(all),
        &[
            "result a denied: …",
            "result b denied: …",
            "result c denied: …",
            "turn 2",
            "ask",
        ],
    )]);
    assert!(run.spawned.is_empty());
}

#[test]
fn b100_malformed_arguments_are_quoted_never_executed_and_never_sent_back() {
    let mut run = Run::begin(&spec(|_| {}));
    run.check([(
        calls(vec![call("a", "files.read", json!("{\"path\": \"a\"")), read("b")]),
        &[
            "result a tool-error: not run: the call cannot be read: expected `}`\nit was: {\"path\": \"a\"",
            "call b files.read {\"path\":\"a\"}",
        ],
    )]);
    assert_eq!(
        run.history()[1],
        "assistant:  [a files.read {}] [b files.read {\"path\":\"a\"}]"
    );
    let EventKind::ModelMessage { tool_calls, .. } = &run.events[2] else {
        panic!("{:?}", run.events);
    };
    assert_eq!(
        tool_calls[0].arguments,
        json!("{\"path\": \"a\""),
        "a watcher sees what the model wrote"
    );
}

#[test]
fn bad_arguments_are_refused_with_what_the_schema_says() {
    let mut run = Run::begin(&spec(|_| {}));
    let lines = run.feed(calls(vec![call("a", "files.read", json!({"path": 3}))]));
    assert!(lines[0].starts_with("result a tool-error: not run: "), "{lines:?}");
    assert!(
        lines[0].contains("`/path`") && lines[0].contains("\"type\":\"string\""),
        "{lines:?}"
    );
    assert_eq!(lines[1..], *TURN_2);
}

#[test]
fn b74_calls_over_the_cap_are_not_run_and_say_so() {
    let mut run = Run::begin(&spec(|spec| spec.bounds.max_tool_calls_per_turn = Some(1)));
    run.check([
        (
            calls(vec![read("a"), read("b")]),
            &[
                "result b limit: not run: one answer may make 1 calls…",
                "call a files.read {\"path\":\"a\"}",
            ] as &[_],
        ),
        (ended("a", "A"), &["result a ok: A", "turn 2", "ask"]),
    ]);
}

#[test]
fn call_ids_are_made_unique() {
    let mut run = Run::begin(&spec(|_| {}));
    run.check([
        (
            calls(vec![read("a"), read("a"), read("")]),
            &[
                "call a files.read {\"path\":\"a\"}",
                "call a_2 files.read {\"path\":\"a\"}",
                "call call_3 files.read {\"path\":\"a\"}",
            ] as &[_],
        ),
        (ended("a", ""), &["result a ok: "]),
        (ended("a_2", ""), &["result a_2 ok: "]),
        (ended("call_3", ""), &["result call_3 ok: ", "turn 2", "ask"]),
        (calls(vec![read("a")]), &["call a_4 files.read {\"path\":\"a\"}"]),
    ]);
}

#[test]
fn b75_old_results_are_blanked_and_the_task_and_the_pairing_stay() {
    let mut run = Run::begin(&spec(|spec| spec.bounds.keep_tool_results = Some(2)));
    for turn in 0..3 {
        let ids = [format!("x{turn}"), format!("y{turn}")];
        run.feed(calls(ids.iter().map(|id| read(id)).collect()));
        for id in &ids {
            run.feed(ended(id, &format!("R{id}")));
        }
    }
    run.feed(calls(vec![read("z")]));
    run.feed(ended("z", "Rz"));
    let history = run.history();
    let blank = "[this result is no longer kept]";
    assert_eq!(history[0], "user: T");
    assert_eq!(history[2], format!("results: x0={blank} | y0={blank}"));
    assert_eq!(history[4], format!("results: x1={blank} | y1={blank}"));
    assert_eq!(history[6], format!("results: x2={blank} | y2=Ry2"));
    assert_eq!(history[8], "results: z=Rz");
    assert_eq!(
        line(&run.recorded[2]),
        "results: x0=Rx0 | y0=Ry0",
        "the record keeps them"
    );
}

#[test]
fn results_that_no_model_has_seen_are_never_blanked() {
    let mut run = Run::begin(&spec(|spec| spec.bounds.keep_tool_results = Some(0)));
    run.feed(calls(vec![read("a"), read("b")]));
    run.feed(ended("a", "A"));
    run.feed(ended("b", "B"));
    assert_eq!(run.history()[2], "results: a=A | b=B");
    run.feed(calls(vec![read("c")]));
    run.feed(ended("c", "C"));
    assert_eq!(run.history()[2].matches("no longer kept").count(), 2);
}

#[test]
fn b84_a_tool_failure_is_the_agents_own_to_handle() {
    let mut run = Run::begin(&spec(|_| {}));
    let failed = Input::CallFinished {
        call: "a".into(),
        outcome: Outcome::refused(OutcomeKind::Trap, "it crashed"),
        ms: 3,
    };
    run.check([
        (calls(vec![read("a")]), &["call a files.read {\"path\":\"a\"}"] as &[_]),
        (failed, &["result a trap: it crashed", "turn 2", "ask"]),
        (says("it could not be read"), &["finish done: it could not be read"]),
    ]);
}

#[test]
fn the_history_is_appended_in_place() {
    let mut run = Run::begin(&spec(|_| {}));
    let mut moved = 0;
    let mut at = run.agent().history().as_ptr();
    for turn in 0..200 {
        let id = format!("c{turn}");
        run.feed(calls(vec![read(&id)]));
        run.feed(ended(&id, "x"));
        let now = run.agent().history().as_ptr();
        moved += usize::from(now != at);
        at = now;
    }
    assert!(
        moved < 15,
        "a vector of 400 messages grows some ten times, it was copied {moved} times"
    );
}

#[test]
fn a_conversation_goes_on_in_the_same_history() {
    let mut run = Run::begin(&spec(|spec| spec.bounds.max_turns = Some(1)));
    run.check([
        (says("first"), &["finish done: first"] as &[_]),
        (says("late"), &[]),
        (ended("a", "late"), &[]),
        (Input::NewTask("U".into()), &["run_started", "turn 1", "ask"]),
        (Input::NewTask("V".into()), &["warning a task is already running…"]),
        (says("second"), &["finish done: second"]),
    ]);
    assert_eq!(
        run.history(),
        ["user: T", "assistant: first", "user: U", "assistant: second"]
    );
    assert_eq!(
        run.report.unwrap().usage,
        usage(20, 10),
        "the account is the conversation's"
    );
}

#[test]
fn a_history_that_breaks_off_after_calls_is_mended() {
    let earlier = Arc::new(vec![
        Message::User {
            content: vec![crate::message::Content::Text("old".into())],
        },
        Message::Assistant(Assistant {
            calls: vec![read("a")],
            ..Assistant::default()
        }),
    ]);
    let (run, lines) = Run::new(
        &spec(|_| {}),
        Start {
            task: "T".into(),
            history: earlier,
            ..Start::default()
        },
    );
    assert_eq!(
        lines[1],
        "result a cancelled: the run was interrupted before this call ended"
    );
    assert_eq!(
        run.history()[2..],
        ["results: a=the run was interrupted before this call ended", "user: T"]
    );
    assert_eq!(run.recorded.len(), 2, "what is already recorded is not recorded again");
}
