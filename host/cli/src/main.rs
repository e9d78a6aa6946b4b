//! `fief`: arguments → configuration → drive → render → exit code.

use clap::Parser as _;

mod args;
mod command;
mod exit;
mod input;
mod person;
mod plugin;
mod render;
mod terminal;
mod watch;

use args::Cli;
use exit::Exit;

fn main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output and are no failure; what is wrong goes to standard error.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    log();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            render::fault(&format!("no threads can be started: {error}"), &[]);
            return Exit::Usage;
        }
    };
    let ended = runtime.block_on(command::run(cli.command));
    // A thread that still reads standard input must not keep the process.
    runtime.shutdown_background();
    match ended {
        Ok(exit) => exit,
        Err(fault) => {
            render::fault(&fault.message, &fault.hints);
            fault.exit
        }
    }
}

/// What the host logs, on standard error, for who asks: `FIEF_LOG=debug`.
fn log() {
    if let Ok(filter) = tracing_subscriber::EnvFilter::try_from_env("FIEF_LOG") {
        let writer = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr);
        let _ = writer.try_init();
    }
}
