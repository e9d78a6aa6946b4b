//! Walking a directory tree, without what `.gitignore` and `.ignore` files leave out.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ignore::{DirEntry, WalkBuilder};

use crate::patience::Patience;
use crate::place::Spot;

/// What became of a walk.
#[derive(Default)]
pub(crate) struct Walked {
    /// Entries that could not be read.
    pub(crate) unreadable: u64,
    /// It took too long, and what was found is not all.
    pub(crate) impatient: bool,
}

/// Calls `visit` with each file below `start`, in the order of their names, until it returns false. Links are visited,
/// not followed.
pub(crate) fn walk(start: &Spot, mut visit: impl FnMut(&DirEntry) -> bool) -> Walked {
    // From the granted directory on, so that the `.gitignore` files above `start` count too. Where one of them leaves
    // out `start` itself, it was named on purpose, and the walk begins there.
    let patience = Patience::new();
    let mut walked = Walked::default();
    if !pass(start, start.root.clone(), &patience, &mut walked, &mut visit) {
        pass(start, start.path.clone(), &patience, &mut walked, &mut visit);
    }
    walked
}

/// Says whether it came upon `start`.
fn pass(
    start: &Spot,
    from: PathBuf,
    patience: &Patience,
    walked: &mut Walked,
    visit: &mut impl FnMut(&DirEntry) -> bool,
) -> bool {
    // The entry that a walk begins with is not asked about.
    let reached = Arc::new(AtomicBool::new(from == start.path));
    let (target, seen) = (start.path.clone(), reached.clone());
    let entries = WalkBuilder::new(from)
        .hidden(false)
        .parents(false)
        .git_global(false)
        .require_git(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(move |entry| {
            if entry.path() == target {
                seen.store(true, Ordering::Relaxed);
                return true;
            }
            let inside = entry.path().starts_with(&target);
            (inside && entry.file_name() != ".git") || target.starts_with(entry.path())
        })
        .build();
    for entry in entries {
        if patience.is_over() {
            walked.impatient = true;
            break;
        }
        let Ok(entry) = entry else {
            walked.unreadable += 1;
            continue;
        };
        let file = entry.file_type().is_some_and(|kind| !kind.is_dir());
        if file && entry.path().starts_with(&start.path) && !visit(&entry) {
            break;
        }
    }
    reached.load(Ordering::Relaxed)
}

impl Walked {
    /// What a result must say of it.
    pub(crate) fn notes(&self, notes: &mut Vec<String>) {
        if self.impatient {
            notes.push("stopped after 4 s, there may be more: narrow `path`".to_owned());
        }
        if self.unreadable > 0 {
            notes.push(format!(
                "{} could not be read",
                crate::text::count(self.unreadable, "entry", "entries")
            ));
        }
    }
}
