//! One question to a server: attempts, retries, and the events that a watcher sees.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fief_core::manifest::archetype::Generation;
use fief_core::manifest::config::{ModelConfig, Prices};
use fief_core::message::{Answer, ModelIdentity, Request};
use fief_core::port::{BoxStream, Model, ModelError, ModelEvent};
use futures::channel::mpsc;
use futures::{SinkExt as _, StreamExt as _, stream};
use reqwest::Response;
use serde_json::Value;

use crate::config::{Timeouts, identity};
use crate::draft::{Draft, estimate};
use crate::fault::{Cause, Fault, Verdict, shorten};
use crate::http::Endpoint;
use crate::names::Names;
use crate::retry::RetryPolicy;
use crate::sse::{MAX_EVENT, SseFault, SseParser};
use crate::wire::{Format, Progress, Question, Reader};

/// The most that an answer may hold in all, in bytes, protocol included.
const MAX_ANSWER: usize = 256 << 20;
/// How often in a row a format may change what it sends because the server refused a parameter.
const MAX_ADAPTATIONS: usize = 4;

/// Where the events of one question go.
pub(crate) type Events = mpsc::Sender<ModelEvent>;

/// A stream of what `work` sends; dropping it drops the work.
pub(crate) fn emit<F>(work: impl FnOnce(Events) -> F) -> BoxStream<'static, ModelEvent>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(32);
    let work = stream::once(work(sender)).filter_map(|()| std::future::ready(None));
    Box::pin(stream::select(receiver, work))
}

/// Sends one event. Nobody listening means that the question was dropped, and the work is about to be as well.
pub(crate) async fn send(events: &mut Events, event: ModelEvent) {
    let _ = events.send(event).await;
}

/// A model behind an HTTP server.
#[derive(Clone)]
pub(crate) struct HttpModel(Arc<Inner>);

struct Inner {
    name: String,
    model: String,
    stream: bool,
    generation: Generation,
    prices: Option<Prices>,
    identity: Arc<ModelIdentity>,
    format: Box<dyn Format>,
    endpoint: Endpoint,
    retry: RetryPolicy,
}

/// What one attempt brought.
pub(crate) struct Attempt {
    /// What was gathered.
    pub(crate) draft: Draft,
    /// Whether it came as a stream of events.
    pub(crate) streamed: bool,
    /// Bytes received.
    received: usize,
    /// Bytes sent.
    sent: usize,
}

impl Model for HttpModel {
    fn ask(&self, request: Request) -> BoxStream<'static, ModelEvent> {
        let inner = self.0.clone();
        emit(move |events| inner.run(request, events))
    }
}

impl HttpModel {
    pub(crate) fn new(
        name: &str,
        config: &ModelConfig,
        format: Box<dyn Format>,
        endpoint: Endpoint,
        retry: RetryPolicy,
    ) -> Self {
        Self(Arc::new(Inner {
            name: name.to_owned(),
            model: config.model.clone(),
            stream: config.stream.unwrap_or(true),
            generation: config.generation.clone(),
            prices: config.prices,
            identity: Arc::new(identity(config)),
            format,
            endpoint,
            retry,
        }))
    }

    /// Where it is, for messages.
    pub(crate) fn origin(&self) -> String {
        self.0.endpoint.origin()
    }

    /// Asks once, without retries, and hands back what came unfinished.
    pub(crate) async fn attempt(&self, request: &Request) -> Result<Attempt, ModelError> {
        let (mut events, _receiver) = mpsc::channel(0);
        events.close_channel();
        for _ in 0..=MAX_ADAPTATIONS {
            match self.0.attempt(self.0.body(request), &mut events).await {
                Err(fault) if self.0.format.adapt(&fault) => {}
                Err(fault) => return Err(self.0.error(&fault, 1)),
                Ok(attempt) => return Ok(attempt),
            }
        }
        Err(self.0.error(
            &Fault::new(Cause::Garbled, "the server refuses every form of the request"),
            1,
        ))
    }
}

impl Inner {
    async fn run(self: Arc<Self>, request: Request, mut events: Events) {
        let names = Names::of(&request.tools);
        let outcome = self.persist(&request, &names, &mut events).await;
        // The history is shared: once the answer is out, its owner appends to it, and must hold it alone by then.
        drop(request);
        let event = match outcome {
            Ok(answer) => ModelEvent::Done(answer),
            Err(error) => ModelEvent::Failed(error),
        };
        send(&mut events, event).await;
    }

