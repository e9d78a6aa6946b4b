#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

use std::sync::Arc;

use fief_core::manifest::archetype::Generation;
use fief_core::message::{
    Answer, Arguments, Assistant, Blob, CallResult, Content, Finish, Message, Reasoning, Request, ToolCall, Usage,
};
use serde_json::json;

use super::super::Progress;
use super::*;
use crate::fake;
use crate::names::Names;
use crate::sse::SseEvent;

/// Reads chunks, each the data of one event, and says how far the last one came.
fn read(chunks: &[Value]) -> Result<(Answer, Progress), Fault> {
    let mut reader: Box<dyn Reader> = Box::new(read::StreamReader::default());
    let mut progress = Progress::Open;
    for chunk in chunks {
        let data = chunk.as_str().map_or_else(|| chunk.to_string(), str::to_owned);
        progress = reader.take(&SseEvent { name: String::new(), data }, &mut String::new())?;
    }
    let names = Names::of(&fake::request().tools);
    Ok((reader.into_draft().into_answer(&names, None, Usage::default()), progress))
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// The calls of an answer, as `id name arguments` or `id name ! why`.
fn calls(answer: &Answer) -> Vec<String> {
    let show = |call: &ToolCall| match &call.arguments {
        Arguments::Object(map) => format!("{} {} {}", call.id, call.name, Value::Object(map.clone())),
        Arguments::Malformed { why, .. } => format!("{} {} ! {why}", call.id, call.name),
    };
    answer.message.calls.iter().map(show).collect()
}

fn piece(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: Value) -> Value {
    let mut call = json!({"function": {"arguments": arguments}});
    if let Some(index) = index {
        call["index"] = index.into();
    }
    if let Some(id) = id {
        call["id"] = id.into();
    }
    if let Some(name) = name {
        call["function"]["name"] = name.into();
    }
    delta(json!({"tool_calls": [call]}))
}

#[test]
fn calls_are_put_together_however_they_come() {
    let a = Some("a");
    let b = Some("b");
    let read_name = Some("files__read");
    let (r1, r2) = ("a files.read {\"path\":\"1\"}", "b files.read {\"path\":\"2\"}");
    for (what, chunks, expected) in [
        ("by the standard", vec![
            piece(Some(0), a, read_name, json!("")),
            piece(Some(0), None, None, json!("{\"path\": ")),
            piece(Some(1), b, read_name, json!("{\"path\"")),
            piece(Some(0), None, None, json!("\"1\"}")),
            piece(Some(1), None, None, json!(": \"2\"}")),
        ], vec![r1, r2]),
        ("without index", vec![
            piece(None, a, read_name, json!("{\"path\": ")),
            piece(None, None, None, json!("\"1\"}")),
            piece(None, b, read_name, json!("{\"path\": \"2\"}")),
        ], vec![r1, r2]),
        ("without index, by id", vec![
            piece(None, a, read_name, json!("{\"path\": ")),
            piece(None, b, read_name, json!("{\"path\": \"2\"}")),
            piece(None, a, None, json!("\"1\"}")),
        ], vec![r1, r2]),
        ("two under one index", vec![
            piece(Some(0), a, read_name, json!("{\"path\": \"1\"}")),
            piece(Some(0), b, read_name, json!("{\"path\": \"2\"}")),
        ], vec![r1, r2]),
        ("two under one index, in pieces", vec![
            piece(Some(0), a, read_name, json!("{\"path\": ")),
            piece(Some(0), None, None, json!("\"1\"}")),
            piece(Some(0), b, read_name, json!("{\"path\": ")),
            piece(Some(0), None, None, json!("\"2\"}")),
        ], vec![r1, r2]),
        ("id and name in every piece", vec![
            piece(Some(0), a, read_name, json!("{\"path\": ")),
            piece(Some(0), a, read_name, json!("\"1\"}")),
        ], vec![r1]),
        ("an empty id afterwards", vec![
            piece(Some(0), a, read_name, json!("{\"path\": ")),
            piece(Some(0), Some(""), Some(""), json!("\"1\"}")),
        ], vec![r1]),
        ("arguments as an object", vec![piece(Some(0), a, read_name, json!({"path": "1"}))], vec![r1]),
        ("the object twice", vec![
            piece(Some(0), a, read_name, json!({"path": "1"})),
            piece(Some(0), a, read_name, json!({"path": "1"})),
        ], vec![r1]),
        ("no arguments", vec![piece(Some(0), a, Some("agent-worker"), json!(null))], vec!["a agent-worker {}"]),
        ("an unknown name", vec![piece(Some(0), a, Some("rm"), json!("{}"))], vec!["a rm {}"]),
        ("the dotted name", vec![piece(Some(0), a, Some("files.read"), json!("{}"))], vec!["a files.read {}"]),
        ("a call that is no list", vec![delta(json!({"tool_calls":
            {"id": "a", "function": {"name": "files__read", "arguments": "{\"path\":\"1\"}"}}}))], vec![r1]),
        ("name and arguments beside the function", vec![delta(json!({"tool_calls":
            [{"index": 0, "id": "a", "name": "files__read", "arguments": "{\"path\":\"1\"}"}]}))], vec![r1]),
    ] {
        for reason in ["tool_calls", "stop", "function_call"] {
            let mut chunks = chunks.clone();
            chunks.push(end(reason));
            let (answer, _) = read(&chunks).unwrap();
            assert_eq!(calls(&answer), expected, "{what}");
            assert_eq!(answer.finish, Finish::ToolCalls, "{what}");
        }
    }
}

#[test]
fn missing_and_repeated_ids_become_unique() {
    for chunks in [
        vec![
            piece(Some(0), None, Some("files__read"), json!("{\"path\":\"1\"}")),
            piece(Some(1), None, Some("files__read"), json!("{\"path\":\"2\"}")),
        ],
        vec![
            piece(Some(0), Some("x"), Some("files__read"), json!("{\"path\":\"1\"}")),
            piece(Some(1), Some("x"), Some("files__read"), json!("{\"path\":\"2\"}")),
        ],
        // Neither index nor id: the name begins a call. With one index and no id, whole arguments end it.
        vec![
            piece(None, None, Some("files__read"), json!("{\"path\":\"1\"}")),
            piece(None, None, Some("files__read"), json!("{\"path\":\"2\"}")),
        ],
        vec![
            piece(Some(0), Some(""), Some("files__read"), json!("{\"path\":\"1\"}")),
            piece(Some(0), Some(""), Some("files__read"), json!("{\"path\":\"2\"}")),
        ],
    ] {
        let (answer, _) = read(&[chunks, vec![end("tool_calls")]].concat()).unwrap();
        let [first, second] = answer.message.calls.as_slice() else { panic!("{answer:?}") };
        assert_ne!(first.id, second.id);
        assert!(!first.id.is_empty() && !second.id.is_empty());
        assert_eq!(first.arguments.to_value(), json!({"path": "1"}));
        assert_eq!(second.arguments.to_value(), json!({"path": "2"}));
    }
}

#[test]
fn arguments_that_are_no_object_are_kept_and_never_guessed() {
    for (arguments, part) in [
        (json!("{\"path\": "), "breaks off"),
        (json!("[1]"), "not an array"),
        (json!(["a"]), "not an array"),
        (json!(5), "not a number"),
        (json!("{'path': 1}"), "not JSON"),
        (json!("{\"path\": \"1\"}{\"path\": \"2\"}"), "not JSON"),
    ] {
        let (answer, _) = read(&[piece(Some(0), Some("a"), Some("files__read"), arguments), end("stop")]).unwrap();
        assert!(calls(&answer)[0].contains(part), "{:?}", calls(&answer));
    }
    let cut = [piece(Some(0), Some("a"), Some("files__read"), json!("")), end("length")];
    let (answer, _) = read(&cut).unwrap();
    assert_eq!(answer.finish, Finish::Length);
    assert!(calls(&answer)[0].contains("the output limit cut the call"), "{:?}", calls(&answer));
}

#[test]
fn odd_chunks_are_read() {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 18,
        "completion_tokens_details": {"reasoning_tokens": 7}, "prompt_cache_hit_tokens": 4}});
    for (what, chunks, text, finish, progress) in [
        ("null content", vec![delta(json!({"role": "assistant", "content": null})), delta(json!({"content": "a"})),
            end("stop")], "a", Finish::Stop, Progress::Whole),
        ("an unknown role", vec![delta(json!({"role": "narrator", "content": "a"})), end("stop")], "a", Finish::Stop,
            Progress::Whole),
        ("no delta", vec![json!({"choices": [{"index": 0}]}), delta(json!({"content": "a"})), end("stop")], "a",
            Finish::Stop, Progress::Whole),
        ("no finish but the end", vec![delta(json!({"content": "a"})), json!("[DONE]")], "a", Finish::Stop,
            Progress::Over),
        ("the end twice", vec![delta(json!({"content": "a"})), end("stop"), json!("[DONE]"), json!("[DONE]")], "a",
            Finish::Stop, Progress::Over),
        ("neither", vec![delta(json!({"content": "a"}))], "a", Finish::Stop, Progress::Open),
        ("an empty reason", vec![json!({"choices": [{"delta": {"content": "a"}, "finish_reason": ""}]})], "a",
            Finish::Stop, Progress::Open),
        ("a second choice", vec![json!({"choices": [{"index": 1, "delta": {"content": "b"}},
            {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]})], "a", Finish::Stop, Progress::Whole),
        ("a message for a delta", vec![json!({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]})],
            "a", Finish::Stop, Progress::Whole),
        ("parts", vec![delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
            {"type": "text", "text": "a"}, "b"]})), end("stop")], "ab", Finish::Stop, Progress::Whole),
        ("thoughts in the text", vec![delta(json!({"content": "<think>h"})), delta(json!({"content": "m</think>\n\na"})),
            end("stop")], "a", Finish::Stop, Progress::Whole),
        ("a refusal", vec![delta(json!({"refusal": "I will"})), delta(json!({"refusal": " not"})), end("stop")],
            "I will not", Finish::Filter, Progress::Whole),
        ("length", vec![delta(json!({"content": "a"})), end("length")], "a", Finish::Length, Progress::Whole),
        ("a filter", vec![delta(json!({"content": "a"})), end("content_filter")], "a", Finish::Filter, Progress::Whole),
        ("a reason of tomorrow", vec![delta(json!({"content": "a"})), end("bored")], "a", Finish::Other,
            Progress::Whole),
        ("tool_calls without calls", vec![delta(json!({"content": "a"})), end("tool_calls")], "a", Finish::Stop,
            Progress::Whole),
        ("nulls everywhere", vec![delta(json!({"content": "a", "tool_calls": null, "function_call": null,
            "refusal": null, "reasoning": null, "reasoning_details": null})),
            json!({"choices": [{"index": null, "delta": null, "finish_reason": "stop", "error": null}], "error": null,
            "usage": null})], "a", Finish::Stop, Progress::Whole),
        ("usage and nothing else", vec![delta(json!({"content": "a"})), end("stop"), usage], "a", Finish::Stop,
            Progress::Whole),
    ] {
        let (answer, reached) = read(&chunks).unwrap_or_else(|fault| panic!("{what}: {fault:?}"));
        assert_eq!((answer.message.text.as_str(), answer.finish, reached), (text, finish, progress), "{what}");
        if what.starts_with("usage") {
            let usage = answer.usage;
            assert_eq!((usage.input_tokens, usage.output_tokens), (9, 9), "thoughts counted beside are added");
            assert_eq!((usage.cached_tokens, usage.reasoning_tokens), (4, 7));
        }
    }
}

