//! `glob`: files by their names.

use fief_plugin::{Output, ToolError};
use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::place::{Place, Spot};
use crate::walk::walk;

/// What is looked for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Glob {
    /// Such as `*.rs`, which is found at any depth, or `src/**/*.{rs,toml}`, which is relative to `path`.
    pub(crate) pattern: String,
    /// The directory to look in; absent: the working directory.
    #[serde(default)]
    pub(crate) path: Option<String>,
}

/// More names than a model reads.
const LIMIT: usize = 500;

pub(crate) fn glob(place: &Place, args: &Glob) -> Result<Output, ToolError> {
    let (pattern, path) = anchored(&args.pattern, args.path.as_deref());
    let matcher = Pattern::new("pattern", pattern)?;
    let (start, metadata) = place.start(path.as_deref())?;
    if !metadata.is_dir() {
        return Err(ToolError::invalid(format!(
            "`{}` is a file: `path` is a directory to look in",
            start.shown
        )));
    }
    let (mut names, mut cut) = (Vec::new(), false);
    let walked = walk(&start, |entry| {
        if matcher.matches(&start, entry.path()) {
            cut = names.len() == LIMIT;
            if !cut {
                names.push(place.name(entry.path()));
            }
        }
        !cut
    });
    let mut notes = Vec::new();
    if cut {
        notes.push(format!("the first {LIMIT}, there are more: narrow `pattern` or `path`"));
    }
    walked.notes(&mut notes);
    if names.is_empty() {
        notes.insert(0, format!("no file matches `{}` in `{}`", args.pattern, start.shown));
    }
    let mut out = names.join("\n");
    if !notes.is_empty() {
        out += &format!("{}({})", if out.is_empty() { "" } else { "\n" }, notes.join("; "));
    }
    Ok(Output::text(out))
}

/// A pattern that is absolute starts from its last directory that holds no pattern.
fn anchored<'a>(pattern: &'a str, path: Option<&str>) -> (&'a str, Option<String>) {
    if !pattern.starts_with('/') {
        return (pattern.strip_prefix("./").unwrap_or(pattern), path.map(str::to_owned));
    }
    let special = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    let slash = pattern[..special].rfind('/').unwrap_or(0);
    (
        &pattern[slash..],
        Some(if slash == 0 {
            "/".to_owned()
        } else {
            pattern[..slash].to_owned()
        }),
    )
}

/// A pattern for paths.
pub(crate) struct Pattern(GlobMatcher);

impl Pattern {
    pub(crate) fn new(key: &str, pattern: &str) -> Result<Self, ToolError> {
        if pattern.trim().is_empty() {
            return Err(ToolError::invalid(format!(
                "`{key}` is blank: give a pattern such as `*.rs`"
            )));
        }
        if pattern.split('/').any(|part| part == "..") {
            return Err(ToolError::invalid(format!(
                "`{key}` holds `..`: name the directory by `path` instead"
            )));
        }
        // Without a slash it is about names, at any depth; a slash in front anchors it.
        let whole = match pattern.strip_prefix('/') {
            Some(anchored) => anchored.to_owned(),
            None if pattern.contains('/') => pattern.to_owned(),
            None => format!("**/{pattern}"),
        };
        let glob = GlobBuilder::new(&whole).literal_separator(true).build();
        let glob = glob.map_err(|error| ToolError::invalid(format!("`{key}`: {}", error.kind())))?;
        Ok(Self(glob.compile_matcher()))
    }

    /// Whether `path`, below `start`, is meant.
    pub(crate) fn matches(&self, start: &Spot, path: &std::path::Path) -> bool {
        let relative = path.strip_prefix(&start.path).unwrap_or(path);
        let relative = if relative.as_os_str().is_empty() {
            path.file_name().unwrap_or_default().as_ref()
        } else {
            relative
        };
        self.0.is_match(relative)
    }
}
