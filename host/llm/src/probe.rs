//! What a configured server can do, for a person who sets one up: one short question, asked once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fief_core::id::SessionId;
use fief_core::manifest::archetype::Generation;
use fief_core::manifest::config::ModelConfig;
use fief_core::message::{Content, Message, Request, Usage};
use fief_core::port::{ModelError, ModelErrorKind};
use fief_core::tool::Declaration;
use secrecy::SecretString;
use serde_json::json;

use crate::config::{ClientOptions, ModelConfigError, http};
use crate::retry::RetryPolicy;
use crate::script::Script;

/// The longest that a probe takes: a model may have to be loaded first.
const LONGEST: Duration = Duration::from_mins(1);

/// How OpenAI refuses an answer of one token of a model that thinks first.
const SPENT_ON_THOUGHTS: &str = "model output limit was reached";
/// The output tokens that such a model is asked for instead.
const FEW: u64 = 64;

/// What a probe found.
#[derive(Clone, PartialEq, Debug)]
pub struct Probe {
    /// Where the server is, or the file of a recorded model.
    pub place: String,
    /// The model that answered, as the server calls it.
    pub model: Option<String>,
    /// How long the answer took.
    pub time: Duration,
    /// Whether it came as a stream; a server that does not stream shows no text until the end.
    pub streamed: bool,
    /// What it cost, if the server counts; without that, token budgets rest on an estimate.
    pub usage: Option<Usage>,
    /// Whether the server took a request with a tool; absent: the model is configured for the text protocol, or is
    /// recorded.
    pub tools: Option<bool>,
}

impl Probe {
    /// What a person should know although the server answered.
    #[must_use]
    pub fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        if self.tools == Some(false) {
            findings.push(
                "the server refuses requests with tools: set `native_tools = false` to use the text protocol".into(),
            );
        }
        if self.usage.is_none() && self.tools.is_some() {
            findings.push("the server counts no tokens: budgets rest on an estimate of four bytes each".into());
        }
        findings
    }
}

/// Asks a configured model for a one-token answer, once and without retries, first with a tool and, if that is refused,
/// without. A recorded model is only read.
///
/// # Errors
/// Why it cannot be asked, or gave no answer.
pub async fn probe(
    name: &str,
    config: &ModelConfig,
    key: Option<SecretString>,
    options: &ClientOptions,
) -> Result<Probe, ProbeError> {
    if config.provider == "script" {
        let path = options.directory.join(&config.model);
        Script::read(&path).map_err(ModelConfigError::from)?;
        return Ok(Probe {
            place: path.display().to_string(),
            model: None,
            time: Duration::ZERO,
            streamed: false,
            usage: None,
            tools: None,
        });
    }
    let mut options = options.clone();
    options.retry = RetryPolicy::NEVER;
    options.timeouts.answer = options.timeouts.answer.min(LONGEST);
    options.timeouts.idle = options.timeouts.idle.min(LONGEST);
    let model = http(name, config, key, &options)?;
    let native = config.native_tools != Some(false);
    let started = Instant::now();
    let mut tools = native.then_some(true);
    let mut first = model.attempt(&question(native, 1)).await;
    if first
        .as_ref()
        .is_err_and(|error| error.message.contains(SPENT_ON_THOUGHTS))
    {
        first = model.attempt(&question(native, FEW)).await;
    }
    let attempt = match first {
        Err(error) if native && error.kind == ModelErrorKind::Refused => {
            tools = Some(false);
            // The first error says more if this one fails too.
            model.attempt(&question(false, 1)).await.map_err(|_| error)?
        }
        other => other?,
    };
    Ok(Probe {
        place: model.origin(),
        model: attempt.draft.model.clone(),
        time: started.elapsed(),
        streamed: attempt.streamed,
        usage: attempt.draft.usage,
        tools,
    })
}

/// Why a probe found no model.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ModelConfigError),
    /// The server gave no answer.
    #[error(transparent)]
    Model(#[from] ModelError),
}

