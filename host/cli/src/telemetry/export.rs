//! Sending spans, beside the run and never in its way: a queue of bounded size, one task that empties it, and a wait of
//! bounded length at the end. What cannot be sent is counted, and said once.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderMap;
use tokio::sync::{mpsc, oneshot};
use url::Url;

use super::otlp;
use super::span::Span;

/// The most bytes of spans that wait: a collector that is slower than the run loses spans, and the host no memory.
const MAX_WAITING: usize = 16 << 20;
/// The most bytes of spans in one request; collectors refuse more than a few times this.
const MAX_REQUEST: usize = 2 << 20;
/// The most spans in one request, as OpenTelemetry's own exporters have it.
const MAX_SPANS: usize = 512;
/// How long a span waits for others to go with it.
const GATHER: Duration = Duration::from_secs(1);
/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often a request is tried, and the wait before the second try; each further one is four times as long.
const TRIES: u32 = 3;
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// How long the end of a run waits for its last spans.
pub(super) const LAST_WAIT: Duration = Duration::from_secs(5);

/// Where spans go.
pub(super) struct Destination {
    pub(super) client: reqwest::Client,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) resource: Vec<(String, String)>,
}

/// The end of the queue into which spans are put.
#[derive(Clone)]
pub(super) struct Exporter {
    queue: mpsc::UnboundedSender<Order>,
    account: Arc<Account>,
}

enum Order {
    Send(Box<Span>),
    Flush(oneshot::Sender<()>),
}

#[derive(Default)]
struct Account {
    waiting_bytes: AtomicUsize,
    /// Spans that were taken and have not been sent.
    waiting: AtomicU64,
    lost: AtomicU64,
    why: Mutex<String>,
}

impl Account {
    fn lose(&self, spans: u64, why: impl FnOnce() -> String) {
        self.lost.fetch_add(spans, Ordering::Relaxed);
        let mut kept = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_empty() {
            *kept = why();
        }
    }
}

impl Exporter {
    /// Starts the task that sends. It ends with the last exporter.
    pub(super) fn start(destination: Destination) -> Self {
        let (queue, orders) = mpsc::unbounded_channel();
        let account = Arc::<Account>::default();
        tokio::spawn(work(destination, orders, account.clone()));
        Self { queue, account }
    }

    /// Takes a span. Never waits: where too many wait already, the span is lost, and counted.
    pub(super) fn send(&self, span: Span) {
        let size = span.size();
        let before = self.account.waiting_bytes.fetch_add(size, Ordering::Relaxed);
        if before + size > MAX_WAITING {
            self.account.waiting_bytes.fetch_sub(size, Ordering::Relaxed);
            return self.account.lose(1, || "the collector is slower than the run".into());
        }
        self.account.waiting.fetch_add(1, Ordering::Relaxed);
        let _ = self.queue.send(Order::Send(Box::new(span)));
    }

    /// Waits until all is sent that was taken, but not for long. What could not be sent, and why, if anything.
    pub(super) async fn flush(&self, longest: Duration) -> Option<(u64, String)> {
        let (done, over) = oneshot::channel();
        let sent = self.queue.send(Order::Flush(done)).is_ok();
        let in_time = sent && tokio::time::timeout(longest, over).await.is_ok_and(|over| over.is_ok());
        if !in_time {
            let left = self.account.waiting.swap(0, Ordering::Relaxed);
            self.account
                .lose(left, || format!("no answer came within {} s", longest.as_secs_f64()));
        }
        let lost = self.account.lost.swap(0, Ordering::Relaxed);
        let why = std::mem::take(&mut *self.account.why.lock().unwrap_or_else(PoisonError::into_inner));
        (lost > 0).then_some((lost, why))
    }
}

async fn work(destination: Destination, mut orders: mpsc::UnboundedReceiver<Order>, account: Arc<Account>) {
    let mut flushed = Vec::new();
    while let Some(first) = orders.recv().await {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let gathered = tokio::time::sleep(GATHER);
        tokio::pin!(gathered);
        let mut order = Some(first);
        loop {
            match order.take() {
                Some(Order::Send(span)) => {
                    bytes += span.size();
                    batch.push(*span);
                }
                Some(Order::Flush(done)) => {
                    flushed.push(done);
                    break;
                }
                None => break,
            }
            if batch.len() >= MAX_SPANS || bytes >= MAX_REQUEST {
                break;
            }
            tokio::select! {
                next = orders.recv() => order = next,
                () = &mut gathered => break,
            }
        }
        let count = batch.len() as u64;
        if count > 0 {
            let sent = post(&destination, otlp::body(&destination.resource, &batch)).await;
            account.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            // A flush that gave up has counted them as lost already.
            let waited = account
                .waiting
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
                    Some(waiting.saturating_sub(count))
                });
            let owed = waited.unwrap_or(0).min(count);
            if let Err(why) = sent {
                tracing::debug!(why, spans = count, "spans could not be sent");
                account.lose(owed, || why);
            }
        }
        for done in flushed.drain(..) {
            // Whoever waited may have given up.
            let _ = done.send(());
        }
    }
}

/// One request, tried again where that may help.
async fn post(destination: &Destination, body: Vec<u8>) -> Result<(), String> {
    let body = bytes::Bytes::from(body);
    let mut wait = FIRST_WAIT;
    for attempt in 1.. {
        let (why, again) = match once(destination, body.clone()).await {
            Ok(()) => return Ok(()),
            Err(failed) => failed,
        };
        if attempt == TRIES || !again {
            return Err(why);
        }
        tokio::time::sleep(wait).await;
        wait *= 4;
    }
    unreachable!("the tries end by a return")
}

/// Why a request failed, and whether the protocol has it tried again.
async fn once(destination: &Destination, body: bytes::Bytes) -> Result<(), (String, bool)> {
    let request = destination
        .client
        .post(destination.url.clone())
        .timeout(TIMEOUT)
        .headers(destination.headers.clone())
        .header("content-type", "application/x-protobuf")
        .body(body);
    let response = request.send().await.map_err(|error| (reason(error), true))?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let again = matches!(status.as_u16(), 429 | 502 | 503 | 504);
    Err((format!("the collector answered {status}"), again))
}

/// The innermost reason, without the address, which may hold what is nobody's business.
fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let chain = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    chain.last().map(ToString::to_string).unwrap_or_default()
}
