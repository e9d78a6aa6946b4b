#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn status(status: u16, body: &Value) -> Verdict {
    Fault::of_error(Cause::Status(status), body).verdict()
}

#[test]
fn every_row_of_the_code_tables_decides_by_itself() {
    for (code, verdict) in FIRM_CODES.iter().chain(CODES) {
        let frame = Fault::of_error(Cause::Frame, &json!({"error": {"type": code, "message": "x"}}));
        assert_eq!(frame.verdict(), *verdict, "{code}");
        let frame = Fault::of_error(
            Cause::Frame,
            &json!({"error": {"code": code.to_uppercase(), "message": "x"}}),
        );
        assert_eq!(frame.verdict(), *verdict, "{code}");
    }
    for (code, verdict) in FIRM_CODES {
        assert_eq!(status(429, &json!({"error": {"code": code}})), *verdict, "{code}");
    }
}

#[test]
fn every_cause_decides_where_no_server_speaks() {
    for (cause, verdict, kind) in [
        (Cause::Connect, Verdict::Retry, ModelErrorKind::Unavailable),
        (Cause::Slow, Verdict::Retry, ModelErrorKind::Unavailable),
        (Cause::Cut, Verdict::Retry, ModelErrorKind::Unavailable),
        (Cause::Idle, Verdict::Retry, ModelErrorKind::Unavailable),
        (Cause::Garbled, Verdict::Retry, ModelErrorKind::Unavailable),
        // No other attempt meets another certificate.
        (Cause::Tls, Verdict::Refuse, ModelErrorKind::Unavailable),
        (Cause::Redirect, Verdict::Refuse, ModelErrorKind::Refused),
        (Cause::Page, Verdict::Refuse, ModelErrorKind::Refused),
        (Cause::TooLarge, Verdict::Refuse, ModelErrorKind::Refused),
        (Cause::Status(503), Verdict::Retry, ModelErrorKind::Unavailable),
        (Cause::Status(413), Verdict::Overflow, ModelErrorKind::ContextOverflow),
        (Cause::Status(401), Verdict::Refuse, ModelErrorKind::Refused),
        (Cause::Frame, Verdict::Retry, ModelErrorKind::Unavailable),
    ] {
        let fault = Fault::new(cause, "x");
        assert_eq!((fault.verdict(), fault.kind()), (verdict, kind), "{cause:?}");
    }
}

#[test]
fn statuses_decide_without_codes() {
    for retried in [408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529, 530] {
        assert_eq!(status(retried, &json!({})), Verdict::Retry, "{retried}");
    }
    for refused in [400, 401, 402, 403, 404, 405, 410, 415, 422, 451, 501, 505] {
        assert_eq!(status(refused, &json!({})), Verdict::Refuse, "{refused}");
    }
    assert_eq!(status(413, &json!({})), Verdict::Overflow);
}

#[test]
fn what_providers_send_is_told_apart() {
    let rows = [
        (
            "openai rate",
            429,
            json!({"error": {"message": "Rate limit reached", "type": "requests",
            "code": "rate_limit_exceeded"}}),
            Verdict::Retry,
        ),
        (
            "openai quota",
            429,
            json!({"error": {"message": "You exceeded your current quota",
            "type": "insufficient_quota", "code": "insufficient_quota"}}),
            Verdict::Refuse,
        ),
        (
            "openai key",
            401,
            json!({"error": {"message": "Incorrect API key provided",
            "type": "invalid_request_error", "code": "invalid_api_key"}}),
            Verdict::Refuse,
        ),
        (
            "openai server",
            500,
            json!({"error": {"message": "The server had an error", "type": "server_error"}}),
            Verdict::Retry,
        ),
        (
            "openai model",
            404,
            json!({"error": {"message": "no such model", "code": "model_not_found"}}),
            Verdict::Refuse,
        ),
        (
            "azure filter",
            400,
            json!({"error": {"code": "content_filter", "message": "filtered"}}),
            Verdict::Refuse,
        ),
        (
            "anthropic overloaded",
            529,
            json!({"type": "error", "error": {"type": "overloaded_error",
            "message": "Overloaded"}}),
            Verdict::Retry,
        ),
        (
            "anthropic rate",
            429,
            json!({"type": "error", "error": {"type": "rate_limit_error"}}),
            Verdict::Retry,
        ),
        (
            "anthropic bad",
            400,
            json!({"type": "error", "error": {"type": "invalid_request_error",
            "message": "max_tokens: Field required"}}),
            Verdict::Refuse,
        ),
        (
            "anthropic key",
            401,
            json!({"type": "error", "error": {"type": "authentication_error"}}),
            Verdict::Refuse,
        ),
        (
            "llama.cpp loading",
            503,
            json!({"error": {"code": 503, "message": "Loading model",
            "type": "unavailable_error"}}),
            Verdict::Retry,
        ),
        (
            "vllm bad",
            400,
            json!({"object": "error", "message": "bad tools", "type": "BadRequestError",
            "code": 400}),
            Verdict::Refuse,
        ),
        (
            "ollama missing",
            404,
            json!({"error": {"message": "model not found", "type": "api_error"}}),
            Verdict::Refuse,
        ),
        (
            "openrouter credits",
            402,
            json!({"error": {"message": "Insufficient credits", "code": 402}}),
            Verdict::Refuse,
        ),
        (
            "gemini exhausted",
            429,
            json!([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}]),
            Verdict::Retry,
        ),
        ("proxy page", 502, json!("<html>bad gateway</html>"), Verdict::Retry),
        (
            "one code on everything",
            503,
            json!({"error": {"type": "invalid_request_error"}}),
            Verdict::Retry,
        ),
    ];
    for (name, code, body, verdict) in rows {
        // Ollama's `api_error` is its name for every failure; with a status that says more, the status decides.
        let expected = if name == "ollama missing" {
            Verdict::Refuse
        } else {
            verdict
        };
        assert_eq!(status(code, &body), expected, "{name}");
    }
    let frames = [
        (
            "openrouter",
            json!({"error": {"code": 502, "message": "Provider returned error"}}),
            Verdict::Retry,
        ),
        (
            "openrouter",
            json!({"error": {"code": 403, "message": "flagged"}}),
            Verdict::Refuse,
        ),
        ("unknown", json!({"error": "something broke"}), Verdict::Retry),
    ];
    for (name, body, verdict) in frames {
        assert_eq!(Fault::of_error(Cause::Frame, &body).verdict(), verdict, "{name}");
    }
}

