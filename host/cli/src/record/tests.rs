#![allow(clippy::unwrap_used)]

use std::io::Write as _;

use fief_core::event::EventKind;
use fief_core::message::{Content, Message};

use super::*;

fn info(run: &str) -> RunInfo {
    RunInfo {
        run: run.into(),
        task: "look".into(),
        ..RunInfo::default()
    }
}

fn event(seq: u64) -> Event {
    Event {
        kind: EventKind::Warning {
            message: format!("number {seq}"),
        },
        run: "r1".into(),
        session: SessionId::main(),
        parent: None,
        depth: 0,
        seq,
        time: clock::now(),
        forwarded: None,
    }
}

fn user(text: &str) -> Message {
    Message::User {
        content: vec![Content::Text(text.into())],
    }
}

#[test]
fn what_was_written_is_read_back() {
    let runs = tempfile::tempdir().unwrap();
    let record = Record::open(runs.path(), info("r1")).unwrap();
    for seq in 1..=3 {
        record.event(&event(seq)).unwrap();
    }
    let child = SessionId::child("explore", 7);
    record.session_start(&child, json!({ "system": "be brief" })).unwrap();
    record.message(&child, json!(user("find it"))).unwrap();
    record.session_end(&child, json!({ "status": "done" })).unwrap();
    record.message(&SessionId::main(), json!(user("look"))).unwrap();
    record.finish(Status::Done, Usage::default()).unwrap();

    let past = find(runs.path(), "r1").unwrap();
    assert_eq!(past.info.status, Some(Status::Done));
    assert_eq!(
        past.events().unwrap(),
        (1..=3)
            .map(|seq| Event {
                time: past.events().unwrap()[seq as usize - 1].time.clone(),
                ..event(seq)
            })
            .collect::<Vec<_>>()
    );
    assert_eq!(past.history(&child).unwrap(), [user("find it")]);
    assert_eq!(past.children().unwrap(), 7);
    let text = std::fs::read_to_string(past.folder.join("sessions/explore_7.jsonl")).unwrap();
    let numbers: Vec<u64> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["n"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 2, 3]);
}

#[test]
fn a_killed_process_leaves_all_up_to_its_last_event() {
    let runs = tempfile::tempdir().unwrap();
    let record = Record::open(runs.path(), info("r1")).unwrap();
    record.event(&event(1)).unwrap();
    // What a kill in the middle of a write leaves behind: a line without an end.
    private::append(&record.folder().join("events.jsonl"))
        .unwrap()
        .write_all(b"{\"event\":\"wa")
        .unwrap();
    std::mem::forget(record);
    let past = find(runs.path(), "last").unwrap();
    assert_eq!(past.info.status, None);
    assert_eq!(past.events().unwrap().len(), 1);
}

#[test]
fn a_later_task_goes_on_with_the_numbers() {
    let runs = tempfile::tempdir().unwrap();
    for task in ["one", "two"] {
        let record = Record::open(runs.path(), info("r1")).unwrap();
        record.message(&SessionId::main(), json!(user(task))).unwrap();
    }
    let past = find(runs.path(), "r").unwrap();
    assert_eq!(past.history(&SessionId::main()).unwrap(), [user("one"), user("two")]);
    let text = std::fs::read_to_string(past.folder.join("sessions/main.jsonl")).unwrap();
    assert!(text.lines().nth(1).unwrap().starts_with("{\"n\":2,"), "{text}");
}

#[test]
fn an_unknown_or_ambiguous_run_is_named() {
    let runs = tempfile::tempdir().unwrap();
    Record::open(runs.path(), info("ab1")).unwrap();
    Record::open(runs.path(), info("ab2")).unwrap();
    assert!(
        find(runs.path(), "x")
            .unwrap_err()
            .to_string()
            .starts_with("there is no run `x` in ")
    );
    assert_eq!(
        find(runs.path(), "ab").unwrap_err().to_string(),
        "`ab` is the start of more than one run: ab2, ab1"
    );
    let damaged = runs.path().join("ab1/events.jsonl");
    std::fs::write(&damaged, "{}\nnot json\n").unwrap();
    let error = find(runs.path(), "ab1").unwrap().events().unwrap_err();
    assert!(error.to_string().contains("events.jsonl, line "), "{error}");
}

#[cfg(unix)]
#[test]
fn a_record_is_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let runs = tempfile::tempdir().unwrap();
    let record = Record::open(runs.path(), info("r1")).unwrap();
    record.message(&SessionId::main(), json!(user("hi"))).unwrap();
    let mode = |path: &str| {
        std::fs::metadata(record.folder().join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!((mode(""), mode("sessions")), (0o700, 0o700));
    assert_eq!(
        (mode("run.json"), mode("events.jsonl"), mode("sessions/main.jsonl")),
        (0o600, 0o600, 0o600)
    );
}
