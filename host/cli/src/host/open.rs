//! Opening a host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fief_core::manifest::archetype::mapping::ToolMapping;
use fief_core::manifest::archetype::markdown::Known;
use fief_core::manifest::error::ManifestWarning;
use fief_core::manifest::files::Files as _;
use fief_core::manifest::registry::{self, Registry};
use fief_core::world::World;
use fief_sandbox::redact::Redactor;
use fief_sandbox::secret::{EnvironmentSecrets, Secrets, parse_secrets};
use secrecy::SecretString;

use super::files::Disk;
use super::models::{self, Models};
use super::plugins::Plugins;
use super::settings::{self, Settings};
use super::supply::HostSupply;
use super::{Host, HostOptions, Inner, builtin, policy, whole};
use crate::error::Error;
use crate::telemetry::{self, Telemetry};

impl Host {
    /// Reads everything, and freezes it.
    ///
    /// # Errors
    /// [`Error`] with everything that is wrong with the configuration or an archetype. A plugin that does not load is
    /// a warning, and the others do.
    pub async fn open(options: HostOptions) -> Result<Self, Error> {
        let work = options.working_directory.canonicalize();
        let work = work.map_err(|error| Error::Io {
            path: options.working_directory.clone(),
            error,
        })?;
        let folders = options.folders.clone();
        let Settings {
            config,
            files,
            mut warnings,
            untrusted,
        } = match options.configured {
            true => settings::read(&work, &folders, options.config.as_deref())?,
            false => Settings::default(),
        };
        let plugin_directories = directories(
            &work,
            &options.plugins,
            config.plugins.as_deref(),
            options.configured.then(|| folders.plugins()),
        );
        let archetype_directories = directories(
            &work,
            &options.archetypes,
            config.archetypes.as_deref(),
            options.configured.then(|| folders.archetypes()),
        );

        let secrets = secrets_file(&work, config.secrets_file.as_deref())?;
        let mut protected = settings::obeyed(&folders, &files);
        protected.extend(plugin_directories.iter().chain(&archetype_directories).cloned());
        protected.extend(options.protect.iter().map(|path| whole(&work, path)));
        protected.extend(config.secrets_file.as_deref().map(|file| whole(&work, file)));
        let policy = policy::policy(&work, &config.policy, &options.allow, protected, &mut warnings)?;

        let store: Arc<dyn Secrets> = Arc::new(EnvironmentSecrets::new(secrets.clone()));
        let mut values: Vec<SecretString> = secrets.values().cloned().collect();
        for secret in &policy.secrets {
            match store.get(&secret.name) {
                Ok(value) => values.push(value),
                Err(error) => warnings.push(format!("{}: {error}", secret.rule)),
            }
        }
        let keys = models::keys(&config.models, &|name| std::env::var(name).ok(), &secrets);
        values.extend(keys.values().cloned());
        let models = Models {
            configured: config.models.clone(),
            made: options.models.clone(),
            keys,
            directory: work.clone(),
            clients: Mutex::default(),
        };
        let environment = |name: &str| std::env::var(name).ok();
        let told = match (&options.telemetry, options.configured, options.observed) {
            (Some(telemetry), _, _) => telemetry::Settings::read(telemetry, &|_| None),
            (None, true, _) => telemetry::Settings::read(&config.telemetry, &environment),
            (None, false, true) => {
                let own = settings::telemetry(&folders, &mut warnings);
                telemetry::Settings::read(&own, &environment)
            }
            (None, false, false) => telemetry::Settings::default(),
        };
        values.extend(told.secrets.iter().cloned());
        warnings.extend(told.warnings.iter().cloned());
        let redactor = Arc::new(Redactor::new(&values));
        let telemetry = Telemetry::open(told, redactor.clone(), &mut warnings);

        let plugins = Plugins::open(
            &folders,
            config.pagemap_scan,
            &plugin_directories,
            &options.natives,
            store,
            options.progress.as_ref(),
            &mut warnings,
        )
        .await?;
        let registry = archetypes(&work, &config, &archetype_directories, &options, &mut warnings)?;
        let mut names: Vec<String> = config.models.keys().chain(options.models.keys()).cloned().collect();
        names.sort();
        names.dedup();
        let mut world = World {
            archetypes: registry.archetypes,
            registered: registry.registered,
            plugins: plugins.infos(),
            policy,
            defaults: config.agents.clone(),
            model: options.model.clone().or_else(|| config.model.clone()),
            models: names,
            untrusted,
            forward_events: options.forward_events,
        };
        world.canonicalise(|path| whole(&work, path));
        let world = Arc::new(world);
        let sandbox = plugins.sandbox.clone();
        let models = Arc::new(models);
        let supply = Arc::new(HostSupply {
            models: models.clone(),
            plugins,
        });
        Ok(Self(Arc::new(Inner {
            world,
            supply,
            models,
            redactor,
            telemetry,
            instructions: Arc::new(options.instructions),
            validators: Arc::default(),
            callable: Mutex::default(),
            folders,
            config,
            config_files: files,
            plugin_directories,
            sandbox,
            warnings,
        })))
    }
}

