//! The commands, one file each. Each returns its exit code, or a fault that `main` prints.

use crate::args::{Allow, Command, Places, Session};
use crate::exit::{Exit, Fault};
use crate::{person, render};

mod agents;
mod call;
mod chat;
mod demo;
mod doctor;
mod plugin;
mod run;
mod runs;
mod shell;
mod tools;
mod trust;

pub(crate) async fn run(command: Command) -> Result<Exit, Fault> {
    match command {
        Command::Run(args) => run::run(args).await,
        Command::Demo(args) => demo::demo(args).await,
        Command::Tools(args) => tools::tools(args).await,
        Command::Trust(args) => trust::trust(&args),
        Command::Chat(args) => chat::chat(args).await,
        Command::Call(args) => call::call(args).await,
        Command::Runs(args) => runs::runs(&args),
        Command::Show(args) => runs::show(&args),
        Command::Agents(args) => agents::agents(args).await,
        Command::Plugin(args) => plugin::plugin(args).await,
        Command::Doctor(args) => doctor::doctor(args).await,
        Command::Completions { shell } => Ok(shell::completions(shell)),
        Command::Man => shell::man(),
    }
}

/// The host as the flags and the configuration say, its warnings shown.
async fn host(places: &Places, allow: &Allow, model: Option<&String>) -> Result<fief::Host, Fault> {
    open(options(places, allow, model)?).await
}

/// The same for a session, whose record no tool may write, wherever it is kept.
async fn session_host(session: &Session) -> Result<fief::Host, Fault> {
    let options = options(&session.places, &session.allow, session.model.as_ref())?;
    open(fief::HostOptions {
        protect: session.record.iter().cloned().collect(),
        ..options
    })
    .await
}

async fn open(options: fief::HostOptions) -> Result<fief::Host, Fault> {
    let host = fief::Host::open(options).await?;
    for warning in host.warnings() {
        render::warn(warning);
    }
    Ok(host)
}

/// Waits for the last spans to be sent, where any are; that they were not is a warning and no more.
async fn flush(host: &fief::Host) {
    if let Some(warning) = host.flush().await {
        render::warn(&warning);
    }
}

fn options(places: &Places, allow: &Allow, model: Option<&String>) -> Result<fief::HostOptions, Fault> {
    let working_directory = std::env::current_dir()
        .and_then(|directory| directory.canonicalize())
        .map_err(|error| Fault::usage(format!("the working directory cannot be used: {error}")))?;
    Ok(fief::HostOptions {
        config: places.config.clone(),
        plugins: places.plugins.clone(),
        archetypes: places.archetypes.clone(),
        model: model.cloned(),
        allow: fief::Allow {
            read: allow.allow_read.clone(),
            write: allow.allow_write.clone(),
            net: allow.allow_net.clone(),
            secrets: allow.allow_secret.clone(),
        },
        progress: Some(std::sync::Arc::new(render::note)),
        ..fief::HostOptions::here(working_directory)
    })
}

/// A session as the flags of `run` and `chat` say, on from a past run where one is named, and what it asks the person.
async fn start(
    args: &Session,
    continued: Option<&String>,
    json: bool,
) -> Result<(fief::Host, fief::Session, Questions), Fault> {
    let host = session_host(args).await?;
    let past = match continued {
        Some(run) => {
            let runs = args.record.clone().unwrap_or_else(|| host.folders().runs());
            Some(fief::record::find(&runs, run).map_err(|error| runs::unreadable(&error))?)
        }
        None => None,
    };
    let (sender, questions) = person::questions(json);
    let options = fief::SessionOptions {
        archetype: args.archetype.clone(),
        record: record(&host, args),
        past,
        questions: sender,
    };
    let session = host.session(options).await?;
    Ok((host, session, questions))
}

type Questions = tokio::sync::mpsc::UnboundedReceiver<fief::Question>;

/// Where the record of a run goes: nowhere, where the flag says, or the user's state directory.
fn record(host: &fief::Host, session: &Session) -> Option<std::path::PathBuf> {
    if session.no_record {
        return None;
    }
    session.record.clone().or_else(|| host.records())
}
