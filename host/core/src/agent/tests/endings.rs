//! How a task ends.

use super::*;
use crate::manifest::config::Prices;

const CALL_A: &[&str] = &["call a files.read {\"path\":\"a\"}"];

fn turns(most: u32) -> Arc<AgentSpec> {
    spec(|spec| spec.bounds.max_turns = Some(most))
}

fn finish(run: &Run) -> (Status, &str) {
    let report = run.report.as_ref().unwrap();
    (report.status, &report.text)
}

#[test]
fn b66_finishing_on_the_last_allowed_turn_is_success() {
    let mut run = Run::begin(&turns(2));
    run.check([
        (calls(vec![read("a")]), CALL_A),
        (ended("a", "A"), &["result a ok: A", "turn 2", "ask"]),
        (says("done"), &["finish done: done"]),
    ]);
}

/// An agent whose one turn ends with a call, then asks for its summary.
fn at_the_turn_limit() -> Run {
    let mut run = Run::begin(&turns(1));
    run.check([
        (calls(vec![read("a")]), CALL_A),
        (
            ended("a", "A"),
            &[
                "result a ok: A",
                "warning the limit of 1 turns is reached: asking for a closing summary",
                "turn 2",
                "ask closing",
            ],
        ),
    ]);
    run
}

#[test]
fn b67_the_limit_with_calls_pending_is_turn_limit_and_leaves_no_call_without_a_result() {
    let mut run = at_the_turn_limit();
    assert_eq!(
        run.history()[1..3],
        ["assistant:  [a files.read {\"path\":\"a\"}]", "results: a=A"],
        "the closing request sees the last results"
    );
    run.feed(says("found A"));
    assert_eq!(finish(&run).0, Status::TurnLimit);
}

#[test]
fn b70_at_a_limit_one_more_answer_without_tools_is_asked_for_of_the_main_agent_too() {
    let run = at_the_turn_limit();
    assert_eq!(run.agent().spec().depth, 0);
    assert!(run.request.as_ref().unwrap().tools.is_empty());
    assert!(run.history()[3].starts_with("user: [from the host, not from the user] You cannot go on"));
    let child = Start {
        session: Some(SessionId::new("explore_1").unwrap()),
        call: Some("c".into()),
        task: "T".into(),
        ..Start::default()
    };
    let (mut run, _) = Run::new(&turns(1), child);
    run.feed(calls(vec![read("a")]));
    assert_eq!(run.feed(ended("a", "A")).last().unwrap(), "ask closing");
}

#[test]
fn b71_a_report_at_a_limit_is_told_apart_from_a_normal_success() {
    let mut run = at_the_turn_limit();
    run.check([(
        says("found A"),
        &["finish turn-limit: [not finished: the limit of 1 turns is reached]\n\nfound A"],
    )]);
    let session = SessionId::new("explore_1").unwrap();
    let framed = |status| {
        Report {
            status,
            ..run.report.clone().unwrap()
        }
        .framed(&session)
    };
    assert!(
        framed(Status::TurnLimit).starts_with("<report session=\"explore_1\" status=\"turn-limit\" finished=\"no\"")
    );
    assert!(!framed(Status::Done).contains("finished=\"no\""));
}

#[test]
fn b68_partial_text_is_kept_with_the_note() {
    let mut run = Run::begin(&turns(1));
    run.feed(Input::Answered(answer("so far", vec![call("a", "nope", json!({}))])));
    run.feed(says(" "));
    assert_eq!(
        finish(&run),
        (
            Status::TurnLimit,
            "[not finished: the limit of 1 turns is reached]\n\nso far"
        )
    );
}

