//! Fief's sandbox: runs tools as WebAssembly components that link only what they are granted.

pub mod redact;
pub mod secret;
