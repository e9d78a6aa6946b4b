//! `fief chat`: many tasks, one history.

use std::io::{IsTerminal as _, Write as _};

use fief::SessionOptions;

use super::{record, session_host};
use crate::args::Chat;
use crate::exit::{Exit, Fault};
use crate::render::{self, Mode, View};
use crate::{input, person, watch};

pub(crate) async fn chat(args: Chat) -> Result<Exit, Fault> {
    let session = &args.session;
    let host = session_host(session).await?;
    let past = match &args.continued {
        Some(run) => {
            let runs = session.record.clone().unwrap_or_else(|| host.folders().runs());
            Some(fief::record::find(&runs, run).map_err(|error| Fault::usage(error.to_string()))?)
        }
        None => None,
    };
    let (sender, mut questions) = person::questions(false);
    let options = SessionOptions {
        archetype: session.archetype.clone(),
        record: record(&host, session),
        past,
        questions: sender,
    };
    let mut running = host.session(options).await?;
    let mut events = running.events();
    let mode = if session.quiet { Mode::Quiet } else { Mode::People };
    let asks = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let mut last = Exit::Done;
    if asks {
        render::note("one task a line; an empty line is none, Ctrl-D ends");
    }
    loop {
        if asks {
            let mut err = std::io::stderr().lock();
            let _ = write!(err, "> ").and_then(|()| err.flush());
        }
        let line = tokio::select! {
            line = input::line() => line,
            _ = tokio::signal::ctrl_c() => {
                super::flush(&host).await;
                return Ok(Exit::Interrupted);
            }
        };
        let Some(line) = line else { break };
        let task = line.trim();
        if task.is_empty() {
            continue;
        }
        let mut view = View::new(mode);
        let report = watch::task(&mut running, task.to_owned(), &mut events, &mut questions, &mut view).await;
        if !report.text.trim().is_empty() {
            render::data(&report.text);
        }
        last = watch::exit(&report);
        if let Some(failure) = &report.failure {
            render::fault(&failure.message, &[]);
        }
    }
    super::flush(&host).await;
    if running.folder().is_some() && mode == Mode::People {
        render::note(&format!("`fief chat --continue {}` goes on from here", running.run()));
    }
    Ok(last)
}