#[test]
fn b85_a_failure_on_closing_does_not_change_the_result() {
    for kind in [
        ModelErrorKind::Unavailable,
        ModelErrorKind::Refused,
        ModelErrorKind::ContextOverflow,
    ] {
        let mut run = Run::begin(&turns(1));
        run.feed(Input::Answered(answer("so far", vec![call("a", "nope", json!({}))])));
        if kind == ModelErrorKind::ContextOverflow {
            // The one pair is dropped and it is tried again.
            assert!(run.feed(fails(kind)).contains(&"ask closing".to_owned()));
        }
        run.feed(fails(kind));
        let (status, text) = finish(&run);
        assert_eq!(status, Status::TurnLimit);
        assert!(
            text.starts_with("[not finished: the limit of 1 turns is reached"),
            "{text}"
        );
        assert!(text.ends_with("\n\nso far"), "{text}");
        assert_eq!(run.report.unwrap().failure, None);
    }
}

#[test]
fn never_a_limit_of_10_turns_that_runs_72() {
    let mut run = Run::begin(&turns(10));
    let mut asked = 1;
    for turn in 0..72 {
        run.feed(calls(vec![read(&format!("c{turn}"))]));
        run.feed(ended(&format!("c{turn}"), "x"));
        asked += usize::from(run.request.is_some());
    }
    assert_eq!(asked, 11, "ten turns and the closing request");
    assert_eq!(finish(&run).0, Status::TurnLimit);
}

#[test]
fn b69_no_turn_limit_means_none() {
    let mut run = Run::begin(&spec(|_| {}));
    for turn in 0..500 {
        run.feed(calls(vec![read(&format!("c{turn}"))]));
        run.feed(ended(&format!("c{turn}"), "x"));
    }
    assert_eq!(run.feed(says("end")), ["finish done: end"]);
}

#[test]
fn a_closing_answer_that_calls_tools_gets_results_and_runs_nothing() {
    let mut run = Run::begin(&turns(1));
    run.feed(calls(vec![call("a", "nope", json!({}))]));
    run.check([(
        Input::Answered(answer("summary", vec![read("b")])),
        &[
            "result b limit: not run: the closing answer may make no calls",
            "finish turn-limit: [not finished: the limit of 1 turns is reached]\n\nsummary",
        ],
    )]);
    assert!(run.history().last().unwrap().starts_with("results: b=not run"));
}

#[test]
fn b76_a_length_stop_is_its_own_status() {
    let mut run = Run::begin(&spec(|_| {}));
    let mut cut = answer("half a sent", Vec::new());
    cut.finish = Finish::Length;
    run.feed(Input::Answered(cut));
    assert_eq!(
        finish(&run),
        (
            Status::Length,
            "[not finished: the model's output limit cut the answer]\n\nhalf a sent"
        )
    );
}

/// An agent whose model fails after a turn with text, and its history just before.
fn after_a_failure(kind: ModelErrorKind) -> (Run, Vec<String>) {
    let mut run = Run::begin(&spec(|_| {}));
    run.feed(Input::Answered(answer("looking", vec![call("a", "nope", json!({}))])));
    let before = run.history();
    run.feed(fails(kind));
    (run, before)
}

const OUTAGES: [ModelErrorKind; 3] = [
    ModelErrorKind::Unavailable,
    ModelErrorKind::Refused,
    ModelErrorKind::Script,
];

#[test]
fn b77_an_outage_never_drops_history() {
    for kind in OUTAGES {
        let (run, before) = after_a_failure(kind);
        assert_eq!(run.history(), before);
    }
}

#[test]
fn b80_a_providers_error_is_an_error_never_an_empty_success() {
    for kind in OUTAGES {
        let (run, _) = after_a_failure(kind);
        assert_eq!(
            finish(&run),
            (
                Status::Failed,
                "[not finished: the model failed: the server says no]\n\nlooking"
            )
        );
        assert_eq!(run.report.unwrap().failure.unwrap().kind, kind);
    }
    let mut run = Run::begin(&spec(|_| {}));
    run.feed(fails(ModelErrorKind::Unavailable));
    assert_eq!(
        finish(&run),
        (Status::Failed, "[not finished: the model failed: the server says no]")
    );
}

