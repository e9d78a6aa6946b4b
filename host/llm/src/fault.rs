//! What can go wrong between the host and a model's server, and what follows from it: one table.

use std::time::Duration;

use fief_core::message::Usage;
use fief_core::port::ModelErrorKind;
use serde_json::Value;

/// A failed attempt.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    /// What happened.
    pub(crate) cause: Cause,
    /// The provider's own codes for it (`type`, `code`, `status` of its error object), lower case.
    pub(crate) codes: Vec<String>,
    /// In the server's own words where it gave any.
    pub(crate) message: String,
    /// How long the server asks to wait.
    pub(crate) retry_after: Option<Duration>,
    /// What the server had counted by then.
    pub(crate) spent: Option<Usage>,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// No connection: refused, unreachable, unknown host.
    Connect,
    /// The certificate or the handshake failed.
    Tls,
    /// No answer began in time.
    Slow,
    /// The connection broke, or the answer ended, before the answer was whole.
    Cut,
    /// Nothing came for too long in mid-answer.
    Idle,
    /// An HTTP status that is no success.
    Status(u16),
    /// An error object in place of an answer, or in the middle of one.
    Frame,
    /// A redirect, which is never followed: a key goes to its own origin only.
    Redirect,
    /// A web page in place of an answer.
    Page,
    /// Something that is not the format.
    Garbled,
    /// More than any answer may hold.
    TooLarge,
}

/// What follows from a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Another attempt may succeed.
    Retry,
    /// No attempt will: the request, the key or the configuration is at fault.
    Refuse,
    /// The request does not fit the context.
    Overflow,
}

impl Fault {
    /// A fault without codes.
    pub(crate) fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self {
            cause,
            codes: Vec::new(),
            message: message.into(),
            retry_after: None,
            spent: None,
        }
    }

    /// A fault from an error object, in whatever shape a server gives it.
    pub(crate) fn of_error(cause: Cause, body: &Value) -> Self {
        let error = error_object(body).unwrap_or(body);
        let mut codes = Vec::new();
        for holder in [error, body] {
            for key in ["type", "code", "status"] {
                match holder.get(key) {
                    Some(Value::String(code)) => codes.push(code.to_ascii_lowercase()),
                    Some(Value::Number(code)) => codes.push(code.to_string()),
                    _ => {}
                }
            }
        }
        Self {
            cause,
            codes,
            message: words(error, body),
            retry_after: None,
            spent: None,
        }
    }

    /// The fault of an attempt that cost something.
    pub(crate) fn having_spent(mut self, usage: Option<Usage>) -> Self {
        self.spent = usage;
        self
    }

    /// What follows.
    pub(crate) fn verdict(&self) -> Verdict {
        let speaks = matches!(self.cause, Cause::Status(_) | Cause::Frame);
        if speaks {
            if overflows(&self.codes, &self.message) {
                return Verdict::Overflow;
            }
            if let Some(verdict) = look_up(FIRM_CODES, &self.codes) {
                return verdict;
            }
        }
        match self.cause {
            // A status says more than a code that servers put on everything.
            Cause::Status(status) => by_status(status),
            // A number in the codes of an error object is a status (OpenRouter, llama.cpp).
            Cause::Frame => look_up(CODES, &self.codes)
                .or_else(|| {
                    let status = |code: &String| code.parse().ok().filter(|status| (400..600).contains(status));
                    self.codes.iter().find_map(status).map(by_status)
                })
                .unwrap_or(Verdict::Retry),
            Cause::Connect | Cause::Slow | Cause::Cut | Cause::Idle | Cause::Garbled => Verdict::Retry,
            Cause::Tls | Cause::Redirect | Cause::Page | Cause::TooLarge => Verdict::Refuse,
        }
    }

    /// The kind under which the loop sees it, once no attempt is left.
    pub(crate) fn kind(&self) -> ModelErrorKind {
        match self.verdict() {
            Verdict::Retry => ModelErrorKind::Unavailable,
            Verdict::Overflow => ModelErrorKind::ContextOverflow,
            Verdict::Refuse if matches!(self.cause, Cause::Tls) => ModelErrorKind::Unavailable,
            Verdict::Refuse => ModelErrorKind::Refused,
        }
    }
}

