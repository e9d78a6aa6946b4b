//! Models by name: those of the configuration, those that the environment describes, those that an embedder made.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use fief_core::manifest::config::ModelConfig;
use fief_llm::ClientOptions;
use secrecy::SecretString;

use crate::drive::Supplied;

/// Where models come from.
pub(crate) struct Models {
    /// `[models]`.
    pub(crate) configured: BTreeMap<String, ModelConfig>,
    /// Made by an embedder.
    pub(crate) made: BTreeMap<String, Supplied>,
    /// The keys by their variables, read once when the host was opened.
    pub(crate) keys: BTreeMap<String, SecretString>,
    pub(crate) directory: PathBuf,
    /// Clients by name: connections are kept, and an agent more costs no further TLS configuration.
    pub(crate) clients: Mutex<HashMap<String, Supplied>>,
}

impl Models {
    /// The model of this name.
    pub(crate) fn get(&self, name: &str) -> Result<Supplied, String> {
        if let Some(made) = self.made.get(name) {
            return Ok(made.clone());
        }
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(name) {
            return Ok(client.clone());
        }
        let models = self.with_environment(name);
        let config = fief_llm::find(name, &models).map_err(|error| error.to_string())?;
        let model = fief_llm::open(name, &models, &|variable| self.key(variable), &self.options())
            .map_err(|error| error.to_string())?;
        let supplied = Supplied {
            model,
            context: config.context,
            prices: config.prices,
            identity: Arc::new(fief_llm::identity(&config)),
        };
        clients.insert(name.to_owned(), supplied.clone());
        Ok(supplied)
    }

    pub(crate) fn options(&self) -> ClientOptions {
        ClientOptions {
            directory: self.directory.clone(),
            ..ClientOptions::default()
        }
    }

    /// The configured models, and `name` as the environment describes it: `openai:NAME` goes to `OPENAI_BASE_URL`, and
    /// carries the key that is meant for it. A local server needs none.
    pub(crate) fn with_environment(&self, name: &str) -> BTreeMap<String, ModelConfig> {
        let mut models = self.configured.clone();
        if models.contains_key(name) {
            return models;
        }
        let (Some(("openai", model)), Ok(base_url)) = (name.split_once(':'), std::env::var("OPENAI_BASE_URL")) else {
            return models;
        };
        if !base_url.trim().is_empty() {
            let config = ModelConfig {
                provider: "openai".into(),
                model: model.into(),
                base_url: Some(base_url.trim().into()),
                key_env: Some("OPENAI_API_KEY".into()),
                ..ModelConfig::default()
            };
            models.insert(name.to_owned(), config);
        }
        models
    }

    pub(crate) fn key(&self, variable: &str) -> Option<SecretString> {
        self.keys.get(variable).cloned()
    }
}

/// The key of each variable that a configured model names or that is a provider's by custom: the environment's, else the
/// secrets file's. Read once: what is redacted later is what is sent, whatever becomes of the environment meanwhile.
pub(crate) fn keys(
    configured: &BTreeMap<String, ModelConfig>,
    environment: &dyn Fn(&str) -> Option<String>,
    secrets: &BTreeMap<String, SecretString>,
) -> BTreeMap<String, SecretString> {
    let named = configured
        .values()
        .filter_map(fief_llm::key_variable)
        .map(str::to_owned);
    let variables: BTreeSet<String> = named.chain(fief_llm::key_variables().map(str::to_owned)).collect();
    let key = |variable: &str| {
        let value = environment(variable).filter(|value| !value.trim().is_empty());
        value.map(SecretString::from).or_else(|| secrets.get(variable).cloned())
    };
    variables
        .into_iter()
        .filter_map(|variable| {
            let value = key(&variable)?;
            Some((variable, value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::cell::RefCell;

    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn each_key_is_read_once_from_the_environment_before_the_secrets_file() {
        let model = |variable: &str| ModelConfig {
            provider: "openai".into(),
            base_url: Some("https://elsewhere.example/v1".into()),
            key_env: Some(variable.into()),
            ..ModelConfig::default()
        };
        let names = [
            ("a", "MINE"),
            ("b", "MINE"),
            ("c", "FILED"),
            ("d", "BLANK"),
            ("e", "NOWHERE"),
        ];
        let configured = names.map(|(name, variable)| (name.to_owned(), model(variable))).into();
        let asked = RefCell::new(Vec::new());
        let environment = |variable: &str| {
            asked.borrow_mut().push(variable.to_owned());
            match variable {
                "MINE" => Some("mine".to_owned()),
                "BLANK" => Some(" ".to_owned()),
                "OPENAI_API_KEY" => Some("by custom".to_owned()),
                _ => None,
            }
        };
        let secrets = ["MINE", "FILED", "BLANK", "OTHER"].map(|name| (name.to_owned(), "filed".into()));
        let keys = keys(&configured, &environment, &secrets.into());
        let held: Vec<_> = keys
            .iter()
            .map(|(name, key)| (name.as_str(), key.expose_secret()))
            .collect();
        assert_eq!(
            held,
            [
                ("BLANK", "filed"),
                ("FILED", "filed"),
                ("MINE", "mine"),
                ("OPENAI_API_KEY", "by custom")
            ],
            "a secret of the file that no model names is nobody's key"
        );
        let mut once = asked.into_inner();
        once.sort();
        assert_eq!(
            once,
            [
                "ANTHROPIC_API_KEY",
                "BLANK",
                "FILED",
                "MINE",
                "NOWHERE",
                "OPENAI_API_KEY"
            ]
        );
        assert!(!format!("{keys:?}").contains("mine"), "{keys:?}");
    }
}
