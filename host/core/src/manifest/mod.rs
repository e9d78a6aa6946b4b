//! Manifests: TOML (and Markdown for archetypes), parsed once into the types that the rest of the host trusts.
//!
//! A text is parsed into a tree that keeps places ([`tree`]), walked by a reader that collects every error ([`read`]),
//! and becomes a type of [`archetype`], [`plugin`] or [`config`]. [`registry`] puts the archetypes of a host together,
//! and [`config::layer`] lays a repository's settings over the operator's.

pub mod archetype;
pub mod config;
pub mod error;
pub mod files;
pub mod plugin;
mod read;
pub mod registry;
#[cfg(test)]
mod robust;
mod tree;
pub mod units;