/// What an HTTP status alone says. 409 is a lock on the server's side; 425 asks for another try by its name; 520 to
/// 524, 529 and 530 are Cloudflare's and Anthropic's for a server that is down or overloaded.
fn by_status(status: u16) -> Verdict {
    match status {
        // The body is too large: a shorter history is the remedy, as for a context that is too small.
        413 => Verdict::Overflow,
        408 | 409 | 425 | 429 | 500 | 502 | 503 | 504 | 520..=524 | 529 | 530 => Verdict::Retry,
        _ => Verdict::Refuse,
    }
}

fn look_up(table: &[(&str, Verdict)], codes: &[String]) -> Option<Verdict> {
    let row = |code: &String| table.iter().find(|(known, _)| known == code);
    codes.iter().find_map(row).map(|(_, verdict)| *verdict)
}

/// Providers' codes that decide whatever status they come with: a spent quota comes as 429, and no wait mends it.
pub(crate) const FIRM_CODES: &[(&str, Verdict)] = &[
    ("insufficient_quota", Verdict::Refuse),
    ("billing_hard_limit_reached", Verdict::Refuse),
    ("billing_not_active", Verdict::Refuse),
    ("invalid_api_key", Verdict::Refuse),
    ("model_not_found", Verdict::Refuse),
    ("content_policy_violation", Verdict::Refuse),
    ("content_filter", Verdict::Refuse),
    ("invalid_prompt", Verdict::Refuse),
];

/// Providers' codes that decide where no status does.
pub(crate) const CODES: &[(&str, Verdict)] = &[
    // OpenAI and those who copied it.
    ("rate_limit_exceeded", Verdict::Retry),
    ("server_error", Verdict::Retry),
    ("internal_server_error", Verdict::Retry),
    ("internalservererror", Verdict::Retry),
    ("service_unavailable", Verdict::Retry),
    ("unavailable_error", Verdict::Retry),
    ("engine_overloaded_error", Verdict::Retry),
    ("insufficient_system_resource", Verdict::Retry),
    // Google's statuses, through its OpenAI-compatible endpoint.
    ("resource_exhausted", Verdict::Retry),
    ("unavailable", Verdict::Retry),
    ("deadline_exceeded", Verdict::Retry),
    ("internal", Verdict::Retry),
    ("invalid_argument", Verdict::Refuse),
    ("permission_denied", Verdict::Refuse),
    ("unauthenticated", Verdict::Refuse),
    // Anthropic.
    ("overloaded_error", Verdict::Retry),
    ("api_error", Verdict::Retry),
    ("rate_limit_error", Verdict::Retry),
    ("timeout_error", Verdict::Retry),
    ("invalid_request_error", Verdict::Refuse),
    ("authentication_error", Verdict::Refuse),
    ("billing_error", Verdict::Refuse),
    ("permission_error", Verdict::Refuse),
    ("not_found_error", Verdict::Refuse),
];

/// Codes that mean a request too long for the model.
const OVERFLOW_CODES: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size_error",
    "request_too_large",
    "model_context_window_exceeded",
];

