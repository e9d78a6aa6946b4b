//! The two that are compared call by call: Fief, as an embedder calls a tool, and bare wasmtime, in one process.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fief::core::event::Event;
use fief::core::tool::{Outcome, OutcomeKind};
use fief::folders::Folders;
use fief::{Host, HostOptions};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::bare::Bare;
use crate::place::{self, Ended};

/// Both, with the same guest.
pub(crate) struct Pair {
    pub(crate) fief: Fief,
    pub(crate) bare: Arc<Bare>,
}

/// Fief, and who watches it.
pub(crate) struct Fief {
    caller: Caller,
    /// Events are made and sent for every call; who watches reads them between the measurements.
    events: UnboundedReceiver<Event>,
}

/// What calls Fief's tools, on any thread.
#[derive(Clone)]
pub(crate) struct Caller {
    host: Host,
    events: UnboundedSender<Event>,
}

impl Pair {
    /// The guest of the benches on both sides, on engines with the same settings.
    pub(crate) async fn new() -> Ended<Self> {
        Self::of(place::plugins()?, place::guest()?).await
    }

    /// The only plugin of a directory on both sides.
    pub(crate) async fn of(plugins: PathBuf, component: &[u8]) -> Ended<Self> {
        let engine = fief_sandbox::engine(component, place::scans())?;
        Ok(Self {
            fief: Fief::open(plugins).await?,
            bare: Arc::new(Bare::compile(&engine, component)?),
        })
    }
}

impl Fief {
    /// A host as the binary opens it, with the plugins of one directory, in the benches' home.
    pub(crate) async fn open(plugins: PathBuf) -> Ended<Self> {
        place::configure()?;
        let home = place::kept("home")?;
        let folders = Folders {
            config: home.join("config/fief"),
            data: home.join("data/fief"),
            state: home.join("state/fief"),
            cache: place::kept("cache")?.join("fief"),
        };
        let options = HostOptions {
            folders,
            ..HostOptions::here(place::kept("work")?)
        };
        let host = Host::open(options.plugins_in(plugins)).await?;
        if let Some(warning) = host.warnings().first() {
            return Err(warning.clone().into());
        }
        let (sender, events) = unbounded_channel();
        let caller = Caller { host, events: sender };
        Ok(Self { caller, events })
    }

    /// How many calls it has places for.
    pub(crate) fn places(&self) -> usize {
        self.caller.host.sandbox().capacity().calls as usize
    }

    pub(crate) fn caller(&self) -> Caller {
        self.caller.clone()
    }

    /// Reads what was told meanwhile.
    pub(crate) fn watch(&mut self) {
        while self.events.try_recv().is_ok() {}
    }
}

impl Caller {
    /// Calls a tool.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Ended<Outcome> {
        Ok(self.host.call(tool, arguments, self.events.clone(), None).await?)
    }
}

/// One call through Fief's own path.
async fn call(caller: &Caller, tool: &str, arguments: Value) -> Ended<String> {
    let outcome = caller.call(tool, arguments).await?;
    if outcome.kind != OutcomeKind::Ok {
        return Err(outcome.text().into());
    }
    Ok(outcome.text())
}

/// What is called, as each side takes it: a model's arguments are a value, a guest's a text.
#[derive(Clone)]
pub(crate) struct Work {
    tool: String,
    arguments: Value,
    text: String,
}

impl Work {
    pub(crate) fn new(tool: &str, arguments: Value) -> Self {
        Self {
            tool: format!("bench.{tool}"),
            text: arguments.to_string(),
            arguments,
        }
    }

    fn bare(&self) -> &str {
        self.tool.strip_prefix("bench.").unwrap_or(&self.tool)
    }
}

/// So many calls one after the other on each side: the microseconds of each.
pub(crate) async fn times(pair: &mut Pair, work: &Work, calls: usize) -> Ended<[Vec<f64>; 2]> {
    let fief = fief_times(&mut pair.fief, work, calls).await?;
    Ok([fief, bare_times(&pair.bare, work, calls).await?])
}

pub(crate) async fn fief_times(fief: &mut Fief, work: &Work, calls: usize) -> Ended<Vec<f64>> {
    let mut taken = Vec::with_capacity(calls);
    for arguments in vec![work.arguments.clone(); calls] {
        let started = Instant::now();
        call(&fief.caller, &work.tool, arguments).await?;
        taken.push(micros(started.elapsed()));
    }
    fief.watch();
    Ok(taken)
}

pub(crate) async fn bare_times(bare: &Bare, work: &Work, calls: usize) -> Ended<Vec<f64>> {
    let mut taken = Vec::with_capacity(calls);
    for _ in 0..calls {
        let started = Instant::now();
        bare.call(work.bare(), &work.text).await?;
        taken.push(micros(started.elapsed()));
    }
    Ok(taken)
}

/// Calls for so long on as many threads as there are, two tasks each: how many a second.
pub(crate) fn fief_rate(runtime: &Saturated, fief: &mut Fief, work: &Work, length: Duration) -> Ended<f64> {
    let (caller, work) = (fief.caller.clone(), work.clone());
    let rate = runtime.rate(length, move || {
        let (caller, work) = (caller.clone(), work.clone());
        async move { call(&caller, &work.tool, work.arguments).await.map(drop) }
    });
    fief.watch();
    rate
}

/// The same on the other side.
pub(crate) fn bare_rate(runtime: &Saturated, bare: &Arc<Bare>, work: &Work, length: Duration) -> Ended<f64> {
    let (bare, work) = (bare.clone(), Arc::new(work.clone()));
    runtime.rate(length, move || {
        let (bare, work) = (bare.clone(), work.clone());
        async move {
            bare.call(work.bare(), &work.text).await?;
            Ok(())
        }
    })
}

/// A runtime that is kept busy.
pub(crate) struct Saturated {
    runtime: tokio::runtime::Runtime,
    threads: usize,
}

impl Saturated {
    pub(crate) fn new(threads: usize) -> Ended<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build()?;
        Ok(Self { runtime, threads })
    }

    fn rate<F, R>(&self, length: Duration, one: F) -> Ended<f64>
    where
        F: Fn() -> R + Clone + Send + 'static,
        R: Future<Output = Ended<()>> + Send + 'static,
    {
        let done = Arc::new(AtomicUsize::new(0));
        let started = Instant::now();
        let tasks: Vec<_> = (0..2 * self.threads)
            .map(|_| {
                let (one, done) = (one.clone(), done.clone());
                self.runtime.spawn(async move {
                    while started.elapsed() < length {
                        one().await?;
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    Ended::Ok(())
                })
            })
            .collect();
        self.runtime.block_on(async {
            for task in tasks {
                task.await??;
            }
            Ended::Ok(())
        })?;
        #[allow(clippy::cast_precision_loss)] // Some thousands.
        let calls = done.load(Ordering::Relaxed) as f64;
        Ok(calls / started.elapsed().as_secs_f64())
    }
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