#[test]
fn b77_only_an_overflow_drops_the_oldest_pairs_and_the_report_counts_them() {
    let mut run = Run::begin(&spec(|_| {}));
    for turn in 0..8 {
        run.feed(calls(vec![read(&format!("c{turn}"))]));
        run.feed(ended(&format!("c{turn}"), "x"));
    }
    let overflow = || fails(ModelErrorKind::ContextOverflow);
    run.check([
        (
            overflow(),
            &[
                "warning the 2 oldest tool calls were dropped…",
                "warning the history outgrew the model's context: asking for a closing summary",
                "turn 10",
                "ask closing",
            ] as &[_],
        ),
        (
            overflow(),
            &["warning the 2 oldest tool calls were dropped…", "ask closing"],
        ),
    ]);
    let history = run.history();
    assert_eq!(history[0], "user: T", "the task stays");
    assert!(history[1].contains("[c4 "), "the oldest went: {history:?}");
    run.feed(says("summary"));
    let (status, text) = finish(&run);
    assert_eq!(status, Status::ContextLimit);
    assert!(
        text.contains("the 4 oldest tool calls and their results were dropped"),
        "{text}"
    );
    assert!(text.ends_with("\n\nsummary"));
}

#[test]
fn a_task_that_never_fits_ends_as_context_limit() {
    let mut run = Run::begin(&spec(|_| {}));
    run.feed(fails(ModelErrorKind::ContextOverflow));
    run.feed(fails(ModelErrorKind::ContextOverflow));
    assert_eq!(finish(&run).0, Status::ContextLimit);
}

#[test]
fn a_history_known_not_to_fit_is_not_sent() {
    let start = Start {
        task: "T".into(),
        context: Some(2_000),
        ..Start::default()
    };
    let (mut run, _) = Run::new(&spec(|_| {}), start);
    run.feed(calls(vec![read("a")]));
    let lines = run.feed(ended("a", &"x".repeat(40_000)));
    assert_eq!(
        lines[1],
        "warning the history outgrew the model's context: asking for a closing summary"
    );
    assert_eq!(lines.last().unwrap(), "ask closing");
    assert_eq!(
        run.history().len(),
        2,
        "the oversized pair is gone: {:?}",
        run.history()
    );
}

/// What an answer with thoughts, and this text, comes to.
fn thinking(text: &str) -> Run {
    let mut run = Run::begin(&spec(|_| {}));
    let mut thoughts = answer(text, Vec::new());
    thoughts.message.reasoning = vec![crate::message::Reasoning {
        text: "secretly".into(),
        block: None,
    }];
    run.feed(Input::Answered(thoughts));
    run
}

#[test]
fn b81_an_empty_answer_or_thoughts_alone_have_a_status_of_their_own() {
    for text in ["", " \n\t "] {
        let empty = (Status::Empty, "[not finished: the last answer held no text]");
        assert_eq!(finish(&thinking(text)), empty);
        let mut run = Run::begin(&spec(|_| {}));
        run.feed(says(text));
        assert_eq!(finish(&run), empty);
    }
}

#[test]
fn b82_thoughts_are_left_out_of_the_report() {
    assert_eq!(finish(&thinking("the answer")), (Status::Done, "the answer"));
    for text in ["", "the answer"] {
        let run = thinking(text);
        assert!(!run.report.as_ref().unwrap().text.contains("secretly"));
        let shown = format!("{:?}", run.events);
        assert!(
            !shown.contains("secretly"),
            "nor does a watcher see them as text: {shown}"
        );
    }
}

#[test]
fn b83_an_empty_trailing_answer_falls_back_to_the_last_with_text() {
    let mut run = Run::begin(&spec(|_| {}));
    run.feed(Input::Answered(answer(
        "the answer is 4",
        vec![call("a", "nope", json!({}))],
    )));
    run.feed(says(""));
    assert_eq!(
        finish(&run),
        (
            Status::Empty,
            "[not finished: the last answer held no text]\n\nthe answer is 4"
        )
    );
}

