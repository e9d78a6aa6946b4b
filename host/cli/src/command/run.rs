//! `fief run`: one task.

use std::io::Read as _;

use fief::SessionOptions;

use super::{record, session_host};
use crate::args::Run;
use crate::exit::{Exit, Fault};
use crate::render::{self, Mode, View};
use crate::{person, watch};

pub(crate) async fn run(args: Run) -> Result<Exit, Fault> {
    let task = task_text(&args.task)?;
    let session = &args.session;
    let host = session_host(session).await?;
    let past = match &args.continued {
        Some(run) => {
            let runs = session.record.clone().unwrap_or_else(|| host.folders().runs());
            Some(fief::record::find(&runs, run).map_err(|error| Fault::usage(error.to_string()))?)
        }
        None => None,
    };
    let (sender, mut questions) = person::questions(args.json);
    let options = SessionOptions {
        archetype: session.archetype.clone(),
        record: record(&host, session),
        past,
        questions: sender,
    };
    let mut running = host.session(options).await?;
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
        Some(failure) if exit != Exit::Done => Err(Fault::new(exit, failure.message.clone())),
        _ => Ok(exit),
    }
}

/// The task as it is given, or all of standard input.
fn task_text(task: &str) -> Result<String, Fault> {
    let text = if task == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .map_err(|error| Fault::usage(format!("standard input cannot be read: {error}")))?;
        String::from_utf8(bytes).map_err(|_| Fault::usage("standard input is not UTF-8 text"))?
    } else {
        task.to_owned()
    };
    if text.trim().is_empty() {
        return Err(
            Fault::usage("the task is empty").hint("write what is to be done, or `-` to read it from standard input")
        );
    }
    Ok(text)
}
