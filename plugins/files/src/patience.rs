//! How long a search goes on before it hands over what it has.

use std::time::{Duration, Instant};

/// Below the 5 s of CPU that a call gets by default: half a result is worth more to a model than a call that was
/// stopped.
const LIMIT: Duration = Duration::from_secs(4);

/// Runs out after four seconds.
pub(crate) struct Patience(Instant);

impl Patience {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.elapsed() > LIMIT
    }
}
