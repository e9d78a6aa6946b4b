//! `fief call`: one call, no model.

use std::time::Instant;

use fief::core::event::{Event, EventKind};
use fief::core::tool::{Outcome, OutcomeKind};
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;

use super::host;
use crate::args::Call;
use crate::exit::{Exit, Fault};
use crate::render::{self, Mode, View};
use crate::{input, person};

pub(crate) async fn call(args: Call) -> Result<Exit, Fault> {
    let arguments = arguments(&args.arguments)?;
    let host = host(&args.places, &args.allow, None).await?;
    let started = Instant::now();
    let outcome = watched(&host, &args, arguments).await;
    super::flush(&host).await;
    let Some(outcome) = outcome? else {
        return Ok(Exit::Interrupted);
    };
    let text = outcome.text();
    if args.json {
        let result = json!({
            "outcome": outcome.kind,
            "content": text,
            "structured": outcome.structured,
            "error": outcome.detail,
            "ms": u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        render::json(&result);
    } else if outcome.kind == OutcomeKind::Ok {
        render::data(&text);
    }
    let exit = match outcome.kind {
        OutcomeKind::Ok => return Ok(Exit::Done),
        OutcomeKind::Denied => Exit::Refused,
        OutcomeKind::Cancelled => Exit::Interrupted,
        OutcomeKind::ToolError | OutcomeKind::Limit | OutcomeKind::Trap => Exit::Failed,
    };
    if args.json {
        Ok(exit)
    } else {
        Err(Fault::new(exit, text))
    }
}

/// The call, shown to a person as it goes; none if it was interrupted.
async fn watched(host: &fief::Host, args: &Call, arguments: Value) -> Result<Option<Outcome>, Fault> {
    let (sender, mut events) = unbounded_channel();
    let (asks, mut questions) = person::questions(args.json);
    let mut view = View::new(if args.json { Mode::Quiet } else { Mode::People });
    let running = host.call(&args.tool, arguments, sender, asks);
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(running, interrupted);
    let outcome = loop {
        tokio::select! {
            outcome = &mut running => break outcome?,
            Some(event) = events.recv() => show(&mut view, &event),
            Some(question) = questions.recv() => {
                view.pause();
                tokio::select! {
                    () = person::answer(question) => {}
                    outcome = &mut running => break outcome?,
                    _ = &mut interrupted => return Ok(None),
                }
            }
            _ = &mut interrupted => return Ok(None),
        }
    };
    while let Ok(event) = events.try_recv() {
        show(&mut view, &event);
    }
    view.pause();
    Ok(Some(outcome))
}

/// That the one call started and finished is what the person sees anyhow.
fn show(view: &mut View, event: &Event) {
    if !matches!(
        event.kind,
        EventKind::ToolStarted { .. } | EventKind::ToolFinished { .. }
    ) {
        view.event(event);
    }
}

fn arguments(text: &str) -> Result<Value, Fault> {
    let text = if text == "-" { &input::all()? } else { text };
    match serde_json::from_str(text) {
        Ok(arguments @ Value::Object(_)) => Ok(arguments),
        Ok(_) => {
            Err(Fault::usage("the arguments must be one JSON object").hint("such as `'{\"path\": \"README.md\"}'`"))
        }
        Err(error) => {
            let message = format!("the arguments are not JSON: {error}");
            Err(Fault::usage(message).hint("such as `'{\"path\": \"README.md\"}'`, in single quotes for the shell"))
        }
    }
}
