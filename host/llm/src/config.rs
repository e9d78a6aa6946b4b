//! From `[models.NAME]` to a model that can be asked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fief_core::manifest::config::ModelConfig;
use fief_core::message::ModelIdentity;
use fief_core::port::Model;
use reqwest::header::HeaderMap;
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use crate::ask::HttpModel;
use crate::fallback::Fallback;
use crate::http::{Endpoint, add_headers};
use crate::retry::RetryPolicy;
use crate::script::{Script, ScriptError};
use crate::wire::{PROVIDERS, Provider, text_protocol};

/// What all clients of a process share.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ClientOptions {
    /// Relative files of recorded models lie here. Default: the working directory.
    pub directory: PathBuf,
    /// How often and how long to retry.
    pub retry: RetryPolicy,
    /// How long to wait.
    pub timeouts: Timeouts,
}

/// How long a client waits for a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// Until there is a connection. Default: 15 s.
    pub connect: Duration,
    /// From the question to the first byte of an answer. Default: 10 minutes: a large prompt on a machine without a
    /// graphics card takes minutes to read, and some servers say nothing meanwhile.
    pub answer: Duration,
    /// Between two pieces of an answer, comments that keep it alive included. Default: 3 minutes.
    pub idle: Duration,
    /// From a whole answer to what may follow it, such as its usage. Default: 5 s.
    pub settle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            answer: Duration::from_mins(10),
            idle: Duration::from_mins(3),
            settle: Duration::from_secs(5),
        }
    }
}

/// Why a configured model cannot be asked. None of these holds a key.
#[derive(Debug, thiserror::Error)]
pub enum ModelConfigError {
    /// A name that is neither configured nor `provider:name`.
    #[error("`{name}` is not a model: not one of `[models]` ({known}), nor `provider:name`")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A provider that does not exist.
    #[error("model `{model}`: `provider = \"{provider}\"`: must be one of {known}")]
    Provider {
        /// The model.
        model: String,
        /// What was given.
        provider: String,
        /// What there is.
        known: String,
    },
    /// An address that cannot be used.
    #[error("model `{model}`: `base_url`: {why}")]
    BaseUrl {
        /// The model.
        model: String,
        /// What is wrong.
        why: String,
    },
    /// A header that cannot be sent.
    #[error("model `{model}`: `headers`: `{name}` {rule}")]
    Header {
        /// The model.
        model: String,
        /// The header.
        name: String,
        /// What is wrong with it.
        rule: &'static str,
    },
    /// No key where one is needed.
    #[error("model `{model}`: the variable `{variable}` is not set: it must hold the key of {origin}")]
    NoKey {
        /// The model.
        model: String,
        /// The variable.
        variable: String,
        /// Whose key.
        origin: String,
    },
    /// A key that no header can carry.
    #[error("model `{model}`: the key holds characters that no header can carry (a line break, perhaps)")]
    BadKey {
        /// The model.
        model: String,
    },
    /// A model without a name.
    #[error("model `{model}`: `model` is missing: it names the provider's model, or the file of `script`")]
    NoModel {
        /// The model.
        model: String,
    },
    /// Fallbacks that lead back to where they came from.
    #[error("model `{model}`: `fallback` leads back to `{again}`")]
    FallbackCycle {
        /// The model.
        model: String,
        /// Which occurs twice.
        again: String,
    },
    /// A recorded model that cannot be read.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The HTTP client cannot be made.
    #[error("cannot prepare HTTP: {0}")]
    Client(String),
}

/// The name of the variable that holds a model's key: `key_env`, or the provider's own by custom if the model is at the
/// provider's own address. A key is sent to its own origin only, so that another address gets none unless it is named.
#[must_use]
pub fn key_variable(config: &ModelConfig) -> Option<&str> {
    if let Some(variable) = &config.key_env {
        return Some(variable);
    }
    let provider = provider(&config.provider)?;
    let own = config
        .base_url
        .as_ref()
        .is_none_or(|base| origin(base) == origin(provider.base_url));
    own.then_some(provider.key_env)
}

