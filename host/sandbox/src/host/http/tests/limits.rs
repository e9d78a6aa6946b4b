#![allow(clippy::unwrap_used)]

use http_body_util::StreamBody;

use super::*;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn post(url: &str, body: WasiBody) -> Request<WasiBody> {
    Request::post(url).body(body).unwrap()
}

/// A body without a known length, of so many pieces of 1 KiB.
fn pieces(count: usize) -> WasiBody {
    let pieces = (0..count).map(|_| Ok::<_, Error>(http_body::Frame::data(Bytes::from(vec![b'x'; 1024]))));
    BodyExt::boxed_unsync(StreamBody::new(futures::stream::iter(pieces)))
}

/// A body that never comes.
fn never() -> WasiBody {
    BodyExt::boxed_unsync(StreamBody::new(futures::stream::pending::<
        Result<http_body::Frame<Bytes>, Error>,
    >()))
}

#[tokio::test]
async fn requests_of_a_call_are_counted() {
    let server = Server::with(OK).await;
    let mut setup = Setup::new(&[&server.origin()]);
    setup.grant.limits.requests = 2;
    let egress = setup.egress();
    for _ in 0..2 {
        egress.send(get(&server.url("/")), None).await.unwrap();
    }
    let error = egress.send(get(&server.url("/")), None).await.unwrap_err();
    assert!(error.to_string().contains("a call may send 2 requests"), "{error}");
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn a_request_body_is_sent_whole_up_to_its_limit() {
    let server = Server::echo(4096).await;
    let mut setup = Setup::new(&[&server.origin()]);
    setup.grant.limits.request_bytes = 8 << 10;
    let answer = setup.send(post(&server.url("/"), pieces(8))).await.unwrap();
    assert_eq!(answer.body.matches('x').count(), 8 << 10);
    assert!(
        answer.body.contains("transfer-encoding: chunked"),
        "{}",
        &answer.body[..200]
    );
    let error = setup.send(post(&server.url("/"), pieces(9))).await.unwrap_err();
    assert!(matches!(error, Error::HttpRequestBodySize(Some(8192))), "{error:?}");
}

#[tokio::test]
async fn an_announced_length_is_kept_to_the_byte() {
    let server = Server::echo(4096).await;
    let mut setup = Setup::new(&[&server.origin()]);
    setup.grant.limits.request_bytes = 8 << 10;
    let with_length = |length: &str, body| {
        let mut request = post(&server.url("/"), body);
        request.headers_mut().append("content-length", length.parse().unwrap());
        request
    };
    let answer = setup.send(with_length("2048", pieces(2))).await.unwrap();
    assert!(answer.body.contains("content-length: 2048\r\n") && !answer.body.contains("chunked"));
    for (length, body) in [
        ("2047", pieces(2)),
        ("2049", pieces(2)),
        ("1", whole("")),
        ("8193", pieces(1)),
        ("99999999999999999999", pieces(1)),
    ] {
        let error = setup.send(with_length(length, body)).await.unwrap_err();
        let refused = matches!(error, Error::HttpRequestBodySize(_)) || error.to_string().contains("content-length");
        assert!(refused, "{length}: {error:?}");
    }
}

#[tokio::test]
async fn a_request_body_that_fails_fails_the_request() {
    let server = Server::with(OK).await;
    let setup = Setup::new(&[&server.origin()]);
    let frames = [
        Ok(http_body::Frame::data(Bytes::from("x"))),
        Err(Error::HttpProtocolError),
    ];
    let body = BodyExt::boxed_unsync(StreamBody::new(futures::stream::iter(frames)));
    let error = setup.send(post(&server.url("/"), body)).await.unwrap_err();
    assert!(matches!(error, Error::HttpProtocolError), "{error:?}");
}

#[tokio::test]
async fn too_many_or_too_large_headers_do_not_leave() {
    let server = Server::with(OK).await;
    let setup = Setup::new(&[&server.origin()]);
    let mut many = get(&server.url("/"));
    for index in 0..101 {
        many.headers_mut().append(
            format!("x-{index}").parse::<HeaderName>().unwrap(),
            "1".parse().unwrap(),
        );
    }
    let mut large = get(&server.url("/"));
    large.headers_mut().append("x", "y".repeat(33 << 10).parse().unwrap());
    for request in [many, large] {
        let error = setup.send(request).await.unwrap_err();
        assert!(matches!(error, Error::HttpRequestHeaderSectionSize(_)), "{error:?}");
    }
    let error = setup
        .get(&server.url(&format!("/{}", "a".repeat(17 << 10))))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::HttpRequestUriTooLong), "{error:?}");
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn an_endless_body_is_cut_off() {
    let server = Server::start(|_, mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
    })
    .await;
    let mut setup = Setup::new(&[&server.origin()]);
    setup.grant.limits.response_bytes = 1 << 20;
    let error = setup.get(&server.url("/")).await.unwrap_err();
    assert!(
        matches!(error, Error::HttpResponseBodySize(Some(1_048_576))),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_body_that_announces_too_much_is_refused_unread() {
    let server = Server::with(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n").await;
    let setup = Setup::new(&[&server.origin()]);
    let error = setup.get(&server.url("/")).await.unwrap_err();
    assert!(matches!(error, Error::HttpResponseBodySize(_)), "{error:?}");
}

#[tokio::test]
async fn a_huge_head_is_refused() {
    let server = Server::start(|request, mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        let header = if request.starts_with("GET /many") {
            "x: y\r\n".into()
        } else {
            format!("x: {}\r\n", "y".repeat(4096))
        };
        for _ in 0..1000 {
            if stream.write_all(header.as_bytes()).await.is_err() {
                return;
            }
        }
        let _ = stream.write_all(b"\r\n").await;
    })
    .await;
    let setup = Setup::new(&[&server.origin()]);
    for path in ["/many", "/large"] {
        let error = setup.get(&server.url(path)).await.unwrap_err();
        assert!(
            matches!(error, Error::HttpResponseHeaderSectionSize(_)),
            "{path}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_response_in_drops_ends_with_the_time() {
    let server = Server::start(|request, mut stream| async move {
        if !request.starts_with("GET /head") {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        }
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let mut setup = Setup::new(&[&server.origin()]);
    setup.grant.limits.wall = Duration::from_millis(300);
    for path in ["/head", "/body"] {
        let error = setup.get(&server.url(path)).await.unwrap_err();
        let ended = matches!(error, Error::ConnectionReadTimeout | Error::HttpProtocolError);
        assert!(ended, "{path}: {error:?}");
    }
}

#[tokio::test]
async fn silence_ends_with_the_guests_own_timeouts() {
    let server = Server::start(|request, mut stream| async move {
        if request.starts_with("GET /body") {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nx").await;
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(stream);
    })
    .await;
    let setup = Setup::new(&[&server.origin()]);
    let short = Some(Duration::from_millis(100));
    let options = RequestOptions {
        connect_timeout: None,
        first_byte_timeout: short,
        between_bytes_timeout: None,
    };
    let error = setup
        .egress()
        .send(get(&server.url("/head")), Some(options))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::ConnectionReadTimeout), "{error:?}");
    let options = RequestOptions {
        connect_timeout: None,
        first_byte_timeout: None,
        between_bytes_timeout: short,
    };
    let response = setup
        .egress()
        .send(get(&server.url("/body")), Some(options))
        .await
        .unwrap();
    let error = response.into_body().collect().await.unwrap_err();
    assert!(matches!(error, Error::ConnectionReadTimeout), "{error:?}");
    // No more than a wish: zero is not for ever.
    let options = RequestOptions {
        first_byte_timeout: Some(Duration::ZERO),
        ..options
    };
    setup
        .egress()
        .send(get(&server.url("/head")), Some(options))
        .await
        .unwrap_err();
}

#[tokio::test]
async fn a_guest_that_never_writes_its_body_ends_with_the_time() {
    let server = Server::with(OK).await;
    let mut setup = Setup::new(&[&server.origin()]);
    setup.grant.limits.wall = Duration::from_millis(200);
    let error = setup.send(post(&server.url("/"), never())).await.unwrap_err();
    assert!(matches!(error, Error::ConnectionReadTimeout), "{error:?}");
}

#[tokio::test]
async fn a_cut_response_is_an_error_and_not_a_short_one() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"[..],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\ncont",
    ] {
        let server = Server::with(answer).await;
        let error = Setup::new(&[&server.origin()]).get(&server.url("/")).await.unwrap_err();
        let told = matches!(
            error,
            Error::HttpResponseIncomplete | Error::HttpProtocolError | Error::ConnectionTerminated
        );
        assert!(told, "{error:?}");
    }
}

#[tokio::test]
async fn smuggled_framing_from_a_server_is_refused() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"[..],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        b"garbage\r\n\r\n",
    ] {
        let server = Server::with(answer).await;
        let result = Setup::new(&[&server.origin()]).get(&server.url("/")).await;
        assert!(result.is_err(), "{}: {result:?}", String::from_utf8_lossy(answer));
    }
}

#[tokio::test]
async fn informational_answers_and_trailers_are_understood() {
    let server = Server::with(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\nconnection: close\r\n\
          transfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n2\r\nok\r\n0\r\nx-sum: 1\r\n\r\n",
    )
    .await;
    let answer = Setup::new(&[&server.origin()]).get(&server.url("/")).await.unwrap();
    assert_eq!((answer.status, &*answer.body), (200, "ok"));
    assert_eq!(answer.trailers.unwrap()["x-sum"], "1");
    assert!(answer.headers.is_empty(), "{:?}", answer.headers);
}

#[tokio::test]
async fn a_dropped_response_closes_its_connection() {
    let (sender, mut closed) = tokio::sync::mpsc::channel(1);
    let server = Server::start(move |_, mut stream| {
        let sender = sender.clone();
        async move {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            while stream.write_all(&[b'x'; 4096]).await.is_ok() {}
            let _ = sender.send(()).await;
        }
    })
    .await;
    let setup = Setup::new(&[&server.origin()]);
    drop(setup.egress().send(get(&server.url("/")), None).await.unwrap());
    tokio::time::timeout(Duration::from_secs(10), closed.recv())
        .await
        .unwrap()
        .unwrap();
}
