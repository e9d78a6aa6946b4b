//! Fief's integration tests, one binary: the real `fief`, real components, servers on loopback ports.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod support;

mod demo;
mod independent_server;
mod repository;
mod run;
