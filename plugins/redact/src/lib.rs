//! `redact`: a filter that takes keys, tokens and e-mail addresses out of what tools return, before a model sees it.
//!
//! It knows what it looks for by its form. The host redacts the secrets that it holds itself, wherever they appear; this
//! filter is for those that lie in files and pages and that nobody told the host about.

mod patterns;

use fief_plugin::{Blob, Content, Filter, OutcomeVerdict, Output, Subject, ToolError};

use patterns::Patterns;

/// The filter.
#[derive(Default)]
pub struct Redact;

impl Filter for Redact {
    fn after_call(&self, _: &Subject, outcome: Result<Output, ToolError>) -> OutcomeVerdict {
        match Patterns::new(std::env::var("REDACT_PATTERNS").ok().as_deref()) {
            Ok(patterns) => verdict(&patterns, outcome),
            // With a pattern missing, what it was to catch would get through.
            Err(error) => OutcomeVerdict::Refuse(format!("`REDACT_PATTERNS` cannot be used: {error}")),
        }
    }
}

fn verdict(patterns: &Patterns, outcome: Result<Output, ToolError>) -> OutcomeVerdict {
    match outcome {
        Ok(output) => {
            let clean = redacted(patterns, &output);
            if clean == output {
                OutcomeVerdict::Pass
            } else {
                OutcomeVerdict::Change(clean)
            }
        }
        Err(error) => {
            let clean = patterns.redact(error.message());
            // An outcome cannot become another error: the redacted one is told as the reason.
            if clean == error.message() {
                OutcomeVerdict::Pass
            } else {
                OutcomeVerdict::Refuse(clean)
            }
        }
    }
}

fn redacted(patterns: &Patterns, output: &Output) -> Output {
    let part = |part: &Content| match part {
        Content::Text(text) => Content::Text(patterns.redact(text)),
        Content::File(blob) => match std::str::from_utf8(&blob.data) {
            Ok(text) => {
                let data = patterns.redact(text).into_bytes();
                Content::File(Blob {
                    media_type: blob.media_type.clone(),
                    data,
                })
            }
            Err(_) => part.clone(),
        },
        Content::Image(_) | Content::Audio(_) => part.clone(),
    };
    Output {
        content: output.content.iter().map(part).collect(),
        structured: output.structured.as_deref().map(|json| structured(patterns, json)),
    }
}

/// Inside JSON a line break is written `\n`: what spans lines is only found in the strings themselves.
fn structured(patterns: &Patterns, json: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<serde_json::Value>(json) else {
        return patterns.redact(json);
    };
    let before = value.clone();
    walk(patterns, &mut value);
    if value == before {
        json.to_owned()
    } else {
        value.to_string()
    }
}

fn walk(patterns: &Patterns, value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => *text = patterns.redact(text),
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| walk(patterns, item)),
        serde_json::Value::Object(fields) => {
            let redacted = std::mem::take(fields).into_iter().map(|(key, mut value)| {
                walk(patterns, &mut value);
                // `{"password": "…"}` is as plain as `password = …`.
                if let serde_json::Value::String(text) = &mut value
                    && patterns.names_a_secret(&key)
                    && !text.is_empty()
                {
                    *text = "[redacted secret]".to_owned();
                }
                (patterns.redact(&key), value)
            });
            *fields = redacted.collect();
        }
        _ => {}
    }
}

fief_plugin::export_filter!(Redact);

#[cfg(test)]
mod tests;
