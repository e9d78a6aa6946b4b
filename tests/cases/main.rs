//! Fief's integration tests, one binary: the real `fief`, real components, servers on loopback ports.
// The cases are modules of one program: `pub` in them is for each other.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs, unreachable_pub)]

mod support;

mod ceiling;
mod crowd;
mod demo;
mod embedding;
mod filters;
mod fuzz_corpus;
mod hostile;
mod independent_server;
mod manners;
mod models;
mod person;
mod readme;
mod reference;
mod repository;
mod run;
mod telemetry;
