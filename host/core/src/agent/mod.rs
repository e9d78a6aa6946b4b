//! The agent loop as a pure state machine: `step(agent, input) -> (agent, actions)`.
//!
//! One machine is one agent, main or child. A driver carries its actions out, runs its children as further machines
//! and feeds back what happened; so every turn, limit and failure can be tested without a network, a clock or wasm.
//!
//! Read in this order: [`spec`] (what an agent is), [`input`] and [`action`] (what goes in and out), [`state`] (what
//! it remembers), `turn` (asking the model), `calls` (its tool calls, which
//! `entries` keeps count of), `child` (those that start a child), `ending`
//! (limits, the closing request, the report). Beside them: [`ways`] (how the ways to a child are declared),
//! [`request`] (what a call of one asks for), [`instruction`] (the system prompt), `history`.
//!
//! What it does *not* decide: which rights an agent has ([`crate::grant`]), how requests are retried (the model), how
//! many children run at once (the driver), and what time it is.

pub mod action;
mod calls;
mod child;
mod ending;
mod entries;
mod history;
pub mod input;
pub mod instruction;
pub mod request;
pub mod spec;
pub mod state;
#[cfg(test)]
mod tests;
mod turn;
pub mod ways;

pub use action::Action;
pub use ending::SUMMARY_INSTRUCTION;
pub use history::HOST_MARK;
pub use input::Input;
pub use state::{Agent, Start};

/// Feeds one input to an agent: the agent as it is then, and what is to be done, in order.
///
/// After [`Action::Finish`] only [`Input::NewTask`] has an effect.
#[must_use]
pub fn step(mut agent: Agent, input: Input) -> (Agent, Vec<Action>) {
    let mut out = Vec::new();
    match input {
        Input::Answered(answer) => agent.answered(answer, &mut out),
        Input::Spent(usage) => agent.spent(&usage),
        Input::ModelFailed(error) => agent.model_failed(error, &mut out),
        Input::CallFinished { call, outcome, ms } => agent.call_finished(&call, &outcome, ms, &mut out),
        Input::ChildFinished {
            call,
            report,
            session,
            ms,
        } => agent.child_finished(&call, &report, &session, ms, &mut out),
        Input::ChildRefused { call, outcome, ms } => agent.child_refused(&call, &outcome, ms, &mut out),
        Input::Deadline => agent.deadline(&mut out),
        Input::Cancel => agent.cancel(&mut out),
        Input::NewTask(task) => agent.new_task(task, &mut out),
    }
    (agent, out)
}
