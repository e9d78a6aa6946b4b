//! Plugins from their source: what `fief plugin build` runs.

pub(crate) mod build;
