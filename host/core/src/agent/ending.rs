//! How a task ends: the closing request at a limit, the summary, the report and its schema.

use serde_json::Value;

use super::action::Action;
use super::state::{Agent, Closing, Phase};
use crate::event::EventKind;
use crate::manifest::archetype::Summary;
use crate::port::ModelError;
use crate::report::{Report, Status};

/// How a summary is to be written where nothing else is configured.
pub const SUMMARY_INSTRUCTION: &str = "Quote sources rather than rephrase them, with where they stand. Mark what is \
    uncertain. Use headings. If the task failed or is not finished, say so first.";

/// Why a task cannot go on.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Ending {
    pub(super) status: Status,
    pub(super) why: String,
}

impl Ending {
    pub(super) fn new(status: Status, why: impl Into<String>) -> Self {
        Self {
            status,
            why: why.into(),
        }
    }

    pub(super) fn overflow() -> Self {
        Self::new(Status::ContextLimit, "the history outgrew the model's context")
    }
}

impl Agent {
    /// Asks for the closing summary of a task that cannot go on. It is one request beyond the turns.
    pub(super) fn close(&mut self, out: &mut Vec<Action>) {
        let Some(ending) = self.task.ending.clone() else {
            return;
        };
        self.warn(format!("{}: asking for a closing summary", ending.why), out);
        let text = format!(
            "You cannot go on: {}. Call no more tools. Write your report now: what you found, what is not done, and \
             what should be done next. {}",
            ending.why,
            self.summary_instruction()
        );
        if !self.ask_without_tools(Closing::AtLimit, &text, out) {
            self.finish_at_limit(out);
        }
    }

    fn summary_instruction(&self) -> &str {
        self.spec.summary_instruction.as_deref().unwrap_or(SUMMARY_INSTRUCTION)
    }

    /// Asks once more, without tools; false if that cannot fit, and nothing is asked then.
    fn ask_without_tools(&mut self, closing: Closing, text: &str, out: &mut Vec<Action>) -> bool {
        let needed = super::history::estimate_bytes(text.len()).saturating_add(self.least_output());
        let fits = |agent: &Self| {
            agent
                .context
                .is_none_or(|most| agent.history.tokens().saturating_add(needed) <= most)
                && agent.output_room(0).is_none_or(|room| room >= needed)
        };
        while !fits(self) {
            if !self.drop_pairs(out) {
                return false;
            }
        }
        self.push_from_host(text, out);
        out.push(Action::Emit(EventKind::TurnStarted {
            turn: self.task.turn + 1,
        }));
        self.phase = Phase::Closing(closing);
        self.ask_closing(out);
        true
    }

    fn ask_closing(&self, out: &mut Vec<Action>) {
        let room = self.output_room(0);
        out.push(Action::Ask(self.request(false, room)));
    }

    /// Drops the oldest calls and results; false if there are none left.
    pub(super) fn drop_pairs(&mut self, out: &mut Vec<Action>) -> bool {
        let dropped = self.history.drop_oldest(None);
        if dropped > 0 {
            self.task.dropped += dropped;
            self.warn(
                format!("the {dropped} oldest tool calls were dropped to make the closing request fit"),
                out,
            );
        }
        dropped > 0
    }

    /// The closing request itself overflowed: again with less, or without it.
    pub(super) fn shrink_and_retry(&mut self, closing: Closing, out: &mut Vec<Action>) {
        if self.drop_pairs(out) {
            self.phase = Phase::Closing(closing);
            self.ask_closing(out);
        } else {
            self.closed(closing, String::new(), out);
        }
    }

    /// Takes the answer to a request without tools; blank if there is none.
    pub(super) fn closed(&mut self, closing: Closing, text: String, out: &mut Vec<Action>) {
        let blank = text.trim().is_empty();
        match closing {
            Closing::AtLimit => {
                if !blank {
                    self.task.last_text = text;
                }
                self.finish_at_limit(out);
            }
            Closing::Summary(before) => self.check_report(if blank { before } else { text }, out),
            Closing::Repair(before) => self.check_report(if blank { before } else { text }, out),
        }
    }

    /// A task that was answered in text: a summary where one is always wanted, then the report.
    pub(super) fn done(&mut self, text: String, out: &mut Vec<Action>) {
        if self.spec.summary == Summary::Always {
            let request = format!(
                "You are done. Write your final report on the task now, without calling tools. {}{}",
                self.summary_instruction(),
                self.schema_reminder()
            );
            if self.ask_without_tools(Closing::Summary(text.clone()), &request, out) {
                return;
            }
            self.warn(
                "there is no room left for a summary: the last answer is the report".into(),
                out,
            );
        }
        self.check_report(text, out);
    }

