//! One run as a tree of sessions, calls, times and tokens.

use std::collections::HashMap;

use fief_core::event::{Event, EventKind};
use fief_core::id::SessionId;
use fief_core::message::Usage;
use fief_core::report::Status;
use fief_core::tool::OutcomeKind;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::lines::outcome_name;
use super::text::{Paint, count, duration, fit, one_line, thousands};

/// What is known of one agent.
#[derive(Default)]
struct Agent {
    archetype: String,
    what: String,
    turns: u64,
    started: Option<OffsetDateTime>,
    ended: Option<OffsetDateTime>,
    status: Option<Status>,
    usage: Usage,
    calls: Vec<Call>,
    /// What the model asked for, of which some is refused before it starts.
    asked: HashMap<String, Value>,
}

struct Call {
    id: String,
    tool: String,
    arguments: Value,
    end: Option<(OutcomeKind, String, u64)>,
    child: Option<SessionId>,
}

/// Draws the tree of a run from its events, as far as they go; a line for each.
pub(crate) fn tree(events: &[Event], paint: Paint, width: usize) -> Vec<String> {
    let mut agents: HashMap<SessionId, Agent> = HashMap::new();
    for event in events {
        read(&mut agents, event);
    }
    let mut lines = Vec::new();
    draw(&agents, &SessionId::main(), "", &mut lines, paint, width);
    lines
}

fn read(agents: &mut HashMap<SessionId, Agent>, event: &Event) {
    let time = OffsetDateTime::parse(&event.time, &Rfc3339).ok();
    if let (EventKind::AgentStarted { call, .. }, Some(parent)) = (&event.kind, &event.parent) {
        let parent = agents.entry(parent.clone()).or_default();
        if let Some(call) = parent.calls.iter_mut().rev().find(|known| known.id == *call) {
            call.child = Some(event.session.clone());
        }
    }
    let agent = agents.entry(event.session.clone()).or_default();
    match &event.kind {
        EventKind::RunStarted {
            task, archetype, model, ..
        } => {
            // A later task of the same run goes on in the same session.
            agent.started = agent.started.or(time);
            agent.archetype = format!("{archetype} · {model}");
            agent.what.clone_from(task);
        }
        EventKind::AgentStarted {
            task, archetype, label, ..
        } => {
            agent.started = time;
            agent.archetype.clone_from(archetype);
            agent.what = label
                .clone()
                .filter(|label| !label.trim().is_empty())
                .unwrap_or_else(|| task.clone());
        }
        EventKind::TurnStarted { .. } => agent.turns += 1,
        EventKind::ToolStarted {
            call, tool, arguments, ..
        } => agent.calls.push(Call {
            id: call.clone(),
            tool: tool.clone(),
            arguments: (**arguments).clone(),
            end: None,
            child: None,
        }),
        EventKind::ModelMessage { tool_calls, .. } => {
            agent.asked.extend(
                tool_calls
                    .iter()
                    .map(|call| (call.call.clone(), call.arguments.clone())),
            );
        }
        EventKind::ToolFinished {
            call,
            tool,
            outcome,
            content,
            ms,
            ..
        } => {
            let end = Some((*outcome, content.clone(), *ms));
            match agent
                .calls
                .iter_mut()
                .rev()
                .find(|known| known.id == *call && known.end.is_none())
            {
                Some(known) => known.end = end,
                None => agent.calls.push(Call {
                    id: call.clone(),
                    tool: tool.clone(),
                    arguments: agent.asked.remove(call).unwrap_or(Value::Null),
                    end,
                    child: None,
                }),
            }
        }
        EventKind::AgentFinished { status, usage, .. } | EventKind::RunFinished { status, usage, .. } => {
            agent.ended = time;
            agent.status = Some(*status);
            agent.usage += *usage;
        }
        _ => {}
    }
}

fn draw(
    agents: &HashMap<SessionId, Agent>,
    session: &SessionId,
    prefix: &str,
    lines: &mut Vec<String>,
    paint: Paint,
    width: usize,
) {
    let Some(agent) = agents.get(session) else { return };
    if lines.is_empty() {
        lines.push(format!("{} {}", paint.bold(session.as_str()), summary(agent, paint)));
    }
    let last = agent.calls.len().saturating_sub(1);
    for (index, call) in agent.calls.iter().enumerate() {
        let (branch, below) = if index == last {
            ("└─ ", "   ")
        } else {
            ("├─ ", "│  ")
        };
        let child = call.child.as_ref().and_then(|id| Some((id, agents.get(id)?)));
        if let Some((id, child)) = child {
            let head = format!("{prefix}{branch}{} → {} ", call.tool, paint.bold(id.as_str()));
            lines.push(format!("{head}{}", summary(child, paint)));
            draw(agents, id, &format!("{prefix}{below}"), lines, paint, width);
        } else {
            lines.push(format!(
                "{prefix}{branch}{}",
                call_line(call, paint, width.saturating_sub(prefix.chars().count() + 3))
            ));
        }
    }
}

fn summary(agent: &Agent, paint: Paint) -> String {
    let status = match agent.status {
        Some(Status::Done) => paint.green("done"),
        Some(status) => paint.red(status.as_str()),
        None => paint.yellow("not finished"),
    };
    let mut parts = vec![agent.archetype.clone(), count(agent.turns, "turn")];
    if agent.usage.tokens() > 0 {
        parts.push(format!("{} tokens", thousands(agent.usage.tokens())));
    }
    if let Some(cost) = agent.usage.cost {
        parts.push(format!("cost {cost:.4}"));
    }
    if let (Some(started), Some(ended)) = (agent.started, agent.ended) {
        parts.push(duration(
            u64::try_from((ended - started).whole_milliseconds()).unwrap_or(0),
        ));
    }
    format!("{status} {}", paint.dim(&format!("· {}", one_line(&parts.join(" · ")))))
}

fn call_line(call: &Call, paint: Paint, width: usize) -> String {
    let arguments = match &call.arguments {
        Value::Null => String::new(),
        Value::Object(map) if map.is_empty() => String::new(),
        other => format!(" {}", one_line(&other.to_string())),
    };
    let Some((outcome, content, ms)) = &call.end else {
        return format!("{} {}", call.tool, paint.yellow("not finished"));
    };
    let tail = duration(*ms);
    if *outcome == OutcomeKind::Ok {
        let room = width.saturating_sub(call.tool.len() + tail.len() + 9).max(12);
        return format!(
            "{}{} {} {}",
            call.tool,
            paint.dim(&fit(&arguments, room)),
            paint.green("ok"),
            paint.dim(&tail)
        );
    }
    let name = outcome_name(*outcome);
    let room = width
        .saturating_sub(call.tool.len() + name.len() + tail.len() + 6)
        .max(12);
    let why = fit(&one_line(content.lines().next().unwrap_or_default()), room);
    format!(
        "{} {} {}{}",
        call.tool,
        paint.red(name),
        paint.dim(&format!("{tail} · ")),
        why
    )
}
