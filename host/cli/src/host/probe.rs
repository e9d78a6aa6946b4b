//! Whether a model answers.

use super::Host;

impl Host {
    /// Asks a model for a one-token answer. What it found, and what a person should know all the same.
    ///
    /// # Errors
    /// Why it cannot be asked, or the server's own words.
    pub async fn probe(&self, name: &str) -> Result<(String, Vec<String>), String> {
        let models = self.model_configs(Some(name));
        let config = fief_llm::find(name, &models).map_err(|error| error.to_string())?;
        let key = fief_llm::key_variable(&config).and_then(|variable| self.key(variable));
        let probe = fief_llm::probe(name, &config, key, &self.0.models.options())
            .await
            .map_err(|error| error.to_string())?;
        if config.provider == "script" {
            return Ok((format!("{} is a recorded model, and sound", probe.place), Vec::new()));
        }
        let mut text = format!("{} answered in {} ms", probe.place, probe.time.as_millis());
        if let Some(model) = &probe.model {
            text.push_str(&format!(" as {model}"));
        }
        if let Some(usage) = &probe.usage {
            text.push_str(&format!(
                ", {} tokens in, {} out",
                usage.input_tokens, usage.output_tokens
            ));
        }
        if !probe.streamed {
            text.push_str(", not streamed");
        }
        if probe.tools == Some(true) {
            text.push_str(", takes tools");
        }
        Ok((text, probe.findings()))
    }
}
