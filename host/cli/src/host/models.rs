//! Models by name: those of the configuration, those that the environment describes, those that an embedder made.

use std::collections::{BTreeMap, HashMap};
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
    /// The secrets file, for keys that the environment lacks.
    pub(crate) secrets: BTreeMap<String, SecretString>,
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
        let value = std::env::var(variable).ok().filter(|value| !value.trim().is_empty());
        value
            .map(SecretString::from)
            .or_else(|| self.secrets.get(variable).cloned())
    }
}
