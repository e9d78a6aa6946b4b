//! What the host offers to a plugin. Natively, where there is no host, nothing is shown and nobody is there.

use crate::contract::orchestrator::fief::plugin::call;

pub use call::Level;

/// Writes a line to the run's log: for people who look for the cause of something, never for a model.
pub fn log(level: Level, message: &str) {
    if cfg!(target_family = "wasm") {
        call::log(level, message);
    }
}

/// Tells the person who watches how far a call is.
pub fn progress(done: Option<u64>, total: Option<u64>, message: &str) {
    if cfg!(target_family = "wasm") {
        call::progress(done, total, message);
    }
}

/// Asks the person who watches; where nobody does, the answer is no. A plugin that calls this imports
/// `fief:plugin/person`: say `person = true` under `[needs]`.
#[must_use]
pub fn confirm(question: &str) -> bool {
    cfg!(target_family = "wasm") && crate::contract::guard::fief::plugin::person::confirm(question)
}
