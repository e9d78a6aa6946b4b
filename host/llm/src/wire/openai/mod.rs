//! Chat completions, the format of OpenAI and of everyone who copied it: Azure, OpenRouter, Ollama, vLLM, llama.cpp,
//! LM Studio. Where they differ from each other, what is written is what all accept, and what is read is what any sends.

mod read;
mod think;
mod write;

use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use url::Url;

use super::{Format, Provider, Question, Reader};
use crate::draft::Draft;
use crate::fault::Fault;

pub(super) const PROVIDER: Provider = Provider {
    name: "openai",
    base_url: "https://api.openai.com/v1",
    key_env: "OPENAI_API_KEY",
    format: |base| Box::new(ChatCompletions::new(base)),
};

/// The format, and what one server has shown of its dialect.
#[derive(Debug)]
pub(crate) struct ChatCompletions {
    /// OpenAI itself or Azure, whose published rules are narrower than what others accept.
    official: bool,
    /// Azure reads keys from a header of its own.
    azure: bool,
    /// OpenRouter passes a mark on to Anthropic, whose models cache nothing without one.
    openrouter: bool,
    /// Whether the output limit is named `max_completion_tokens`: OpenAI's newer models refuse the old name, and most
    /// other servers do not know the new one.
    new_limit: AtomicBool,
    /// Whether `stream_options` is left out, without which OpenAI counts nothing and which older servers refuse.
    no_stream_options: AtomicBool,
    /// Whether `parallel_tool_calls` is left out.
    no_parallel: AtomicBool,
}

impl ChatCompletions {
    fn new(base: &Url) -> Self {
        let host = base.host_str().unwrap_or_default();
        let azure = host.ends_with(".azure.com");
        let official = azure || host == "api.openai.com";
        Self {
            official,
            azure,
            openrouter: host == "openrouter.ai" || host.ends_with(".openrouter.ai"),
            new_limit: AtomicBool::new(official),
            no_stream_options: AtomicBool::new(false),
            no_parallel: AtomicBool::new(false),
        }
    }
}

impl Format for ChatCompletions {
    fn endpoint(&self, base: &Url) -> Url {
        let mut url = base.clone();
        let path = base.path().trim_end_matches('/');
        let path = match path {
            "" => "/v1/chat/completions".to_owned(),
            whole if whole.ends_with("/chat/completions") => whole.to_owned(),
            base => format!("{base}/chat/completions"),
        };
        url.set_path(&path);
        url
    }

    fn headers(&self, key: Option<&SecretString>, headers: &mut HeaderMap) {
        let Some(key) = key else { return };
        let mut add = |name, value: String| {
            if let Ok(mut value) = HeaderValue::from_str(&value) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        };
        add(AUTHORIZATION, format!("Bearer {}", key.expose_secret()));
        if self.azure {
            add(reqwest::header::HeaderName::from_static("api-key"), key.expose_secret().to_owned());
        }
    }

    fn body(&self, question: &Question<'_>) -> Value {
        write::body(self, question)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(read::StreamReader::default())
    }

    fn whole(&self, body: Value) -> Result<Draft, Fault> {
        read::whole(body)
    }

    fn adapt(&self, fault: &Fault) -> bool {
        // Only what the host added by itself is given up; what a person configured (a temperature, a seed) is not.
        let names = |parameter: &str| fault.message.contains(parameter);
        let once = |flag: &AtomicBool, to: bool| flag.swap(to, Ordering::Relaxed) != to;
        if names("stream_options") {
            once(&self.no_stream_options, true)
        } else if names("parallel_tool_calls") {
            once(&self.no_parallel, true)
        } else if names("max_completion_tokens") && names("max_tokens") {
            // "use 'max_completion_tokens' instead": the server speaks of both, and wants the new one.
            once(&self.new_limit, true)
        } else if names("max_completion_tokens") {
            once(&self.new_limit, false)
        } else {
            false
        }
    }
}


#[cfg(test)]
#[path = "tests.rs"]
mod tests;