/// Wordings that mean it, lower case; all parts of a row must occur, in this order. Each is beside who says it.
pub(crate) const OVERFLOW_WORDS: &[(&str, &[&str])] = &[
    ("openai, azure, vllm, deepseek", &["maximum context length is"]),
    ("openai, azure", &["input tokens exceed the configured limit"]),
    ("openai, z.ai", &["exceeds the context window"]),
    ("openrouter", &["endpoint's maximum context length"]),
    ("anthropic", &["prompt is too long"]),
    ("anthropic", &["input length and `max_tokens` exceed context limit"]),
    ("anthropic", &["request exceeds the maximum size"]),
    ("vllm", &["longer than the maximum model length"]),
    ("vllm", &["max_tokens must be at least 1, got -"]),
    ("vllm, nvidia, meta", &["the model's context length is only"]),
    ("llama.cpp", &["exceeds the available context size"]),
    ("llama.cpp", &["context size has been exceeded"]),
    ("llama.cpp", &["prompt is too big"]),
    ("ollama", &["exceeds maximum context length"]),
    ("ollama", &["prompt too long", "context length"]),
    (
        "lm studio",
        &["tokens to keep from the initial prompt is greater than the context length"],
    ),
    ("lm studio", &["when context the overflows"]),
    ("lm studio", &["context length of only"]),
    ("sglang", &["is longer than the model's context length"]),
    ("sglang", &["exceeds the model's maximum context length"]),
    ("gemini", &["input token count", "exceeds the maximum number of tokens"]),
    ("mistral", &["too large for model with", "maximum context length"]),
    ("groq", &["reduce the length of the messages"]),
    ("groq, openai", &["request too large for"]),
    ("xai", &["maximum prompt length is"]),
    ("bedrock", &["input is too long for requested model"]),
    ("cohere", &["too many tokens", "cannot exceed"]),
    ("together", &["tokens + `max_new_tokens` must be"]),
    ("text-generation-inference", &["`inputs` must have less than", "tokens"]),
    ("moonshot", &["exceeded model token limit"]),
    ("dashscope", &["range of input length should be"]),
    ("minimax", &["context window exceeds limit"]),
    ("github copilot", &["prompt token count of", "exceeds the limit of"]),
    ("others", &["but the configured context size is"]),
    ("ollama, others", &["exceeds the context length"]),
];

fn overflows(codes: &[String], message: &str) -> bool {
    if codes
        .iter()
        .any(|code| OVERFLOW_CODES.contains(&code.as_str()) || code == "413")
    {
        return true;
    }
    let message = message.to_lowercase();
    OVERFLOW_WORDS.iter().any(|(_, parts)| says(&message, parts))
}

/// Whether a message, in lower case, holds all the parts, in their order.
pub(crate) fn says(message: &str, parts: &[&str]) -> bool {
    let mut rest = message;
    parts.iter().all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// The error object within a body, wherever servers put it. Absent: the body is no error.
pub(crate) fn error_object(body: &Value) -> Option<&Value> {
    let inner = |body: &'_ Value| -> bool { !matches!(body, Value::Null | Value::Bool(false)) };
    if let Some(error) = body.get("error").filter(|error| inner(error)) {
        return Some(error);
    }
    if body.get("type").and_then(Value::as_str) == Some("error")
        || body.get("object").and_then(Value::as_str) == Some("error")
    {
        return Some(body);
    }
    None
}

/// The longest message of a server's that is passed on, in characters.
const LONGEST_WORDS: usize = 1000;

/// What the server said, as one line.
fn words(error: &Value, body: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let lines: Vec<String> = items
                .iter()
                .filter_map(|item| item.get("msg").or_else(|| item.get("message")).and_then(Value::as_str))
                .map(str::to_owned)
                .collect();
            (!lines.is_empty()).then(|| lines.join("; "))
        }
        Value::Object(_) => value.get("message").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    let said = ["message", "detail", "msg"]
        .iter()
        .find_map(|key| error.get(key).and_then(text))
        .or_else(|| text(error))
        .or_else(|| {
            ["message", "detail", "msg"]
                .iter()
                .find_map(|key| body.get(key).and_then(text))
        })
        .unwrap_or_else(|| error.to_string());
    // OpenRouter puts the words of the provider behind it beside its own.
    let raw = error
        .pointer("/metadata/raw")
        .and_then(Value::as_str)
        .filter(|raw| !said.contains(raw));
    let whole = raw.map_or_else(|| said.clone(), |raw| format!("{said}: {raw}"));
    shorten(&whole)
}

/// One line, not too long.
pub(crate) fn shorten(text: &str) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(LONGEST_WORDS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
#[path = "fault_tests.rs"]
mod tests;
