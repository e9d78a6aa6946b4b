//! A conversation, in no provider's format: what an agent's history holds and what a model is asked.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::manifest::archetype::Generation;
use crate::{id::SessionId, tool::Declaration};

/// Bytes with a media type, such as an image.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Blob {
    /// Such as `image/png`.
    pub media_type: String,
    /// The bytes, base64 in JSON.
    #[serde(with = "base64_bytes")]
    pub data: Vec<u8>,
}

/// One part of what a person, a model or a tool says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Plain text.
    Text(String),
    /// An image.
    Image(Blob),
    /// A sound.
    Audio(Blob),
    /// Any other file.
    File(Blob),
}

impl Content {
    /// The text of this part; a blob is a line that names its type and size.
    #[must_use]
    pub fn to_line(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Image(blob) => blob.describe("image"),
            Self::Audio(blob) => blob.describe("audio"),
            Self::File(blob) => blob.describe("file"),
        }
    }
}

impl Blob {
    fn describe(&self, kind: &str) -> String {
        format!("[{kind} {}, {} bytes]", self.media_type, self.data.len())
    }
}

/// All parts as one text, a part a paragraph.
#[must_use]
pub fn to_text(parts: &[Content]) -> String {
    let lines: Vec<String> = parts.iter().map(Content::to_line).collect();
    lines.join("\n")
}

/// One entry of a history.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "role")]
pub enum Message {
    /// A task, or a request of the host's in the user's place.
    User {
        /// What is said.
        content: Vec<Content>,
    },
    /// One answer of the model.
    Assistant(Assistant),
    /// The results of all the calls of the answer before it, in call order.
    Results {
        /// One for each call.
        results: Vec<CallResult>,
    },
}

/// One answer of a model.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Assistant {
    /// The answer's text, all text parts joined; thoughts are not in it.
    pub text: String,
    /// What the provider wants back unchanged on the next request, in its own format (signatures, encrypted thoughts).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<Reasoning>,
    /// The calls that it asks for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
}

/// A thought of the model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reasoning {
    /// The readable part, possibly empty.
    pub text: String,
    /// The provider's own block, sent back as it came to the format that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Value>,
}

/// A call that a model asks for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique within the session.
    pub id: String,
    /// As people write it (`files.read`, `spawn_subagent`) where it was recognised; else what the model wrote.
    pub name: String,
    /// What it is called with.
    pub arguments: Arguments,
}

/// The arguments of a call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// A JSON object.
    Object(Map<String, Value>),
    /// What could not be read as one. It is never executed, and never sent back: providers refuse a history that does
    /// not parse, so that `{}` stands in its place there and the result quotes it.
    Malformed {
        /// As the model wrote it.
        raw: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Arguments {
    /// The arguments as JSON; `{}` for what does not parse.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Object(map) => Value::Object(map.clone()),
            Self::Malformed { .. } => Value::Object(Map::new()),
        }
    }
}

/// What a call came to, as the model sees it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CallResult {
    /// The call's id.
    pub call: String,
    /// The call's name, for formats that repeat it.
    pub name: String,
    /// What the model reads.
    pub content: Vec<Content>,
    /// Whether anything but `ok` happened.
    pub is_error: bool,
}

/// Everything a model is asked with. Cheap to clone: the large parts are shared, never copied.
#[derive(Clone, Debug)]
pub struct Request {
    /// Who asks; a recorded model reads its lines by it.
    pub session: SessionId,
    /// The system prompt.
    pub system: Arc<str>,
    /// The whole history. Shared, and dropped with the request, so that the agent can append in place.
    pub history: Arc<Vec<Message>>,
    /// The tools that may be called; empty for a closing request.
    pub tools: Arc<[Declaration]>,
    /// Sampling and output limits.
    pub generation: Generation,
    /// Whether one answer may hold several calls; absent: the model's own default.
    pub parallel_tool_calls: Option<bool>,
}

/// How an answer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finish {
    /// The model was done.
    Stop,
    /// It wants calls carried out.
    ToolCalls,
    /// The output limit cut it.
    Length,
    /// A filter of the provider's refused it.
    Filter,
    /// Anything else.
    Other,
}

/// A whole answer and what it cost.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// The message, as it enters the history.
    pub message: Assistant,
    /// How it ended.
    pub finish: Finish,
    /// What it cost.
    pub usage: Usage,
    /// Who gave it.
    pub served: Served,
}

/// Who gave an answer, as far as that is known.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Served {
    /// The model that was asked: where others stand in for one that cannot be had, that other.
    pub by: Option<Arc<ModelIdentity>>,
    /// The model that the server says it used.
    pub model: Option<String>,
    /// The server's name for the answer.
    pub id: Option<String>,
}

/// A model as an operator knows it from elsewhere: whose it is, what it is called there, and where it is asked.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ModelIdentity {
    /// By the names of OpenTelemetry's conventions where they have one, such as `openai`, `azure.ai.openai`.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// The server's host; absent: there is no server.
    pub address: Option<String>,
    /// The server's port.
    pub port: Option<u16>,
    /// Its configured sampling, under that of each request.
    pub generation: Generation,
}

/// Tokens and money. Adds up over turns and over a tree of agents.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens sent, cached ones included.
    pub input_tokens: u64,
    /// Tokens answered, thoughts included.
    pub output_tokens: u64,
    /// Of the input, tokens read from the provider's cache.
    pub cached_tokens: u64,
    /// Of the output, thoughts.
    pub reasoning_tokens: u64,
    /// In the currency of the configured prices; absent where no prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Usage {
    /// Input and output together, what a token budget counts.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
        self.cost = match (self.cost, other.cost) {
            (None, cost) | (cost, None) => cost,
            (Some(a), Some(b)) => Some(a + b),
        };
    }
}

mod base64_bytes {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(data: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(data))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        STANDARD
            .decode(String::deserialize(deserializer)?)
            .map_err(serde::de::Error::custom)
    }
}
