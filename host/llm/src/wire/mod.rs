//! The formats in which servers speak. A new one is a file here and a line in [`formats`].

pub(crate) mod text_protocol;

use fief_core::manifest::archetype::Generation;
use fief_core::message::Request;
use reqwest::header::HeaderMap;
use secrecy::SecretString;
use serde_json::Value;
use url::Url;

use crate::draft::Draft;
use crate::fault::Fault;
use crate::sse::SseEvent;

/// What a question is turned into a body from.
pub(crate) struct Question<'a> {
    /// The provider's name of the model.
    pub(crate) model: &'a str,
    /// What is asked.
    pub(crate) request: &'a Request,
    /// The request's sampling over the model's own.
    pub(crate) generation: Generation,
    /// Whether the answer is to be streamed.
    pub(crate) stream: bool,
}

/// One format: how a question is written, and how an answer is read. One value serves one configured model, so that it
/// can remember what this server does not understand.
pub(crate) trait Format: Send + Sync {
    /// The address for a base address; a base may stand with or without its version.
    fn endpoint(&self, base: &Url) -> Url;
    /// Adds the headers that the format needs, the key's among them.
    fn headers(&self, key: Option<&SecretString>, headers: &mut HeaderMap);
    /// The body of a request.
    fn body(&self, question: &Question<'_>) -> Value;
    /// A reader of one streamed answer.
    fn reader(&self) -> Box<dyn Reader>;
    /// Reads an answer that came whole.
    ///
    /// # Errors
    /// A fault if it is none.
    fn whole(&self, body: Value) -> Result<Draft, Fault>;
    /// Whether the format can do without what the server has just refused: true means that the next body differs.
    fn adapt(&self, fault: &Fault) -> bool;
}

/// How far a streamed answer has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// It is not whole; a stream that ends here was cut.
    Open,
    /// It is whole; usage may follow.
    Whole,
    /// It is whole and nothing follows.
    Over,
}

/// Reads one streamed answer.
pub(crate) trait Reader: Send {
    /// Takes an event and appends the text that the watcher may see to `shown`.
    ///
    /// # Errors
    /// A fault that the server reports, or what is not the format.
    fn take(&mut self, event: &SseEvent, shown: &mut String) -> Result<Progress, Fault>;
    /// What was gathered.
    fn into_draft(self: Box<Self>) -> Draft;
}

/// A provider: a name in `[models.NAME] provider`.
pub(crate) struct Provider {
    /// Its name.
    pub(crate) name: &'static str,
    /// Where it is, if nothing else is configured.
    pub(crate) base_url: &'static str,
    /// The variable that holds its key by custom. It is used with the provider's own address only.
    pub(crate) key_env: &'static str,
    /// Makes its format for one model at one address.
    pub(crate) format: fn(&Url) -> Box<dyn Format>,
}

macro_rules! formats {
    ($($file:ident)*) => {
        $(mod $file;)*
        /// Every provider that is spoken to over HTTP.
        pub(crate) const PROVIDERS: &[Provider] = &[$($file::PROVIDER),*];
    };
}
formats! {
    anthropic
    openai
}

#[cfg(test)]
mod declared_tests;
