//! Looks for the host's environment, arguments and directory.

use contract::{Answer, Arguments, text};
use wasip2::cli::environment;

pub(crate) fn run(_: &Arguments) -> Answer {
    let variables = std::env::vars_os().count() + environment::get_environment().len();
    let arguments = std::env::args_os().count() + environment::get_arguments().len();
    let directory = environment::initial_cwd();
    let directories = wasip2::filesystem::preopens::get_directories().len();
    text(format!(
        "{variables} variables, {arguments} arguments, {directories} directories, directory {directory:?}"
    ))
}
