//! Fief's sandbox: runs tools as WebAssembly components that link only what they are granted.

mod audit;
mod host;
pub mod redact;
pub mod secret;