    async fn persist(&self, request: &Request, names: &Names, events: &mut Events) -> Result<Answer, ModelError> {
        let started = Instant::now();
        let mut waits = self.retry.waits();
        let mut body = self.body(request);
        let mut adaptations = 0;
        for attempt in 1.. {
            let fault = match self.attempt(body.clone(), events).await {
                Ok(attempt) => {
                    let estimate = estimate(attempt.sent, attempt.received);
                    let mut answer = attempt.draft.into_answer(names, self.prices.as_ref(), estimate);
                    answer.served.by = Some(self.identity.clone());
                    return Ok(answer);
                }
                Err(fault) => fault,
            };
            if let Some(mut usage) = fault.spent {
                usage.cost = self.prices.as_ref().map(|prices| prices.cost(&usage));
                send(events, ModelEvent::Spent(usage)).await;
            }
            tracing::debug!(model = self.name, attempt, cause = ?fault.cause, "an attempt failed");
            let wait = if adaptations < MAX_ADAPTATIONS && self.format.adapt(&fault) {
                adaptations += 1;
                body = self.body(request);
                Duration::ZERO
            } else {
                if fault.verdict() != Verdict::Retry {
                    return Err(self.error(&fault, attempt));
                }
                let Some(wait) = waits.next() else {
                    return Err(self.error(&fault, attempt));
                };
                // The server knows best, but no wait may outlast what is left.
                let wait = fault
                    .retry_after
                    .map_or(wait, |asked| asked.max(wait.min(Duration::from_secs(1))));
                if started.elapsed() + wait > self.retry.total {
                    return Err(self.error(&fault, attempt));
                }
                wait
            };
            let retry = ModelEvent::Retry {
                attempt,
                wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                error: self.describe(&fault),
            };
            send(events, retry).await;
            tokio::time::sleep(wait).await;
        }
        unreachable!("the attempts end by a return")
    }

    fn body(&self, request: &Request) -> Bytes {
        let question = Question {
            model: &self.model,
            request,
            generation: request.generation.or(&self.generation),
            stream: self.stream,
        };
        self.format.body(&question).to_string().into()
    }

    fn describe(&self, fault: &Fault) -> String {
        let text = format!("model `{}` at {}: {}", self.name, self.endpoint.origin(), fault.message);
        self.endpoint.redact(&text)
    }

    fn error(&self, fault: &Fault, attempts: u32) -> ModelError {
        let mut message = self.describe(fault);
        if attempts > 1 && fault.verdict() == Verdict::Retry {
            message.push_str(&format!(" (after {attempts} attempts)"));
        }
        if let Some(wait) = fault
            .retry_after
            .filter(|wait| fault.verdict() == Verdict::Retry && !wait.is_zero())
        {
            message.push_str(&format!("; the server asks to wait {} s", wait.as_secs_f64().ceil()));
        }
        ModelError {
            kind: fault.kind(),
            message,
        }
    }