/// The variables that hold a provider's key by custom.
pub fn key_variables() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().map(|provider| provider.key_env)
}

/// Who a configured model is, for telemetry.
#[must_use]
pub fn identity(config: &ModelConfig) -> ModelIdentity {
    let own = provider(&config.provider).map(|provider| provider.base_url);
    let url = config.base_url.as_deref().or(own).and_then(|url| Url::parse(url).ok());
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    ModelIdentity {
        provider: vendor(&config.provider, host).to_owned(),
        model: config.model.clone(),
        address: url.as_ref().and_then(Url::host_str).map(str::to_owned),
        port: url.as_ref().and_then(Url::port_or_known_default),
        generation: config.generation.clone(),
    }
}

/// OpenTelemetry's name for whose model it is: the one that is known by its host, else the one whose format is spoken,
/// as its conventions have it for servers that others copied.
fn vendor<'a>(format: &'a str, host: &str) -> &'a str {
    const HOSTS: &[(&str, &str)] = &[
        ("azure.com", "azure.ai.openai"),
        ("generativelanguage.googleapis.com", "gcp.gemini"),
        ("aiplatform.googleapis.com", "gcp.vertex_ai"),
        ("amazonaws.com", "aws.bedrock"),
        ("mistral.ai", "mistral_ai"),
        ("deepseek.com", "deepseek"),
        ("groq.com", "groq"),
        ("x.ai", "x_ai"),
        ("perplexity.ai", "perplexity"),
        ("cohere.com", "cohere"),
        ("openrouter.ai", "openrouter"),
    ];
    let known = |(domain, _): &&(&str, &str)| {
        host.strip_suffix(domain)
            .is_some_and(|before| before.is_empty() || before.ends_with(['.', '-']))
    };
    match (HOSTS.iter().find(known), format) {
        (Some((_, vendor)), _) => vendor,
        (None, "openai-responses") => "openai",
        (None, "gemini") => "gcp.gemini",
        (None, other) => other,
    }
}

fn origin(url: &str) -> Option<url::Origin> {
    Url::parse(url).ok().map(|url| url.origin())
}

fn provider(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|provider| provider.name == name)
}

/// Makes one configured model, without its fallbacks. `name` is what messages call it.
///
/// # Errors
/// What is wrong with the configuration, the key or the recorded file.
pub fn client(
    name: &str,
    config: &ModelConfig,
    key: Option<SecretString>,
    options: &ClientOptions,
) -> Result<Arc<dyn Model>, ModelConfigError> {
    if config.model.trim().is_empty() {
        return Err(ModelConfigError::NoModel { model: name.into() });
    }
    let model: Arc<dyn Model> = if config.provider == "script" {
        Arc::new(Script::read(&options.directory.join(&config.model))?)
    } else {
        Arc::new(http(name, config, key, options)?)
    };
    Ok(if config.native_tools == Some(false) {
        text_protocol::over(model)
    } else {
        model
    })
}

/// Makes the model that is called `name`, a key of `models` or `provider:name`, with its fallbacks. `key` gives the
/// value of a variable.
///
/// # Errors
/// What is wrong with the configuration, a key or a recorded file.
pub fn open(
    name: &str,
    models: &BTreeMap<String, ModelConfig>,
    key: &dyn Fn(&str) -> Option<SecretString>,
    options: &ClientOptions,
) -> Result<Arc<dyn Model>, ModelConfigError> {
    let mut chain = Vec::new();
    follow(name, models, &mut Vec::new(), &mut chain)?;
    let mut opened = Vec::with_capacity(chain.len());
    for (name, config) in chain {
        let secret = key_variable(&config).and_then(key);
        opened.push((name.clone(), client(&name, &config, secret, options)?));
    }
    let first = opened.remove(0);
    Ok(if opened.is_empty() {
        first.1
    } else {
        Arc::new(Fallback::new(first, opened))
    })
}

