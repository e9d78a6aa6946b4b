//! No text, whatever it holds, makes a parser panic; and every error stands at a place that the text has.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::archetype::mapping::ToolMapping;
use super::archetype::{markdown, toml};
use super::error::{ManifestError, Source};
use super::files::tests::Pretend;
use super::{config, plugin};

fn all(text: &str) {
    let sound = |error: &ManifestError| {
        let place = &error.place;
        assert!(place.source.text.get(place.span.clone()).is_some());
        assert!(place.line >= 1 && place.column >= 1 && !error.message.is_empty());
    };
    let source = || Source::new("/w/x", text);
    let known = markdown::Known {
        mapping: &ToolMapping::default(),
        tools: Some(&Default::default()),
        models: None,
    };
    toml::parse(source(), &Pretend::default()).iter().for_each(|_| {});
    let errors = [
        toml::parse(source(), &Pretend::default()).err(),
        plugin::parse(source()).err(),
        config::parse(source()).err(),
        markdown::parse(source())
            .and_then(|markdown| markdown.resolve(known))
            .err(),
    ];
    errors.iter().flatten().flatten().for_each(sound);
}

/// Pieces of manifests, put together at random: nearer to the parsers' inner parts than random text.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "name",
        "description",
        "instruction",
        "tools",
        "[tools.grant]",
        "[[tools]]",
        "plugin",
        "http",
        "files",
        "host",
        "guest",
        "limits",
        "memory",
        "[policy]",
        "read",
        "[models.m]",
        "provider",
        "[agents.config]",
        "budget",
        "[needs]",
        "disallowedTools",
        "model",
        "---",
        "---\n",
        "- ",
        ": ",
        "{",
        "}",
        "[",
        "]",
        "[[",
        "]]",
        "=",
        " = ",
        ",",
        "\"",
        "'",
        "\"\"\"",
        "\n",
        "\n  ",
        "\t",
        "*",
        "&a",
        "*a",
        "<<: ",
        "-1",
        "0",
        "1e999",
        "nan",
        "9223372036854775808",
        "true",
        "null",
        "~",
        "2026-12-01",
        "ä",
        "\u{feff}",
        "\u{0}",
        "!!binary ",
        "|",
        ">",
        "#",
        "%",
        "{{",
        "{%",
        "\r",
        "a",
        "Read",
        "Bash(",
        ")",
        "files.*",
        "../",
        "/",
        "https://x",
        "\u{1F600}",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,200}") {
        all(&text);
    }

    #[test]
    fn arbitrary_pieces_never_panic(text in pieces()) {
        all(&text);
        all(&format!("---\n{text}\n---\nbody"));
    }
}

#[test]
fn deep_nesting_is_an_error_and_no_stack_is_lost() {
    for text in [
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}{}", "[".repeat(60), "]".repeat(60)),
        format!("{}a = 1", "a.".repeat(50_000)),
        format!("{}a = 1", "a.".repeat(60)),
        format!("---\na: {}\n---\nb", "[".repeat(100_000)),
        format!("---\na: {}{}\n---\nb", "[".repeat(60), "]".repeat(60)),
    ] {
        all(&text);
        assert!(config::parse(Source::new("x", text.as_str())).is_err());
        assert!(markdown::parse(Source::new("x", text)).is_err());
    }
}

#[test]
fn aliases_that_multiply_are_an_error() {
    let mut text = "---\na0: &a0 [x, x]\n".to_owned();
    for n in 1..40 {
        let before = n - 1;
        text.push_str(&format!(
            "a{n}: &a{n} [*a{before}, *a{before}, *a{before}, *a{before}]\n"
        ));
    }
    text.push_str("---\nbody");
    assert!(markdown::parse(Source::new("x", text)).is_err());
}
