//! `fief completions` and `fief man`: generated from the arguments.

use clap::CommandFactory as _;

use crate::args::Cli;
use crate::exit::{Exit, Fault};

pub(crate) fn completions(shell: clap_complete::Shell) -> Exit {
    clap_complete::generate(shell, &mut Cli::command(), "fief", &mut std::io::stdout());
    Exit::Done
}

pub(crate) fn man() -> Result<Exit, Fault> {
    clap_mangen::Man::new(Cli::command())
        .render(&mut std::io::stdout())
        .map_err(|error| Fault::usage(format!("the manual page cannot be written: {error}")))?;
    Ok(Exit::Done)
}
