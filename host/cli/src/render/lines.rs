//! Events as lines for people: who does what, indented by depth.

use std::collections::{HashMap, HashSet};

use fief_core::event::{Event, EventKind};
use fief_core::id::SessionId;
use fief_core::message::Usage;
use fief_core::report::Status;
use fief_core::tool::OutcomeKind;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::text::{Paint, count, duration, fit, one_line, sanitise, thousands};

/// Turns events into lines. What an event does not say itself (a call's arguments, an agent's turns) it remembers.
pub(crate) struct Narrator {
    paint: Paint,
    width: Option<usize>,
    sessions: HashMap<SessionId, Course>,
    calls: HashMap<(SessionId, String), Value>,
    /// Warnings that were shown: what holds for an agent and its children is said once.
    warned: HashSet<String>,
    /// Calls that started a child.
    spawns: HashSet<(SessionId, String)>,
}

#[derive(Default)]
struct Course {
    started: Option<OffsetDateTime>,
    turns: u64,
    children: u64,
}

impl Narrator {
    pub(crate) fn new(paint: Paint, width: Option<usize>) -> Self {
        Self {
            paint,
            width,
            sessions: HashMap::new(),
            calls: HashMap::new(),
            warned: HashSet::new(),
            spawns: HashSet::new(),
        }
    }

