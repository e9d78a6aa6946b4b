//! What each provider answers when it fails, from a socket, for every format: what a retry mends, what it does not, and
//! what is a request that is too long.

use fief_core::port::ModelErrorKind::{self, ContextOverflow, Refused, Unavailable};
use serde_json::{Value, json};

use super::formats;
use crate::fake::{Fake, ask_at, error};
use crate::fault::{OVERFLOW_WORDS, says};

/// Who, with which status, and what follows.
type Row = (&'static str, u16, Value, ModelErrorKind);

fn said(message: &str) -> Value {
    json!({"error": {"message": message}})
}

fn coded(message: &str, kind: &str, code: impl Into<Value>) -> Value {
    json!({"error": {"message": message, "type": kind, "code": code.into()}})
}

fn claude(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})
}

fn failures() -> Vec<Row> {
    vec![
        (
            "openai",
            400,
            coded("Unknown parameter: 'x'.", "invalid_request_error", "unknown_parameter"),
            Refused,
        ),
        (
            "openai",
            401,
            coded("Incorrect API key provided", "invalid_request_error", "invalid_api_key"),
            Refused,
        ),
        (
            "openai",
            403,
            coded(
                "Country not supported",
                "request_forbidden",
                "unsupported_country_region_territory",
            ),
            Refused,
        ),
        (
            "openai",
            404,
            coded(
                "The model `x` does not exist",
                "invalid_request_error",
                "model_not_found",
            ),
            Refused,
        ),
        (
            "openai",
            429,
            coded("Rate limit reached for gpt-4o", "tokens", "rate_limit_exceeded"),
            Unavailable,
        ),
        (
            "openai",
            429,
            coded(
                "You exceeded your current quota",
                "insufficient_quota",
                "insufficient_quota",
            ),
            Refused,
        ),
        (
            "openai",
            500,
            coded("The server had an error", "server_error", Value::Null),
            Unavailable,
        ),
        (
            "openai",
            503,
            coded("The engine is currently overloaded", "server_error", Value::Null),
            Unavailable,
        ),
        (
            "azure",
            401,
            json!({"error": {"code": "401", "message": "Access denied due to invalid subscription key"}}),
            Refused,
        ),
        (
            "azure",
            404,
            json!({"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist"}}),
            Refused,
        ),
        (
            "azure",
            400,
            json!({"error": {"code": "content_filter", "status": 400, "message": "filtered",
            "innererror": {"code": "ResponsibleAIPolicyViolation"}}}),
            Refused,
        ),
        (
            "azure",
            429,
            json!({"error": {"code": "429", "message": "Requests have exceeded call rate limit"}}),
            Unavailable,
        ),
        (
            "azure",
            408,
            json!({"error": {"code": "Timeout", "message": "The operation was timeout."}}),
            Unavailable,
        ),
        (
            "openrouter",
            401,
            json!({"error": {"code": 401, "message": "No auth credentials found"}}),
            Refused,
        ),
        (
            "openrouter",
            402,
            json!({"error": {"code": 402, "message": "Insufficient credits"}}),
            Refused,
        ),
        (
            "openrouter",
            403,
            json!({"error": {"code": 403, "message": "Your input was flagged",
            "metadata": {"reasons": ["violence"], "flagged_input": "x"}}}),
            Refused,
        ),
        (
            "openrouter",
            408,
            json!({"error": {"code": 408, "message": "Request timed out"}}),
            Unavailable,
        ),
        (
            "openrouter",
            429,
            json!({"error": {"code": 429, "message": "Provider returned error",
            "metadata": {"raw": "x is temporarily rate-limited upstream", "provider_name": "x"}}}),
            Unavailable,
        ),
        (
            "openrouter",
            502,
            json!({"error": {"code": 502, "message": "Provider returned error"}}),
            Unavailable,
        ),
        (
            "openrouter",
            503,
            json!({"error": {"code": 503, "message": "No available model provider"}}),
            Unavailable,
        ),
        (
            "ollama",
            404,
            coded("model 'x' not found", "api_error", Value::Null),
            Refused,
        ),
        (
            "ollama",
            400,
            said("registry.ollama.ai/library/x:latest does not support tools"),
            Refused,
        ),
        (
            "ollama",
            500,
            coded("llama runner process has terminated", "api_error", Value::Null),
            Unavailable,
        ),
        (
            "ollama",
            503,
            said("server busy, please try again. maximum pending requests exceeded"),
            Unavailable,
        ),
        (
            "vllm",
            400,
            json!({"object": "error", "message": "\"auto\" tool choice requires --enable-auto-tool-choice",
            "type": "BadRequestError", "param": null, "code": 400}),
            Refused,
        ),
        (
            "vllm",
            404,
            json!({"object": "error", "message": "The model `x` does not exist.", "type": "NotFoundError",
            "code": 404}),
            Refused,
        ),
        (
            "vllm",
            500,
            json!({"object": "error", "message": "EngineCore died", "type": "InternalServerError",
            "code": 500}),
            Unavailable,
        ),
        (
            "llama.cpp",
            503,
            json!({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}),
            Unavailable,
        ),
        (
            "llama.cpp",
            400,
            json!({"error": {"code": 400, "message": "Missing 'messages'", "type": "invalid_request_error"}}),
            Refused,
        ),
        (
            "llama.cpp",
            401,
            json!({"error": {"code": 401, "message": "Invalid API Key", "type": "authentication_error"}}),
            Refused,
        ),
        (
            "llama.cpp",
            500,
            json!({"error": {"code": 500, "message": "failed to decode", "type": "server_error"}}),
            Unavailable,
        ),
        (
            "llama.cpp",
            501,
            json!({"error": {"code": 501, "message": "tools need --jinja", "type": "not_supported_error"}}),
            Refused,
        ),
        (
            "lm studio",
            404,
            coded(
                "No models loaded. Please load a model",
                "invalid_request_error",
                "model_not_found",
            ),
            Refused,
        ),
        (
            "lm studio",
            400,
            json!({"error": "Error rendering prompt with jinja template"}),
            Refused,
        ),
        (
            "anthropic",
            400,
            claude("invalid_request_error", "max_tokens: Field required"),
            Refused,
        ),
        (
            "anthropic",
            401,
            claude("authentication_error", "invalid x-api-key"),
            Refused,
        ),
        (
            "anthropic",
            402,
            claude("billing_error", "Your credit balance is too low"),
            Refused,
        ),
        ("anthropic", 403, claude("permission_error", "no access"), Refused),
        ("anthropic", 404, claude("not_found_error", "model: x"), Refused),
        (
            "anthropic",
            429,
            claude("rate_limit_error", "would exceed your rate limit"),
            Unavailable,
        ),
        (
            "anthropic",
            500,
            claude("api_error", "Internal server error"),
            Unavailable,
        ),
        (
            "anthropic",
            504,
            claude("timeout_error", "Request timed out"),
            Unavailable,
        ),
        ("anthropic", 529, claude("overloaded_error", "Overloaded"), Unavailable),
        (
            "gemini",
            429,
            json!([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota"}}]),
            Unavailable,
        ),
        (
            "gemini",
            503,
            json!([{"error": {"code": 503, "status": "UNAVAILABLE", "message": "overloaded"}}]),
            Unavailable,
        ),
        (
            "gemini",
            400,
            json!([{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "bad"}}]),
            Refused,
        ),
        (
            "deepseek",
            402,
            coded("Insufficient Balance", "unknown_error", "invalid_request_error"),
            Refused,
        ),
        ("cloudflare", 524, Value::Null, Unavailable),
    ]
}