#[test]
fn errors_in_the_middle_are_faults() {
    for chunk in [
        json!({"error": {"message": "gone", "code": 502}}),
        json!({"error": {"message": "gone"}, "choices": [{"delta": {"content": ""}, "finish_reason": "error"}]}),
        json!({"choices": [{"delta": {"content": ""}, "error": {"message": "gone", "code": 502}}]}),
        json!({"object": "error", "message": "gone", "code": 500}),
    ] {
        let fault = read(&[delta(json!({"content": "a"})), chunk]).unwrap_err();
        assert_eq!(fault.message, "gone");
    }
    for reason in ["error", "abort", "insufficient_system_resource"] {
        assert!(read(&[delta(json!({"content": "a"})), end(reason)]).unwrap_err().message.contains(reason));
    }
    assert!(read(&[json!("[DONE]")]).unwrap_err().message.contains("without an answer"));
    assert!(read(&[delta(json!({"tool_calls": "x"}))]).is_err());
}

fn history_with(reasoning: Vec<Reasoning>) -> Vec<Message> {
    let call = |id: &str, name: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: Arguments::Object(json!({"path": "a"}).as_object().unwrap().clone()),
    };
    let broken = ToolCall {
        arguments: Arguments::Malformed { raw: "{".into(), why: "cut".into() },
        ..call("c 2", "files.read")
    };
    let image = Content::Image(Blob { media_type: "image/png".into(), data: vec![1, 2, 3] });
    vec![
        Message::User { content: vec![Content::Text("look".into()), image.clone()] },
        Message::Assistant(Assistant { text: String::new(), reasoning, calls: vec![call("c1", "files.read"), broken] }),
        Message::Results {
            results: vec![
                CallResult {
                    call: "c1".into(),
                    name: "files.read".into(),
                    content: vec![Content::Text("seen".into()), image],
                    is_error: false,
                },
                CallResult {
                    call: "c 2".into(),
                    name: "files.read".into(),
                    content: vec![Content::Text("bad arguments".into())],
                    is_error: true,
                },
            ],
        },
    ]
}

