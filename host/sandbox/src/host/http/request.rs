//! What leaves: the guest's request, read strictly and written anew from its parts.
//!
//! Nothing of a guest's that frames a message reaches the wire. Names and values of headers cannot hold line ends (their
//! types forbid it); `host`, `content-length`, `transfer-encoding` and what else steers a connection is the host's to
//! write.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use fief_core::grant::pattern::BadOrigin;
use fief_core::grant::target::Target;
use fief_core::grant::{Limits, SecretGrant};
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HOST, IF_RANGE, RANGE, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body::{Body, Frame, SizeHint};
use secrecy::{ExposeSecret, SecretString};
use wasmtime_wasi_http::{Error, WasiBody};

/// Headers of one request. Browsers and libraries send a dozen; common servers refuse more than a hundred.
const MAX_HEADERS: usize = 100;
/// Bytes of all names and values. Common servers refuse more than 8 to 32 KiB.
const MAX_HEADER_BYTES: usize = 32 << 10;
/// Bytes of path and query. Common servers refuse more than 8 to 16 KiB.
const MAX_PATH: usize = 16 << 10;

/// Headers that steer a connection, or a proxy's: the host alone may write them, and no guest sees them.
pub(super) fn is_forbidden(name: &HeaderName) -> bool {
    const FORBIDDEN: [&str; 9] = [
        "connection",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    FORBIDDEN.contains(&name.as_str()) || name.as_str().starts_with("proxy-")
}

/// Where a request goes.
pub(super) fn target(parts: &Parts) -> Result<Target, BadOrigin> {
    let authority = parts.uri.authority().map_or("", http::uri::Authority::as_str);
    Target::parse(parts.uri.scheme_str().unwrap_or("https"), authority)
}

/// Why a request does not leave although its origin is granted.
pub(super) enum Unfit {
    /// A rule says so.
    Denied(String),
    /// It is malformed or too large.
    Code(Error),
}

/// A request that is about to leave, without its body.
pub(super) struct Outgoing {
    method: Method,
    path: Uri,
    headers: HeaderMap,
    length: Option<u64>,
    /// The names of the headers that carry a secret.
    secret_headers: Vec<HeaderName>,
    /// Whether it carries a secret.
    pub(super) secret_sent: bool,
}

impl Outgoing {
    pub(super) fn new(parts: &Parts, target: &Target, limits: &Limits) -> Result<Self, Unfit> {
        if matches!(parts.method, Method::CONNECT | Method::TRACE) {
            // One opens a tunnel that nothing looks into; the other has the server send every header back.
            return Err(Unfit::Denied(format!("the method `{}` is never allowed", parts.method)));
        }
        let length = content_length(&parts.headers)?;
        if length.is_some_and(|length| length > limits.request_bytes) {
            return Err(Unfit::Code(Error::HttpRequestBodySize(Some(limits.request_bytes))));
        }
        let mut headers = checked_headers(&parts.headers, target)?;
        let host = target.to_string();
        let host = host.split_once("://").map_or(host.as_str(), |(_, host)| host);
        let host = HeaderValue::from_str(host).map_err(|_| Unfit::Code(Error::HttpRequestUriInvalid))?;
        headers.insert(HOST, host);
        // Compressed text could not be redacted.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!("fief/", env!("CARGO_PKG_VERSION"))));
        Ok(Self {
            method: parts.method.clone(),
            path: path(&parts.uri)?,
            headers,
            length,
            secret_headers: Vec::new(),
            secret_sent: false,
        })
    }

    /// Puts a secret into its header, in place of whatever the guest has put there.
    ///
    /// # Errors
    /// The reason why it cannot be sent; never shows the value.
    pub(super) fn add_secret(&mut self, grant: &SecretGrant, value: &SecretString) -> Result<(), String> {
        let (name, header) = (&grant.name, &grant.header);
        let key: HeaderName = header
            .parse()
            .map_err(|_| format!("secret `{name}` cannot be sent: `{header}` is no name of a header"))?;
        if is_forbidden(&key) || key == CONTENT_LENGTH || key == ACCEPT_ENCODING {
            return Err(format!(
                "secret `{name}` cannot be sent: header `{header}` is the host's own"
            ));
        }
        if self.secret_headers.contains(&key) {
            return Err(format!(
                "secret `{name}` cannot be sent: another one is granted for header `{header}` too"
            ));
        }
        if self.headers.contains_key(RANGE) || self.headers.contains_key(IF_RANGE) {
            // A value could come back in two halves, and neither would be recognised.
            return Err(format!(
                "secret `{name}` cannot be sent with a `range`: ask for the whole"
            ));
        }
        if !grant.format.contains("{}") {
            return Err(format!(
                "secret `{name}` cannot be sent: its `format` has no `{{}}` in its place"
            ));
        }
        let mut value = HeaderValue::from_str(&grant.format.replace("{}", value.expose_secret()))
            .map_err(|_| format!("secret `{name}` cannot be sent: it fits in no header"))?;
        value.set_sensitive(true);
        self.headers.insert(key.clone(), value);
        self.secret_headers.push(key);
        self.secret_sent = true;
        Ok(())
    }

    /// The whole request, and where its body leaves word of what went wrong with it.
    pub(super) async fn with_body(
        self,
        mut body: WasiBody,
        limit: u64,
    ) -> Result<(Request<OutgoingBody>, Failure), Error> {
        // A body that is known to be empty by now is sent as none: many servers refuse a GET that announces one.
        let ready = if body.is_end_stream() {
            Some(None)
        } else {
            std::future::poll_fn(|context| {
                Poll::Ready(match Pin::new(&mut body).poll_frame(context) {
                    Poll::Ready(frame) => Some(frame),
                    Poll::Pending => None,
                })
            })
            .await
        };
        let failure = Failure::default();
        let (first, over) = match ready {
            Some(Some(frame)) => (Some(frame?), false),
            Some(None) => (None, true),
            None => (None, false),
        };
        if over && self.length.is_some_and(|length| length > 0) {
            return Err(Error::HttpRequestBodySize(Some(0)));
        }
        let body = OutgoingBody {
            body: (!over).then_some(body),
            first,
            left: if over { Some(0) } else { self.length },
            sent: 0,
            limit,
            failure: failure.clone(),
        };
        let mut request = Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.path;
        *request.headers_mut() = self.headers;
        Ok((request, failure))
    }
}

/// The guest's headers, without those that the host writes anew.
fn checked_headers(given: &HeaderMap, target: &Target) -> Result<HeaderMap, Unfit> {
    let bytes: usize = given
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    if given.len() > MAX_HEADERS || bytes > MAX_HEADER_BYTES {
        return Err(Unfit::Code(Error::HttpRequestHeaderSectionSize(
            u32::try_from(bytes).ok(),
        )));
    }
    let mut headers = HeaderMap::with_capacity(given.len() + 4);
    for (name, value) in given {
        if name == HOST {
            let same = value
                .to_str()
                .is_ok_and(|host| Target::parse(target.scheme.as_str(), host).is_ok_and(|host| host == *target));
            if !same {
                return Err(Unfit::Denied("the header `host` names another origin".into()));
            }
        } else if is_forbidden(name) {
            return Err(Unfit::Denied(format!("the header `{name}` is not a guest's to set")));
        } else if name != CONTENT_LENGTH && name != ACCEPT_ENCODING {
            headers.append(name, value.clone());
        }
    }
    Ok(headers)
}

fn content_length(headers: &HeaderMap) -> Result<Option<u64>, Unfit> {
    let mut values = headers.get_all(CONTENT_LENGTH).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let digits = value.to_str().unwrap_or("");
    let number = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())
        .flatten();
    match (number, values.next()) {
        (Some(length), None) => Ok(Some(length)),
        _ => Err(Unfit::Denied("the header `content-length` must be one number".into())),
    }
}

