//! Why a host cannot be made, or an agent not be started.

use std::path::PathBuf;

use fief_core::manifest::error::ManifestErrors;

/// Why a host cannot be made, or an agent not be started. Hints are apart from the message ([`Error::hints`]).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Flags, configuration or a manifest are not right.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What would mend it, one a line.
        hints: Vec<String>,
    },
    /// Manifests or configuration files are not right: every fault, each with its place and its text.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Manifest(ManifestErrors),
    /// `[policy] strict` refuses what it would else only warn of.
    #[error("{message}")]
    Strict {
        /// What is refused.
        message: String,
    },
    /// A model cannot be had.
    #[error("{0}")]
    Model(String),
    /// A file cannot be read or written.
    #[error("{path}: {error}", path = .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The sandbox cannot be started.
    #[error("the sandbox cannot be started: {0}")]
    Sandbox(String),
}

impl Error {
    /// A fault of usage or configuration. Lines of `message` that start with `hint: ` become its hints.
    pub(crate) fn usage(message: impl AsRef<str>) -> Self {
        let (hints, message): (Vec<&str>, Vec<&str>) =
            message.as_ref().lines().partition(|line| line.starts_with("hint: "));
        Self::Usage {
            message: message.join("\n"),
            hints: hints
                .into_iter()
                .map(|hint| hint["hint: ".len()..].to_owned())
                .collect(),
        }
    }

    /// What would mend it, one a line.
    #[must_use]
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Usage { hints, .. } => hints.clone(),
            Self::Manifest(errors) => {
                let mut hints: Vec<String> = Vec::new();
                for hint in errors.iter().filter_map(|error| error.hint.clone()) {
                    if !hints.contains(&hint) {
                        hints.push(hint);
                    }
                }
                hints
            }
            _ => Vec::new(),
        }
    }
}