fn body_of(base: &str, request: &Request, generation: Generation) -> Value {
    let format = ChatCompletions::new(&base.parse().unwrap());
    format.body(&Question { model: "m", request, generation, stream: true })
}

#[test]
fn a_history_is_written_as_servers_take_it() {
    let reasoning = read(&[
        delta(json!({"reasoning_content": "think ", "reasoning": "think "})),
        delta(json!({"reasoning_content": "hard"})),
        delta(json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "think "}]})),
        delta(json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "hard", "signature": "s"}]})),
        piece(Some(0), Some("c1"), Some("files__read"), json!("{}")),
        end("tool_calls"),
    ])
    .unwrap()
    .0
    .message
    .reasoning;
    assert_eq!(reasoning[0].text, "think hard");
    let mut request = fake::request();
    request.history = Arc::new(history_with(reasoning));
    request.parallel_tool_calls = Some(false);
    let generation = Generation {
        temperature: Some(0.5),
        max_output_tokens: Some(100),
        stop: Some(vec!["END".into()]),
        seed: Some(7),
        ..Generation::default()
    };
    let body = body_of("http://127.0.0.1:8080/v1", &request, generation.clone());
    insta::assert_snapshot!(serde_json::to_string_pretty(&body).unwrap());
    // Thoughts of an earlier exchange stay here.
    let mut history = history_with(vec![Reasoning {
        text: "x".into(),
        block: Some(json!({"openai": {"reasoning_content": "x"}})),
    }]);
    history.push(Message::User { content: vec![Content::Text("next".into())] });
    request.history = Arc::new(history);
    let body = body_of("https://api.openai.com/v1", &request, generation);
    assert_eq!(body["messages"][2].get("reasoning_content"), None);
    assert_eq!(body["max_completion_tokens"], 100);
    assert_eq!(body.get("max_tokens"), None);
}

