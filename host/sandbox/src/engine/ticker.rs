//! The engines' clock: it advances their epochs while calls run, so that guests yield, and sleeps while none does.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use wasmtime::EngineWeak;

/// How often a guest yields, and so how late a limit or a cancellation is noticed.
const TICK: Duration = Duration::from_millis(10);

/// A thread that ticks.
pub(crate) struct Ticker {
    shared: Arc<Ticks>,
    thread: Option<JoinHandle<()>>,
    handle: Thread,
}

struct Ticks {
    engines: Mutex<Vec<EngineWeak>>,
    running: AtomicUsize,
    stop: AtomicBool,
}

/// Keeps the ticker awake.
pub(crate) struct Running<'a>(&'a Ticks);

impl Ticker {
    pub(crate) fn start() -> std::io::Result<Self> {
        let shared = Arc::new(Ticks {
            engines: Mutex::default(),
            running: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        });
        let ticks = Arc::clone(&shared);
        let thread = thread::Builder::new().name("fief-ticker".into()).spawn(move || {
            while !ticks.stop.load(Ordering::Acquire) {
                if ticks.running.load(Ordering::Acquire) == 0 {
                    // Whoever starts the first call unparks, also between the check and the parking.
                    thread::park();
                    continue;
                }
                thread::sleep(TICK);
                for engine in ticks.engines.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                    if let Some(engine) = engine.upgrade() {
                        engine.increment_epoch();
                    }
                }
            }
        })?;
        Ok(Self {
            shared,
            handle: thread.thread().clone(),
            thread: Some(thread),
        })
    }

    /// Ticks for this engine too.
    pub(crate) fn add(&self, engine: EngineWeak) {
        let mut engines = self.shared.engines.lock().unwrap_or_else(PoisonError::into_inner);
        engines.push(engine);
    }

    pub(crate) fn running(&self) -> Running<'_> {
        if self.shared.running.fetch_add(1, Ordering::AcqRel) == 0 {
            self.handle.unpark();
        }
        Running(&self.shared)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.handle.unpark();
        if let Some(thread) = self.thread.take() {
            // It sleeps for a tick at most, and cannot panic.
            let _ = thread.join();
        }
    }
}
