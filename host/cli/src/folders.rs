//! Where a user's own things lie: configuration, data, state. Each honours the system's conventions (XDG on Linux).

use std::path::PathBuf;

/// The folders of one user. [`Folders::of_user`] finds them; a test or an embedder may name others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// `fief.toml` lies here.
    pub config: PathBuf,
    /// `plugins/` and `archetypes/` lie here, installed by the user.
    pub data: PathBuf,
    /// `runs/` and the list of trusted files lie here.
    pub state: PathBuf,
    /// The compiled store and the plugin index lie here; all of it can be made again.
    pub cache: PathBuf,
}

impl Folders {
    /// The folders of the user who runs this process; below the working directory for a user without a home.
    #[must_use]
    pub fn of_user() -> Self {
        let fallback = || PathBuf::from(".fief");
        let named = |folder: Option<PathBuf>| folder.map_or_else(fallback, |folder| folder.join("fief"));
        Self {
            config: named(dirs::config_dir()),
            data: named(dirs::data_dir()),
            state: named(dirs::state_dir().or_else(dirs::data_local_dir)),
            cache: named(dirs::cache_dir()),
        }
    }

    /// The operator's `fief.toml`.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.config.join("fief.toml")
    }

    /// Plugins that the user installed.
    #[must_use]
    pub fn plugins(&self) -> PathBuf {
        self.data.join("plugins")
    }

    /// Archetypes that the user keeps for all work.
    #[must_use]
    pub fn archetypes(&self) -> PathBuf {
        self.data.join("archetypes")
    }

    /// The records of past runs.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.state.join("runs")
    }
}
