//! Filters: plugins that see each call of an agent before it runs, and each outcome before the model does.

use serde_json::Value;

use crate::contract::guard::exports::fief::plugin::filter as contract;
use crate::{Output, ToolError};

/// What a call is about.
#[derive(Clone, PartialEq, Debug)]
pub struct Subject {
    /// Whose call: `main`, or a child such as `explore_1`.
    pub session: String,
    /// As people write it: `files.read`, `spawn_subagent`.
    pub tool: String,
    /// An object.
    pub arguments: Value,
}

/// What becomes of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum CallVerdict {
    /// It runs as it is.
    Pass,
    /// It runs with these arguments.
    Change(Value),
    /// It does not run; the model is told why.
    Refuse(String),
}

/// What becomes of an outcome.
#[derive(Clone, PartialEq, Debug)]
pub enum OutcomeVerdict {
    /// The model sees it as it is.
    Pass,
    /// The model sees this instead.
    Change(Output),
    /// The model does not see it; it is told why.
    Refuse(String),
}

/// A filter. Each call makes a new one by [`Default`].
pub trait Filter {
    /// Before a call runs.
    fn before_call(&self, subject: &Subject) -> CallVerdict {
        let _ = subject;
        CallVerdict::Pass
    }

    /// Before the model sees what a call came to.
    fn after_call(&self, subject: &Subject, outcome: Result<Output, ToolError>) -> OutcomeVerdict {
        let _ = (subject, outcome);
        OutcomeVerdict::Pass
    }
}

/// Arguments that are no JSON, which the host never sends, are refused: a filter that cannot read them cannot judge.
fn read(subject: contract::Subject) -> Result<Subject, String> {
    match serde_json::from_str(&subject.arguments) {
        Ok(arguments) => Ok(Subject {
            session: subject.session,
            tool: subject.tool,
            arguments,
        }),
        Err(error) => Err(format!("the arguments of `{}` are no JSON: {error}", subject.tool)),
    }
}

#[doc(hidden)]
#[must_use]
pub fn before_call(filter: &dyn Filter, subject: contract::Subject) -> contract::CallVerdict {
    match read(subject).map(|subject| filter.before_call(&subject)) {
        Ok(CallVerdict::Pass) => contract::CallVerdict::Pass,
        Ok(CallVerdict::Change(arguments)) => contract::CallVerdict::Change(arguments.to_string()),
        Ok(CallVerdict::Refuse(reason)) | Err(reason) => contract::CallVerdict::Refuse(reason),
    }
}

#[doc(hidden)]
#[must_use]
pub fn after_call(
    filter: &dyn Filter,
    subject: contract::Subject,
    outcome: Result<Output, ToolError>,
) -> contract::OutcomeVerdict {
    match read(subject).map(|subject| filter.after_call(&subject, outcome)) {
        Ok(OutcomeVerdict::Pass) => contract::OutcomeVerdict::Pass,
        Ok(OutcomeVerdict::Change(output)) => contract::OutcomeVerdict::Change(output),
        Ok(OutcomeVerdict::Refuse(reason)) | Err(reason) => contract::OutcomeVerdict::Refuse(reason),
    }
}