/// Path and query in the form that a request line has.
fn path(uri: &Uri) -> Result<Uri, Unfit> {
    let given = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    if given.len() > MAX_PATH {
        return Err(Unfit::Code(Error::HttpRequestUriTooLong));
    }
    let given = match given {
        "" => "/".to_owned(),
        query if query.starts_with('?') => format!("/{query}"),
        path => path.to_owned(),
    };
    if !given.starts_with('/') {
        return Err(Unfit::Denied("the path must begin with `/`".into()));
    }
    // Set apart from scheme and authority, so that hyper writes it as it is.
    Uri::builder()
        .path_and_query(given)
        .build()
        .map_err(|_| Unfit::Code(Error::HttpRequestUriInvalid))
}

/// Where a request's body leaves word of its failure: hyper tells only that there was one.
#[derive(Clone, Default)]
pub(super) struct Failure(Arc<Mutex<Option<Error>>>);

impl Failure {
    pub(super) fn take(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, error: Error) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

/// A request's body: exactly as long as its header says, and never longer than the limit.
pub(super) struct OutgoingBody {
    /// Absent once it is over.
    body: Option<WasiBody>,
    first: Option<Frame<Bytes>>,
    /// Bytes that the header announced and that are still to come; absent: it announced none.
    left: Option<u64>,
    sent: u64,
    limit: u64,
    failure: Failure,
}

impl OutgoingBody {
    fn fail(&mut self, error: Error) -> Poll<Option<Result<Frame<Bytes>, BodyFailed>>> {
        self.body = None;
        self.failure.set(error);
        Poll::Ready(Some(Err(BodyFailed)))
    }
}

/// The body failed; the reason is where [`Failure`] keeps it.
#[derive(Debug, thiserror::Error)]
#[error("the request's body failed")]
pub(super) struct BodyFailed;

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = BodyFailed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFailed>>> {
        let frame = match (self.first.take(), &mut self.body) {
            (Some(first), _) => Some(Ok(first)),
            (None, None) => return Poll::Ready(None),
            (None, Some(body)) => std::task::ready!(Pin::new(body).poll_frame(context)),
        };
        match frame {
            None => {
                self.body = None;
                match self.left {
                    Some(left) if left > 0 => {
                        let sent = self.sent;
                        self.fail(Error::HttpRequestBodySize(Some(sent)))
                    }
                    _ => Poll::Ready(None),
                }
            }
            Some(Err(error)) => self.fail(error),
            Some(Ok(frame)) => {
                let Some(data) = frame.data_ref() else {
                    // Trailers are fields of the guest's that nothing has looked at, and few servers read them.
                    return match self.left {
                        Some(left) if left > 0 => {
                            let sent = self.sent;
                            self.fail(Error::HttpRequestBodySize(Some(sent)))
                        }
                        _ => {
                            self.body = None;
                            Poll::Ready(None)
                        }
                    };
                };
                let length = data.len() as u64;
                self.sent += length;
                let longer = self.left.is_some_and(|left| length > left);
                if self.sent > self.limit || longer {
                    let limit = self.limit.min(self.sent);
                    return self.fail(Error::HttpRequestBodySize(Some(limit)));
                }
                self.left = self.left.map(|left| left - length);
                Poll::Ready(Some(Ok(frame)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none() && self.first.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
