//! Fief's sandbox: runs tools as WebAssembly components that link only what they are granted.
//!
//! [`Sandbox`] finds plugins ([`Sandbox::scan`]), links them under a grant ([`Sandbox::link`]) and calls them. Every call
//! gets a fresh store: nothing that a guest does outlives it. What is not granted is not linked.

mod audit;
mod bindings;
mod call;
mod clock;
mod component;
mod directory;
mod engine;
mod host;
mod instance;
mod limits;
mod linker;
mod listing;
pub mod redact;
mod rights;
mod sandbox;
pub mod secret;
mod store;
#[cfg(test)]
mod testing;
mod tools;
mod wasi;

pub use component::{LoadError, MAX_COMPONENT};
pub use directory::{Problem, Scan, ScanNote};
pub use engine::{Bound, Capacity, Memories};
pub use linker::{Capability, LinkError, Missing, Why};
pub use sandbox::{Linked, Options, Sandbox};
pub use store::verify_store;
pub use tools::{AgentTools, PluginFilter};

/// An engine configured as the sandbox's own for such a component: what a bare wasmtime program is compared with
/// (`cargo bench --bench ratios`). With no bytes it is that of small components.
/// Guests that run on it yield at no tick, since nothing advances its epoch.
///
/// # Errors
/// [`SandboxError`] if this machine cannot run it.
pub fn engine(component: &[u8], pagemap_scan: bool) -> Result<wasmtime::Engine, SandboxError> {
    let runtime = engine::Runtime::new(pagemap_scan)?;
    Ok(runtime.engine(engine::Size::of(component))?.clone())
}

/// Why the sandbox cannot run at all: the host's fault, not a plugin's.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SandboxError {
    /// The engine could not be started.
    #[error("the WebAssembly engine could not be started: {0}")]
    Engine(String),
}