/// The configuration of `name`, a key of `models` or `provider:name`.
///
/// # Errors
/// [`ModelConfigError::Unknown`].
pub fn find(name: &str, models: &BTreeMap<String, ModelConfig>) -> Result<ModelConfig, ModelConfigError> {
    if let Some(config) = models.get(name) {
        return Ok(config.clone());
    }
    match name.split_once(':') {
        Some((prefix, model)) if prefix == "script" || provider(prefix).is_some() => Ok(ModelConfig {
            provider: prefix.into(),
            model: model.into(),
            ..ModelConfig::default()
        }),
        _ => Err(ModelConfigError::Unknown {
            name: name.into(),
            known: if models.is_empty() {
                "which is empty".into()
            } else {
                models
                    .keys()
                    .map(|name| format!("`{name}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            },
        }),
    }
}

/// The model and, depth first, what stands in for it, each once.
fn follow(
    name: &str,
    models: &BTreeMap<String, ModelConfig>,
    above: &mut Vec<String>,
    chain: &mut Vec<(String, ModelConfig)>,
) -> Result<(), ModelConfigError> {
    if above.iter().any(|other| other == name) {
        return Err(ModelConfigError::FallbackCycle {
            model: above[0].clone(),
            again: name.into(),
        });
    }
    if chain.iter().any(|(other, _)| other == name) {
        return Ok(());
    }
    let config = find(name, models)?;
    chain.push((name.into(), config.clone()));
    above.push(name.into());
    for other in &config.fallback {
        follow(other, models, above, chain)?;
    }
    above.pop();
    Ok(())
}

/// A model over HTTP.
pub(crate) fn http(
    name: &str,
    config: &ModelConfig,
    key: Option<SecretString>,
    options: &ClientOptions,
) -> Result<HttpModel, ModelConfigError> {
    let provider = provider(&config.provider).ok_or_else(|| ModelConfigError::Provider {
        model: name.into(),
        provider: config.provider.clone(),
        known: known_providers(),
    })?;
    let base = base_url(name, config.base_url.as_deref().unwrap_or(provider.base_url))?;
    let key = key
        .filter(|key| !key.expose_secret().trim().is_empty())
        .map(|key| key.expose_secret().trim().into());
    if key.is_none() && Some(base.origin()) == origin(provider.base_url) {
        return Err(ModelConfigError::NoKey {
            model: name.into(),
            variable: key_variable(config).unwrap_or(provider.key_env).into(),
            origin: base.origin().ascii_serialization(),
        });
    }
    if key
        .as_ref()
        .is_some_and(|key: &SecretString| !key.expose_secret().bytes().all(|b| b.is_ascii_graphic()))
    {
        return Err(ModelConfigError::BadKey { model: name.into() });
    }
    let format = (provider.format)(&base);
    let mut headers = HeaderMap::new();
    format.headers(key.as_ref(), &mut headers);
    add_headers(name, config.headers.iter(), &mut headers)?;
    // A configured header may well be a key of its own; short ones are not, and redacting them would garble messages.
    let secrets = config
        .headers
        .values()
        .filter(|value| value.len() >= 12)
        .map(|value| value.as_str().into());
    let secrets = key.into_iter().chain(secrets).collect();
    let endpoint = Endpoint::new(format.endpoint(&base), headers, secrets, options)?;
    Ok(HttpModel::new(name, config, format, endpoint, options.retry))
}

fn known_providers() -> String {
    let names = PROVIDERS.iter().map(|provider| provider.name).chain(["script"]);
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn base_url(model: &str, text: &str) -> Result<Url, ModelConfigError> {
    let bad = |why: String| ModelConfigError::BaseUrl {
        model: model.into(),
        why,
    };
    let url = Url::parse(text).map_err(|error| bad(format!("`{text}` is not an address: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("must not hold credentials: name a variable in `key_env`".into()));
    }
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(bad(format!(
            "`{text}` must start with `https://` or `http://` and name a host"
        )));
    }
    Ok(url)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