    fn schema_reminder(&self) -> String {
        match &self.spec.report_schema {
            Some(schema) => format!("\nIt must be JSON alone, that fits this JSON Schema:\n{schema}"),
            None => String::new(),
        }
    }

    /// Ends with a report, once it fits its schema; one that does not is sent back once.
    fn check_report(&mut self, text: String, out: &mut Vec<Action>) {
        match self.fits_schema(&text) {
            Ok(None) => self.finish(Status::Done, text, None, out),
            Ok(Some(json)) => self.finish(Status::Done, json, None, out),
            Err(why) => {
                if !self.task.repaired {
                    self.task.repaired = true;
                    let request = format!(
                        "Your report does not fit its schema: {why}\nWrite the whole report again, without calling \
                         tools.{}",
                        self.schema_reminder()
                    );
                    if self.ask_without_tools(Closing::Repair(text.clone()), &request, out) {
                        return;
                    }
                }
                self.task.last_text = text;
                self.task.ending = Some(Ending::new(
                    Status::Failed,
                    format!("the report does not fit its schema: {why}"),
                ));
                self.finish_at_limit(out);
            }
        }
    }

    /// Whether a report fits the agent's schema: its JSON, without a code fence around it, where there is a schema.
    pub(super) fn fits_schema(&self, text: &str) -> Result<Option<String>, String> {
        let Some(schema) = &self.spec.report_schema else {
            return Ok(None);
        };
        let json = unfenced(text);
        let value: Value = serde_json::from_str(json).map_err(|error| format!("it is not JSON: {error}"))?;
        let validator = self.validators.get(schema).map_err(|error| error.to_string())?;
        validator.check_value(&value).map_err(|error| error.to_string())?;
        Ok(Some(json.to_owned()))
    }

    /// The model failed.
    pub(super) fn failed(&mut self, error: ModelError, out: &mut Vec<Action>) {
        self.task.ending = Some(Ending::new(Status::Failed, format!("the model failed: {error}")));
        let text = self.unfinished_text();
        self.finish(Status::Failed, text, Some(error), out);
    }

    /// It was cancelled: what it found so far is kept.
    pub(super) fn cancelled(&mut self, out: &mut Vec<Action>) {
        self.task.ending = Some(Ending::new(Status::Cancelled, "it was cancelled"));
        self.finish_at_limit(out);
    }

    /// Ends a task that did not finish, with its last text and a note that says why.
    pub(super) fn finish_at_limit(&mut self, out: &mut Vec<Action>) {
        let status = self.task.ending.as_ref().map_or(Status::Failed, |ending| ending.status);
        let text = self.unfinished_text();
        self.finish(status, text, None, out);
    }

    fn unfinished_text(&self) -> String {
        let why = self.task.ending.as_ref().map_or("", |ending| ending.why.as_str());
        let mut note = format!("[not finished: {why}");
        if self.task.dropped > 0 {
            note.push_str(&format!(
                "; the {} oldest tool calls and their results were dropped before this was written",
                self.task.dropped
            ));
        }
        note.push(']');
        let text = self.task.last_text.trim();
        if !text.is_empty() {
            note.push_str("\n\n");
            note.push_str(text);
        }
        note
    }

    /// The end.
    pub(super) fn finish(&mut self, status: Status, text: String, failure: Option<ModelError>, out: &mut Vec<Action>) {
        self.phase = Phase::Ended;
        let report = Report {
            status,
            text,
            usage: self.usage,
            own_usage: self.own_usage,
            failure,
            descendants: self.descendants,
        };
        let (text, usage, own_usage) = (report.text.clone(), report.usage, report.own_usage);
        out.push(Action::Emit(if self.child {
            EventKind::AgentFinished {
                status,
                report: text,
                usage,
                own_usage,
            }
        } else {
            EventKind::RunFinished {
                status,
                report: text,
                usage,
                own_usage,
            }
        }));
        out.push(Action::Finish(report));
    }
}

/// The inside of a text that is one fenced block, as many models write JSON; else the text.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = || {
        let inner = text.strip_prefix("```")?.strip_suffix("```")?;
        let (language, body) = inner.split_once('\n')?;
        let plain = language.trim().is_empty() || language.trim().eq_ignore_ascii_case("json");
        (plain && !body.contains("```")).then_some(body.trim())
    };
    inner().unwrap_or(text)
}
