//! Spans as OTLP has them: `ExportTraceServiceRequest` and what it holds, as Protocol Buffers.
//!
//! Written by hand: the numbers of these fields are frozen, and the crates that generate them would rebuild what
//! wasmtime is made from. The numbers stand beside each name, as `opentelemetry/proto/trace/v1/trace.proto` has them.

use serde_json::Value;

use super::span::{Attributes, Kind, Mark, Span};

/// The body of one request.
pub(super) fn body(resource: &[(String, String)], spans: &[Span]) -> Vec<u8> {
    request(resource, env!("CARGO_PKG_VERSION"), spans).0
}

fn request(resource: &[(String, String)], version: &str, spans: &[Span]) -> Message {
    let attributes = resource.iter().fold(Message::default(), |message, (key, value)| {
        message.message(1, &pair(key, &Message::default().text(1, value))) // attributes
    });
    let scope = Message::default().text(1, "fief").text(2, version); // name, version
    let scoped = spans
        .iter()
        .fold(Message::default().message(1, &scope), |message, one| {
            message.message(2, &span(one))
        }); // scope, spans
    let spans = Message::default().message(1, &attributes).message(2, &scoped); // resource, scope_spans
    Message::default().message(1, &spans) // resource_spans
}

fn span(span: &Span) -> Message {
    let kind = match span.kind {
        Kind::Internal => 1,
        Kind::Client => 3,
    };
    let mut message = Message::default()
        .bytes(1, &span.trace) // trace_id
        .bytes(2, &span.id) // span_id
        .bytes(4, span.parent.as_ref().map_or(&[][..], |id| id)) // parent_span_id
        .text(5, &span.name)
        .number(6, kind)
        .fixed64(7, span.start) // start_time_unix_nano
        .fixed64(8, span.end) // end_time_unix_nano
        .attributes(9, &span.attributes);
    for mark in &span.events {
        message = message.message(11, &event(mark));
    }
    // Unset where nothing failed: "ok" is an operator's word, by the conventions.
    if let Some(error) = &span.error {
        let status = Message::default()
            .text(2, error.words.as_deref().unwrap_or_default())
            .number(3, 2); // message, code
        message = message.message(15, &status);
    }
    // Sampled: every span is sent.
    message.fixed32(16, 1) // flags
}

fn event(mark: &Mark) -> Message {
    Message::default()
        .fixed64(1, mark.at) // time_unix_nano
        .text(2, mark.name)
        .attributes(3, &mark.attributes)
}

/// A `KeyValue`.
fn pair(key: &str, value: &Message) -> Message {
    Message::default().text(1, key).message(2, value)
}

/// An `AnyValue`.
fn any(value: &Value) -> Message {
    let message = Message::default();
    match value {
        Value::String(text) => message.some_bytes(1, text.as_bytes()),
        Value::Bool(flag) => message.some_number(2, u64::from(*flag)),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => message.some_number(3, whole.cast_unsigned()),
            (None, float) => message.some_fixed64(4, float.unwrap_or_default().to_bits()),
        },
        Value::Array(items) => {
            let values = items
                .iter()
                .fold(Message::default(), |list, item| list.message(1, &any(item)));
            message.message(5, &values) // array_value
        }
        Value::Null => message,
        object @ Value::Object(_) => message.some_bytes(1, object.to_string().as_bytes()),
    }
}

/// A Protocol Buffers message while it is written. A field that has its default is left out, as the format has it, save
/// by the methods that begin with `some_`: a value among alternatives is there even if it is 0.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn key(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    fn some_number(mut self, field: u64, value: u64) -> Self {
        self.key(field, 0);
        self.varint(value);
        self
    }

    fn some_fixed64(mut self, field: u64, value: u64) -> Self {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn some_bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.key(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn number(self, field: u64, value: u64) -> Self {
        if value == 0 {
            self
        } else {
            self.some_number(field, value)
        }
    }

    fn fixed64(self, field: u64, value: u64) -> Self {
        if value == 0 {
            self
        } else {
            self.some_fixed64(field, value)
        }
    }

    fn fixed32(mut self, field: u64, value: u32) -> Self {
        self.key(field, 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(self, field: u64, bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            self
        } else {
            self.some_bytes(field, bytes)
        }
    }

    fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    /// A message is there even if it is empty.
    fn message(self, field: u64, message: &Self) -> Self {
        self.some_bytes(field, &message.0)
    }

    fn attributes(self, field: u64, attributes: &Attributes) -> Self {
        let known = attributes.0.iter();
        known.fold(self, |message, (key, value)| {
            message.message(field, &pair(key, &any(value)))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::span::Failure;
    use super::*;

    /// The bytes that the messages of `opentelemetry-proto` 0.33 encode the same span to.
    #[test]
    fn a_span_is_encoded_as_the_published_messages_are() {
        let mut attributes = Attributes::default();
        for value in [
            json!("x"),
            json!(""),
            json!(0),
            json!(-3),
            json!(0.5),
            json!(true),
            json!(["a", 1]),
        ] {
            attributes.value("k", value);
        }
        let span = Span {
            trace: [1; 16],
            id: [2; 8],
            parent: Some([3; 8]),
            name: "chat gpt-5".into(),
            kind: Kind::Client,
            start: 1_000,
            end: 300_000_000_000,
            attributes: attributes.clone(),
            events: vec![Mark {
                name: "fief.retry",
                at: 5,
                attributes,
            }],
            error: Some(Failure {
                kind: "refused",
                words: Some("no".into()),
            }),
        };
        let root = Span {
            parent: None,
            error: None,
            events: Vec::new(),
            attributes: Attributes::default(),
            kind: Kind::Internal,
            ..span.clone()
        };
        let resource = [("service.name".to_owned(), "fief".to_owned())];
        let encoded = hex::encode(request(&resource, "0.1.0", &[span, root]).0);
        assert_eq!(encoded, include_str!("span.hex").trim());
    }
}
