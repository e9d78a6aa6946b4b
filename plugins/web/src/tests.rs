//! Fetches over a server that is a table, and pages as they are shown.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;

use fief_plugin::{Content, Output, ToolError};
use url::Url;

use crate::fetch::{Fault, Fetch, Format, Reply, fetch};
use crate::html;

fn reply(status: u16, content_type: &str, body: &[u8]) -> Reply {
    Reply {
        status,
        content_type: content_type.to_owned(),
        location: None,
        body: body.to_vec(),
        cut: false,
    }
}

fn redirect(status: u16, location: &str) -> Reply {
    Reply {
        location: Some(location.to_owned()),
        ..reply(status, "", b"")
    }
}

fn get(url: &str, format: Option<Format>, serve: impl Fn(&str) -> Result<Reply, Fault>) -> Result<Output, ToolError> {
    fetch(
        &Fetch {
            url: url.to_owned(),
            format,
            offset: None,
        },
        &|url, _| serve(url.as_str()),
    )
}

fn text(url: &str, format: Option<Format>, serve: impl Fn(&str) -> Result<Reply, Fault>) -> String {
    get(url, format, serve).unwrap().as_text()
}

#[test]
fn pages_come_in_the_form_that_fits_them() {
    let page = b"<html><head><title>A  title</title><style>p{}</style></head><body><h1>Head</h1><script>x()</script>\
        <p>See <a href='/b?c=1'>that</a>.</p><img src='data:image/png;base64,AAAA' alt='dot'></body></html>";
    let table = [
        ("text/html; charset=utf-8", page.as_slice(), None),
        ("application/json", br#"{"b":1,"a":12345678901234567890123}"#, None),
        ("application/problem+json", b"no json", None),
        ("text/plain", b"as it is <b>", None),
        ("", b"<!DOCTYPE html><p>x", None),
        ("", b"\0\x01", None),
        ("text/html", b"<p>caf\xe9</p><meta charset=latin1>", None),
        ("text/html; charset=\"windows-1252\"", b"<p>\x80 caf\xe9", None),
        ("application/zip", b"PK", None),
        (
            "text/html",
            b"<p>a&amp;b</p><ul><li>one<li>two</ul><table><tr><td>1<td>2</table>",
            Some(Format::Text),
        ),
        ("text/html", b"<p>a&amp;b", Some(Format::Raw)),
        ("text/plain", b"[1]", Some(Format::Json)),
    ];
    let expected = [
        "title: A title\n\n# Head\n\nSee [that](https://example.com/b?c=1).\n\n![dot](data:…)",
        "{\n  \"b\": 1,\n  \"a\": 12345678901234567890123\n}",
        "no json",
        "as it is <b>",
        "x",
        "(binary content of no declared type, 2 bytes; not shown)",
        "café",
        "€ café",
        "(binary content of type `application/zip`, 2 bytes; not shown)",
        "a&b\none\ntwo\n1 2",
        "<p>a&amp;b",
        "[\n  1\n]",
    ];
    for ((content_type, body, format), expected) in table.into_iter().zip(expected) {
        let got = text("https://example.com/a", format, |_| Ok(reply(200, content_type, body)));
        assert_eq!(got, expected, "{content_type} {format:?}");
    }
    let output = get("https://example.com/", None, |_| Ok(reply(200, "image/png", b"png"))).unwrap();
    assert!(matches!(&output.content[0], Content::Image(blob) if blob.media_type == "image/png"));
    let error = get("https://example.com/", Some(Format::Json), |_| {
        Ok(reply(200, "text/html", b"<p>"))
    })
    .unwrap_err();
    assert!(error.message().contains("holds no JSON"), "{error:?}");
}

#[test]
fn redirects_are_followed_and_said() {
    let asked = RefCell::new(Vec::new());
    let got = text("http://a.example/1#part", None, |url| {
        asked.borrow_mut().push(url.to_owned());
        Ok(match url {
            "http://a.example/1" => redirect(301, "/2"),
            "http://a.example/2" => redirect(308, "https://b.example/3#x"),
            _ => reply(200, "text/plain", b"there"),
        })
    });
    assert_eq!(got, "there\n(redirected to `https://b.example/3`)\n");
    assert_eq!(
        *asked.borrow(),
        ["http://a.example/1", "http://a.example/2", "https://b.example/3"]
    );
}

#[test]
fn redirects_that_are_not_followed() {
    let count = RefCell::new(0);
    let error = get("https://a.example/", None, |_| {
        *count.borrow_mut() += 1;
        Ok(redirect(302, "/again"))
    });
    assert_eq!(
        error.unwrap_err().message(),
        "`https://a.example/` redirects more than 10 times"
    );
    assert_eq!(*count.borrow(), 11);
    for (location, expected) in [
        ("http://a.example/", "which is not encrypted; this is not followed"),
        ("file:///etc/passwd", "`file` is not fetched"),
        ("https://u:p@b.example/", "credentials are the operator's"),
        ("https://[", "which is no URL"),
    ] {
        let error = get("https://a.example/", None, |_| Ok(redirect(302, location))).unwrap_err();
        assert!(error.message().contains(expected), "{location}: {error:?}");
    }
}

#[test]
fn urls_that_are_not_fetched() {
    for (url, expected) in [
        (
            "example.com/a",
            "`example.com/a` is no whole URL: write `https://example.com/a`",
        ),
        (
            "ftp://example.com/",
            "`ftp://example.com/`: `ftp` is not fetched, only `https` and `http` are",
        ),
        (
            "file:///etc/passwd",
            "`file:///etc/passwd`: `file` is not fetched, only `https` and `http` are",
        ),
        ("https://", "`https://` is no URL: empty host"),
    ] {
        let error = get(url, None, |_| panic!("sent")).unwrap_err();
        assert!(
            matches!(&error, ToolError::InvalidArguments(text) if text == expected),
            "{url}: {error:?}"
        );
    }
    let error = get("https://me:hunter2@example.com/", None, |_| panic!("sent")).unwrap_err();
    assert!(
        error.message().contains("a user or a password") && !error.message().contains("hunter2"),
        "{error:?}"
    );
}

#[test]
fn refusals_name_the_origin_and_who_can_grant_it() {
    let error = get("https://a.example:8443/x?y", None, |_| Err(Fault::Denied)).unwrap_err();
    let ToolError::Denied(text) = error else {
        panic!("{error:?}")
    };
    assert!(
        text.starts_with("`https://a.example:8443` may not be reached by this agent\nhint: "),
        "{text}"
    );
    assert!(text.contains("`--allow-net https://a.example:8443`"), "{text}");
    let error = get("https://a.example/", None, |url| match url {
        "https://a.example/" => Ok(redirect(302, "https://b.example/")),
        _ => Err(Fault::Denied),
    });
    let text = error.unwrap_err().message().to_owned();
    assert!(
        text.starts_with("`https://b.example` may not be reached by this agent (a redirect led there)"),
        "{text}"
    );
    let error = get("https://a.example/", None, |_| Err(Fault::Private)).unwrap_err();
    assert!(
        matches!(&error, ToolError::Denied(text) if text.contains("private = true")),
        "{error:?}"
    );
    let error = get("https://a.example/", None, |_| Err(Fault::Failed("no".into()))).unwrap_err();
    assert!(
        matches!(&error, ToolError::Failed(text) if text == "`https://a.example/`: no"),
        "{error:?}"
    );
}

#[test]
fn answers_that_are_errors() {
    let error = get("https://a.example/x", None, |_| {
        Ok(reply(404, "text/html", b"<h1>Not here</h1>"))
    })
    .unwrap_err();
    assert_eq!(
        error.message(),
        "`https://a.example/x` answered 404 Not Found:\nNot here"
    );
    let error = get("https://a.example/x", None, |_| Ok(reply(418, "", b""))).unwrap_err();
    assert_eq!(error.message(), "`https://a.example/x` answered 418");
    let long = "y".repeat(10_000);
    let error = get("https://a.example/x", None, |_| {
        Ok(reply(500, "text/plain", long.as_bytes()))
    })
    .unwrap_err();
    assert!(error.message().len() < 600);
}

#[test]
fn long_pages_are_cut_and_can_be_read_on() {
    let body = "é".repeat(100_000);
    let serve = |_: &Url, _: &str| Ok(reply(200, "text/plain; charset=utf-8", body.as_bytes()));
    let fetch = |offset| {
        fetch(
            &Fetch {
                url: "https://a.example/".into(),
                format: None,
                offset,
            },
            &serve,
        )
    };
    let text = fetch(None).unwrap().as_text();
    assert!(text.ends_with("é\n(characters 0-60000 of 100000; to go on: `offset` 60000)\n"));
    assert_eq!(fetch(Some(60_000)).unwrap().as_text().chars().count(), 40_000);
    let error = fetch(Some(100_000)).unwrap_err();
    assert_eq!(
        error.message(),
        "`offset` 100000 is past the end: the page has 100000 characters"
    );
    assert_eq!(text_of_empty(), "\n(the page holds no text)\n");
    let cut = |_: &str| {
        Ok(Reply {
            cut: true,
            ..reply(200, "text/plain", b"abc")
        })
    };
    assert_eq!(
        self::text("https://a.example/", None, cut),
        "abc\n(only the first 3 bytes of the page were read)\n"
    );
}

fn text_of_empty() -> String {
    text("https://a.example/", None, |_| {
        Ok(reply(200, "text/html", b"<script>x</script>"))
    })
}

#[test]
fn a_page_nested_without_end_is_no_crash() {
    // The parser looks through all that is open at every tag: deeper, it is the limit on time that ends it.
    let deep = format!("{}deep{}", "<div>".repeat(3_000), "</div>".repeat(3_000));
    let base = Url::parse("https://a.example/").unwrap();
    assert_eq!(html::markdown(&deep, &base), "deep");
    assert_eq!(html::plain(&deep), "deep");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(128))]

    #[test]
    fn no_page_is_a_crash(body in "(<(p|a href=x|table|td|li|pre|code|h1|/p|/table)>|\\PC){0,60}") {
        let base = Url::parse("https://a.example/").unwrap();
        let _ = html::markdown(&body, &base);
        let _ = html::plain(&body);
    }
}
