//! `fief trust`: accepts a repository's `fief.toml` as it is now.

use fief::folders::Folders;
use fief::trust::Trust as Accepted;

use crate::args::Trust;
use crate::exit::{Exit, Fault};
use crate::render;

pub(crate) fn trust(args: &Trust) -> Result<Exit, Fault> {
    let file = if args.dir.is_file() {
        args.dir.clone()
    } else {
        args.dir.join("fief.toml")
    };
    let digest = Accepted::below(&Folders::of_user().state)
        .accept(&file)
        .map_err(|error| {
            let fault = Fault::usage(format!("{}: {error}", file.display()));
            if !file.exists() {
                let hint =
                    "`fief trust DIR` accepts the `fief.toml` in DIR; where there is none, nothing needs accepting";
                return fault.hint(hint);
            }
            fault
        })?;
    render::note(&format!(
        "{} is trusted as it is now ({digest}); a changed file must be trusted again",
        file.display()
    ));
    Ok(Exit::Done)
}
