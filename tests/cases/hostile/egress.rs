//! Requests: what leaves went to a granted origin at a checked address, framed by the host; all else is told as refused.

use std::net::TcpListener;

use fief_core::event::CapabilityKind::{Http, Secret};
use fief_core::tool::OutcomeKind::{Limit, Ok};
use serde_json::json;

use super::server::Server;
use super::stage::{Report, SECRET, Stage, ms};

/// A server, and a guest that is granted it.
async fn granted() -> (Server, Stage) {
    let server = Server::start("example.com").await;
    let stage = Stage::new("egress").await.http(&server.origin(), true);
    let stage = stage.limits(|limits| limits.wall = ms(20_000));
    (server, stage)
}

fn refused(report: Report, least: usize) -> Report {
    let count = report.refused(Http).len();
    assert!(count >= least, "{count} refusals: {:#?}", report.notes);
    report
}

pub async fn unlisted_origin() {
    let (server, stage) = granted().await;
    let report = stage
        .call("unlisted_origin", json!({ "authority": server.authority() }))
        .await
        .held();
    let report = refused(report, 7).refuses(Http, 6, "no grant names this origin");
    assert!(
        report.outcome.text().contains("request denied"),
        "{}",
        report.outcome.text()
    );
    assert!(report.allowed(Http).is_empty());
    assert!(server.seen().is_empty(), "{:?}", server.seen());
}

pub async fn same_host_otherwise() {
    let server = Server::start("example.com").await;
    let origin = format!("http://localhost:{}", server.port);
    let stage = Stage::new("egress").await.http(&origin, true);
    let report = stage
        .call("same_host_otherwise", json!({ "port": server.port }))
        .await
        .held();
    let text = report.outcome.text();
    assert_eq!(text.matches("same 200").count(), server.seen().len(), "{text}");
    assert!(
        server.seen().len() >= 2,
        "upper case and a trailing dot are the same origin: {text}"
    );
    for (target, _) in report.allowed(Http) {
        assert_eq!(target, origin);
    }
}

pub async fn odd_addresses() {
    // Every origin is granted, and none of them is on the open network.
    let server = Server::start("example.com").await;
    let stage = Stage::new("egress").await.http("*", false);
    let report = stage.call("odd_addresses", json!({ "port": server.port })).await.held();
    refused(report, 28);
    assert!(server.seen().is_empty(), "{:?}", server.seen());
}

pub async fn metadata() {
    // Not even where private addresses are granted.
    let stage = Stage::new("egress")
        .await
        .http("*", true)
        .limits(|limits| limits.wall = ms(10_000));
    let report = stage.call("metadata", json!({})).await.held();
    let report = refused(report, 10);
    assert!(report.allowed(Http).is_empty(), "{:?}", report.allowed(Http));
}

pub async fn userinfo_and_zone() {
    let (server, stage) = granted().await;
    let report = stage
        .call("userinfo_and_zone", json!({ "authority": server.authority() }))
        .await
        .held();
    assert!(report.allowed(Http).is_empty(), "{:?}", report.allowed(Http));
    assert!(server.seen().is_empty(), "{:?}", server.seen());
}

pub async fn private_name() {
    let server = Server::start("example.com").await;
    let authority = format!("localhost:{}", server.port);
    let stage = Stage::new("egress").await.http(&format!("http://{authority}"), false);
    let report = stage
        .call("private_name", json!({ "authority": authority }))
        .await
        .held();
    assert!(
        report.outcome.text().contains("private = true"),
        "{}",
        report.outcome.text()
    );
    refused(report, 1);
    assert!(server.seen().is_empty());
}

pub async fn forbidden_headers() {
    let (server, stage) = granted().await;
    stage
        .call("forbidden_headers", json!({ "authority": server.authority() }))
        .await
        .held();
    assert!(server.seen().is_empty(), "{:?}", server.seen());
}

pub async fn smuggle() {
    let (server, stage) = granted().await;
    let stage = stage.limits(|limits| limits.requests = 64);
    stage
        .call("smuggle", json!({ "authority": server.authority() }))
        .await
        .held();
    for request in server.seen() {
        assert_eq!(request.matches(" HTTP/1.1\r\n").count(), 1, "{request}");
        assert!(!request.contains("smuggled HTTP"), "{request}");
        let body = request.split("\r\n\r\n").nth(1).unwrap_or_default();
        assert!(request.contains("content-length: 3000") || body.len() <= 3, "{request}");
    }
}

pub async fn follow_redirect() {
    let other = Server::start("example.com").await;
    let server = Server::start(&other.authority()).await;
    let stage = Stage::new("egress").await.http(&server.origin(), true);
    let report = stage
        .call("follow_redirect", json!({ "authority": server.authority() }))
        .await
        .held();
    assert_eq!(report.refused(Http).len(), 1);
    assert_eq!(server.seen().len(), 1);
    assert!(other.seen().is_empty(), "{:?}", other.seen());
}

pub async fn downgrade() {
    let server = Server::start("example.com").await;
    let origin = format!("https://{}", server.authority());
    let stage = Stage::new("egress").await.http(&origin, true);
    let report = stage
        .call("downgrade", json!({ "authority": server.authority() }))
        .await
        .held();
    refused(report, 1);
    assert!(server.seen().is_empty(), "{:?}", server.seen());
}

