#![allow(clippy::unwrap_used)]

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Holds every kind of character that an encoding treats in its own way.
const SECRET: &str = "s3cr/et+V\"al\\ü€😀 ue%41~=";

fn redactor(secrets: &[&str]) -> Redactor {
    let secrets: Vec<SecretString> = secrets.iter().map(|&secret| secret.into()).collect();
    Redactor::new(&secrets)
}

/// Every form of the secret that is promised to be found.
fn disguises(secret: &str) -> Vec<String> {
    let every_byte = |upper: bool| -> String {
        secret
            .bytes()
            .map(|byte| {
                if upper {
                    format!("%{byte:02X}")
                } else {
                    format!("%{byte:02x}")
                }
            })
            .collect()
    };
    let json = serde_json::to_string(secret).unwrap();
    let escaped: String = secret.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    const PATH: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');
    vec![
        secret.to_owned(),
        every_byte(true),
        every_byte(false),
        utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string(),
        utf8_percent_encode(secret, PATH).to_string(),
        url::form_urlencoded::byte_serialize(secret.as_bytes()).collect(),
        json[1..json.len() - 1].to_owned(),
        json[1..json.len() - 1].replace('/', "\\/"),
        escaped.to_uppercase().replace("\\U", "\\u"),
        escaped,
        hex::encode(secret),
        hex::encode_upper(secret),
        secret.to_ascii_uppercase(),
    ]
}

#[test]
fn every_promised_form_is_found() {
    let redactor = redactor(&[SECRET]);
    for form in disguises(SECRET) {
        assert_eq!(redactor.text(&format!("a {form} b")), "a [redacted] b", "`{form}`");
    }
}

#[test]
fn base64_is_found_at_every_alignment_in_both_alphabets() {
    let secret = "token-þ-0123456789-??>>~~";
    let redactor = redactor(&[secret]);
    for engine in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
        for before in 0..7 {
            for after in 0..4 {
                let text = format!("{}{secret}{}", "<".repeat(before), "|".repeat(after));
                let encoded = engine.encode(&text);
                let clean = redactor.text(&encoded);
                assert!(clean.contains(REDACTED), "{before} before and {after} after: `{clean}`");
                // What is left at either end is the neighbours and at most one shared character of each.
                let left = clean.len() - REDACTED.len();
                assert!(
                    left <= (before + after) * 4 / 3 + 6,
                    "{before} before and {after} after: `{clean}`"
                );
            }
        }
    }
}

#[test]
fn wrapped_base64_and_values_split_over_two_lines_are_found() {
    let redactor = redactor(&["abcdefghijklmnopqrstuvwxyz"]);
    assert_eq!(redactor.text("log: abcdefghijklm\nnopqrstuvwxyz."), "log: [redacted].");
    assert_eq!(redactor.text("abcdefg\r\nhijklmnop\r\nqrstuvwxyz"), "[redacted]");
    let wrapped = STANDARD.encode("abcdefghijklmnopqrstuvwxyz").replace("ZWZn", "ZW\nZn");
    assert!(redactor.text(&wrapped).starts_with(REDACTED));
}

#[test]
fn a_secret_with_line_ends_is_found_with_them_without_them_and_escaped() {
    let secret = "-----BEGIN-----\nabcdef\nghijkl\n";
    let redactor = redactor(&[secret]);
    for form in [
        secret.trim_end().to_owned(),
        secret.replace('\n', "\\n"),
        secret.replace('\n', "%0A"),
        secret.replace('\n', ""),
    ] {
        let clean = redactor.text(&form);
        assert!(
            clean.starts_with(REDACTED) && !clean.contains("ghijkl"),
            "`{form}`: `{clean}`"
        );
    }
}

#[test]
fn overlapping_secrets_leave_nothing_of_either() {
    let redactor = redactor(&["abcdefgh", "efghijkl", "efgh"]);
    assert_eq!(redactor.text("-abcdefghijkl-"), "-[redacted]-");
    assert_eq!(redactor.text("-efghijkl-"), "-[redacted]-");
    assert_eq!(redactor.text("-abcdefg-"), "-abcdefg-");
}

#[test]
fn what_is_no_secret_is_borrowed_unchanged() {
    let redactor = redactor(&["abcdefgh"]);
    for text in [
        "",
        "abcdefg",
        "%",
        "%4",
        "%zz",
        "\\",
        "\\u",
        "\\u12",
        "\\ud83d",
        "\\ud83d\\u0041",
        "ab%63defg",
        "üñ",
    ] {
        assert!(
            matches!(redactor.text(text), Cow::Borrowed(same) if same == text),
            "`{text}`"
        );
    }
    assert!(matches!(Redactor::default().text("abcdefgh"), Cow::Borrowed(_)));
}

#[test]
fn empty_secrets_find_nothing() {
    assert!(redactor(&["", "\n"]).is_empty());
    assert!(redactor(&[]).is_empty());
}

#[test]
fn json_is_redacted_in_texts_keys_and_numbers() {
    let redactor = redactor(&["abcdefgh", "12345678"]);
    let mut value = json!({
        "a": ["x abcdefgh", {"abcdefgh": 1}],
        "n": 912_345_678_i64,
        "ok": [null, true, 1.5],
    });
    redactor.value(&mut value);
    let expected = json!({"a": ["x [redacted]", {"[redacted]": 1}], "n": "9[redacted]", "ok": [null, true, 1.5]});
    assert_eq!(value, expected);
}

#[test]
fn endless_overlap_is_held_back_no_longer_than_the_secret() {
    let redactor = redactor(&["aaaaaaaa"]);
    let mut stream = redactor.stream();
    let mut out = Vec::new();
    for _ in 0..10_000 {
        out.extend(stream.push(b"a"));
    }
    let held_back = stream.finish();
    assert_eq!(String::from_utf8([out, held_back].concat()).unwrap(), "[redacted]");
}

#[test]
fn ordinary_text_is_passed_on_at_once() {
    let redactor = redactor(&["abcdefgh"]);
    let mut stream = redactor.stream();
    assert_eq!(stream.push(b"event: 1\n\n"), b"event: 1\n\n");
    assert_eq!(stream.push(b"xyz abc"), b"xyz ");
    assert_eq!(stream.push(b"."), b"abc.");
}

#[test]
fn debug_shows_no_secret() {
    assert!(!format!("{:?}", redactor(&["abcdefgh"])).contains("abcd"));
}

proptest! {
    #[test]
    fn no_split_into_chunks_hides_a_secret(
        before in "[a-z%\\\\\"]{0,12}",
        which in 0_usize..13,
        after in "[a-z%\\\\\"]{0,12}",
        cuts in prop::collection::vec(0_usize..200, 0..8),
    ) {
        let redactor = redactor(&[SECRET, "other-secret"]);
        let text = format!("{before}\n{} {after}", disguises(SECRET)[which]);
        let whole = redactor.text(&text).into_owned();
        prop_assert!(whole.contains(REDACTED), "`{}` left `{}`", text, whole);

        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.sort_unstable();
        let mut stream = redactor.stream();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            pieces.extend(stream.push(&text.as_bytes()[from..cut]));
            from = cut;
        }
        pieces.extend(stream.finish());
        prop_assert_eq!(String::from_utf8(pieces).unwrap(), whole);
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_lose_nothing_that_is_no_secret(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let redactor = redactor(&["a-secret-that-is-not-there"]);
        prop_assert_eq!(&*redactor.bytes(&bytes), &bytes[..]);
    }
}
