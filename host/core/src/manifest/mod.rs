//! Manifests: TOML (and Markdown for archetypes), parsed once into the types that the rest of the host trusts.

pub mod archetype;
pub mod config;
pub mod plugin;