pub async fn huge_request() {
    let (server, stage) = granted().await;
    let stage = stage.limits(|limits| limits.request_bytes = 64 << 10);
    let report = stage
        .call("huge_request", json!({ "authority": server.authority() }))
        .await
        .held();
    let text = report.outcome.text();
    assert!(text.contains("HttpRequestBodySize(Some(65536))"), "{text}");
    assert!(text.contains("HttpRequestUriTooLong"), "{text}");
    for request in server.seen() {
        assert!(request.len() < 70 << 10, "{} bytes left", request.len());
    }
}

pub async fn huge_response() {
    let (server, stage) = granted().await;
    let stage = stage.limits(|limits| limits.response_bytes = 64 << 10);
    let report = stage
        .call("huge_response", json!({ "authority": server.authority() }))
        .await
        .held();
    let text = report.outcome.text();
    assert!(text.contains("HttpResponseBodySize(Some(65536))"), "{text}");
    assert!(text.contains("HttpResponseHeaderSectionSize"), "{text}");
}

pub async fn endless_response() {
    let (server, stage) = granted().await;
    let stage = stage.limits(|limits| limits.wall = ms(400));
    let arguments = json!({ "authority": server.authority() });
    let report = stage.call_beside_another("endless_response", arguments).await;
    // Whoever comes first ends it: the call's clock, or the request's.
    if report.outcome.kind == Limit {
        report.is(Limit, &["took longer than its limit of 400 ms"]);
    } else {
        report.held();
    }
}

pub async fn many_headers() {
    let (server, stage) = granted().await;
    stage
        .call("many_headers", json!({ "authority": server.authority() }))
        .await
        .held();
    assert!(server.seen().is_empty(), "{:?}", server.seen());
}

pub async fn many_requests() {
    let (server, stage) = granted().await;
    let stage = stage.limits(|limits| limits.requests = 5);
    let report = stage
        .call("many_requests", json!({ "authority": server.authority() }))
        .await;
    let report = report.is(Ok, &["5 answered", "limit: a call may send 5 requests"]);
    assert_eq!(report.refused(Http).len(), 45);
    assert_eq!(server.seen().len(), 5);
}

pub async fn override_secret() {
    let (server, stage) = granted().await;
    let other = Server::start("example.com").await;
    let stage = stage.http(&other.origin(), true).secret(&server.origin());
    let arguments = json!({ "authority": server.authority(), "other": other.authority() });
    let report = stage.call("override_secret", arguments).await.is(Ok, &["here"]);
    let [request] = &server.seen()[..] else {
        panic!("{:?}", server.seen())
    };
    assert!(
        request.contains(&format!("authorization: Bearer {}\r\n", SECRET.1)),
        "{request}"
    );
    assert!(!request.contains("mine"), "{request}");
    let [request] = &other.seen()[..] else {
        panic!("{:?}", other.seen())
    };
    assert!(
        request.contains("authorization: Bearer {}\r\n") && !request.contains(SECRET.1),
        "{request}"
    );
    assert_eq!(report.allowed(Secret).len(), 1);
    is_nowhere(&report);
}

pub async fn reflect_secret() {
    let (server, stage) = granted().await;
    let stage = stage.secret(&server.origin());
    let report = stage
        .call("reflect_secret", json!({ "authority": server.authority() }))
        .await;
    let report = report.is(Ok, &["/echo ", "range "]);
    assert!(
        server.seen().iter().all(|request| request.contains(SECRET.1)),
        "the server knows it"
    );
    assert!(server.seen().len() >= 8, "{}", server.seen().len());
    assert!(
        server.seen().iter().all(|request| !request.contains("range:")),
        "no halves are asked for"
    );
    is_nowhere(&report);
}

/// The secret stands in nothing that the call left behind, in none of the forms that a server or a guest gave it.
fn is_nowhere(report: &Report) {
    use base64::Engine as _;
    let shown = format!("{report:?}");
    let bytes = || SECRET.1.bytes();
    let forms = [
        SECRET.1.to_owned(),
        base64::engine::general_purpose::STANDARD.encode(SECRET.1)[4..24].to_owned(),
        bytes().map(|byte| format!("{byte:02x}")).collect(),
        bytes().map(|byte| format!("%{byte:02X}")).collect(),
        bytes().map(|byte| format!("\\u00{byte:02x}")).collect(),
        bytes().map(|byte| format!("\\\\u00{byte:02x}")).collect(),
    ];
    for form in forms {
        assert!(!shown.contains(&form), "{form} is in {shown}");
    }
}

#[tokio::test]
async fn without_a_grant_no_request_is_linked() {
    let stage = Stage::new("egress").await;
    let error = super::stage::sandbox()
        .link(&stage.plugin, &stage.grant)
        .await
        .err()
        .unwrap();
    let text = error.to_string();
    for says in [
        "plugin `egress`",
        "`wasi:http/types@0.2",
        "`wasi:http/outgoing-handler@0.2",
        "`http = [\"https://HOST\"]` in `[tools.grant]` would grant it",
    ] {
        assert!(text.contains(says), "{text}");
    }
}

#[tokio::test]
async fn a_silent_server_ends_with_the_call() {
    // Accepts no connection that is asked of it, once the system's queue is full; answers none either way.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let authority = silent.local_addr().unwrap().to_string();
    let stage = Stage::new("egress").await.http(&format!("http://{authority}"), true);
    let stage = stage.limits(|limits| limits.wall = ms(300));
    let report = stage.call("endless_response", json!({ "authority": authority })).await;
    assert!(
        report.outcome.kind == Limit || report.outcome.text().starts_with("held"),
        "{report:?}"
    );
}
