#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::fake::{Act, Fake, ask, config, error, options, request, stream};

fn message(config: &ModelConfig, key: Option<&str>) -> String {
    match client("local", config, key.map(SecretString::from), &options()) {
        Ok(_) => panic!("{config:?} was taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_bad_configuration_is_refused_with_what_is_right() {
    let with = |change: &dyn Fn(&mut ModelConfig)| {
        let mut config = config("openai", "http://127.0.0.1:1/v1");
        change(&mut config);
        config
    };
    for (config, expected) in [
        (
            with(&|c| c.provider = "gemini".into()),
            "model `local`: `provider = \"gemini\"`: must be one of `anthropic`, `openai`, `script`",
        ),
        (with(&|c| c.model = " ".into()), "model `local`: `model` is missing"),
        (
            with(&|c| c.base_url = Some("127.0.0.1:1".into())),
            "`127.0.0.1:1` is not an address",
        ),
        (
            with(&|c| c.base_url = Some("ftp://h/v1".into())),
            "must start with `https://` or `http://`",
        ),
        (
            with(&|c| c.base_url = Some("http://u:p@h/v1".into())),
            "must not hold credentials",
        ),
        (
            with(&|c| drop(c.headers.insert("a b".into(), "x".into()))),
            "`headers`: `a b` is not a header's name",
        ),
        (
            with(&|c| drop(c.headers.insert("host".into(), "x".into()))),
            "`host` is the host's own to set",
        ),
        (
            with(&|c| drop(c.headers.insert("x".into(), "a\nb".into()))),
            "`x` has a value that no header can carry",
        ),
        (
            with(&|c| c.base_url = None),
            "the variable `OPENAI_API_KEY` is not set: it must hold the key of https://api.openai.com",
        ),
    ] {
        let message = message(&config, None);
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("u:p"), "{message}");
    }
}

#[test]
fn a_key_is_for_its_own_origin() {
    for (provider, base, named, expected) in [
        ("openai", None, None, Some("OPENAI_API_KEY")),
        (
            "openai",
            Some("https://api.openai.com/v1"),
            None,
            Some("OPENAI_API_KEY"),
        ),
        ("openai", Some("https://elsewhere.example/v1"), None, None),
        ("openai", Some("http://api.openai.com/v1"), None, None),
        (
            "openai",
            Some("https://elsewhere.example/v1"),
            Some("MY_KEY"),
            Some("MY_KEY"),
        ),
        ("anthropic", None, None, Some("ANTHROPIC_API_KEY")),
        ("script", None, None, None),
    ] {
        let config = ModelConfig {
            provider: provider.into(),
            base_url: base.map(str::to_owned),
            key_env: named.map(str::to_owned),
            ..ModelConfig::default()
        };
        assert_eq!(key_variable(&config), expected);
    }
}

#[test]
fn models_are_found_by_name_or_provider() {
    let models = BTreeMap::from([("local".to_owned(), config("openai", "http://127.0.0.1:1"))]);
    assert_eq!(find("local", &models).unwrap().model, "m");
    let found = find("anthropic:claude-x:1", &models).unwrap();
    assert_eq!(
        (found.provider.as_str(), found.model.as_str()),
        ("anthropic", "claude-x:1")
    );
    assert_eq!(find("script:a/b.jsonl", &models).unwrap().model, "a/b.jsonl");
    let error = find("lokal", &models).unwrap_err().to_string();
    assert_eq!(
        error,
        "`lokal` is not a model: not one of `[models]` (`local`), nor `provider:name`"
    );
    assert!(
        find("nobody:x", &BTreeMap::new())
            .unwrap_err()
            .to_string()
            .contains("which is empty")
    );
}

#[tokio::test]
async fn another_model_is_asked_when_one_cannot_be_had() {
    let sound = "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\n";
    let good = Fake::answering(stream(sound)).await;
    let busy = Fake::answering(error("503 Service Unavailable", &json!({"error": {"message": "busy"}}))).await;
    let closed = Fake::answering(error("401 Unauthorized", &json!({"error": {"message": "no key"}}))).await;
    let full = Fake::answering(error(
        "400 Bad Request",
        &json!({"error": {"message": "prompt is too long"}}),
    ))
    .await;
    let mut models = BTreeMap::new();
    for (name, fake, fallback) in [
        ("good", &good, vec![]),
        ("busy", &busy, vec!["closed".to_owned(), "good".to_owned()]),
        ("closed", &closed, vec![]),
        ("full", &full, vec!["good".to_owned()]),
        ("lost", &busy, vec!["closed".to_owned()]),
        ("a", &good, vec!["b".to_owned()]),
        ("b", &good, vec!["a".to_owned()]),
        ("c", &good, vec!["nowhere".to_owned()]),
    ] {
        models.insert(
            name.to_owned(),
            ModelConfig {
                fallback,
                ..config("openai", &fake.origin)
            },
        );
    }
    let open = |name: &str| open(name, &models, &|_| None, &options());
    let asked = ask(&*open("busy").unwrap(), request()).await;
    let answer = asked.outcome.unwrap();
    assert_eq!(answer.message.text, "ok");
    let by = answer.served.by.unwrap();
    assert_eq!(
        (
            by.address.as_deref(),
            by.port.map(|port| good.origin.ends_with(&port.to_string()))
        ),
        (Some("127.0.0.1"), Some(true))
    );
    assert_eq!(asked.shown, "ok");
    assert_eq!(asked.retries.len(), 3, "{:?}", asked.retries);
    assert!(
        asked.retries[1].ends_with("; `closed` is asked instead"),
        "{:?}",
        asked.retries
    );
    assert!(asked.retries[2].contains("no key") && asked.retries[2].ends_with("; `good` is asked instead"));
    // An overflow is the agent's to mend, by a shorter history.
    let asked = ask(&*open("full").unwrap(), request()).await;
    assert_eq!(
        asked.outcome.unwrap_err().kind,
        fief_core::port::ModelErrorKind::ContextOverflow
    );
    let asked = ask(&*open("lost").unwrap(), request()).await;
    assert!(asked.outcome.unwrap_err().message.contains("no key"));
    let cycle = open("a").err().unwrap().to_string();
    assert_eq!(cycle, "model `a`: `fallback` leads back to `a`");
    assert!(
        open("c")
            .err()
            .unwrap()
            .to_string()
            .contains("`nowhere` is not a model")
    );
}

#[tokio::test]
async fn costs_follow_from_prices_and_uncounted_tokens_are_estimated() {
    let counted = "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1000000,\
                   \"completion_tokens\":500000,\"prompt_tokens_details\":{\"cached_tokens\":400000}}}\n\n";
    let fake = Fake::start(vec![
        vec![Act::Send(stream(counted))],
        vec![Act::Send(stream(
            "data: {\"choices\":[{\"delta\":{\"content\":\"12345678\"},\"finish_reason\":\"stop\"}]}\n\n",
        ))],
    ])
    .await;
    let mut config = config("openai", &fake.origin);
    config.prices = Some(fief_core::manifest::config::Prices {
        input: 1.0,
        cached: Some(0.5),
        output: 4.0,
    });
    config.stream = Some(true);
    config.generation.temperature = Some(0.25);
    let model = client("local", &config, None, &options()).unwrap();
    let usage = ask(&*model, request()).await.outcome.unwrap().usage;
    assert!((usage.cost.unwrap() - (0.6 + 0.2 + 2.0)).abs() < 1e-9);
    let usage = ask(&*model, request()).await.outcome.unwrap().usage;
    assert_eq!(usage.output_tokens, 2);
    assert!(usage.input_tokens > 50 && usage.cost.is_some());
    assert_eq!(fake.received()[0].body["temperature"], 0.25);
}

#[test]
fn telemetry_names_a_model_by_its_vendor_and_its_server() {
    for (provider, base, vendor, address, port) in [
        ("openai", None, "openai", Some("api.openai.com"), Some(443)),
        ("anthropic", None, "anthropic", Some("api.anthropic.com"), Some(443)),
        (
            "openai",
            Some("http://127.0.0.1:8080/v1"),
            "openai",
            Some("127.0.0.1"),
            Some(8080),
        ),
        (
            "openai",
            Some("https://x.openai.azure.com/v1"),
            "azure.ai.openai",
            Some("x.openai.azure.com"),
            Some(443),
        ),
        (
            "openai",
            Some("https://api.groq.com/openai/v1"),
            "groq",
            Some("api.groq.com"),
            Some(443),
        ),
        (
            "openai",
            Some("https://api.x.ai/v1"),
            "x_ai",
            Some("api.x.ai"),
            Some(443),
        ),
        (
            "openai",
            Some("https://matrix.ai/v1"),
            "openai",
            Some("matrix.ai"),
            Some(443),
        ),
        ("script", None, "script", None, None),
    ] {
        let found = identity(&ModelConfig {
            provider: provider.into(),
            model: "m".into(),
            base_url: base.map(str::to_owned),
            ..ModelConfig::default()
        });
        assert_eq!(
            (found.provider.as_str(), found.address.as_deref(), found.port),
            (vendor, address, port),
            "{base:?}"
        );
        assert_eq!(found.model, "m");
    }
}
