#![allow(clippy::unwrap_used)]

//! Tests of egress against servers on loopback that answer byte by byte what the test says.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fief_core::event::{CallNote, CapabilityKind};
use fief_core::grant::{Grant, Limits, OriginGrant, SecretGrant};
use fief_core::port::{BoxFuture, CallSink};
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wasmtime_wasi_http::{Error, WasiBody};

use super::address::Resolve;
use super::*;

mod limits;
mod origins;
mod secrets;
mod tls;

/// Keeps every note.
#[derive(Default)]
pub(super) struct Notes(Mutex<Vec<CallNote>>);

impl CallSink for Notes {
    fn note(&self, note: CallNote) {
        self.0.lock().unwrap().push(note);
    }
}

impl Notes {
    /// `kind allowed target [rule]`, one for each use.
    pub(super) fn uses(&self) -> Vec<String> {
        let notes = self.0.lock().unwrap();
        let line = |note: &CallNote| match note {
            CallNote::Capability {
                kind,
                target,
                allowed,
                rule,
                count,
            } => {
                let verdict = if *allowed { "allowed" } else { "refused" };
                let count = count.map_or(String::new(), |count| format!(" x{count}"));
                let kind = match kind {
                    CapabilityKind::Http => "http",
                    CapabilityKind::Secret => "secret",
                    _ => "other",
                };
                format!("{kind} {verdict} {target} [{rule}]{count}")
            }
            other => format!("{other:?}"),
        };
        notes.iter().map(line).collect()
    }
}

/// Gives each lookup the next answer; the last one again and again.
pub(super) struct Answers(Mutex<VecDeque<Vec<IpAddr>>>);

impl Answers {
    pub(super) fn new(answers: &[&[&str]]) -> Self {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        Self(Mutex::new(answers.iter().map(parse).collect()))
    }
}

impl Resolve for Answers {
    fn resolve(&self, _name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let mut answers = self.0.lock().unwrap();
        let answer = if answers.len() > 1 {
            answers.pop_front()
        } else {
            answers.front().cloned()
        };
        Box::pin(async move { answer.ok_or_else(|| io::Error::other("no such name")) })
    }
}

/// One call with its grants.
pub(super) struct Setup {
    pub(super) grant: Grant,
    pub(super) vault: Arc<Vault>,
    pub(super) network: Arc<Network>,
    pub(super) notes: Arc<Notes>,
}

impl Setup {
    /// Granted these origins, `private` where the pattern says so by itself.
    pub(super) fn new(origins: &[&str]) -> Self {
        let origin = |text: &&str| {
            let pattern: fief_core::grant::pattern::OriginPattern = text.parse().unwrap();
            OriginGrant {
                private: pattern.is_explicit(),
                pattern,
                metadata: false,
                rule: format!("archetype grants `{text}`").into(),
            }
        };
        let limits = Limits {
            wall: Duration::from_secs(20),
            ..Limits::default()
        };
        Self {
            grant: Grant {
                http: origins.iter().map(origin).collect(),
                limits,
                ..Grant::default()
            },
            vault: Arc::default(),
            network: Arc::new(Network::with_resolver(Answers::new(&[]))),
            notes: Arc::default(),
        }
    }

    pub(super) fn answers(mut self, answers: &[&[&str]]) -> Self {
        self.network = Arc::new(Network::with_resolver(Answers::new(answers)));
        self
    }

    pub(super) fn private(mut self) -> Self {
        self.grant.http.iter_mut().for_each(|grant| grant.private = true);
        self
    }

    /// Each `(name, value, origin, header, format)`.
    pub(super) fn secrets(mut self, secrets: &[(&str, &str, &str, &str, &str)]) -> Self {
        let values: BTreeMap<String, SecretString> = secrets
            .iter()
            .map(|secret| (secret.0.to_owned(), secret.1.into()))
            .collect();
        self.vault = Arc::new(Vault::new(secrets.iter().map(|secret| secret.0), &values));
        self.grant.secrets = secrets
            .iter()
            .map(|(name, _, origin, header, format)| SecretGrant {
                name: (*name).into(),
                origin: origin.parse().unwrap(),
                header: (*header).into(),
                format: (*format).into(),
                rule: format!("archetype grants secret `{name}`").into(),
            })
            .collect();
        self
    }

    pub(super) fn egress(&self) -> Egress {
        let audit = Arc::new(Audit::new(self.notes.clone()));
        Egress::new(&self.grant, self.vault.clone(), self.network.clone(), audit)
    }

    pub(super) async fn get(&self, url: &str) -> Result<Answer, Error> {
        self.send(get(url)).await
    }

    pub(super) async fn send(&self, request: Request<WasiBody>) -> Result<Answer, Error> {
        let response = self.egress().send(request, None).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await?;
        let trailers = body.trailers().cloned();
        Ok(Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8_lossy(&body.to_bytes()).into_owned(),
            trailers,
        })
    }
}

/// A whole response as a guest would have read it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
    pub(super) trailers: Option<HeaderMap>,
}

/// A body that is there as a whole.
pub(super) fn whole(bytes: impl Into<Bytes>) -> WasiBody {
    http_body_util::Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

pub(super) fn get(url: &str) -> Request<WasiBody> {
    Request::get(url).body(whole(Bytes::new())).unwrap()
}

/// What the guest is told when it is refused.
pub(super) fn denied(result: Result<Answer, Error>) -> String {
    match result {
        Err(Error::InternalError(Some(text))) if text.starts_with("request denied: ") => text,
        other => panic!("was not refused: {other:?}"),
    }
}

/// A server that reads each request, keeps it, and lets `answer` write whatever it likes.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) requests: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(super) async fn start<F, W>(answer: F) -> Self
    where
        F: Fn(String, TcpStream) -> W + Send + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = requests.clone();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some(request) = read_request(&mut stream).await else {
                    continue;
                };
                kept.lock().unwrap().push(request.clone());
                tokio::spawn(answer(request, stream));
            }
        });
        Self {
            address,
            requests,
            task,
        }
    }

    /// Answers every request with these bytes.
    pub(super) async fn with(answer: &'static [u8]) -> Self {
        Self::start(move |_, mut stream| async move {
            let _ = stream.write_all(answer).await;
        })
        .await
    }

    /// Sends the whole request back as the body, in pieces of this many bytes.
    pub(super) async fn echo(piece: usize) -> Self {
        Self::start(move |request, mut stream| async move {
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                .await;
            for piece in request.as_bytes().chunks(piece) {
                let head = format!("{:x}\r\n", piece.len());
                let _ = stream.write_all(&[head.as_bytes(), piece, b"\r\n"].concat()).await;
                let _ = stream.flush().await;
                tokio::task::yield_now().await;
            }
            let _ = stream.write_all(b"0\r\n\r\n").await;
        })
        .await
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(super) fn seen(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Head and body of one request; nothing if the connection ends before.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let length = text
        .split("content-length: ")
        .nth(1)
        .and_then(|rest| rest.lines().next()?.parse::<usize>().ok());
    let chunked = text.contains("transfer-encoding: chunked");
    while length.is_some_and(|length| bytes.len() < head + length) || (chunked && !bytes.ends_with(b"0\r\n\r\n")) {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            break;
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
