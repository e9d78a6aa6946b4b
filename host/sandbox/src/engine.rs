//! The engines: where wasmtime is configured ([`settings`]), and how many calls are in flight at once.
//!
//! There are two ways to a fresh instance. Components with little static data, which is most, run on memories of our own
//! ([`recycled`]); those with much, such as CPython, in wasmtime's pool, where the kernel shares one image of their data
//! between all calls. Where the kernel does not tell what recycling needs, and where the operator chose `pagemap_scan`, all
//! run in the pool.

use std::sync::{Arc, OnceLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::component::Component;
use wasmtime::{Config, Engine, Store};

use crate::SandboxError;

mod machine;
#[cfg(target_os = "linux")]
mod recycled;
mod settings;
mod ticker;

pub use machine::{Bound, Capacity};
pub(crate) use settings::CALL_STACK;
use ticker::{Running, Ticker};

/// The engines with their clock and their places.
pub(crate) struct Runtime {
    /// For components with little data.
    small: Engine,
    /// For those with much, started when the first of them comes; the same where there is no other.
    large: OnceLock<Pool>,
    ticker: Ticker,
    permits: Arc<Semaphore>,
    capacity: Capacity,
    memories: Memories,
}

/// How calls come to an empty memory each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memories {
    /// Used again, wiped by what the kernel tells of their pages: the fastest way that is safe. Components with much static
    /// data run in wasmtime's pool all the same.
    Recycled,
    /// From wasmtime's pool, whose memories the kernel empties: this system does not tell what recycling needs.
    Pooled,
    /// From wasmtime's pool with its own scan of pages, which is not safe: the operator chose `pagemap_scan`.
    Scanned,
}

/// An engine with wasmtime's pool.
struct Pool {
    engine: Engine,
    /// Where it has fewer places than the host has, its own, so that a call waits for one instead of failing.
    places: Option<Arc<Semaphore>>,
    calls: u32,
}

/// What of a component decides where it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    /// Its data is copied into each memory.
    Small,
    /// The kernel shares one image of its data.
    Large,
}

impl Size {
    /// That of a component's bytes.
    pub(crate) fn of(component: &[u8]) -> Self {
        match static_data(component) > settings::LARGE_DATA {
            true => Self::Large,
            false => Self::Small,
        }
    }
}

/// Bytes of static data of all modules in a component. What does not parse has none: it will not compile either.
fn static_data(component: &[u8]) -> u64 {
    let parsed = wasmparser::Parser::new(0).parse_all(component);
    let data = parsed.filter_map(|payload| match payload {
        Ok(wasmparser::Payload::DataSection(section)) => Some(section.range().len() as u64),
        _ => None,
    });
    data.sum()
}

impl Runtime {
    /// Starts the engine, for as many calls at once as this machine allows.
    pub(crate) fn new(pagemap_scan: bool) -> Result<Self, SandboxError> {
        let ticker = Ticker::start().map_err(|error| SandboxError::Engine(error.to_string()))?;
        let mut capacity = machine::Machine::this().capacity();
        let recycling = if pagemap_scan { None } else { recycled(capacity.calls) };
        let memories = match recycling {
            Some(_) => Memories::Recycled,
            None if pagemap_scan => Memories::Scanned,
            None => Memories::Pooled,
        };
        let large = OnceLock::new();
        let small = match recycling {
            Some(config) => Engine::new(&config).map_err(|error| fault(&error))?,
            None => {
                let pool = pool(capacity.calls, pagemap_scan)?;
                let engine = pool.engine.clone();
                capacity.calls = pool.calls;
                // All run in it, and its places are the host's.
                large.get_or_init(|| Pool { places: None, ..pool });
                engine
            }
        };
        ticker.add(small.weak());
        Ok(Self {
            small,
            large,
            ticker,
            permits: Arc::new(Semaphore::new(capacity.calls as usize)),
            capacity,
            memories,
        })
    }

    /// The engine of small components.
    pub(crate) fn small(&self) -> &Engine {
        &self.small
    }

    /// The engine of components of that size.
    pub(crate) fn engine(&self, size: Size) -> Result<&Engine, SandboxError> {
        if size == Size::Small {
            return Ok(&self.small);
        }
        if let Some(pool) = self.large.get() {
            return Ok(&pool.engine);
        }
        let pool = pool(self.capacity.calls, false)?;
        let pool = self.large.get_or_init(|| {
            self.ticker.add(pool.engine.weak());
            pool
        });
        Ok(&pool.engine)
    }

    /// How many calls are in flight at most, and why not more.
    pub(crate) fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    pub(crate) fn memories(&self) -> Memories {
        self.memories
    }

    /// Waits for a place for a call on that engine.
    pub(crate) async fn place(&self, weight: u32, engine: &Engine) -> Result<Place<'_>, SandboxError> {
        let pool = self.large.get().filter(|pool| Engine::same(&pool.engine, engine));
        // Whoever waits for the pool keeps nobody waiting who does not need it.
        let in_pool = match pool.and_then(|pool| Some((pool.places.as_ref()?, pool.calls))) {
            Some((places, calls)) => Some(take(places, weight.min(calls)).await?),
            None => None,
        };
        let permit = take(&self.permits, weight.min(self.capacity.calls)).await?;
        Ok(Place {
            _running: self.ticker.running(),
            _permit: permit,
            _in_pool: in_pool,
        })
    }

    /// Makes the guest of a store yield at every tick, through the runtime's own queue, so that it keeps no other task
    /// of the host waiting.
    pub(crate) fn yield_every_tick<T>(store: &mut Store<T>) {
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|_| {
            Ok(wasmtime::UpdateDeadline::YieldCustom(
                1,
                Box::pin(tokio::task::yield_now()),
            ))
        });
    }
}

/// A place, and the clock running: held for the length of a call.
pub(crate) struct Place<'a> {
    _running: Running<'a>,
    _permit: OwnedSemaphorePermit,
    _in_pool: Option<OwnedSemaphorePermit>,
}

async fn take(places: &Arc<Semaphore>, weight: u32) -> Result<OwnedSemaphorePermit, SandboxError> {
    let permit = Arc::clone(places).acquire_many_owned(weight).await;
    permit.map_err(|_| SandboxError::Engine("the engine is shut down".into()))
}

/// How many places a call of this component takes.
pub(crate) fn weight(component: &Component) -> u32 {
    let Some(needed) = component.resources_required() else {
        return 1;
    };
    needed
        .num_memories
        .max(needed.num_tables.div_ceil(settings::TABLES))
        .max(1)
}

#[cfg(target_os = "linux")]
fn recycled(calls: u32) -> Option<Config> {
    recycled::config(calls)
}

/// Other systems tell nothing of their pages.
#[cfg(not(target_os = "linux"))]
fn recycled(_: u32) -> Option<Config> {
    None
}

/// An engine with a pool for so many calls, or for the fewer that the system has room for.
fn pool(most: u32, pagemap_scan: bool) -> Result<Pool, SandboxError> {
    let mut calls = most;
    loop {
        match Engine::new(&settings::pooled(calls, pagemap_scan)) {
            Ok(engine) => {
                let places = (calls < most).then(|| Arc::new(Semaphore::new(calls as usize)));
                return Ok(Pool { engine, places, calls });
            }
            // The pool reserves address space, which a limit of the system's may refuse; a smaller one works too.
            Err(_) if calls > 1 => calls = (calls / 4).max(1),
            Err(error) => return Err(fault(&error)),
        }
    }
}

fn fault(error: &wasmtime::Error) -> SandboxError {
    SandboxError::Engine(format!("{error:#}"))
}

#[cfg(test)]
mod tests;
