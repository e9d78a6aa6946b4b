//! Where files are: the granted directories, and paths in them.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use fief_plugin::ToolError;

/// The directory that relative paths start from, where it is granted.
const WORK: &str = "/work";

/// More names than this are not compared with a misspelt one.
const COMPARED: usize = 10_000;

/// The granted directories.
pub(crate) struct Place {
    roots: Vec<Root>,
    /// Of `roots`: where relative paths start.
    base: usize,
}

struct Root {
    /// As the model writes it: absolute, without a slash at the end.
    guest: String,
    /// As the system opens it: in a component the same.
    path: PathBuf,
}

/// A path in a granted directory. Whether anything is there is another question.
pub(crate) struct Spot {
    /// For messages and results: relative to the working directory where it lies in it, and good as an argument.
    pub(crate) shown: String,
    /// For the system.
    pub(crate) path: PathBuf,
    /// The granted directory it lies in, for the system.
    pub(crate) root: PathBuf,
}

/// What was to be done with a file that did not work.
#[derive(Clone, Copy)]
pub(crate) enum Deed {
    Read,
    Write,
}

impl Place {
    /// The directories that the host opened for this call.
    #[cfg(target_family = "wasm")]
    pub(crate) fn granted() -> Self {
        let directories = wasip2::filesystem::preopens::get_directories();
        Self::new(directories.into_iter().map(|(_, guest)| (PathBuf::from(&guest), guest)))
    }

