//! Write a Fief plugin in Rust.
//!
//! A tool is a function from arguments that serde reads to a [`Result`]; its JSON Schema is made from their type, so
//! doc comments on the fields are what a model reads. A whole plugin:
//!
//! ```
//! use fief_plugin::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Greet {
//!     /// Who is greeted.
//!     name: String,
//! }
//!
//! fn greet(args: Greet) -> Result<String, ToolError> {
//!     if args.name.trim().is_empty() {
//!         return Err(ToolError::invalid("`name` is blank: say who is greeted"));
//!     }
//!     Ok(format!("hello, {}", args.name))
//! }
//!
//! fn tools() -> Vec<Tool> {
//!     vec![Tool::new("greet", "Greet somebody by name.", greet).read_only().idempotent()]
//! }
//!
//! fief_plugin::export_tools!(tools);
//! # assert_eq!(tools()[0].call(r#"{"name":"Ada"}"#).unwrap(), Output::text("hello, Ada"));
//! ```
//!
//! The derives name their crates, so a plugin depends on `serde` and `schemars` itself.
//!
//! With `crate-type = ["cdylib", "rlib"]` and `cargo build --target wasm32-wasip2` (which `fief plugin build` runs) the
//! `cdylib` is the component, and the `rlib` is what `cargo test` tests natively. A filter implements [`Filter`] and
//! is exported by [`export_filter!`].
//!
//! Every call runs in an instance of its own: nothing that a plugin keeps in memory is there for the next one.
//!
//! What this crate does not decide: what a plugin may reach. That is asked for in `plugin.toml`, and granted by
//! archetypes and policy.

mod contract;
mod filter;
mod host;
#[cfg(test)]
mod tests;
mod tool;

pub use contract::{Blob, Content, Hints, Output, ToolError};
pub use filter::{CallVerdict, Filter, OutcomeVerdict, Subject};
pub use host::{Level, confirm, log, progress};
pub use tool::{Json, Tool, schema_of};

/// What a plugin's source usually needs.
pub mod prelude {
    pub use crate::{Json, Output, Tool, ToolError};
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
}

#[doc(hidden)]
pub mod export {
    //! What the exporting macros expand to.
    pub use crate::contract::guard as guard_world;
    pub use crate::contract::orchestrator as tools_world;
    pub use crate::filter::{after_call, before_call};
    pub use crate::tool::{call, describe};
}

/// Exports `$tools`, a `fn() -> Vec<Tool>`, as the plugin's tools. Once a crate, at its root. Native builds, that is
/// `cargo test`, export nothing.
#[macro_export]
macro_rules! export_tools {
    ($tools:path) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Component;

            impl $crate::export::tools_world::exports::fief::plugin::tools::Guest for Component {
                fn list_tools() -> Vec<$crate::export::tools_world::fief::plugin::types::Tool> {
                    $crate::export::describe(&$tools())
                }

                fn call_tool(name: String, arguments: String) -> Result<$crate::Output, $crate::ToolError> {
                    $crate::export::call(&$tools(), &name, &arguments)
                }
            }

    $crate::export::tools_world::export!(Component with_types_in $crate::export::tools_world);
        };
    };
}

/// Exports `$filter`, a type that implements [`Filter`] and [`Default`], as the plugin's filter. Once a crate, at its
/// root. Native builds export nothing.
#[macro_export]
macro_rules! export_filter {
    ($filter:ty) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Component;

            impl $crate::export::guard_world::exports::fief::plugin::filter::Guest for Component {
                fn before_call(
                    subject: $crate::export::guard_world::exports::fief::plugin::filter::Subject,
                ) -> $crate::export::guard_world::exports::fief::plugin::filter::CallVerdict {
                    $crate::export::before_call(&<$filter as Default>::default(), subject)
                }

                fn after_call(
                    subject: $crate::export::guard_world::exports::fief::plugin::filter::Subject,
                    outcome: Result<$crate::Output, $crate::ToolError>,
                ) -> $crate::export::guard_world::exports::fief::plugin::filter::OutcomeVerdict {
                    $crate::export::after_call(&<$filter as Default>::default(), subject, outcome)
                }
            }

    $crate::export::guard_world::export!(Component with_types_in $crate::export::guard_world);
        };
    };
}
