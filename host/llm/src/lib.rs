//! Fief's model clients: what servers really send, read faithfully.
//!
//! [`open`] and [`client`] turn a configured model into a [`fief_core::port::Model`]. A question goes through
//! these files, in this order:
//!
//! - `config`: which provider, where, with which key;
//! - `ask`: attempts and retries of one question, and its events; [`RetryPolicy`] says how often and how long;
//! - `wire`: how a format writes a question and reads an answer, with `names` and `schema`, which make tools
//!   acceptable to a provider, and `draft` and `arguments`, which make an answer sound;
//! - `http` and `sse`: bytes to and from one origin;
//! - `fault`: what failed and what follows from it, in one table;
//! - `fallback`: other models in its place; [`script`]: a recorded model in a server's place; [`probe()`]: what a
//!   server can do.
//!
//! What this crate does not decide: whether a call may run, what an overflow leads to, and what a budget allows. That
//! is the agent's loop in `fief-core`.

mod arguments;
mod ask;
mod config;
mod draft;
#[cfg(test)]
mod fake;
mod fallback;
mod fault;
mod http;
mod names;
mod probe;
mod retry;
mod schema;
pub mod script;
mod sse;
mod wire;

pub use config::{
    ClientOptions, ModelConfigError, Timeouts, client, find, identity, key_variable, key_variables, open,
};
pub use http::http_client;
pub use probe::{Probe, ProbeError, probe};
pub use retry::RetryPolicy;

#[cfg(test)]
mod server_tests;