    async fn attempt(&self, body: Bytes, events: &mut Events) -> Result<Attempt, Fault> {
        let sent = body.len();
        let mut response = self.endpoint.post(body).await?;
        let timeouts = self.endpoint.timeouts();
        let html = header(&response, "content-type").is_some_and(|kind| kind.starts_with("text/html"));
        // What the body is shows in its first byte that is no white space, whatever was asked for and is claimed.
        let mut received = Vec::new();
        let first = loop {
            match self.endpoint.next(&mut response, timeouts.answer).await? {
                None => break None,
                Some(piece) => received.extend_from_slice(&piece),
            }
            let text = received.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&received);
            if let Some(first) = text.iter().find(|byte| !byte.is_ascii_whitespace()) {
                break Some(*first);
            }
            if received.len() > MAX_EVENT {
                return Err(too_large());
            }
        };
        match first {
            None => Err(Fault::new(Cause::Cut, "the answer is empty")),
            Some(_) if html => Err(page()),
            Some(b'<') => Err(page()),
            Some(b'{' | b'[') => self.whole(response, received, sent, timeouts, events).await,
            Some(_) => self.stream(response, received, sent, timeouts, events).await,
        }
    }

    /// An answer in one piece of JSON.
    async fn whole(
        &self,
        mut response: Response,
        mut received: Vec<u8>,
        sent: usize,
        timeouts: Timeouts,
        events: &mut Events,
    ) -> Result<Attempt, Fault> {
        while let Some(piece) = self.endpoint.next(&mut response, timeouts.idle).await? {
            received.extend_from_slice(&piece);
            if received.len() > MAX_ANSWER {
                return Err(too_large());
            }
        }
        let json = received.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&received);
        let body: Value = serde_json::from_slice(json).map_err(|error| {
            if error.is_eof() {
                Fault::new(Cause::Cut, "the answer breaks off")
            } else {
                Fault::new(Cause::Garbled, format!("the answer is not JSON: {error}"))
            }
        })?;
        let draft = self.format.whole(body)?;
        // What the answer's text will be: a refusal stands where there is no other.
        let shown = if draft.text.is_empty() {
            &draft.refusal
        } else {
            &draft.text
        };
        if !shown.is_empty() {
            send(events, ModelEvent::Delta(shown.clone())).await;
        }
        Ok(Attempt {
            draft,
            streamed: false,
            received: received.len(),
            sent,
        })
    }

    /// An answer as a stream of events.
    async fn stream(
        &self,
        response: Response,
        first: Vec<u8>,
        sent: usize,
        timeouts: Timeouts,
        events: &mut Events,
    ) -> Result<Attempt, Fault> {
        let mut reader = self.format.reader();
        match self.read(response, first, timeouts, reader.as_mut(), events).await {
            Ok(answer_bytes) => {
                let draft = reader.into_draft();
                let calls: usize = draft.calls.iter().map(|call| call.name.len() + 40).sum();
                Ok(Attempt {
                    draft,
                    streamed: true,
                    received: answer_bytes + calls,
                    sent,
                })
            }
            // What was generated until then is paid for.
            Err(fault) => Err(fault.having_spent(reader.into_draft().usage)),
        }
    }

    /// Reads a stream to its end, and tells how many bytes of text it showed. A stream is trusted only if it says
    /// itself that it is whole.
    async fn read(
        &self,
        mut response: Response,
        first: Vec<u8>,
        timeouts: Timeouts,
        reader: &mut dyn Reader,
        events: &mut Events,
    ) -> Result<usize, Fault> {
        let mut parser = SseParser::default();
        let mut progress = Progress::Open;
        let mut piece = Some(Bytes::from(first));
        let (mut total, mut answer_bytes) = (0, 0);
        let mut ready = Vec::new();
        let mut shown = String::new();
        loop {
            let ended = piece.is_none();
            match piece {
                Some(bytes) => {
                    total += bytes.len();
                    if total > MAX_ANSWER {
                        return Err(too_large());
                    }
                    parser.push(&bytes, &mut ready).map_err(of_sse)?;
                }
                None => std::mem::take(&mut parser).finish(&mut ready).map_err(of_sse)?,
            }
            for event in ready.drain(..) {
                match reader.take(&event, &mut shown) {
                    Ok(state) => progress = state,
                    // A whole answer stays whole, whatever a server appends to it.
                    Err(_) if progress != Progress::Open => progress = Progress::Over,
                    Err(fault) => return Err(fault),
                }
                if progress == Progress::Over {
                    break;
                }
            }
            if !shown.is_empty() {
                answer_bytes += shown.len();
                send(events, ModelEvent::Delta(std::mem::take(&mut shown))).await;
            }
            let within = match progress {
                Progress::Over => break,
                Progress::Whole if ended => break,
                Progress::Open if ended => {
                    return Err(Fault::new(Cause::Cut, "the stream ended before the answer was whole"));
                }
                Progress::Whole => timeouts.settle,
                Progress::Open => timeouts.idle,
            };
            piece = match self.endpoint.next(&mut response, within).await {
                Err(_) if progress == Progress::Whole => break,
                next => next?,
            };
        }
        Ok(answer_bytes)
    }
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

fn page() -> Fault {
    Fault::new(
        Cause::Page,
        "the server answered with a web page: `base_url` is not the address of an API, perhaps",
    )
}

fn too_large() -> Fault {
    Fault::new(
        Cause::TooLarge,
        format!("the answer is larger than {} MiB", MAX_ANSWER >> 20),
    )
}

fn of_sse(fault: SseFault) -> Fault {
    match fault {
        SseFault::TooLong => Fault::new(
            Cause::TooLarge,
            format!("an event is larger than {} MiB", MAX_EVENT >> 20),
        ),
        SseFault::NotUtf8 => Fault::new(Cause::Garbled, shorten("the stream is not UTF-8")),
    }
}