    /// Natively nobody grants anything.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn granted() -> Self {
        Self::new(Vec::new())
    }

    /// Pairs of a system path and what the model calls it.
    pub(crate) fn new(directories: impl IntoIterator<Item = (PathBuf, String)>) -> Self {
        let root = |(path, guest): (PathBuf, String)| Root {
            guest: guest.trim_end_matches('/').to_owned(),
            path,
        };
        let roots: Vec<Root> = directories.into_iter().map(root).collect();
        let base = roots.iter().position(|root| root.guest == WORK).unwrap_or(0);
        Self { roots, base }
    }

    /// The spot that `path` names: absolute, or relative to the working directory.
    pub(crate) fn find(&self, path: &str) -> Result<Spot, ToolError> {
        if path.trim().is_empty() {
            return Err(ToolError::invalid(
                "`path` is blank: name a file or a directory, such as `.`",
            ));
        }
        if path.contains('\0') {
            return Err(ToolError::invalid("`path` holds a NUL character"));
        }
        let Some(base) = self.roots.get(self.base) else {
            return Err(ToolError::denied(format!(
                "`{path}`: no directory is granted to this agent"
            )));
        };
        let whole = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("{}/{path}", base.guest)
        };
        let guest = normalised(&whole);
        let inside = |root: &&Root| {
            guest
                .strip_prefix(&root.guest)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // The innermost, where one granted directory lies in another.
        let Some(root) = self.roots.iter().filter(inside).max_by_key(|root| root.guest.len()) else {
            return Err(ToolError::denied(format!(
                "`{path}` is outside what this agent may reach: {}",
                self.names()
            )));
        };
        let rest = guest[root.guest.len()..].trim_start_matches('/');
        let path = if rest.is_empty() {
            root.path.clone()
        } else {
            root.path.join(rest)
        };
        Ok(Spot {
            shown: self.shown(&guest),
            path,
            root: root.path.clone(),
        })
    }

    /// How a path that was found in the directory `root` is called.
    pub(crate) fn name(&self, path: &Path) -> String {
        let inside = |root: &&Root| path.starts_with(&root.path);
        match self
            .roots
            .iter()
            .filter(inside)
            .max_by_key(|root| root.path.as_os_str().len())
        {
            Some(root) => {
                let rest = path.strip_prefix(&root.path).unwrap_or(path).to_string_lossy();
                self.shown(&normalised(&format!("{}/{rest}", root.guest)))
            }
            None => path.to_string_lossy().into_owned(),
        }
    }

    fn shown(&self, guest: &str) -> String {
        let base = &self.roots[self.base].guest;
        match guest.strip_prefix(base.as_str()) {
            Some("") => ".".to_owned(),
            Some(rest) if rest.starts_with('/') => rest[1..].to_owned(),
            _ if guest.is_empty() => "/".to_owned(),
            _ => guest.to_owned(),
        }
    }

    fn names(&self) -> String {
        let name = |(index, root): (usize, &Root)| {
            let guest = if root.guest.is_empty() { "/" } else { &root.guest };
            if index == self.base {
                format!("`{guest}` (relative paths start there)")
            } else {
                format!("`{guest}`")
            }
        };
        let names: Vec<_> = self.roots.iter().enumerate().map(name).collect();
        format!("granted are {}", names.join(", "))
    }

    /// What went wrong with `spot`, in words that a model can act on.
    pub(crate) fn explain(&self, spot: &Spot, deed: Deed, error: &io::Error) -> ToolError {
        let shown = &spot.shown;
        match (error.kind(), deed) {
            (ErrorKind::NotFound, _) => ToolError::failed(format!("no file `{shown}`{}", self.nearest(spot))),
            (ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem, Deed::Write) => ToolError::denied(format!(
                "`{shown}` may not be written: its directory is granted for reading only, it is protected, or a link \
                 leads outside; {}",
                self.names()
            )),
            (ErrorKind::PermissionDenied, Deed::Read) => ToolError::denied(format!(
                "`{shown}` may not be read, or a link leads outside; {}",
                self.names()
            )),
            (ErrorKind::IsADirectory, Deed::Read) => is_directory(shown),
            (ErrorKind::IsADirectory, Deed::Write) => {
                ToolError::failed(format!("`{shown}` is a directory: name a file in it"))
            }
            (ErrorKind::NotADirectory, _) => {
                ToolError::failed(format!("`{shown}`: a part of this path is a file, not a directory"))
            }
            (ErrorKind::StorageFull | ErrorKind::QuotaExceeded, _) => {
                ToolError::failed(format!("`{shown}`: no space is left; the file may be incomplete"))
            }
            _ => ToolError::failed(format!("`{shown}`: {error}")),
        }
    }

    /// Names like the one that is not there; or, where its directory is missing too, what there is instead.
    fn nearest(&self, spot: &Spot) -> String {
        let mut missing = spot.path.as_path();
        while let Some(parent) = missing.parent().filter(|parent| parent.starts_with(&spot.root)) {
            if parent.is_dir() {
                let wanted = missing.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let names = similar(parent, &wanted);
                let names: Vec<_> = names
                    .iter()
                    .map(|name| format!("`{}`", self.name(&parent.join(name))))
                    .collect();
                let missing = match missing == spot.path {
                    true => String::new(),
                    false => format!("; no directory `{}`", self.name(missing)),
                };
                return match names.is_empty() {
                    true => format!("{missing}\nhint: list `{}` to see what is there", self.name(parent)),
                    false => format!("{missing}; nearest: {}", names.join(", ")),
                };
            }
            missing = parent;
        }
        String::new()
    }

    /// Opens a file for reading, refusing what is none.
    pub(crate) fn open(&self, spot: &Spot) -> Result<(fs::File, u64), ToolError> {
        // Asked before it is opened: a pipe would wait for somebody to write to it.
        let metadata = fs::metadata(&spot.path).map_err(|error| self.explain(spot, Deed::Read, &error))?;
        if metadata.is_dir() {
            return Err(is_directory(&spot.shown));
        }
        if !metadata.is_file() {
            return Err(ToolError::failed(format!("`{}` is no regular file", spot.shown)));
        }
        let file = fs::File::open(&spot.path).map_err(|error| self.explain(spot, Deed::Read, &error))?;
        Ok((file, metadata.len()))
    }

    /// The directory, or file, that a search starts from: the working directory if `path` is absent.
    pub(crate) fn start(&self, path: Option<&str>) -> Result<(Spot, fs::Metadata), ToolError> {
        let spot = self.find(path.filter(|path| !path.is_empty()).unwrap_or("."))?;
        let metadata = fs::metadata(&spot.path).map_err(|error| self.explain(&spot, Deed::Read, &error))?;
        Ok((spot, metadata))
    }
}

fn is_directory(shown: &str) -> ToolError {
    ToolError::failed(format!("`{shown}` is a directory: use list to see what it holds"))
}

/// `path`, absolute, without `.`, `..`, and doubled slashes; the root is the empty string.
fn normalised(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.iter().flat_map(|part| ["/", part]).collect()
}

fn similar(directory: &Path, wanted: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let wanted = wanted.to_lowercase();
    let mut names: Vec<(f64, String)> = entries
        .take(COMPARED)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .map(|name| (likeness(&name.to_lowercase(), &wanted), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .collect();
    names.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    names.into_iter().take(3).map(|(_, name)| name).collect()
}

/// From 0 to 1. One slip of the fingers makes names alike however short they are.
fn likeness(name: &str, wanted: &str) -> f64 {
    if name.len().abs_diff(wanted.len()) <= 1 && strsim::osa_distance(name, wanted) <= 1 {
        return 0.99;
    }
    strsim::jaro_winkler(name, wanted)
}
