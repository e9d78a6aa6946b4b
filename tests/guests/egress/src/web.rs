//! Requests through the host, built by hand so that nothing tidies them up.

use wasip2::http::outgoing_handler;
use wasip2::http::types::{Fields, Method, OutgoingBody, OutgoingRequest, Scheme};
use wasip2::io::streams::StreamError;

/// A request that is about to be sent.
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    pub(crate) scheme: &'a str,
    pub(crate) authority: &'a str,
    pub(crate) path: &'a str,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    /// Bytes of the body.
    pub(crate) body: usize,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl<'a> Ask<'a> {
    /// A plain `GET`.
    pub(crate) fn get(scheme: &'a str, authority: &'a str, path: &'a str) -> Self {
        Self {
            method: Method::Get,
            scheme,
            authority,
            path,
            headers: Vec::new(),
            body: 0,
        }
    }

    pub(crate) fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn send(self) -> Result<Reply, String> {
        let headers = Fields::new();
        for (name, value) in &self.headers {
            headers
                .append(name, value)
                .map_err(|error| format!("header {name}: {error:?}"))?;
        }
        let request = OutgoingRequest::new(headers);
        let scheme = match self.scheme {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => Scheme::Other(other.to_owned()),
        };
        request
            .set_method(&self.method)
            .and_then(|()| request.set_scheme(Some(&scheme)))
            .and_then(|()| request.set_authority(Some(self.authority)))
            .and_then(|()| request.set_path_with_query(Some(self.path)))
            .map_err(|()| "malformed".to_owned())?;
        let body = request.body().map_err(|()| "no body".to_owned())?;
        let future = outgoing_handler::handle(request, None).map_err(|code| format!("{code:?}"))?;
        let written = write(&body, self.body);
        if written.is_ok() {
            let _ = OutgoingBody::finish(body, None);
        }
        loop {
            future.subscribe().block();
            if let Some(taken) = future.get() {
                let response = taken
                    .map_err(|()| "taken".to_owned())?
                    .map_err(|code| format!("{code:?}"))?;
                let headers = response.headers().entries().into_iter();
                let mut reply = Reply {
                    status: response.status(),
                    headers: headers
                        .map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned()))
                        .collect(),
                    body: String::new(),
                };
                let body = response.consume().map_err(|()| "no body".to_owned())?;
                let stream = body.stream().map_err(|()| "no body".to_owned())?;
                let mut bytes = Vec::new();
                loop {
                    match stream.blocking_read(64 << 10) {
                        Ok(piece) => bytes.extend_from_slice(&piece),
                        Err(StreamError::Closed) => break,
                        Err(StreamError::LastOperationFailed(error)) => {
                            let read = bytes.len();
                            return Err(format!("after {read} bytes: {}", error.to_debug_string()));
                        }
                    }
                }
                reply.body = String::from_utf8_lossy(&bytes).into_owned();
                return Ok(reply);
            }
        }
    }
}

fn write(body: &OutgoingBody, length: usize) -> Result<(), String> {
    let stream = body.write().map_err(|()| "no body".to_owned())?;
    let piece = [b'x'; 4_096];
    let mut left = length;
    while left > 0 {
        let now = left.min(piece.len());
        stream
            .blocking_write_and_flush(&piece[..now])
            .map_err(|error| format!("{error:?}"))?;
        left -= now;
    }
    Ok(())
}