#[test]
fn another_formats_thoughts_are_not_sent() {
    let mut request = fake::request();
    request.history = Arc::new(history_with(vec![Reasoning {
        text: "x".into(),
        block: Some(json!({"anthropic": {"type": "thinking", "thinking": "x", "signature": "s"}})),
    }]));
    assert!(!body_of("http://127.0.0.1/v1", &request, Generation::default()).to_string().contains("thinking"));
}

#[test]
fn a_long_description_goes_on_in_the_system_prompt_for_openai_only() {
    let mut request = fake::request();
    let mut tool = request.tools[0].clone();
    tool.description = format!("{}END", "é".repeat(2000));
    request.tools = [tool].into();
    let body = body_of("https://api.openai.com/v1", &request, Generation::default());
    let description = body["tools"][0]["function"]["description"].as_str().unwrap();
    assert_eq!(description.chars().count(), 1024);
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(system.starts_with("Be brief.") && system.ends_with("END"), "{system}");
    let joined = format!("{description}{system}").matches('é').count();
    assert_eq!(joined, 2000, "nothing is lost");
    let body = body_of("http://127.0.0.1:1/v1", &request, Generation::default());
    assert!(body["tools"][0]["function"]["description"].as_str().unwrap().ends_with("END"));
}

#[test]
fn neighbouring_user_messages_are_one() {
    let said = |text: &str| Message::User {
        content: vec![Content::Text(text.into())],
    };
    let image = Message::User {
        content: vec![Content::Image(Blob {
            media_type: "image/png".into(),
            data: vec![1],
        })],
    };
    let mut request = fake::request();
    request.history = Arc::new(vec![said("a"), said("b"), image, said("c")]);
    let body = body_of("http://127.0.0.1/v1", &request, Generation::default());
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2, "the system prompt and one message");
    let parts = messages[1]["content"].as_array().unwrap();
    assert_eq!(parts[0]["text"], "a\n\nb");
    assert_eq!((&parts[1]["type"], &parts[2]["text"]), (&json!("image_url"), &json!("c")));
}

