//! What comes back: bounded in size and time, and redacted before the guest sees any of it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use fief_core::grant::Limits;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, Sleep};
use wasmtime_wasi::runtime::AbortOnDropJoinHandle;
use wasmtime_wasi_http::{Error, WasiBody};

use super::Timeouts;
use super::connect::Stream;
use super::request::{Failure, OutgoingBody, is_forbidden};
use crate::redact::{RedactStream, Redactor};

/// Headers of one response, as hyper's own default has it.
const MAX_HEADERS: usize = 100;
/// Bytes of a response's head, and of its trailers: cookies and policies of real sites fit four times.
const MAX_HEAD: usize = 64 << 10;
/// Bytes that are read ahead of the guest.
const MAX_BUFFER: usize = 128 << 10;

/// Sends the request over a connection of its own and waits for the head of the response.
pub(super) async fn exchange(
    stream: Box<dyn Stream>,
    request: Request<OutgoingBody>,
    failure: Failure,
    redactor: &Redactor,
    secret_sent: bool,
    limits: &Limits,
    timeouts: Timeouts,
) -> Result<Response<WasiBody>, Error> {
    let (mut sender, connection) = http1::Builder::new()
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_BUFFER)
        .max_header_size(MAX_HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| hyper_error(&error))?;
    // Whoever drops the response, or stops waiting for it, ends the connection.
    let connection = wasmtime_wasi::runtime::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!("a guest's connection ended: {error}");
        }
    });
    let response = match tokio::time::timeout(timeouts.first_byte, sender.send_request(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(failure.take().unwrap_or_else(|| hyper_error(&error))),
        Err(_) => return Err(failure.take().unwrap_or(Error::ConnectionReadTimeout)),
    };
    let (mut parts, body) = response.into_parts();
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(Error::HttpUpgradeFailed);
    }
    check_codings(&parts.headers, redactor, secret_sent)?;
    let announced = parts
        .headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limits.response_bytes) && !body.is_end_stream() {
        return Err(Error::HttpResponseBodySize(Some(limits.response_bytes)));
    }
    parts.headers = clean_headers(&parts.headers, redactor);
    if !redactor.is_empty() {
        // It may no longer be true of what the guest gets.
        parts.headers.remove(CONTENT_LENGTH);
    }
    parts.extensions.clear();
    let body = IncomingBody {
        body,
        redactor: redactor.clone(),
        redaction: redactor.stream(),
        trailers: None,
        state: State::Open,
        left: limits.response_bytes,
        limit: limits.response_bytes,
        timeouts,
        timer: Box::pin(tokio::time::sleep_until(timeouts.next())),
        failure,
        _sender: sender,
        _connection: connection,
    };
    Ok(Response::from_parts(parts, body.boxed_unsync()))
}

impl Timeouts {
    /// When the next bytes must be here.
    fn next(&self) -> Instant {
        (Instant::now() + self.between_bytes).min(self.deadline)
    }
}

/// Refuses what could not be looked into. The error quotes the server, so it is redacted like all that a server says.
fn check_codings(headers: &HeaderMap, redactor: &Redactor, secret_sent: bool) -> Result<(), Error> {
    let other_than = |name: HeaderName, plain: &str| {
        headers.get_all(name).iter().find_map(|value| {
            let value = String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
            (!value.eq_ignore_ascii_case(plain)).then(|| redactor.text(&value).into_owned())
        })
    };
    if let Some(coding) = other_than(TRANSFER_ENCODING, "chunked") {
        return Err(Error::HttpResponseTransferCoding(Some(coding)));
    }
    match other_than(CONTENT_ENCODING, "identity") {
        // The server was asked for plain text. What it compressed may hold the secret that it was sent.
        Some(coding) if secret_sent => Err(Error::HttpResponseContentCoding(Some(coding))),
        _ => Ok(()),
    }
}

/// The headers, or trailers, that a guest may see.
fn clean_headers(headers: &HeaderMap, redactor: &Redactor) -> HeaderMap {
    let mut clean = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let reflected = matches!(redactor.text(name.as_str()), std::borrow::Cow::Owned(_));
        if is_forbidden(name) || reflected {
            continue;
        }
        if let Ok(value) = HeaderValue::from_bytes(&redactor.bytes(value.as_bytes())) {
            clean.append(name, value);
        }
    }
    clean
}

/// What hyper's errors are to a guest.
fn hyper_error(error: &hyper::Error) -> Error {
    let source = std::error::Error::source(error);
    let from_socket = !error.is_parse() && source.is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
    if error.is_parse_too_large() {
        Error::HttpResponseHeaderSectionSize(None)
    } else if error.is_timeout() {
        Error::ConnectionReadTimeout
    } else if error.is_incomplete_message() {
        Error::HttpResponseIncomplete
    } else if error.is_canceled() || error.is_closed() || from_socket {
        Error::ConnectionTerminated
    } else {
        Error::HttpProtocolError
    }
}

enum State {
    Open,
    /// The redaction's rest is given, trailers may follow.
    Trailers,
    Over,
}

/// A response's body on its way to the guest. It owns the connection.
struct IncomingBody {
    body: Incoming,
    redactor: Redactor,
    redaction: RedactStream,
    trailers: Option<HeaderMap>,
    state: State,
    left: u64,
    limit: u64,
    timeouts: Timeouts,
    timer: Pin<Box<Sleep>>,
    failure: Failure,
    /// hyper closes a connection whose sender is dropped while a request's body is still being written.
    _sender: http1::SendRequest<OutgoingBody>,
    _connection: AbortOnDropJoinHandle<()>,
}

impl IncomingBody {
    fn fail(&mut self, error: Error) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.state = State::Over;
        Poll::Ready(Some(Err(error)))
    }

    /// The stream has ended: gives what the redaction held back, then the trailers.
    fn end(&mut self) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if matches!(self.state, State::Open) {
            self.state = State::Trailers;
            let rest = self.redaction.finish();
            if !rest.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(rest.into()))));
            }
        }
        self.state = State::Over;
        Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }
}

impl Body for IncomingBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        loop {
            match this.state {
                State::Open => {}
                State::Trailers => return this.end(),
                State::Over => return Poll::Ready(None),
            }
            match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Pending => {
                    std::task::ready!(this.timer.as_mut().poll(context));
                    return this.fail(Error::ConnectionReadTimeout);
                }
                Poll::Ready(None) => return this.end(),
                Poll::Ready(Some(Err(error))) => {
                    let error = this.failure.take().unwrap_or_else(|| hyper_error(&error));
                    return this.fail(error);
                }
                Poll::Ready(Some(Ok(frame))) => {
                    if Instant::now() >= this.timeouts.deadline {
                        return this.fail(Error::ConnectionReadTimeout);
                    }
                    let next = this.timeouts.next();
                    this.timer.as_mut().reset(next);
                    match frame.into_data() {
                        Ok(data) => {
                            let length = data.len() as u64;
                            if length > this.left {
                                let limit = this.limit;
                                return this.fail(Error::HttpResponseBodySize(Some(limit)));
                            }
                            this.left -= length;
                            let clean = if this.redactor.is_empty() {
                                data
                            } else {
                                this.redaction.push(&data).into()
                            };
                            // An empty frame would read as nothing there yet, so the next one is looked for at once.
                            if !clean.is_empty() {
                                return Poll::Ready(Some(Ok(Frame::data(clean))));
                            }
                        }
                        Err(frame) => {
                            if let Ok(trailers) = frame.into_trailers() {
                                this.trailers = Some(clean_headers(&trailers, &this.redactor));
                                return this.end();
                            }
                        }
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Over)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
