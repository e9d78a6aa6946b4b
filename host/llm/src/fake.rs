//! A server for tests that plays bytes on a socket, faults included, and remembers what it was sent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fief_core::manifest::archetype::Generation;
use fief_core::manifest::config::ModelConfig;
use fief_core::message::{Answer, Content, Message, Request, Usage};
use fief_core::port::{Model, ModelError, ModelEvent};
use fief_core::tool::Declaration;
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::{ClientOptions, RetryPolicy, Timeouts, client};

/// What a connection does, in order; at the end it closes.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Waits.
    Pause(Duration),
    /// Resets the connection.
    Reset,
    /// Resets the connection before the request was read; only as the first.
    ResetAtOnce,
    /// Never does anything again.
    Hang,
}

/// One request as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    /// The request line and the headers, lower case.
    pub(crate) head: String,
    /// The body.
    pub(crate) body: Value,
}

/// A running server.
pub(crate) struct Fake {
    /// Where it listens, such as `http://127.0.0.1:4000`.
    pub(crate) origin: String,
    received: Arc<Mutex<Vec<Received>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fake {
    /// Plays one script for each connection; the last is played again for every further one.
    pub(crate) async fn start(connections: Vec<Vec<Act>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let seen = received.clone();
        let task = tokio::spawn(async move {
            for index in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let acts = connections[index.min(connections.len() - 1)].clone();
                tokio::spawn(play(stream, acts, seen.clone()));
            }
        });
        Self { origin, received, task }
    }

    /// One answer for every connection.
    pub(crate) async fn answering(response: Vec<u8>) -> Self {
        Self::start(vec![vec![Act::Send(response)]]).await
    }

    /// What has come so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

async fn play(mut stream: TcpStream, acts: Vec<Act>, seen: Arc<Mutex<Vec<Received>>>) {
    if matches!(acts.first(), Some(Act::ResetAtOnce)) {
        stream.set_zero_linger().unwrap();
        return;
    }
    stream.set_nodelay(true).unwrap();
    let Some(request) = read_request(&mut stream).await else {
        return;
    };
    seen.lock().unwrap().push(request);
    for act in acts {
        match act {
            Act::Send(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
                stream.flush().await.unwrap();
            }
            Act::Pause(time) => tokio::time::sleep(time).await,
            Act::Reset => {
                stream.set_zero_linger().unwrap();
                return;
            }
            Act::Hang => std::future::pending().await,
            Act::ResetAtOnce => unreachable!("stands first"),
        }
    }
    let _ = stream.shutdown().await;
    // What the client still sends is read, so that closing does not reset.
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.read(&mut [0; 64])).await;
}

async fn read_request(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length: usize = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"))
            .map_or(0, |value| value.trim().parse().unwrap());
        if bytes.len() >= end + 4 + length {
            let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or(Value::Null);
            return Some(Received { head, body });
        }
    }
}

/// A response that ends with its connection.
pub(crate) fn response(status: &str, kind: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n").into_bytes();
    bytes.extend_from_slice(body.as_ref());
    bytes
}

/// A stream of events that ends with its connection.
pub(crate) fn stream(body: impl AsRef<[u8]>) -> Vec<u8> {
    response("200 OK", "text/event-stream", body)
}

/// A whole answer.
pub(crate) fn whole(body: &Value) -> Vec<u8> {
    response("200 OK", "application/json", body.to_string())
}

/// An error.
pub(crate) fn error(status: &str, body: &Value) -> Vec<u8> {
    response(status, "application/json", body.to_string())
}

/// The beginning of a chunked response, and one chunk: only its last, empty chunk ends it properly.
pub(crate) fn chunked() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec()
}

/// One chunk.
pub(crate) fn chunk(body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut bytes = format!("{:x}\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// A configured model at `origin`.
pub(crate) fn config(provider: &str, origin: &str) -> ModelConfig {
    ModelConfig {
        provider: provider.into(),
        model: "m".into(),
        base_url: Some(origin.into()),
        ..ModelConfig::default()
    }
}

/// Short waits, and one retry.
pub(crate) fn options() -> ClientOptions {
    ClientOptions {
        retry: RetryPolicy {
            retries: 1,
            first_wait: Duration::from_millis(1),
            longest_wait: Duration::from_millis(5),
            total: Duration::from_secs(20),
        },
        timeouts: Timeouts {
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(20),
            idle: Duration::from_secs(20),
            settle: Duration::from_millis(200),
        },
        ..ClientOptions::default()
    }
}

/// A request of one word, with two tools.
pub(crate) fn request() -> Request {
    let declare = |name: &str| Declaration {
        name: name.into(),
        description: format!("Does {name}."),
        input_schema: Arc::new(json!({"type": "object", "properties": {"path": {"type": "string"}}})),
    };
    Request {
        session: "main".parse().unwrap(),
        system: "Be brief.".into(),
        history: Arc::new(vec![Message::User {
            content: vec![Content::Text("go".into())],
        }]),
        tools: [declare("files.read"), declare("agent-worker")].into(),
        generation: Generation::default(),
        parallel_tool_calls: None,
    }
}

/// Everything that one question brings.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) outcome: Result<Answer, ModelError>,
    /// The text that a watcher ends up with.
    pub(crate) shown: String,
    /// The errors that were retried.
    pub(crate) retries: Vec<String>,
    /// How long each retry waited, in milliseconds.
    pub(crate) waits: Vec<u64>,
    /// What broken attempts had cost.
    pub(crate) spent: Vec<Usage>,
}

/// Asks a model and waits for all of it.
pub(crate) async fn ask(model: &dyn Model, request: Request) -> Asked {
    let mut stream = model.ask(request);
    let (mut shown, mut outcome) = (String::new(), None);
    let (mut retries, mut waits, mut spent) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(event) = stream.next().await {
        assert!(outcome.is_none(), "{event:?} after the end");
        match event {
            ModelEvent::Delta(text) => shown.push_str(&text),
            ModelEvent::Retry {
                attempt,
                wait_ms,
                error,
            } => {
                shown.clear();
                retries.push(error);
                waits.push(wait_ms);
                assert_eq!(attempt as usize, retries.len(), "retries are numbered as they come");
            }
            ModelEvent::Spent(usage) => spent.push(usage),
            ModelEvent::Done(answer) => outcome = Some(Ok(answer)),
            ModelEvent::Failed(error) => outcome = Some(Err(error)),
        }
    }
    Asked {
        outcome: outcome.expect("every question has an end"),
        shown,
        retries,
        waits,
        spent,
    }
}

/// Asks the standard question of a provider at a fake.
pub(crate) async fn ask_at(provider: &str, fake: &Fake) -> Asked {
    let model = client(
        "local",
        &config(provider, &fake.origin),
        Some("sk-secret".into()),
        &options(),
    )
    .unwrap();
    ask(&*model, request()).await
}