#[test]
fn b72_at_the_deadline_what_runs_is_stopped_and_a_summary_is_asked_for() {
    let mut run = Run::begin(&spec(|_| {}));
    run.check([
        (
            calls(vec![read("a"), read("b")]),
            &[CALL_A[0], "call b files.read {\"path\":\"a\"}"] as &[_],
        ),
        (ended("a", "A"), &["result a ok: A"]),
        (
            Input::Deadline,
            &[
                "stop",
                "result b limit: the agent's time ran out before this call ended",
                "warning the time is used up: asking for a closing summary",
                "turn 2",
                "ask closing",
            ],
        ),
        (ended("b", "late"), &[]),
        (
            Input::Deadline,
            &["stop", "finish budget: [not finished: the time is used up]"],
        ),
        (Input::Deadline, &[]),
    ]);
    let mut run = Run::begin(&spec(|_| {}));
    run.check([
        (
            Input::Deadline,
            &[
                "stop",
                "warning the time is used up: asking for a closing summary",
                "turn 2",
                "ask closing",
            ] as &[_],
        ),
        (
            says("so far"),
            &["finish budget: [not finished: the time is used up]\n\nso far"],
        ),
    ]);
}

/// An agent that is cancelled with one of two calls still running.
fn cancelled() -> Run {
    let mut run = Run::begin(&spec(|_| {}));
    run.check([
        (
            Input::Answered(answer("looking", vec![read("a"), read("b")])),
            &[CALL_A[0], "call b files.read {\"path\":\"a\"}"] as &[_],
        ),
        (ended("a", "A"), &["result a ok: A"]),
        (
            Input::Cancel,
            &[
                "stop",
                "result b cancelled: the run was cancelled before this call ended",
                "finish cancelled: [not finished: it was cancelled]\n\nlooking",
            ],
        ),
    ]);
    run
}

#[test]
fn b90_cancellation_stops_everything_at_once_and_keeps_what_finished() {
    assert_eq!(
        cancelled().history()[2],
        "results: a=A | b=the run was cancelled before this call ended",
    );
    let mut run = Run::begin(&turns(1));
    run.check([(
        Input::Cancel,
        &["stop", "finish cancelled: [not finished: it was cancelled]"],
    )]);
    run.check([(Input::NewTask("U".into()), &["run_started", "turn 1", "ask"])]);
}

#[test]
fn b91_cancelled_is_neither_error_nor_success() {
    let report = cancelled().report.unwrap();
    assert_eq!(report.status, Status::Cancelled);
    assert_eq!(report.failure, None);
}

#[test]
fn b92_cancelled_is_never_retried() {
    let mut run = cancelled();
    for late in [
        Input::Cancel,
        fails(ModelErrorKind::Unavailable),
        says("late"),
        ended("b", "late"),
        Input::Deadline,
    ] {
        run.check([(late, &[] as &[_])]);
    }
}

#[test]
fn a_model_is_asked_only_if_the_budget_holds_it_and_the_closing_request() {
    let spec = spec(|spec| {
        spec.bounds.tokens = Some(10_000);
        spec.summary_instruction = Some("Short.".into());
    });
    let mut run = Run::begin(&spec);
    let first = run.request.as_ref().unwrap().generation.max_output_tokens.unwrap();
    assert!((1..=8_192).contains(&first), "the output is capped: {first}");
    let mut spent = answer("half", vec![call("a", "nope", json!({}))]);
    spent.usage = usage(4_000, 1_000);
    let lines = run.feed(Input::Answered(spent));
    assert_eq!(
        lines[1],
        "warning the budget of 10000 tokens leaves no room for another turn and the closing summary: asking for a \
         closing summary"
    );
    let closing = run.request.as_ref().unwrap().generation.max_output_tokens.unwrap();
    assert!(closing <= 1_000, "no more than what is left: {closing}");
    run.feed(says("summary"));
    assert_eq!(finish(&run).0, Status::Budget);
}

#[test]
fn what_a_broken_attempt_cost_is_spent_and_says_nothing_of_the_historys_size() {
    let spec = spec(|spec| spec.bounds.tokens = Some(10_000));
    let mut run = Run::begin(&spec);
    assert!(run.feed(Input::Spent(usage(6_000, 200))).is_empty());
    // Were it taken for the size of the history, nothing would be left for another turn.
    let lines = run.feed(Input::Answered(answer("half", vec![call("a", "nope", json!({}))])));
    assert_eq!(lines.last().unwrap(), "ask");
    let left = run.request.as_ref().unwrap().generation.max_output_tokens.unwrap();
    assert!(left < 3_000, "3,785 are left, 1,024 are kept back: {left}");
    run.feed(says("done"));
    let report = run.report.as_ref().unwrap();
    assert_eq!((report.usage.tokens(), report.own_usage.tokens()), (6_230, 6_230));
}

