//! A model with others that are asked when it cannot be had.

use std::sync::Arc;

use fief_core::message::Request;
use fief_core::port::{BoxStream, Model, ModelErrorKind, ModelEvent};
use futures::StreamExt as _;

use crate::ask::{Events, emit, send};

type Named = (String, Arc<dyn Model>);

/// The models, in the order in which they are asked.
pub(crate) struct Fallback(Arc<Vec<Named>>);

impl Fallback {
    pub(crate) fn new(first: Named, others: Vec<Named>) -> Self {
        Self(Arc::new(std::iter::once(first).chain(others).collect()))
    }
}

impl Model for Fallback {
    fn ask(&self, request: Request) -> BoxStream<'static, ModelEvent> {
        let models = self.0.clone();
        emit(move |events| run(models, request, events))
    }
}

async fn run(models: Arc<Vec<Named>>, request: Request, mut events: Events) {
    let mut request = Some(request);
    let mut attempts = 0;
    for (index, (_, model)) in models.iter().enumerate() {
        let next = models.get(index + 1);
        // The last one gets the request itself, so that nothing shares the history once the answer is out.
        let Some(asked) = (if next.is_some() {
            request.clone()
        } else {
            request.take()
        }) else {
            return;
        };
        let mut stream = model.ask(asked);
        let mut error = None;
        while let Some(event) = stream.next().await {
            match event {
                ModelEvent::Retry { wait_ms, error, .. } => {
                    attempts += 1;
                    let retry = ModelEvent::Retry {
                        attempt: attempts,
                        wait_ms,
                        error,
                    };
                    send(&mut events, retry).await;
                }
                ModelEvent::Failed(failed) => {
                    error = Some(failed);
                    break;
                }
                ModelEvent::Done(answer) => {
                    drop(stream);
                    request.take();
                    send(&mut events, ModelEvent::Done(answer)).await;
                    return;
                }
                other @ (ModelEvent::Delta(_) | ModelEvent::Spent(_)) => send(&mut events, other).await,
            }
        }
        let Some(error) = error else { return };
        // An overflow is the agent's to mend, and a recorded model that does not fit is a fault of the configuration.
        let elsewhere = matches!(error.kind, ModelErrorKind::Unavailable | ModelErrorKind::Refused);
        match next {
            Some((other, _)) if elsewhere => {
                attempts += 1;
                let retry = ModelEvent::Retry {
                    attempt: attempts,
                    wait_ms: 0,
                    error: format!("{}; `{other}` is asked instead", error.message),
                };
                send(&mut events, retry).await;
            }
            _ => {
                send(&mut events, ModelEvent::Failed(error)).await;
                return;
            }
        }
    }
}
