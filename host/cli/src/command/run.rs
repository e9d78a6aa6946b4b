//! `fief run`: one task.

use crate::args::Run;
use crate::exit::{Exit, Fault};
use crate::render::{self, Mode, View};
use crate::{input, watch};

pub(crate) async fn run(args: Run) -> Result<Exit, Fault> {
    let task = task_text(&args.task)?;
    let session = &args.session;
    let (host, mut running, mut questions) = super::start(session, args.continued.as_ref(), args.json).await?;
    let mut events = running.events();
    let mode = match (args.json, session.quiet) {
        (true, _) => Mode::Json,
        (_, true) => Mode::Quiet,
        _ => Mode::People,
    };
    let mut view = View::new(mode);
    let report = watch::task(&mut running, task, &mut events, &mut questions, &mut view).await;
    if mode != Mode::Json && !report.text.trim().is_empty() {
        render::data(&report.text);
    }
    if mode == Mode::People && running.folder().is_some() {
        render::note(&format!("`fief show {}` shows the whole run", running.run()));
    }
    super::flush(&host).await;
    let exit = watch::exit(&report);
    match &report.failure {
        // The report says it already, where a person reads reports.
        Some(failure) if exit != Exit::Done && !(mode != Mode::Json && report.text.contains(&failure.message)) => {
            Err(Fault::new(exit, failure.message.clone()))
        }
        _ => Ok(exit),
    }
}

/// The task as it is given, or all of standard input.
fn task_text(task: &str) -> Result<String, Fault> {
    let text = if task == "-" { input::all()? } else { task.to_owned() };
    if text.trim().is_empty() {
        return Err(
            Fault::usage("the task is empty").hint("write what is to be done, or `-` to read it from standard input")
        );
    }
    Ok(text)
}