#[test]
fn the_cache_is_marked_where_a_mark_helps() {
    let request = fake::request();
    for (base, model, marked) in [
        ("https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5", true),
        ("https://openrouter.ai/api/v1", "qwen/qwen3", false),
        ("https://openrouter.ai.example/v1", "anthropic/claude-sonnet-4.5", false),
        ("https://api.openai.com/v1", "gpt-5", false),
        ("http://127.0.0.1:8080/v1", "anthropic/claude-sonnet-4.5", false),
    ] {
        let format = ChatCompletions::new(&base.parse().unwrap());
        let generation = Generation::default();
        let body = format.body(&Question { model, request: &request, generation, stream: true });
        let expected = marked.then(|| json!({"type": "ephemeral"}));
        assert_eq!(body.get("cache_control"), expected.as_ref(), "{base} {model}");
    }
}

#[test]
fn every_reason_maps_to_the_closed_set() {
    for (reasons, finish) in [
        (&["stop", "eos", "eos_token", "end_turn", "stop_sequence", "STOP"][..], Finish::Stop),
        (&["length", "max_tokens", "model_length", "MAX_TOKENS"], Finish::Length),
        (&["content_filter", "safety", "recitation", "SAFETY", "RECITATION"], Finish::Filter),
        (&["tomorrow", "pause", "unknown"], Finish::Other),
    ] {
        for reason in reasons {
            let (answer, _) = read(&[delta(json!({"content": "a"})), end(reason)]).unwrap();
            assert_eq!(answer.finish, finish, "{reason}");
        }
    }
    for reason in ["tool_calls", "tool_use", "function_call", "stop", "tomorrow"] {
        let call = piece(Some(0), Some("a"), Some("files__read"), json!("{}"));
        assert_eq!(read(&[call, end(reason)]).unwrap().0.finish, Finish::ToolCalls, "{reason}");
    }
}

