//! `fief chat`: many tasks, one history.

use std::io::{IsTerminal as _, Write as _};

use crate::args::Chat;
use crate::exit::{Exit, Fault};
use crate::render::{self, Mode, View};
use crate::{input, watch};

pub(crate) async fn chat(args: Chat) -> Result<Exit, Fault> {
    let session = &args.session;
    let (host, mut running, mut questions) = super::start(session, args.continued.as_ref(), false).await?;
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
        if let Some(failure) = &report.failure
            && !report.text.contains(&failure.message)
        {
            render::fault(&failure.message, &[]);
        }
    }
    super::flush(&host).await;
    if running.folder().is_some() && mode == Mode::People {
        render::note(&format!("`fief chat --continue {}` goes on from here", running.run()));
    }
    Ok(last)
}
