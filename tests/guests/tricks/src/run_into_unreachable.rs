//! Crashes without a word.

use contract::{Answer, Arguments};

pub(crate) fn run(_: &Arguments) -> Answer {
    #[cfg(target_family = "wasm")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_family = "wasm"))]
    unreachable!()
}
