//! How the process ends, and what is said when it ends badly.

use std::process::{ExitCode, Termination};

use crate::render::source;

/// The exit codes, a public contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// What was asked for is done; a check is clean.
    Done = 0,
    /// The agent failed or hit a limit, a call failed, a check found something.
    Failed = 1,
    /// Usage or configuration.
    Usage = 2,
    /// The model could not be reached, or refused.
    Model = 3,
    /// What `strict` refuses; for `call`: denied by the host.
    Refused = 4,
    /// Interrupted.
    Interrupted = 130,
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// Why a command could not do its work. Printed by `main` and nowhere else.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
}

impl Fault {
    /// A fault of usage or configuration.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Usage,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// Any other.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// What would mend it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<fief::Error> for Fault {
    fn from(error: fief::Error) -> Self {
        let exit = match &error {
            fief::Error::Strict { .. } => Exit::Refused,
            fief::Error::Model(_) => Exit::Model,
            _ => Exit::Usage,
        };
        let message = match &error {
            fief::Error::Manifest(errors) => errors.iter().map(source::error).collect::<Vec<_>>().join("\n"),
            other => other.to_string(),
        };
        Self {
            exit,
            hints: error.hints(),
            message,
        }
    }
}
