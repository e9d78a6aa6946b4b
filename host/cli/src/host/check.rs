//! Archetypes that a person wants checked, wherever they lie.

use std::path::{Path, PathBuf};

use fief_core::manifest::archetype::Archetype;
use fief_core::manifest::archetype::mapping::ToolMapping;
use fief_core::manifest::archetype::markdown::Known;
use fief_core::manifest::error::{ManifestError, ManifestWarning};
use fief_core::manifest::files::{FileError, Files as _};
use fief_core::manifest::registry;
use fief_core::world::canonicalise;

use super::Host;
use super::files::Disk;
use crate::error::Error;

/// What was read, and what is wrong with the rest.
#[derive(Debug, Default)]
pub struct Checked {
    /// Those that parse.
    pub archetypes: Vec<Archetype>,
    /// Why the others do not.
    pub errors: Vec<ManifestError>,
    /// What has no effect.
    pub warnings: Vec<ManifestWarning>,
}

/// The text of a manifest that a person names: of a regular file, and of bounded size.
///
/// # Errors
/// Why it cannot be had.
pub fn manifest_text(path: &Path) -> Result<String, FileError> {
    Disk { base: PathBuf::new() }.read(path)
}

impl Host {
    /// Reads one archetype, or every one of a directory, with this host's plugins and models as what is known.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is nothing to read.
    pub fn check_archetypes(&self, path: &Path) -> Result<Checked, Error> {
        let work = &self.world().policy.working_directory;
        let disk = Disk { base: work.clone() };
        let mapping = ToolMapping::new(&self.config().tool_mapping);
        let tools = self
            .world()
            .plugins
            .values()
            .flat_map(|plugin| plugin.tools.iter().map(|tool| format!("{}.{}", plugin.name, tool.name)))
            .collect();
        let models = self.world().models.iter().cloned().collect();
        let known = Known {
            mapping: &mapping,
            tools: Some(&tools),
            models: Some(&models),
        };
        let whole = work.join(path);
        let mut checked = Checked::default();
        if !whole.exists() {
            return Err(Error::usage(format!(
                "{}: there is no such file or directory",
                path.display()
            )));
        }
        let (one, manifest) = (whole.join("archetype.toml"), whole.is_dir());
        let read = match (manifest, one.is_file()) {
            (true, false) => registry::load_directory(path, known, &disk),
            (true, true) => registry::load(&path.join("archetype.toml"), known, &disk).map(many),
            (false, _) => registry::load(path, known, &disk).map(many),
        };
        match read {
            Ok(parsed) => {
                checked.archetypes = parsed.value;
                for archetype in &mut checked.archetypes {
                    canonicalise(archetype, work, &|path| super::whole(work, path));
                }
                checked.warnings = parsed.warnings;
            }
            Err(errors) => checked.errors = errors,
        }
        if checked.errors.is_empty() && checked.archetypes.is_empty() {
            return Err(Error::usage(format!("{}: it holds no archetype", path.display())));
        }
        Ok(checked)
    }
}

fn many(one: fief_core::manifest::error::Parsed<Archetype>) -> fief_core::manifest::error::Parsed<Vec<Archetype>> {
    fief_core::manifest::error::Parsed {
        value: vec![one.value],
        warnings: one.warnings,
    }
}