/// The directories to search, each once: those of the flags, those of the configuration, the user's own.
fn directories(work: &Path, flags: &[PathBuf], configured: Option<&[PathBuf]>, own: Option<PathBuf>) -> Vec<PathBuf> {
    let own = own.filter(|path| path.is_dir());
    let mut all = Vec::new();
    for path in flags.iter().chain(configured.unwrap_or_default()).chain(own.as_ref()) {
        let path = whole(work, path);
        if !all.contains(&path) {
            all.push(path);
        }
    }
    all
}

fn secrets_file(work: &Path, path: Option<&Path>) -> Result<BTreeMap<String, SecretString>, Error> {
    let Some(path) = path else { return Ok(BTreeMap::new()) };
    let path = work.join(path);
    // As a manifest is read: a FIFO would wait for ever, and a device may never end.
    let text = Disk { base: work.into() }
        .read(&path)
        .map_err(|error| Error::usage(format!("{}: {error}", path.display())))?;
    parse_secrets(&text).map_err(|error| Error::usage(format!("{}, {error}", path.display())))
}

fn archetypes(
    work: &Path,
    config: &fief_core::manifest::config::Config,
    directories: &[PathBuf],
    options: &HostOptions,
    warnings: &mut Vec<String>,
) -> Result<Registry, Error> {
    let disk = Disk {
        base: work.to_path_buf(),
    };
    let mapping = ToolMapping::new(&config.tool_mapping);
    // Tools and models are looked up when an agent is made: a file that names a plugin which is not installed here
    // takes nothing from the other archetypes.
    let known = Known {
        mapping: &mapping,
        tools: None,
        models: None,
    };
    let (mut added, mut errors) = (Vec::new(), Vec::new());
    for directory in directories {
        match registry::load_directory(directory, known, &disk) {
            Ok(parsed) => {
                warnings.extend(parsed.warnings.iter().map(ManifestWarning::with_its_hint));
                added.extend(parsed.value);
            }
            Err(more) => errors.extend(more),
        }
    }
    added.extend(options.made.iter().cloned());
    let compiled = builtin::archetypes()?;
    match registry::assemble(
        compiled,
        options.builtin.as_deref().or(config.builtin.as_deref()),
        added,
    ) {
        Ok(registry) if errors.is_empty() => Ok(registry),
        Ok(_) => Err(Error::Manifest(errors)),
        Err(more) => {
            errors.extend(more);
            Err(Error::Manifest(errors))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_secrets_file_is_a_regular_file_of_bounded_size() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("secrets.env");
        let read = || secrets_file(place.path(), Some(Path::new("secrets.env")));
        assert!(
            read()
                .unwrap_err()
                .to_string()
                .ends_with("secrets.env: there is no such file or directory")
        );
        std::fs::write(&file, "KEY=value\n").unwrap();
        assert_eq!(read().unwrap().len(), 1);
        std::fs::write(&file, "#".repeat((4 << 20) + 1)).unwrap();
        assert!(read().unwrap_err().to_string().contains("larger than"));
        #[cfg(unix)]
        {
            std::fs::remove_file(&file).unwrap();
            std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
            assert!(read().unwrap_err().to_string().contains("not a regular file"));
            std::fs::remove_file(&file).unwrap();
            let made = std::process::Command::new("mkfifo").arg(&file).status();
            assert!(made.is_ok_and(|made| made.success()));
            assert!(read().unwrap_err().to_string().contains("not a regular file"));
        }
    }
}
