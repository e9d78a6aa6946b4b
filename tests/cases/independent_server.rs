//! A whole run against a model server that nobody here wrote.

use serde_json::{Value, json};

use super::support::binary::{Finished, Workplace};
use super::support::llmock::Llmock;
use super::support::plugins;

#[test]
fn a_task_with_a_child_completes_against_an_independent_server() {
    let Some(server) = Llmock::start("a_task_with_a_child_completes_against_an_independent_server") else {
        return;
    };
    server.script(json!([
        { "type": "reply", "tool_calls": [{ "name": "spawn_subagent", "arguments": {
            "subagent_type": "explore", "prompt": "Where is the harbour mentioned?" } }] },
        { "type": "reply", "tool_calls": [{ "name": "files__grep", "arguments": { "pattern": "harbour" } }] },
        { "type": "reply", "text": "harbour is in notes.txt, line 2" },
        { "type": "reply", "text": "The harbour is mentioned in notes.txt, on line 2." },
    ]));
    let place = Workplace::new();
    place.write("notes.txt", "sea\nharbour\n");
    let config = place.home().join("config/fief/fief.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[agents]\nbuiltin = [\"default\", \"explore\"]\n").unwrap();

    let mut command = place.fief(["run", "--json", "--model", "openai:mock-1", "--plugins"]);
    command.arg(plugins::directory()).arg("Find the harbour.");
    command
        .env("OPENAI_BASE_URL", server.base_url())
        .env("OPENAI_API_KEY", "sk-test-0123456789abcdef");
    let finished = Finished::of(command).expect_code(0);
    assert!(
        !finished.stdout.contains("sk-test-0123456789abcdef"),
        "the key is in the events"
    );

    let events = finished.lines();
    let kind = |event: &Value| event["event"].as_str().unwrap().to_owned();
    let sequence: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(
        sequence,
        (1..=events.len() as u64).collect::<Vec<_>>(),
        "sequence numbers have gaps"
    );
    assert_eq!(kind(&events[0]), "run_started");

    let child: Vec<&Value> = events.iter().filter(|event| event["session"] == "explore_1").collect();
    assert_eq!(kind(child[0]), "agent_started");
    assert_eq!(child[0]["parent"], "main");
    assert_eq!(child[0]["depth"], 1);
    let grep = child
        .iter()
        .find(|event| kind(event) == "tool_finished")
        .expect("the child's call ends");
    assert_eq!(grep["tool"], "files.grep");
    assert_eq!(grep["outcome"], "ok");
    assert!(grep["content"].as_str().unwrap().contains("notes.txt"), "{grep}");
    assert!(child.iter().all(|event| event["event"] == "agent_started"
        || event["event"] == "agent_finished"
        || event["tool_progress"] == true));

    let last = events.last().unwrap();
    assert_eq!(kind(last), "run_finished");
    assert_eq!(last["status"], "done");
    assert_eq!(last["report"], "The harbour is mentioned in notes.txt, on line 2.");
    let total: u64 = events
        .iter()
        .filter(|event| kind(event) == "model_message")
        .map(|event| event["usage"]["input_tokens"].as_u64().unwrap())
        .sum();
    assert!(total > 0, "the server counts tokens");
    assert_eq!(
        last["usage"]["input_tokens"].as_u64().unwrap(),
        total,
        "the tree's usage is the sum of its messages"
    );
    assert!(last["own_usage"]["input_tokens"].as_u64().unwrap() < total);
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_refused_key_is_exit_3_with_the_servers_own_words() {
    let Some(server) = Llmock::start("a_refused_key_is_exit_3_with_the_servers_own_words") else {
        return;
    };
    server.script(json!([{ "type": "fail", "status": 401, "message": "this key opens no door", "times": 4 }]));
    let place = Workplace::new();
    let mut command = place.fief(["run", "--model", "openai:mock-1", "Say hello."]);
    command
        .env("OPENAI_BASE_URL", server.base_url())
        .env("OPENAI_API_KEY", "sk-test-0123456789abcdef");
    let finished = Finished::of(command).expect_code(3);
    // A run that ended has its reason as its report, said once.
    let all = format!("{}{}", finished.stdout, finished.stderr);
    assert_eq!(all.matches("this key opens no door").count(), 1, "{all}");
    assert!(finished.stdout.contains("this key opens no door"), "{all}");
    assert!(!all.contains("sk-test-0123456789abcdef"), "{all}");
    assert_eq!(server.requests().len(), 1, "a refusal is not retried");
}