fn question(tool: bool, output: u64) -> Request {
    let declaration = Declaration {
        name: "fief_probe".into(),
        description: "Does nothing. Never call it.".into(),
        input_schema: Arc::new(json!({"type": "object", "properties": {}})),
    };
    Request {
        session: SessionId::main(),
        system: "Answer with one word.".into(),
        history: Arc::new(vec![Message::User {
            content: vec![Content::Text("Say yes.".into())],
        }]),
        tools: if tool { [declaration].into() } else { Arc::new([]) },
        generation: Generation {
            max_output_tokens: Some(output),
            ..Generation::default()
        },
        parallel_tool_calls: None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fake::{Act, Fake, config, error, options, stream, whole};

    const ANSWER: &str = "data: {\"model\": \"m-2\", \"choices\": [{\"delta\": {\"content\": \"yes\"}, \"finish_reason\": \"length\"}]}\n\n";

    #[tokio::test]
    async fn what_a_server_can_do_is_reported() {
        let usage =
            "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 9, \"completion_tokens\": 1}}\n\ndata: [DONE]\n\n";
        let fake = Fake::answering(stream(format!("{ANSWER}{usage}"))).await;
        let found = probe("local", &config("openai", &fake.origin), None, &options())
            .await
            .unwrap();
        assert_eq!(
            (found.place.as_str(), found.model.as_deref()),
            (fake.origin.as_str(), Some("m-2"))
        );
        assert_eq!((found.streamed, found.tools), (true, Some(true)));
        assert_eq!(found.usage.unwrap().input_tokens, 9);
        assert!(found.findings().is_empty());
        let asked = &fake.received()[0].body;
        assert_eq!(
            (&asked["max_tokens"], &asked["tools"][0]["function"]["name"]),
            (&json!(1), &json!("fief_probe"))
        );
    }

    #[tokio::test]
    async fn a_server_without_tools_or_counts_is_a_finding() {
        let refusal = error(
            "400 Bad Request",
            &json!({"error": {"message": "m does not support tools"}}),
        );
        let answer = whole(&json!({"choices": [{"message": {"content": "yes"}, "finish_reason": "length"}]}));
        let fake = Fake::start(vec![vec![Act::Send(refusal.clone())], vec![Act::Send(answer)]]).await;
        let found = probe("local", &config("openai", &fake.origin), None, &options())
            .await
            .unwrap();
        assert_eq!((found.tools, found.streamed, found.usage), (Some(false), false, None));
        assert_eq!(found.findings().len(), 2);
        let fake = Fake::answering(refusal).await;
        let error = probe("local", &config("openai", &fake.origin), None, &options())
            .await
            .unwrap_err();
        assert!(error.to_string().contains("does not support tools"), "{error}");
        assert_eq!(fake.received().len(), 2);
    }

    #[tokio::test]
    async fn a_model_that_spends_one_token_on_thoughts_is_asked_for_a_few() {
        let refusal = error(
            "400 Bad Request",
            &json!({"error": {"message": "Could not finish the message because max_tokens or model output limit was \
                reached. Please try again with higher max_tokens.", "type": "invalid_request_error"}}),
        );
        let fake = Fake::start(vec![vec![Act::Send(refusal)], vec![Act::Send(stream(ANSWER))]]).await;
        let found = probe("local", &config("openai", &fake.origin), None, &options())
            .await
            .unwrap();
        assert_eq!(found.tools, Some(true));
        let limits: Vec<_> = fake
            .received()
            .iter()
            .map(|one| one.body["max_tokens"].clone())
            .collect();
        assert_eq!(limits, [1, FEW]);
    }

    #[tokio::test]
    async fn what_cannot_be_asked_is_an_error() {
        let error = probe("x", &config("openai", "http://127.0.0.1:9"), None, &options())
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                ProbeError::Model(ModelError {
                    kind: ModelErrorKind::Unavailable,
                    ..
                })
            ),
            "{error}"
        );
        let error = probe("x", &config("nobody", "http://127.0.0.1:9"), None, &options())
            .await
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("must be one of `anthropic`, `openai`, `script`"),
            "{error}"
        );
        let error = probe("x", &config("script", "http://127.0.0.1:9"), None, &options())
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("cannot read the recorded model `m`"),
            "{error}"
        );
    }
}
