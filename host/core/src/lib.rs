//! Fief's pure core: manifests, grants and the agent loop.
//!
//! It does no input or output: no files, no network, no clock, no wasm. What it needs from the world comes through
//! the traits of [`port`], so that every rule and every turn can be tested alone.

pub mod agent;
pub mod budget;
pub mod event;
pub mod grant;
pub mod id;
pub mod manifest;
pub mod message;
mod nearest;
pub mod plan;
pub mod port;
pub mod report;
pub mod tool;
pub mod world;

pub use nearest::{nearest, suggestion};