#[test]
fn tokens_are_counted_wherever_a_server_puts_them() {
    for (usage, expected) in [
        (json!({"prompt_tokens": 9, "completion_tokens": 2}), (9, 2, 0, 0)),
        (json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 1}, "total_tokens": 11}), (9, 2, 4, 1)),
        (json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}), (9, 2, 4, 0)),
        (json!({"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 4}), (9, 2, 4, 0)),
        (json!({"input_tokens": 9, "output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 1}}), (9, 2, 0, 1)),
        (json!({"prompt_tokens": 9, "completion_tokens": 0, "prompt_tokens_details": null}), (9, 0, 0, 0)),
    ] {
        let told = |place: Value| {
            let usage = read(&[delta(json!({"content": "a"})), place]).unwrap().0.usage;
            (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens)
        };
        assert_eq!(told(json!({"choices": [], "usage": usage})), expected, "{usage}");
        let inside = json!({"choices": [{"delta": {}, "finish_reason": "stop", "usage": usage}]});
        assert_eq!(told(inside), expected, "{usage}");
    }
}

#[test]
fn addresses_are_completed() {
    for (base, expected) in [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/chat/completions"),
        ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1/chat/completions"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"),
        ("https://x.openai.azure.com/openai/deployments/d?api-version=1",
            "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1"),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
    ] {
        let base: Url = base.parse().unwrap();
        assert_eq!(ChatCompletions::new(&base).endpoint(&base).as_str(), expected);
    }
    let azure = ChatCompletions::new(&"https://x.openai.azure.com/openai/v1".parse().unwrap());
    let mut headers = HeaderMap::new();
    azure.headers(Some(&"k".into()), &mut headers);
    assert_eq!((headers["api-key"].to_str().unwrap(), headers["authorization"].to_str().unwrap()), ("k", "Bearer k"));
    assert!(!format!("{headers:?}").contains("Bearer"), "keys are not printed");
}

#[tokio::test]
async fn what_a_server_does_not_know_is_left_out() {
    use crate::fake::{Act, Fake, error, stream, whole};
    let refuse = |message: &str| vec![Act::Send(error("400 Bad Request", &json!({"error": {"message": message}})))];
    let sound = || vec![Act::Send(stream("data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\n"))];
    let fake = Fake::start(vec![
        refuse("Unrecognized request argument: stream_options"),
        refuse("parallel_tool_calls is not supported"),
        refuse("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        sound(),
        sound(),
    ])
    .await;
    let mut config = fake::config("openai", &fake.origin);
    config.generation.max_output_tokens = Some(5);
    let model = crate::client("local", &config, None, &fake::options()).unwrap();
    let mut request = fake::request();
    request.parallel_tool_calls = Some(true);
    for _ in 0..2 {
        let asked = fake::ask(&*model, request.clone()).await;
        assert_eq!(asked.outcome.unwrap().message.text, "ok");
    }
    let received = fake.received();
    assert_eq!(received.len(), 5, "what was learnt is kept");
    let last = &received[4].body;
    for gone in ["stream_options", "parallel_tool_calls", "max_tokens"] {
        assert!(received[0].body.get(gone).is_some() && last.get(gone).is_none(), "{gone}");
    }
    assert_eq!(last["max_completion_tokens"], 5);
    // What a person configured is never left out, and a server that refuses everything is not asked for ever.
    let fake = Fake::answering(whole(&json!({"error": {"message": "'temperature' is unsupported", "code": 400}}))).await;
    let asked = fake::ask_at("openai", &fake).await;
    assert!(asked.outcome.unwrap_err().message.contains("temperature"));
    assert_eq!(fake.received().len(), 1);
}
