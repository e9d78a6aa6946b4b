//! What can happen to an agent.

use crate::id::SessionId;
use crate::message::{Answer, Usage};
use crate::port::ModelError;
use crate::report::Report;
use crate::tool::Outcome;

/// One thing that happened. Times are in milliseconds.
#[derive(Clone, Debug)]
pub enum Input {
    /// The model's whole answer to the last [`super::Action::Ask`]. The request must have been dropped by then: the
    /// history is appended in place, and a request that is still held makes that a copy of all of it.
    Answered(Answer),
    /// What an attempt that broke cost. The model is still being asked, or was until now.
    Spent(Usage),
    /// The model gave no answer to the last [`super::Action::Ask`].
    ModelFailed(ModelError),
    /// A call ended.
    CallFinished {
        /// Which.
        call: String,
        /// How.
        outcome: Outcome,
        /// How long it took.
        ms: u64,
    },
    /// A child ended, in whatever way: its report carries what it cost.
    ChildFinished {
        /// The call that started it.
        call: String,
        /// What it hands back.
        report: Report,
        /// Its session.
        session: SessionId,
        /// How long it took.
        ms: u64,
    },
    /// A child did not start: it could not be planned, a filter or the person refused it. Its reservation comes back.
    ChildRefused {
        /// The call that was to start it.
        call: String,
        /// Why, as the model is told; anything but `ok`.
        outcome: Outcome,
        /// How long it took.
        ms: u64,
    },
    /// Its wall clock ended: what runs is stopped, and a closing summary is asked for. A second one, after
    /// [`super::state::closing_time`], ends it without.
    Deadline,
    /// It is to stop. A second one no longer waits for what its children cost.
    Cancel,
    /// After its end: a further task, in the same history. Its turns and its clock begin anew; what it may spend in
    /// all does not.
    NewTask(String),
}
