//! The agent loop as a pure state machine: `step(state, event) -> (state, actions)`.

pub mod spec;
