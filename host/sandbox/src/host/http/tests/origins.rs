#![allow(clippy::unwrap_used)]

use super::*;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test]
async fn a_granted_origin_is_reached_and_noted_once_with_its_number() {
    let server = Server::with(OK).await;
    let setup = Setup::new(&[&server.origin()]);
    let egress = setup.egress();
    for _ in 0..3 {
        let answer = egress.send(get(&server.url("/a?b=c")), None).await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    assert_eq!(setup.notes.uses(), [""; 0]);
    drop(egress);
    let rule = format!("archetype grants `{}`", server.origin());
    assert_eq!(
        setup.notes.uses(),
        [format!("http allowed {} [{rule}] x3", server.origin())]
    );
    assert!(
        server.seen()[0].starts_with("GET /a?b=c HTTP/1.1\r\n"),
        "{}",
        server.seen()[0]
    );
}

#[tokio::test]
async fn what_is_not_granted_is_refused_before_a_name_is_looked_up() {
    let server = Server::with(OK).await;
    let setup = Setup::new(&["https://api.example.com"]).answers(&[&["127.0.0.1"]]);
    for url in [
        server.url("/"),
        "http://api.example.com/".into(),
        "https://api.example.com:8443/".into(),
        "https://example.com/".into(),
        "https://evil.api.example.com/".into(),
        "https://api.example.com.evil.test/".into(),
    ] {
        let text = denied(setup.get(&url).await);
        assert!(text.contains("is not granted: only `https://api.example.com"), "{text}");
    }
    let uses = setup.notes.uses();
    assert_eq!(uses.len(), 6);
    assert!(uses.iter().all(|line| line.starts_with("http refused")), "{uses:?}");
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn every_spelling_of_a_local_address_is_that_address() {
    let server = Server::with(OK).await;
    let port = server.port();
    let setup = Setup::new(&["https://*", &format!("http://public.example:{port}")]).answers(&[&["127.0.0.1"]]);
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "0.0.0.0",
    ] {
        for scheme in ["http", "https"] {
            let Ok(request) = Request::get(format!("{scheme}://{host}:{port}/")).body(whole("")) else {
                continue;
            };
            denied(setup.send(request).await);
            let Ok(request) = Request::get(format!("{scheme}://{host}/")).body(whole("")) else {
                continue;
            };
            denied(setup.send(request).await);
        }
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_literal_grant_reaches_the_address_in_any_spelling() {
    let server = Server::with(OK).await;
    let setup = Setup::new(&[&server.origin()]);
    for host in ["2130706433", "0x7f.1", "127.1"] {
        let url = format!("http://{host}:{}/", server.port());
        assert_eq!(setup.get(&url).await.unwrap().body, "ok");
    }
    // The server is told the one form, so that it cannot be confused either.
    let host = format!("host: 127.0.0.1:{}\r\n", server.port());
    assert!(
        server.seen().iter().all(|request| request.contains(&host)),
        "{:?}",
        server.seen()
    );
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_refused() {
    let server = Server::with(OK).await;
    let origin = format!("http://rebound.example:{}", server.port());
    let url = format!("{origin}/");
    for address in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::1",
        "::ffff:127.0.0.1",
        "64:ff9b::a00:1",
        "fe80::1",
    ] {
        let setup = Setup::new(&[&origin]).answers(&[&[address]]);
        let text = denied(setup.get(&url).await);
        assert!(text.contains("its address is"), "{text}");
        assert_eq!(setup.notes.uses().len(), 1);
    }
    let setup = Setup::new(&[&origin]).answers(&[&["127.0.0.1"]]).private();
    assert_eq!(setup.get(&url).await.unwrap().body, "ok");
    // Even so no name leads to a metadata service.
    let setup = Setup::new(&[&origin]).answers(&[&["169.254.169.254"]]).private();
    denied(setup.get(&url).await);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn one_bad_address_among_good_ones_refuses_all() {
    let server = Server::with(OK).await;
    let origin = format!("http://mixed.example:{}", server.port());
    for answer in [
        &["93.184.215.14", "127.0.0.1"],
        &["127.0.0.1", "93.184.215.14"],
        &["2606:4700::1", "::1"],
    ] {
        let setup = Setup::new(&[&origin]).answers(&[answer]);
        denied(setup.get(&format!("{origin}/")).await);
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_name_is_resolved_once_a_request_and_checked_each_time() {
    let server = Server::with(OK).await;
    let origin = format!("http://rebinding.example:{}", server.port());
    // The first answer is what the check sees; were the name looked up again to connect, the second would be used.
    let setup = Setup::new(&[&origin])
        .answers(&[&["127.0.0.1"], &["169.254.169.254"]])
        .private();
    assert_eq!(setup.get(&format!("{origin}/")).await.unwrap().body, "ok");
    let text = denied(setup.get(&format!("{origin}/")).await);
    assert!(text.contains("metadata"), "{text}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let server =
        Server::with(b"HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/latest\r\ncontent-length: 0\r\n\r\n")
            .await;
    let setup = Setup::new(&[&server.origin()]);
    let answer = setup.get(&server.url("/")).await.unwrap();
    assert_eq!((answer.status, server.seen().len()), (302, 1));
    // The guest's own next hop is a request like any other.
    let location = answer.headers["location"].to_str().unwrap();
    denied(setup.get(location).await);
}

#[tokio::test]
async fn user_information_and_odd_authorities_are_refused() {
    let server = Server::with(OK).await;
    let setup = Setup::new(&[&server.origin()]);
    for authority in [
        format!("user:pass@{}", server.address),
        format!("{}@evil.example", server.address),
        "@127.0.0.1".to_owned(),
    ] {
        let request = Request::get(format!("http://{authority}/")).body(whole(""));
        let Ok(request) = request else { continue };
        denied(setup.send(request).await);
    }
    let mut request = get(&server.url("/"));
    *request.uri_mut() = "/no-authority".parse().unwrap();
    denied(setup.send(request).await);
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn headers_that_steer_a_connection_are_refused() {
    let server = Server::with(OK).await;
    let setup = Setup::new(&[&server.origin()]);
    for (name, value) in [
        ("connection", "x-secret"),
        ("keep-alive", "timeout=1"),
        ("transfer-encoding", "chunked"),
        ("te", "trailers"),
        ("trailer", "x"),
        ("upgrade", "websocket"),
        ("expect", "100-continue"),
        ("proxy-authorization", "Basic eA=="),
        ("proxy-connection", "close"),
        ("http2-settings", "AA"),
        ("host", "other.example"),
        ("host", "127.0.0.1"),
        ("content-length", "5, 6"),
        ("content-length", "+5"),
        ("content-length", ""),
    ] {
        let mut request = get(&server.url("/"));
        request.headers_mut().append(name, value.parse().unwrap());
        denied(setup.send(request).await);
    }
    let mut request = get(&server.url("/"));
    request.headers_mut().append("content-length", "0".parse().unwrap());
    request.headers_mut().append("content-length", "0".parse().unwrap());
    denied(setup.send(request).await);
    let mut request = get(&server.url("/"));
    for host in [server.address.to_string(), "other.example".into()] {
        request.headers_mut().append("host", host.parse().unwrap());
    }
    denied(setup.send(request).await);
    assert!(server.seen().is_empty());
    // Line ends fit in no value and no name.
    assert!(http::HeaderValue::from_bytes(b"a\r\nx: y").is_err() && HeaderName::from_bytes(b"a\r\nx").is_err());
}

#[tokio::test]
async fn methods_that_tunnel_or_reflect_are_refused() {
    let server = Server::with(OK).await;
    let setup = Setup::new(&[&server.origin()]);
    for method in ["CONNECT", "TRACE"] {
        let mut request = get(&server.url("/"));
        *request.method_mut() = method.parse().unwrap();
        denied(setup.send(request).await);
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn the_host_asks_for_plain_text_and_names_itself() {
    let server = Server::with(OK).await;
    let setup = Setup::new(&[&server.origin()]);
    let mut request = get(&server.url("/"));
    request
        .headers_mut()
        .append("accept-encoding", "gzip, br".parse().unwrap());
    request
        .headers_mut()
        .append("host", server.address.to_string().parse().unwrap());
    setup.send(request).await.unwrap();
    let seen = server.seen()[0].to_ascii_lowercase();
    assert!(
        seen.contains("accept-encoding: identity\r\n") && !seen.contains("gzip"),
        "{seen}"
    );
    assert!(
        seen.contains("user-agent: fief/") && seen.matches("host:").count() == 1,
        "{seen}"
    );
    assert!(
        !seen.contains("transfer-encoding") && !seen.contains("content-length"),
        "{seen}"
    );
}

#[tokio::test]
async fn the_hook_that_guests_reach_sends_by_the_same_rules() {
    let server = Server::with(OK).await;
    let setup = Setup::new(&[&server.origin()]);
    let mut egress = setup.egress();
    for name in ["host", "proxy-anything", "transfer-encoding"] {
        assert!(
            egress.is_forbidden_header(&name.parse().unwrap())
                && egress.forbidden_header_filter()(&name.parse().unwrap())
        );
    }
    assert!(!egress.is_forbidden_header(&http::header::AUTHORIZATION));
    let sent = egress.send_request(get(&server.url("/")), None, Box::new(async { Ok(()) }));
    let (response, connection) = std::pin::Pin::from(sent).await.unwrap();
    std::pin::Pin::from(connection).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "ok");
    let refused = egress.send_request(get("https://example.com/"), None, Box::new(async { Ok(()) }));
    assert!(std::pin::Pin::from(refused).await.is_err());
}

#[tokio::test]
async fn a_name_without_an_address_is_a_dns_error() {
    let setup = Setup::new(&["http://nowhere.example"]);
    let error = setup.get("http://nowhere.example/").await.unwrap_err();
    assert!(matches!(error, Error::DnsError { .. }), "{error:?}");
}