#[test]
fn overflow_is_recognised_in_every_wording() {
    let rows: &[(u16, &str)] = &[
        (
            400,
            "This model's maximum context length is 4097 tokens. However, your messages resulted in 4200 tokens.",
        ),
        (
            400,
            "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens",
        ),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (
            400,
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
        ),
        (
            400,
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        ),
        (400, "max_tokens must be at least 1, got -100."),
        (400, "the request exceeds the available context size, try increasing it"),
        (500, "Context size has been exceeded."),
        (400, "prompt too long; exceeded max context length by 100 tokens"),
        (
            400,
            "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with \
               context length of only 4096 tokens",
        ),
        (
            400,
            "The input (10000 tokens) is longer than the model's context length (8192 tokens).",
        ),
        (
            400,
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
        (
            400,
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        ),
        (
            413,
            "Request too large for model `llama` on tokens per minute (TPM): Limit 6000, Requested 8000",
        ),
        (
            429,
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 35000.",
        ),
        (
            400,
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        ),
        (400, "Please reduce the length of the messages or completion."),
        (400, "ValidationException: Input is too long for requested model."),
        (
            400,
            "too many tokens: total number of tokens in the prompt cannot exceed 4081",
        ),
        (
            422,
            "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
        ),
        (400, "Invalid request: Your request exceeded model token limit: 8192"),
    ];
    for (code, message) in rows {
        let fault = Fault::of_error(Cause::Status(*code), &json!({"error": {"message": message}}));
        assert_eq!(fault.verdict(), Verdict::Overflow, "{message}");
        assert_eq!(fault.kind(), ModelErrorKind::ContextOverflow);
    }
    for code in OVERFLOW_CODES {
        let fault = Fault::of_error(Cause::Frame, &json!({"error": {"message": "x", "code": code}}));
        assert_eq!(fault.verdict(), Verdict::Overflow, "{code}");
    }
}

#[test]
fn words_that_only_resemble_an_overflow_are_none() {
    for message in [
        "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024",
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000. Please try again in 2s.",
        "max_tokens: must be at least 1",
        "context is required",
    ] {
        let fault = Fault::of_error(Cause::Status(400), &json!({"error": {"message": message}}));
        assert_eq!(fault.verdict(), Verdict::Refuse, "{message}");
    }
    // A broken connection is never an overflow, whatever text is about.
    let cut = Fault::new(Cause::Cut, "prompt is too long");
    assert_eq!(cut.verdict(), Verdict::Retry);
}

#[test]
fn the_servers_words_are_found_wherever_they_stand() {
    for (body, expected) in [
        (json!({"error": {"message": "a\n  b"}}), "a b"),
        (json!({"error": "plain"}), "plain"),
        (
            json!({"detail": [{"loc": ["body"], "msg": "Field required"}, {"msg": "x"}]}),
            "Field required; x",
        ),
        (json!({"detail": "Not Found"}), "Not Found"),
        (json!({"object": "error", "message": "m"}), "m"),
        (
            json!({"error": {"message": "Provider returned error", "metadata": {"raw": "too busy"}}}),
            "Provider returned error: too busy",
        ),
        (json!({"error": {"odd": 1}}), "{\"odd\":1}"),
    ] {
        assert_eq!(Fault::of_error(Cause::Frame, &body).message, expected);
    }
    assert_eq!(shorten(&"é".repeat(2000)).chars().count(), LONGEST_WORDS + 1);
}
