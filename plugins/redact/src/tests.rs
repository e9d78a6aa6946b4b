#![allow(clippy::unwrap_used)]

use fief_plugin::{Blob, Content, OutcomeVerdict, Output, ToolError};

use super::{Patterns, verdict};

fn redact(text: &str) -> String {
    Patterns::new(None).unwrap().redact(text)
}

#[test]
fn what_has_the_form_of_a_secret_goes() {
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----";
    let table = [
        (format!("a\n{key}\nb"), "a\n[redacted private key]\nb"),
        (
            "-----BEGIN PRIVATE KEY-----\ncut off".to_owned(),
            "[redacted private key]",
        ),
        ("id AKIAIOSFODNN7EXAMPLE.".to_owned(), "id [redacted AWS key]."),
        (format!("x ghp_{} y", "a1".repeat(18)), "x [redacted GitHub token] y"),
        (format!("sk-proj-{}", "a1".repeat(20)), "[redacted API key]"),
        ("xoxb-123456789012-abc".to_owned(), "[redacted Slack token]"),
        (
            "authorization: Bearer abcdefghijklmnop1234".to_owned(),
            "authorization: [redacted credentials]",
        ),
        (
            "mail Ada.Lovelace+x@mail.example.co.uk now".to_owned(),
            "mail [redacted e-mail address] now",
        ),
        (
            "postgres://ada:hunter2@db.example/x".to_owned(),
            "postgres://ada:[redacted password]@db.example/x",
        ),
        (
            "API_KEY = \"correct horse\"".to_owned(),
            "API_KEY = \"[redacted secret]\"",
        ),
        ("password: hunter2hunter2".to_owned(), "password: [redacted secret]"),
        (
            "{\"client_secret\": \"abcdefgh\"}".to_owned(),
            "{\"client_secret\": \"[redacted secret]\"}",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(redact(&text), expected, "{text}");
        assert_eq!(redact(&redact(&text)), expected, "twice: {text}");
    }
}

#[test]
fn what_only_looks_like_one_stays() {
    for text in [
        "let token = next();",
        "the password is asked for",
        "fn secret(x: u8) -> Token",
        "tokens: 12",
        "user@host",
        "a sk-8 board",
        "https://example.com:8080/@name",
        "",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn the_operators_own_patterns_count() {
    let patterns = Patterns::new(Some("PRJ-\\d+\n\n  (?i)acme  \n")).unwrap();
    assert_eq!(
        patterns.redact("PRJ-12 for ACME"),
        "[redacted pattern] for [redacted pattern]"
    );
    assert!(Patterns::new(Some("(")).is_err());
    assert_eq!(Patterns::new(Some("x*")).unwrap().redact("axb"), "a[redacted pattern]b");
}

#[test]
fn every_part_of_an_outcome_is_looked_at() {
    let patterns = Patterns::new(None).unwrap();
    let file = |text: &str| {
        Content::File(Blob {
            media_type: "text/plain".into(),
            data: text.into(),
        })
    };
    let image = Content::Image(Blob {
        media_type: "image/png".into(),
        data: b"a@example.com".to_vec(),
    });
    let output = Output {
        content: vec![
            Content::Text("a@example.com".into()),
            file("b@example.com"),
            image.clone(),
        ],
        structured: Some(r#"{"n":1,"password":"x","list":["-----BEGIN PRIVATE KEY-----\nabc"]}"#.into()),
    };
    let OutcomeVerdict::Change(clean) = verdict(&patterns, Ok(output)) else {
        panic!("not changed")
    };
    let mail = "[redacted e-mail address]";
    assert_eq!(clean.content, [Content::Text(mail.into()), file(mail), image]);
    let structured: serde_json::Value = serde_json::from_str(&clean.structured.unwrap()).unwrap();
    let expected = serde_json::json!({"n": 1, "password": "[redacted secret]", "list": ["[redacted private key]"]});
    assert_eq!(structured, expected);
    assert_eq!(verdict(&patterns, Ok(Output::text("nothing"))), OutcomeVerdict::Pass);
    let error = verdict(&patterns, Err(ToolError::failed("no mailbox a@example.com")));
    assert_eq!(error, OutcomeVerdict::Refuse(format!("no mailbox {mail}")));
    assert_eq!(verdict(&patterns, Err(ToolError::failed("no"))), OutcomeVerdict::Pass);
}

proptest::proptest! {
    #[test]
    fn no_address_survives(before in "[ a-z]{0,10}", name in "[a-z]{1,8}", after in "[ .,;]{0,5}") {
        let text = format!("{before} {name}@example.com{after}");
        proptest::prop_assert!(!redact(&text).contains("@example"));
    }

    #[test]
    fn no_text_is_a_crash(text in "\\PC{0,80}") {
        let _ = redact(&text);
    }
}
