#![allow(clippy::unwrap_used)]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::*;

const TOKEN: &str = "ghp_0123456789/abcDEF+xyz";

/// The usual case: one token for the server's origin.
fn with_token(server: &Server) -> Setup {
    let origin = server.origin();
    Setup::new(&[&origin]).secrets(&[("TOKEN", TOKEN, &origin, "authorization", "Bearer {}")])
}

#[tokio::test]
async fn a_secret_reaches_the_server_and_never_the_guest() {
    for piece in [1, 2, 3, 7, 64, 4096] {
        let server = Server::echo(piece).await;
        let answer = with_token(&server).get(&server.url("/")).await.unwrap();
        assert!(
            server.seen()[0].contains(&format!("authorization: Bearer {TOKEN}\r\n")),
            "{}",
            server.seen()[0]
        );
        assert!(
            answer.body.contains("authorization: Bearer [redacted]\r\n"),
            "{}",
            answer.body
        );
        assert!(!answer.body.contains("ghp_"), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_use_is_noted_by_name() {
    let server = Server::echo(64).await;
    let setup = with_token(&server);
    setup.get(&server.url("/")).await.unwrap();
    let uses = setup.notes.uses();
    let secret = format!(
        "secret allowed TOKEN@{} [archetype grants secret `TOKEN`] x1",
        server.origin()
    );
    assert!(uses.contains(&secret), "{uses:?}");
    assert!(!uses.join("").contains("ghp_"));
}

#[tokio::test]
async fn what_the_guest_puts_into_the_secrets_header_is_replaced() {
    let server = Server::echo(64).await;
    let mut request = get(&server.url("/"));
    request
        .headers_mut()
        .append("authorization", "Bearer mine".parse().unwrap());
    request
        .headers_mut()
        .append("authorization", "Bearer mine too".parse().unwrap());
    with_token(&server).send(request).await.unwrap();
    let seen = &server.seen()[0];
    assert!(
        !seen.contains("mine") && seen.matches("authorization").count() == 1,
        "{seen}"
    );
}

#[tokio::test]
async fn another_origin_gets_no_secret() {
    let (server, other) = (Server::echo(64).await, Server::echo(64).await);
    let setup = Setup::new(&[&server.origin(), &other.origin()]).secrets(&[(
        "TOKEN",
        TOKEN,
        &server.origin(),
        "authorization",
        "Bearer {}",
    )]);
    setup.get(&other.url("/")).await.unwrap();
    assert!(!other.seen()[0].contains("authorization"), "{}", other.seen()[0]);
}

#[tokio::test]
async fn a_secret_grants_no_origin() {
    let server = Server::echo(64).await;
    let setup = Setup::new(&[]).secrets(&[("TOKEN", TOKEN, &server.origin(), "authorization", "Bearer {}")]);
    denied(setup.get(&server.url("/")).await);
    assert!(server.seen().is_empty());
}

/// A server that answers with these bytes, made from the token that it was sent.
async fn reflecting(answer: fn(&str) -> Vec<u8>) -> Server {
    Server::start(move |request, mut stream| async move {
        let token = request
            .split("authorization: Bearer ")
            .nth(1)
            .and_then(|rest| rest.lines().next())
            .unwrap_or_default();
        let _ = stream.write_all(&answer(token)).await;
    })
    .await
}

#[tokio::test]
async fn reflections_are_redacted_in_every_promised_form() {
    let body = |token: &str| {
        let percent: String = token.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let json = token.replace('/', "\\/").replace('+', "\\u002B");
        let basic = STANDARD.encode(format!("user:{token}"));
        let body = format!("{token}\n{percent}\n{json}\n{basic}\n{}\n", hex::encode(token));
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    let server = reflecting(body).await;
    let answer = with_token(&server).get(&server.url("/")).await.unwrap();
    assert_eq!(answer.body.matches("[redacted]").count(), 5, "{}", answer.body);
    for left in ["ghp", "0123", "%67", "YWJjREVG", &hex::encode("ghp")] {
        assert!(!answer.body.contains(left), "{left}: {}", answer.body);
    }
    assert!(!answer.headers.contains_key("content-length"));
}

#[tokio::test]
async fn reflected_headers_and_trailers_are_redacted() {
    let server = reflecting(|token| {
        format!(
            "HTTP/1.1 200 OK\r\nx-token: a {token} b\r\nx-{}: 1\r\nset-cookie: t={}\r\ntransfer-encoding: chunked\r\n\r\n\
             0\r\nx-last: {token}\r\n\r\n",
            hex::encode(token),
            STANDARD.encode(token),
        )
        .into_bytes()
    })
    .await;
    let answer = with_token(&server).get(&server.url("/")).await.unwrap();
    assert_eq!(answer.headers["x-token"], "a [redacted] b");
    assert!(
        answer.headers["set-cookie"]
            .to_str()
            .unwrap()
            .starts_with("t=[redacted]"),
        "{:?}",
        answer.headers
    );
    assert_eq!(answer.headers.len(), 2, "{:?}", answer.headers);
    assert_eq!(answer.trailers.unwrap()["x-last"], "[redacted]");
}

#[tokio::test]
async fn compressed_answers_to_a_secret_are_refused() {
    let gzip = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n\x1f\x8b";
    let server = Server::with(gzip).await;
    let error = with_token(&server).get(&server.url("/")).await.unwrap_err();
    assert!(
        matches!(&error, Error::HttpResponseContentCoding(Some(coding)) if coding == "gzip"),
        "{error:?}"
    );
    // Where no secret was sent there is nothing to hide.
    assert_eq!(
        Setup::new(&[&server.origin()])
            .get(&server.url("/"))
            .await
            .unwrap()
            .status,
        200
    );
}

#[tokio::test]
async fn an_error_that_quotes_the_server_is_redacted() {
    for answer in [
        |token: &str| format!("HTTP/1.1 200 OK\r\ncontent-encoding: {token}\r\n\r\n").into_bytes(),
        |token: &str| format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {token}, chunked\r\n\r\n0\r\n\r\n").into_bytes(),
        |token: &str| format!("HTTP/1.1 {token}\r\n\r\n").into_bytes(),
    ] {
        let server = reflecting(answer).await;
        let error = with_token(&server).get(&server.url("/")).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("ghp_"), "{error:?}");
    }
}

#[tokio::test]
async fn a_secret_is_not_sent_where_it_could_come_back_in_halves() {
    let server = Server::echo(64).await;
    let mut request = get(&server.url("/"));
    request.headers_mut().append("range", "bytes=0-60".parse().unwrap());
    let text = denied(with_token(&server).send(request).await);
    assert!(text.contains("`range`"), "{text}");
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_secret_that_cannot_be_used_refuses_the_request() {
    let server = Server::echo(64).await;
    let origin = server.origin();
    for (value, header, format, says) in [
        ("a1b2c", "authorization", "{}", "shorter than"),
        ("line\r\nbreak: x", "authorization", "{}", "control character"),
        ("long-enough", "authorization", "{}\r\nx: y", "fits in no header"),
        ("long-enough", "host", "{}", "the host's own"),
        ("long-enough", "content-length", "{}", "the host's own"),
        ("long-enough", "a b", "{}", "no name of a header"),
        ("long-enough", "authorization", "Bearer", "no `{}`"),
    ] {
        let setup = Setup::new(&[&origin]).secrets(&[("TOKEN", value, &origin, header, format)]);
        let text = denied(setup.get(&server.url("/")).await);
        assert!(text.contains(says) && !text.contains(value), "{text}");
        assert!(
            setup.notes.uses()[0].starts_with("secret refused TOKEN@"),
            "{:?}",
            setup.notes.uses()
        );
    }
    let two = [
        ("A", "first-secret", &*origin, "x-key", "{}"),
        ("B", "second-secret", &*origin, "x-key", "{}"),
    ];
    denied(Setup::new(&[&origin]).secrets(&two).get(&server.url("/")).await);
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_refusal_that_quotes_the_guest_shows_no_secret() {
    let server = Server::echo(64).await;
    let setup = with_token(&server);
    let text = denied(setup.get("https://ghp_0123456789/abcDEF+xyz").await);
    assert!(text.contains("not granted") || text.contains("not a host"), "{text}");
    assert!(setup.notes.uses().iter().all(|line| !line.contains(TOKEN)));
}

#[test]
fn debug_shows_no_secret() {
    let setup =
        Setup::new(&["https://a.example"]).secrets(&[("TOKEN", TOKEN, "https://a.example", "authorization", "{}")]);
    let shown = format!("{:?} {:?} {:?}", setup.vault, setup.vault.redactor(), setup.grant);
    assert!(!shown.contains("ghp_"), "{shown}");
}
