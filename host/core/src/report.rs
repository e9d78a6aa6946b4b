//! What an agent hands back: a text and a status. It is all that a parent's model sees of a child.

use serde::{Deserialize, Serialize};

use crate::message::Usage;

/// How an agent ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It finished its task.
    Done,
    /// It ran out of turns.
    TurnLimit,
    /// Its history outgrew the model's context.
    ContextLimit,
    /// The model's output limit cut its last answer.
    Length,
    /// It ran out of tokens, time or money.
    Budget,
    /// Its last answer held no text.
    Empty,
    /// It could not go on.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl Status {
    /// As events and reports write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::TurnLimit => "turn-limit",
            Self::ContextLimit => "context-limit",
            Self::Length => "length",
            Self::Budget => "budget",
            Self::Empty => "empty",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What an agent hands back.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// How it ended.
    pub status: Status,
    /// Its text, unframed.
    pub text: String,
    /// What its whole tree cost.
    pub usage: Usage,
    /// What it cost itself.
    pub own_usage: Usage,
    /// The failure that ended it, where a model's did: decides the exit code.
    pub failure: Option<crate::port::ModelError>,
    /// How many descendants it started, for its parent's account.
    pub descendants: u32,
}
