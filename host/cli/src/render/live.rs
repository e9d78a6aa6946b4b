//! The live view on a terminal: lines that stay, and below them one that moves, with who works on what, for how long
//! and for how many tokens.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fief_core::event::{Event, EventKind};
use fief_core::id::SessionId;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::lines::Narrator;
use super::text::{duration, fit_end, one_line, thousands, width};

/// Twice a display's rate: what a model says is on the screen within 5 ms, and a flood of it is drawn 240 times a
/// second at most.
const DRAWS_PER_SECOND: u8 = 240;

/// How much of what a model says at the moment is kept to show the end of it.
const TAIL: usize = 400;

pub(crate) struct Live {
    narrator: Narrator,
    screen: MultiProgress,
    spinner: Option<ProgressBar>,
    started: Instant,
    tokens: u64,
    /// What each agent is at.
    doing: BTreeMap<SessionId, String>,
    latest: SessionId,
}

impl Live {
    pub(crate) fn new(narrator: Narrator) -> Self {
        let screen = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND));
        Self {
            narrator,
            screen,
            spinner: None,
            started: Instant::now(),
            tokens: 0,
            doing: BTreeMap::new(),
            latest: SessionId::main(),
        }
    }

    pub(crate) fn event(&mut self, event: &Event) {
        for line in self.narrator.event(event) {
            let _ = self.screen.println(line);
        }
        match &event.kind {
            EventKind::RunStarted { .. } => {
                self.started = Instant::now();
                self.spin();
            }
            EventKind::TurnStarted { .. } => self.doing(event, "thinking".into()),
            EventKind::ModelDelta { content } => {
                let said = self.doing.entry(event.session.clone()).or_default();
                if said == "thinking" {
                    said.clear();
                }
                said.push_str(content);
                if said.len() > 2 * TAIL {
                    let start = (said.len() - TAIL..).find(|at| said.is_char_boundary(*at)).unwrap_or(0);
                    said.drain(..start);
                }
                self.latest = event.session.clone();
            }
            EventKind::ModelMessage { usage, .. } => {
                self.tokens = self.tokens.saturating_add(usage.tokens());
                self.doing(event, String::new());
            }
            EventKind::ToolStarted { tool, .. } => self.doing(event, tool.clone()),
            EventKind::ToolUpdate {
                tool,
                message,
                done,
                total,
                ..
            } => {
                let share = match (done, total) {
                    (Some(done), Some(total)) => format!(" {done}/{total}"),
                    (Some(done), None) => format!(" {done}"),
                    _ => String::new(),
                };
                self.doing(event, format!("{tool}{share} {message}"));
            }
            EventKind::AgentFinished { .. } => {
                self.doing.remove(&event.session);
                self.latest = event.parent.clone().unwrap_or_else(SessionId::main);
            }
            EventKind::RunFinished { .. } => self.clear(),
            _ => {}
        }
        self.draw();
    }

    /// Takes the moving line away; the next event brings it back.
    pub(crate) fn clear(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }

    fn doing(&mut self, event: &Event, what: String) {
        self.doing.insert(event.session.clone(), what);
        self.latest = event.session.clone();
        self.spin();
    }

    fn spin(&mut self) {
        if self.spinner.is_some() {
            return;
        }
        let spinner = self.screen.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            spinner.set_style(style);
        }
        spinner.enable_steady_tick(Duration::from_millis(120));
        self.spinner = Some(spinner);
    }

    fn draw(&self) {
        let Some(spinner) = &self.spinner else { return };
        let elapsed = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut head = duration(elapsed);
        if self.tokens > 0 {
            head = format!("{head} · {} tokens", thousands(self.tokens));
        }
        let busy = self.doing.len().saturating_sub(1);
        if busy > 1 {
            head = format!("{head} · {busy} children");
        }
        let what = self
            .doing
            .get(&self.latest)
            .map(|what| one_line(what))
            .unwrap_or_default();
        let room = width()
            .unwrap_or(80)
            .saturating_sub(head.chars().count() + self.latest.as_str().len() + 8);
        spinner.set_message(format!("{head} · {}: {}", self.latest, fit_end(&what, room)));
    }
}