#[rustfmt::skip]
fn overflows() -> Vec<Row> {
    let row = |who: &'static str, status: u16, message: &str| (who, status, said(message), ContextOverflow);
    vec![
        ("openai", 400, coded("This model's maximum context length is 4097 tokens. However, your messages resulted in \
            4200 tokens.", "invalid_request_error", "context_length_exceeded"), ContextOverflow),
        row("openai", 400, "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 302473 tokens."),
        row("openai", 400, "Your input exceeds the context window of this model. Please adjust your input and try again."),
        ("openai", 429, coded("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 35000.",
            "tokens", "rate_limit_exceeded"), ContextOverflow),
        ("azure", 400, coded("too long", "invalid_request_error", "context_length_exceeded"), ContextOverflow),
        row("openrouter", 400, "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens"),
        ("openrouter", 400, json!({"error": {"code": 400, "message": "Provider returned error", "metadata":
            {"raw": "{\"error\":{\"message\":\"prompt is too long: 213462 tokens > 200000 maximum\"}}"}}}), ContextOverflow),
        row("ollama", 400, "prompt too long; exceeded max context length by 100 tokens"),
        row("ollama", 400, "input of 9000 tokens exceeds maximum context length"),
        row("ollama", 500, "the input length exceeds the context length"),
        ("vllm", 400, json!({"object": "error", "type": "BadRequestError", "code": 400, "message": "This model's maximum \
            context length is 4096 tokens. However, you requested 4726 tokens"}), ContextOverflow),
        row("vllm", 400, "You passed 99073 input tokens and requested 32000 output tokens. However, the model's context length \
            is only 131072 tokens, resulting in a maximum input length of 99072 tokens."),
        row("vllm", 400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
        row("vllm", 400, "max_tokens must be at least 1, got -100."),
        ("llama.cpp", 400, json!({"error": {"code": 400, "type": "exceed_context_size_error", "message": "request (4024 \
            tokens) exceeds the available context size (2048 tokens), try increasing it"}}), ContextOverflow),
        row("llama.cpp", 500, "Context size has been exceeded."),
        row("llama.cpp", 500, "input prompt is too big compared to KV size"),
        ("lm studio", 400, json!({"error": "Trying to keep the first 5000 tokens when context the overflows. However, the \
            model is loaded with context length of only 4096 tokens, which is not enough."}), ContextOverflow),
        row("lm studio", 400, "The number of tokens to keep from the initial prompt is greater than the context length."),
        ("anthropic", 400, claude("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), ContextOverflow),
        ("anthropic", 400, claude("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + \
            20000 > 200000"), ContextOverflow),
        ("anthropic", 413, claude("request_too_large", "Request exceeds the maximum size"), ContextOverflow),
        row("sglang", 400, "The input (10000 tokens) is longer than the model's context length (8192 tokens)."),
        row("sglang", 400, "Requested token count exceeds the model's maximum context length of 8192 tokens."),
        row("gemini", 400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        row("mistral", 400, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
        row("groq", 413, "Request too large for model `llama` on tokens per minute (TPM): Limit 6000, Requested 8000"),
        row("groq", 400, "Please reduce the length of the messages or completion."),
        row("xai", 400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
        row("bedrock", 400, "ValidationException: Input is too long for requested model."),
        row("cohere", 400, "too many tokens: total number of tokens in the prompt cannot exceed 4081"),
        row("together", 422, "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000"),
        row("text-generation-inference", 422, "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000"),
        row("moonshot", 400, "Invalid request: Your request exceeded model token limit: 8192"),
        row("dashscope", 400, "InternalError.Algo.InvalidParameter: Range of input length should be [1, 202745]"),
        row("minimax", 400, "invalid params, context window exceeds limit"),
        row("github copilot", 400, "prompt token count of 70000 exceeds the limit of 64000"),
        row("others", 400, "Prompt has 32769 tokens, but the configured context size is 32768 tokens"),
    ]
}

#[tokio::test]
async fn each_failure_of_each_provider_is_retried_or_not() {
    for format in formats() {
        for (who, status, body, kind) in failures().into_iter().chain(overflows()) {
            let what = format!("{}: {who} {status} {body}", format.provider);
            let fake = Fake::answering(error(&format!("{status} Status"), &body)).await;
            let asked = ask_at(format.provider, &fake).await;
            let failed = asked.outcome.expect_err(&what);
            assert_eq!(failed.kind, kind, "{what}: {failed}");
            assert_eq!(asked.retries.len(), usize::from(kind == Unavailable), "{what}");
            assert_eq!(fake.received().len(), asked.retries.len() + 1, "{what}");
        }
    }
}

#[test]
fn every_wording_of_an_overflow_is_somebodys() {
    let samples: Vec<String> = overflows()
        .iter()
        .map(|(_, _, body, _)| body.to_string().to_lowercase())
        .collect();
    for (who, parts) in OVERFLOW_WORDS {
        assert!(samples.iter().any(|sample| says(sample, parts)), "{who}: {parts:?}");
    }
    for who in [
        "openai",
        "azure",
        "openrouter",
        "ollama",
        "vllm",
        "llama.cpp",
        "lm studio",
        "anthropic",
    ] {
        let both = [failures(), overflows()];
        assert!(
            both.iter().all(|rows| rows.iter().any(|(name, ..)| *name == who)),
            "{who}"
        );
    }
}