    /// The lines that tell of `event`; none for what only a live view shows.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<String> {
        let paint = self.paint;
        match &event.kind {
            EventKind::RunStarted {
                archetype,
                model,
                tools,
                ..
            } => {
                self.start(event);
                let tools = count(tools.len() as u64, "tool");
                vec![self.line(
                    event,
                    &paint.bold("main"),
                    &format!(" · {archetype} · {model} · {tools}"),
                )]
            }
            EventKind::AgentStarted { call, task, label, .. } => {
                self.start(event);
                if let Some(parent) = &event.parent {
                    self.spawns.insert((parent.clone(), call.clone()));
                    self.sessions.entry(parent.clone()).or_default().children += 1;
                }
                let what = label.as_ref().filter(|label| !label.trim().is_empty()).unwrap_or(task);
                let head = format!("▶ {}", paint.bold(event.session.as_str()));
                vec![self.line(event, &head, &format!(" · {}", one_line(what)))]
            }
            EventKind::TurnStarted { turn } => {
                self.sessions.entry(event.session.clone()).or_default().turns = u64::from(*turn);
                Vec::new()
            }
            EventKind::ModelMessage {
                content, tool_calls, ..
            } => {
                for call in tool_calls {
                    let key = (event.session.clone(), call.call.clone());
                    self.calls.insert(key, call.arguments.clone());
                }
                if content.trim().is_empty() || tool_calls.is_empty() {
                    return Vec::new(); // An answer without calls is the report, which is shown by itself.
                }
                vec![self.line(event, "  ", &paint.dim(&self.fitted(event, 2, content)))]
            }
            EventKind::ModelRetry {
                attempt,
                wait_ms,
                error,
            } => {
                let head = paint.yellow(&format!("  try {attempt} failed, the next in {}", duration(*wait_ms)));
                vec![self.line(event, &head, &format!(": {}", one_line(error)))]
            }
            EventKind::ToolStarted { call, arguments, .. } => {
                self.calls
                    .insert((event.session.clone(), call.clone()), (**arguments).clone());
                Vec::new()
            }
            EventKind::ToolFinished {
                call,
                plugin,
                tool,
                outcome,
                content,
                ms,
                ..
            } => {
                let arguments = self.calls.remove(&(event.session.clone(), call.clone()));
                if plugin.is_none() && self.spawns.remove(&(event.session.clone(), call.clone())) {
                    return Vec::new(); // The child's own last line has said how it ended.
                }
                vec![self.call(event, tool, arguments.as_ref(), *outcome, content, *ms)]
            }
            EventKind::Capability {
                plugin,
                kind,
                target,
                allowed: false,
                rule,
                ..
            } => {
                let kind = serde_json::to_value(kind)
                    .ok()
                    .and_then(|kind| kind.as_str().map(str::to_owned));
                let head = paint.yellow(&format!("  refused {plugin} {}", kind.unwrap_or_default()));
                vec![self.line(event, &head, &format!(" {} · {}", one_line(target), one_line(rule)))]
            }
            EventKind::Warning { message } if self.warned.insert(message.clone()) => {
                let head = format!("{}{}", indent(event), paint.yellow("warning:"));
                vec![format!("{head} {}", sanitise(message))]
            }
            EventKind::AgentFinished { status, usage, .. } => {
                let head = format!("◀ {} {}", paint.bold(event.session.as_str()), self.status(*status));
                vec![self.line(event, &head, &self.account(event, usage))]
            }
            EventKind::RunFinished { status, usage, .. } => {
                let head = format!("{} {}", paint.bold("main"), self.status(*status));
                vec![self.line(event, &head, &self.account(event, usage))]
            }
            EventKind::Warning { .. }
            | EventKind::ModelDelta { .. }
            | EventKind::ToolUpdate { .. }
            | EventKind::Capability { .. } => Vec::new(),
        }
    }

    fn start(&mut self, event: &Event) {
        let started = OffsetDateTime::parse(&event.time, &Rfc3339).ok();
        self.sessions.insert(
            event.session.clone(),
            Course {
                started,
                ..Course::default()
            },
        );
    }

    fn call(
        &self,
        event: &Event,
        tool: &str,
        arguments: Option<&Value>,
        outcome: OutcomeKind,
        content: &str,
        ms: u64,
    ) -> String {
        let paint = self.paint;
        let given = arguments.filter(|value| value.as_object().is_none_or(|map| !map.is_empty()));
        let given = given
            .map(|value| format!(" {}", one_line(&value.to_string())))
            .unwrap_or_default();
        if outcome == OutcomeKind::Ok {
            let tail = format!(" · {}", duration(ms));
            let room = self.room(event).saturating_sub(4 + tool.len() + tail.len());
            let given = fit(&given, room.max(12));
            return format!(
                "{}  {} {tool}{}{}",
                indent(event),
                paint.green("✓"),
                paint.dim(&given),
                paint.dim(&tail)
            );
        }
        let name = outcome_name(outcome);
        let first = content.lines().next().unwrap_or_default();
        let head = format!("  {} {tool} {}", paint.red("✗"), paint.red(name));
        self.line(event, &head, &format!(" · {}{}", one_line(first), paint.dim(&given)))
    }

    fn account(&self, event: &Event, usage: &Usage) -> String {
        let mut parts = Vec::new();
        if let Some(course) = self.sessions.get(&event.session) {
            parts.push(count(course.turns, "turn"));
            if course.children > 0 {
                parts.push(if course.children == 1 {
                    "1 child".into()
                } else {
                    format!("{} children", course.children)
                });
            }
            if let (Some(start), Ok(end)) = (course.started, OffsetDateTime::parse(&event.time, &Rfc3339)) {
                let ms = u64::try_from((end - start).whole_milliseconds()).unwrap_or(0);
                parts.push(duration(ms));
            }
        }
        if usage.tokens() > 0 {
            parts.push(format!("{} tokens", thousands(usage.tokens())));
        }
        if let Some(cost) = usage.cost {
            parts.push(format!("cost {cost:.4}"));
        }
        parts.iter().map(|part| format!(" · {part}")).collect()
    }

    fn status(&self, status: Status) -> String {
        match status {
            Status::Done => self.paint.green(status.as_str()),
            Status::Cancelled => self.paint.yellow(status.as_str()),
            _ => self.paint.red(status.as_str()),
        }
    }

    fn room(&self, event: &Event) -> usize {
        self.width.unwrap_or(160).saturating_sub(indent(event).len())
    }

    fn fitted(&self, event: &Event, used: usize, content: &str) -> String {
        fit(&one_line(content), self.room(event).saturating_sub(used).max(12))
    }

    /// A line of a painted head and a tail that is cut where the terminal ends.
    fn line(&self, event: &Event, head: &str, tail: &str) -> String {
        let shown = unicode_width::UnicodeWidthStr::width(strip(head).as_str());
        let room = self.room(event).saturating_sub(shown).max(12);
        let tail = if tail.contains('\u{1b}') {
            tail.to_owned()
        } else {
            fit(tail, room)
        };
        format!("{}{head}{tail}", indent(event))
    }
}

fn indent(event: &Event) -> String {
    "  ".repeat(usize::try_from(event.depth).unwrap_or(0).min(20))
}

/// The text without our own colours, to measure it.
fn strip(painted: &str) -> String {
    let mut out = String::new();
    let mut parts = painted.split('\u{1b}');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        out.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
    }
    out
}

/// As events write it.
pub(crate) fn outcome_name(outcome: OutcomeKind) -> &'static str {
    match outcome {
        OutcomeKind::Ok => "ok",
        OutcomeKind::ToolError => "tool-error",
        OutcomeKind::Denied => "denied",
        OutcomeKind::Limit => "limit",
        OutcomeKind::Trap => "trap",
        OutcomeKind::Cancelled => "cancelled",
    }
}
