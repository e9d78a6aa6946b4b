//! Carries out what agents want done: asks models, runs calls with their filters around them, starts children as
//! further machines, keeps the time, and feeds back what happened.
//!
//! Read [`agent`] first (one machine and its inputs), then `kit` (what agents of one kind run on), `call` (one call,
//! its filters, the person), `child` (the one mechanism beneath all ways to a child), `toolbox` (calls that a plugin makes), [`stream`] (events, the record)
//! and [`ask`] (the person who watches).
//!
//! What it does not decide: what an agent does next ([`fief_core::agent`]), and which rights it or its child has
//! ([`fief_core::plan`]).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fief_core::agent::instruction::Variables;
use fief_core::grant::{Holding, Holdings};
use fief_core::id::PluginName;
use fief_core::manifest::config::Prices;
use fief_core::message::ModelIdentity;
use fief_core::port::{BoxFuture, Filter, Model, Tools};
use fief_core::tool::arguments::Validators;
use fief_core::world::World;
use tokio::sync::Semaphore;

pub mod agent;
pub mod ask;
mod call;
mod child;
mod deltas;
pub(crate) mod kit;
mod slot;
pub mod stream;
mod toolbox;

#[cfg(test)]
mod tests;

use ask::Asker;
pub(crate) use slot::Slot;
use stream::EventStream;

/// What agents run on: models, and tools and filters that hold what they were granted.
pub trait Supply: Send + Sync {
    /// The model of this name, a client of its own for each agent.
    ///
    /// # Errors
    /// Why it cannot be asked, in words for a person.
    fn model(&self, name: &str) -> Result<Supplied, String>;

    /// What carries out an agent's calls. It holds `holdings` and nothing else.
    ///
    /// # Errors
    /// Why it cannot be made, in words for a person.
    fn tools(&self, holdings: Arc<Holdings>) -> BoxFuture<'_, Result<Arc<dyn Tools>, String>>;

    /// A filter with its own grant.
    ///
    /// # Errors
    /// Why it cannot be made, in words for a person.
    fn filter(&self, plugin: PluginName, holding: Holding) -> BoxFuture<'_, Result<Arc<dyn Filter>, String>>;
}

/// A model, and what is known of it.
#[derive(Clone)]
pub struct Supplied {
    /// The model.
    pub model: Arc<dyn Model>,
    /// Tokens that its context holds.
    pub context: Option<u64>,
    /// What tokens cost.
    pub prices: Option<Prices>,
    /// Whose it is and where, for telemetry.
    pub identity: Arc<ModelIdentity>,
}

impl std::fmt::Debug for Supplied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supplied")
            .field("context", &self.context)
            .field("prices", &self.prices)
            .finish_non_exhaustive()
    }
}

/// An instruction that Rust code writes when an agent starts, from what is known of the run.
pub type Instruct = Arc<dyn Fn(Variables) -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// What all agents of one run share.
pub struct Run {
    /// Archetypes, plugins, policy: frozen.
    pub world: Arc<World>,
    /// What they run on.
    pub supply: Arc<dyn Supply>,
    /// Where their events go.
    pub stream: Arc<EventStream>,
    /// The way to the person who watches.
    pub asker: Arc<Asker>,
    /// Instructions in Rust, by [`fief_core::id::ArchetypeName::key`].
    pub instructions: Arc<HashMap<String, Instruct>>,
    pub(crate) validators: Arc<Validators>,
    pub(crate) slots: Arc<Semaphore>,
    children: AtomicU64,
}

impl Run {
    /// A run in which `children` children were started before, by earlier tasks. `validators` may be shared by runs of one
    /// world.
    #[must_use]
    pub fn new(
        world: Arc<World>,
        supply: Arc<dyn Supply>,
        stream: Arc<EventStream>,
        asker: Arc<Asker>,
        instructions: Arc<HashMap<String, Instruct>>,
        validators: Arc<Validators>,
        children: u64,
    ) -> Arc<Self> {
        // With no slot at all, a child would wait for ever.
        let slots = usize::try_from(world.policy.parallel_children)
            .unwrap_or(usize::MAX)
            .clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(slots)),
            world,
            supply,
            stream,
            asker,
            instructions,
            validators,
            children: AtomicU64::new(children),
        })
    }

    /// The number of a further child: one counter for the whole run, so that no two sessions are ever the same.
    pub(crate) fn next_child(&self) -> u64 {
        self.children.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

pub(crate) fn millis(since: std::time::Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
