//! Requests through the host, which decides on each of them.

use url::Url;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingBody, IncomingResponse, Method, OutgoingRequest, Scheme, http_error_code,
};
use wasip2::io::streams::StreamError;

use crate::fetch::{Fault, Reply};

/// Of a body; more would not fit into what a call may hold, once it is a tree.
const LONGEST: usize = 4 << 20;
/// Read at once.
const PIECE: u64 = 64 << 10;

pub(crate) fn get(url: &Url, accept: &str) -> Result<Reply, Fault> {
    let response = send(url, accept)?;
    let headers = response.headers();
    let header = |name: &str| {
        headers
            .get(name)
            .first()
            .map(|value| String::from_utf8_lossy(value).into_owned())
    };
    let mut reply = Reply {
        status: response.status(),
        content_type: header("content-type").unwrap_or_default(),
        location: header("location"),
        body: Vec::new(),
        cut: false,
    };
    let encoding = header("content-encoding").unwrap_or_default();
    if (300..400).contains(&reply.status) && reply.location.is_some() {
        return Ok(reply);
    }
    if !matches!(encoding.trim().to_ascii_lowercase().as_str(), "" | "identity") {
        return Err(Fault::Failed(format!(
            "the answer is compressed as `{encoding}`, which was not asked for"
        )));
    }
    let body = response
        .consume()
        .map_err(|()| Fault::Failed("the answer has no body".to_owned()))?;
    read(&body, &mut reply)?;
    Ok(reply)
}

fn send(url: &Url, accept: &str) -> Result<IncomingResponse, Fault> {
    let headers = Fields::new();
    for (name, value) in [
        ("accept", accept),
        ("user-agent", concat!("fief-web/", env!("CARGO_PKG_VERSION"))),
    ] {
        // A host that does not let a guest set one of these sends the request without it.
        let _ = headers.append(name, value.as_bytes());
    }
    let request = OutgoingRequest::new(headers);
    let scheme = if url.scheme() == "https" {
        Scheme::Https
    } else {
        Scheme::Http
    };
    let host = url.host_str().unwrap_or_default();
    let authority = url
        .port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let set = request
        .set_method(&Method::Get)
        .and_then(|()| request.set_scheme(Some(&scheme)))
        .and_then(|()| request.set_authority(Some(&authority)))
        .and_then(|()| request.set_path_with_query(Some(path)));
    set.map_err(|()| Fault::Failed("the host takes this URL for malformed".to_owned()))?;
    let future = outgoing_handler::handle(request, None).map_err(|code| explain(&code))?;
    loop {
        future.subscribe().block();
        if let Some(taken) = future.get() {
            let answer = taken.map_err(|()| Fault::Failed("the answer was already taken".to_owned()))?;
            return answer.map_err(|code| explain(&code));
        }
    }
}

fn read(body: &IncomingBody, reply: &mut Reply) -> Result<(), Fault> {
    let stream = body
        .stream()
        .map_err(|()| Fault::Failed("the answer has no body".to_owned()))?;
    loop {
        match stream.blocking_read(PIECE) {
            Ok(piece) => reply.body.extend_from_slice(&piece),
            Err(StreamError::Closed) => return Ok(()),
            Err(StreamError::LastOperationFailed(error)) => {
                return Err(match http_error_code(&error) {
                    Some(code) => explain(&code),
                    None => Fault::Failed(format!("the answer broke off: {}", error.to_debug_string())),
                });
            }
        }
        if reply.body.len() > LONGEST {
            reply.body.truncate(LONGEST);
            reply.cut = true;
            return Ok(());
        }
    }
}

fn explain(code: &ErrorCode) -> Fault {
    let reason = match code {
        ErrorCode::HttpRequestDenied => return Fault::Denied,
        ErrorCode::DestinationIpProhibited => return Fault::Private,
        ErrorCode::DnsError(_) | ErrorCode::DnsTimeout | ErrorCode::DestinationNotFound => {
            "the host name cannot be resolved".to_owned()
        }
        ErrorCode::ConnectionRefused => "the server refuses connections".to_owned(),
        ErrorCode::ConnectionTimeout
        | ErrorCode::ConnectionReadTimeout
        | ErrorCode::ConnectionWriteTimeout
        | ErrorCode::HttpResponseTimeout => "the server did not answer in time".to_owned(),
        ErrorCode::TlsCertificateError => "the server's certificate is not trusted".to_owned(),
        ErrorCode::HttpResponseBodySize(limit) => match limit {
            Some(limit) => format!("the page is larger than the {limit} bytes that a response may have"),
            None => "the page is larger than a response may be".to_owned(),
        },
        ErrorCode::InternalError(Some(text)) => text.clone(),
        code => format!("{code:?}"),
    };
    Fault::Failed(reason)
}
