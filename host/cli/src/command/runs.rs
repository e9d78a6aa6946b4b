//! `fief runs` and `fief show`: what past runs left, the newest first.

use std::path::PathBuf;

use fief::folders::Folders;
use fief::record;

use crate::args::{Runs, Show};
use crate::exit::{Exit, Fault};
use crate::render::text::{Paint, fit, one_line, thousands, width};
use crate::render::{self, tree};

fn folder(record: Option<&PathBuf>) -> PathBuf {
    record.cloned().unwrap_or_else(|| Folders::of_user().runs())
}

pub(crate) fn runs(args: &Runs) -> Result<Exit, Fault> {
    let folder = folder(args.record.as_ref());
    let all = record::list(&folder).map_err(|error| Fault::usage(format!("{}: {error}", folder.display())))?;
    if args.json {
        let all: Vec<_> = all.iter().map(|past| &past.info).collect();
        render::json(&all);
        return Ok(Exit::Done);
    }
    if all.is_empty() {
        render::note(&format!("no runs in {}", folder.display()));
        return Ok(Exit::Done);
    }
    let lines: Vec<String> = all
        .iter()
        .map(|past| {
            let info = &past.info;
            let status = info.status.map_or("not finished", |status| status.as_str());
            let tokens = info
                .usage
                .map(|usage| format!(" · {} tokens", thousands(usage.tokens())))
                .unwrap_or_default();
            fit(
                &one_line(&format!("{} · {status}{tokens} · {}", info.run, info.task)),
                width().unwrap_or(160),
            )
        })
        .collect();
    render::data(&lines.join("\n"));
    Ok(Exit::Done)
}

pub(super) fn unreadable(error: &record::PastError) -> Fault {
    Fault::usage(error.to_string()).hint("`fief runs` lists what there is")
}

pub(crate) fn show(args: &Show) -> Result<Exit, Fault> {
    let folder = folder(args.record.as_ref());
    let past = record::find(&folder, &args.run).map_err(|error| unreadable(&error))?;
    if let Some(session) = &args.session {
        let session = session.parse().map_err(|error| Fault::usage(format!("{error}")))?;
        for message in past.history(&session).map_err(|error| unreadable(&error))? {
            render::json(&message);
        }
        return Ok(Exit::Done);
    }
    let events = past.events().map_err(|error| unreadable(&error))?;
    let mut lines = vec![format!("{} · {}", past.info.run, one_line(&past.info.task))];
    lines.extend(tree::tree(&events, Paint::for_stdout(), width().unwrap_or(160)));
    render::painted(&lines.join("\n"));
    Ok(Exit::Done)
}
