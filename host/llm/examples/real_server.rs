//! Asks a real server what the clients rely on, and prints what it found: `real_server BASE_URL [MODEL]`.
//!
//! `checks/llama-server` runs it against llama.cpp. The exit code is 1 if anything is not as it must be.

#![allow(clippy::print_stdout)]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use fief_core::id::SessionId;
use fief_core::manifest::archetype::Generation;
use fief_core::manifest::config::ModelConfig;
use fief_core::message::{Answer, Arguments, Content, Message, Request};
use fief_core::port::{ModelError, ModelErrorKind, ModelEvent};
use fief_core::tool::Declaration;
use fief_llm::{ClientOptions, client, probe};
use futures::StreamExt as _;
use serde_json::json;

/// What one question brought: its end, and the text that a watcher saw.
struct Asked {
    outcome: Result<Answer, ModelError>,
    shown: String,
    deltas: usize,
}

async fn ask(config: &ModelConfig, request: Request) -> Asked {
    let model = client("real", config, None, &ClientOptions::default()).expect("the configuration is right");
    let mut events = model.ask(request);
    let (mut shown, mut deltas) = (String::new(), 0);
    while let Some(event) = events.next().await {
        match event {
            ModelEvent::Delta(text) => {
                deltas += 1;
                shown.push_str(&text);
            }
            ModelEvent::Retry { error, .. } => {
                shown.clear();
                println!("  retry: {error}");
            }
            ModelEvent::Spent(usage) => println!("  spent: {usage:?}"),
            ModelEvent::Done(answer) => {
                return Asked {
                    outcome: Ok(answer),
                    shown,
                    deltas,
                };
            }
            ModelEvent::Failed(error) => {
                return Asked {
                    outcome: Err(error),
                    shown,
                    deltas,
                };
            }
        }
    }
    panic!("the stream ended without an end");
}

fn request(task: &str, tools: Vec<Declaration>) -> Request {
    Request {
        session: SessionId::main(),
        system: "You are a helpful assistant.".into(),
        history: Arc::new(vec![Message::User {
            content: vec![Content::Text(task.into())],
        }]),
        tools: tools.into(),
        generation: Generation {
            max_output_tokens: Some(32),
            temperature: Some(0.0),
            seed: Some(7),
            ..Generation::default()
        },
        parallel_tool_calls: None,
    }
}

fn weather() -> Declaration {
    Declaration {
        name: "weather.today".into(),
        description: "Tells today's weather in a city.".into(),
        input_schema: Arc::new(json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "pattern": "^(?!x).*$", "maxLength": 100_000},
                "unit": {"enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city"],
        })),
    }
}

struct Checks {
    failed: usize,
}

impl Checks {
    fn check(&mut self, what: &str, sound: bool, found: &str) {
        println!("{} {what}: {found}", if sound { "ok  " } else { "FAIL" });
        self.failed += usize::from(!sound);
    }

    /// An answer whose text is what the watcher saw, and that the server counted.
    fn answer(&mut self, what: &str, asked: &Asked) {
        match &asked.outcome {
            Ok(answer) => {
                let found = format!(
                    "{:?}, {} deltas, {} calls, {} tokens in, {} out: {:?}",
                    answer.finish,
                    asked.deltas,
                    answer.message.calls.len(),
                    answer.usage.input_tokens,
                    answer.usage.output_tokens,
                    answer.message.text
                );
                let shown = asked.shown.trim() == answer.message.text.trim();
                self.check(what, shown && answer.usage.input_tokens > 0, &found);
                for call in &answer.message.calls {
                    let known = call.name == "weather.today";
                    let arguments = match &call.arguments {
                        Arguments::Object(_) => call.arguments.to_value().to_string(),
                        Arguments::Malformed { raw, why } => format!("{why}: {raw:?}"),
                    };
                    println!(
                        "     call {} `{}`{}: {arguments}",
                        call.id,
                        call.name,
                        if known { "" } else { " (unknown)" }
                    );
                }
            }
            Err(error) => self.check(what, false, &format!("{:?}: {error}", error.kind)),
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let base_url = arguments
        .next()
        .expect("the first argument is the server's base address");
    let config = ModelConfig {
        provider: "openai".into(),
        model: arguments.next().unwrap_or_else(|| "any".into()),
        base_url: Some(base_url.clone()),
        ..ModelConfig::default()
    };
    let whole = ModelConfig {
        stream: Some(false),
        ..config.clone()
    };
    let text = ModelConfig {
        native_tools: Some(false),
        ..config.clone()
    };
    let mut checks = Checks { failed: 0 };

    match probe("real", &config, None, &ClientOptions::default()).await {
        Ok(found) => {
            let sound = found.streamed && found.usage.is_some() && found.tools == Some(true);
            checks.check("probe", sound, &format!("{found:?} {:?}", found.findings()));
        }
        Err(error) => checks.check("probe", false, &error.to_string()),
    }
    let story = "Write one sentence about a crab, with an emoji.";
    let streamed = ask(&config, request(story, Vec::new())).await;
    checks.answer("streamed", &streamed);
    let at_once = ask(&whole, request(story, Vec::new())).await;
    checks.answer("whole", &at_once);
    if let (Ok(one), Ok(other)) = (&streamed.outcome, &at_once.outcome) {
        checks.check(
            "both are the same",
            one.message.text == other.message.text,
            "by one seed at temperature 0",
        );
    }
    let task = "What is the weather in Rome? Use the tool.";
    checks.answer("tools, streamed", &ask(&config, request(task, vec![weather()])).await);
    checks.answer("tools, whole", &ask(&whole, request(task, vec![weather()])).await);
    checks.answer("text protocol", &ask(&text, request(task, vec![weather()])).await);

    let long = "The quick brown fox jumps over the lazy dog. ".repeat(20_000);
    for (what, config) in [("overflow, streamed", &config), ("overflow, whole", &whole)] {
        match ask(config, request(&long, Vec::new())).await.outcome {
            Err(error) => checks.check(what, error.kind == ModelErrorKind::ContextOverflow, &error.to_string()),
            Ok(_) => checks.check(what, false, "the server answered"),
        }
    }
    let lost = ModelConfig {
        base_url: Some(format!("{base_url}/nowhere")),
        ..config.clone()
    };
    match ask(&lost, request(story, Vec::new())).await.outcome {
        Err(error) => checks.check(
            "a wrong address",
            error.kind == ModelErrorKind::Refused,
            &error.to_string(),
        ),
        Ok(_) => checks.check("a wrong address", false, "the server answered"),
    }
    let model = client("real", &config, None, &ClientOptions::default()).expect("the configuration is right");
    let mut dropped = model.ask(request("Count from 1 to 1000.", Vec::new()));
    let first = dropped.next().await;
    let started = Instant::now();
    drop(dropped);
    let again = ask(&config, request("Say yes.", Vec::new())).await;
    let found = format!("{first:?}, and the next answer took {:?}", started.elapsed());
    checks.check("a dropped question", again.outcome.is_ok(), &found);

    println!("{} failed", checks.failed);
    ExitCode::from(u8::from(checks.failed > 0))
}