#[test]
fn a_budget_that_does_not_even_hold_the_summary_ends_without() {
    let (run, lines) = Run::new(
        &spec(|spec| spec.bounds.tokens = Some(50)),
        Start {
            task: "T".into(),
            ..Start::default()
        },
    );
    assert!(lines.last().unwrap().starts_with("finish budget: "), "{lines:?}");
    assert!(run.request.is_none());
}

#[test]
fn money_is_a_budget_too() {
    let prices = Prices {
        input: 1.0,
        cached: None,
        output: 10.0,
    };
    let start = || Start {
        task: "T".into(),
        prices: Some(prices),
        ..Start::default()
    };
    let (run, lines) = Run::new(&spec(|spec| spec.bounds.cost = Some(0.05)), start());
    assert_eq!(lines.last().unwrap(), "ask");
    let output = run.request.unwrap().generation.max_output_tokens.unwrap();
    assert!(
        (3_000..5_000).contains(&output),
        "0.05 buys 5,000 tokens, 1,024 are kept back: {output}"
    );
    let (_, lines) = Run::new(&spec(|spec| spec.bounds.cost = Some(0.000_1)), start());
    assert!(lines.last().unwrap().starts_with("finish budget: "), "{lines:?}");
}

#[test]
fn a_summary_that_is_always_wanted_is_asked_for_after_a_normal_end() {
    let spec = spec(|spec| {
        spec.summary = Summary::Always;
        spec.summary_instruction = Some("In one line.".into());
        spec.bounds.max_turns = Some(1);
    });
    let mut run = Run::begin(&spec);
    run.check([
        (says("long"), &["turn 2", "ask closing"] as &[_]),
        (says("short"), &["finish done: short"]),
    ]);
    assert!(run.history()[2].ends_with("In one line."));
    for nothing in [says(" "), fails(ModelErrorKind::Unavailable)] {
        let mut run = Run::begin(&spec);
        run.feed(says("long"));
        assert_eq!(
            run.feed(nothing),
            ["finish done: long"],
            "the answer stands without its summary"
        );
    }
}

#[test]
fn a_report_that_does_not_fit_its_schema_is_sent_back_once() {
    let spec = spec(|spec| {
        spec.report_schema = Some(Arc::new(json!({
            "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
        })));
    });
    let mut run = Run::begin(&spec);
    run.check([(says("```json\n{\"n\": 1}\n```"), &["finish done: {\"n\": 1}"])]);
    assert!(
        run.history()[0].contains("\"required\":[\"n\"]"),
        "the schema is part of the task"
    );
    let mut run = Run::begin(&spec);
    run.check([
        (says("n is 1"), &["turn 2", "ask closing"] as &[_]),
        (says("{\"n\": 1}"), &["finish done: {\"n\": 1}"]),
    ]);
    assert!(run.history()[2].contains("it is not JSON"));
    let mut run = Run::begin(&spec);
    run.check([
        (says("{\"n\": \"1\"}"), &["turn 2", "ask closing"] as &[_]),
        (
            says("{\"n\": \"1\"}"),
            &["finish failed: [not finished: the report does not fit its schema: …"],
        ),
    ]);
}

#[test]
fn an_answer_that_the_providers_filter_stopped_is_a_failure() {
    let mut run = Run::begin(&spec(|_| {}));
    let mut stopped = answer("I", Vec::new());
    stopped.finish = Finish::Filter;
    run.feed(Input::Answered(stopped));
    assert_eq!(finish(&run).0, Status::Failed);
    assert_eq!(run.report.unwrap().failure.unwrap().kind, ModelErrorKind::Refused);
}
