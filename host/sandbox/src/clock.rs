//! Time: what a guest computes, and how long a call takes in all.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Why a call was ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimeUp {
    /// It computed for too long.
    Cpu,
    /// It took too long in all.
    Wall,
}

/// The wall clock of one call, which stands still while a person is asked.
pub(crate) struct WallClock {
    state: Mutex<Wall>,
    changed: Notify,
}

struct Wall {
    /// When the time is up, as long as nobody is asked.
    end: Instant,
    /// Since when it stands still, and for how many questions.
    paused: Option<(Instant, u32)>,
}

/// The clock stands still as long as this lives.
pub(crate) struct Paused(Arc<WallClock>);

impl WallClock {
    pub(crate) fn new(limit: Duration) -> Arc<Self> {
        let now = Instant::now();
        // A limit beyond what an instant can hold is as good as a year.
        let end = now.checked_add(limit).unwrap_or(now + Duration::from_secs(31_536_000));
        Arc::new(Self {
            state: Mutex::new(Wall { end, paused: None }),
            changed: Notify::new(),
        })
    }

    /// Stops the clock until the result is dropped.
    pub(crate) fn pause(self: &Arc<Self>) -> Paused {
        let mut state = self.state();
        let (since, count) = state.paused.unwrap_or((Instant::now(), 0));
        state.paused = Some((since, count + 1));
        drop(state);
        Paused(Arc::clone(self))
    }

    async fn expired(&self) {
        loop {
            let end = {
                let state = self.state();
                state.paused.is_none().then_some(state.end)
            };
            match end {
                None => self.changed.notified().await,
                Some(end) if end <= Instant::now() => return,
                Some(end) => tokio::time::sleep_until(end.into()).await,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, Wall> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        let mut state = self.0.state();
        match state.paused {
            Some((since, 1)) => {
                state.end += since.elapsed();
                state.paused = None;
                drop(state);
                self.0.changed.notify_one();
            }
            Some((since, count)) => state.paused = Some((since, count - 1)),
            None => {}
        }
    }
}

/// How long one poll of a guest runs at most before the engine makes it yield: a tick, and what it took to notice it.
const SEGMENT: Duration = Duration::from_millis(20);

/// Runs a call until it ends or its time is up. A guest yields at every tick of the engine, so that both limits are
/// seen within one.
///
/// What a guest computes is the time that its polls take on their thread. The first poll is measured by the wall, which
/// costs nothing, and charged a tick at most; what runs on is measured by the thread's own clock, so that a busy
/// machine does not charge a guest for its neighbours.
pub(crate) async fn bounded<T>(cpu: Duration, clock: &WallClock, call: impl Future<Output = T>) -> Result<T, TimeUp> {
    let mut call = pin!(call);
    let mut expired = pin!(clock.expired());
    let mut spent = Duration::ZERO;
    let mut first = true;
    std::future::poll_fn(|cx| {
        let before = if first { None } else { thread_time() };
        let start = Instant::now();
        let polled = call.as_mut().poll(cx);
        spent += match (before, before.and_then(|_| thread_time())) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => start.elapsed().min(SEGMENT),
        };
        first = false;
        if let Poll::Ready(value) = polled {
            return Poll::Ready(Ok(value));
        }
        if spent > cpu {
            return Poll::Ready(Err(TimeUp::Cpu));
        }
        expired.as_mut().poll(cx).map(|()| Err(TimeUp::Wall))
    })
    .await
}

/// How long the calling thread has computed; absent where the system does not say.
fn thread_time() -> Option<Duration> {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Some(Duration::new(
            u64::try_from(time.tv_sec).ok()?,
            u32::try_from(time.tv_nsec).ok()?,
        ))
    }
    #[cfg(not(unix))]
    {
        None
    }
}
