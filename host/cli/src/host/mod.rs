//! A host: everything that agents are made from, resolved and frozen.
//!
//! [`Host::open`] reads, in this order, the configuration (`settings`), the policy (`policy`), the plugins (`plugins`)
//! and the archetypes (`builtin`, archetype directories, those made in Rust), and hands them to sessions as a
//! [`World`] with what they run on (`models`, `supply`).

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fief_core::agent::instruction::Variables;
use fief_core::grant::resolve::absolute;
use fief_core::id::PluginName;
use fief_core::manifest::archetype::Archetype;
use fief_core::manifest::config::{Config, Telemetry};
use fief_core::message::ModelIdentity;
use fief_core::tool::arguments::Validators;
use fief_core::world::World;
use fief_sandbox::redact::Redactor;
use tokio::sync::OnceCell;

use crate::NativePlugin;
use crate::drive::{Instruct, Supplied, Supply};
use crate::error::Error;
use crate::folders::Folders;
use crate::telemetry;

pub(crate) mod builtin;
pub mod check;
pub(crate) mod files;
pub(crate) mod models;
mod open;
mod plugins;
mod policy;
mod probe;
mod settings;
pub mod single;
mod supply;

pub use policy::Allow;

use models::Models;
use single::Callable;

/// What a host is made from. [`HostOptions::here`] is as the `fief` binary does it, [`HostOptions::embedded`] reads
/// nothing that it is not told to.
#[derive(Clone)]
pub struct HostOptions {
    /// The directory in which the run starts: `/work` in a guest, and the base of relative paths.
    pub working_directory: PathBuf,
    /// The user's folders.
    pub folders: Folders,
    /// Whether `fief.toml` and the user's own plugins and archetypes are read.
    pub configured: bool,
    /// The operator's configuration, in place of the one in the user's folder.
    pub config: Option<PathBuf>,
    /// Plugin directories, before those of the configuration.
    pub plugins: Vec<PathBuf>,
    /// Archetype directories, before those of the configuration.
    pub archetypes: Vec<PathBuf>,
    /// The main agent's model, where its archetype names none.
    pub model: Option<String>,
    /// What widens policy.
    pub allow: Allow,
    /// Further paths that no tool may write, whatever it is granted; what the host itself obeys is protected anyhow.
    pub protect: Vec<PathBuf>,
    /// Plugins in Rust.
    pub natives: Vec<NativePlugin>,
    /// The built-in archetypes that are registered, in place of what the configuration says.
    pub builtin: Option<Vec<String>>,
    /// Archetypes made in Rust. They are registered.
    pub made: Vec<Archetype>,
    /// Models made in Rust, by name.
    pub models: BTreeMap<String, Supplied>,
    /// Instructions written in Rust, by archetype.
    pub instructions: HashMap<String, Instruct>,
    /// What `forward_events` means where it is absent.
    pub forward_events: bool,
    /// Where spans are sent, in place of what the configuration and the environment say. [`Host::flush`] waits for them.
    pub telemetry: Option<Telemetry>,
    /// Whether spans are sent where the operator's `[telemetry]` and OpenTelemetry's variables say, though nothing else
    /// of the configuration is read. With `configured` they are anyway.
    pub observed: bool,
    /// Told what takes long, for a person.
    pub progress: Option<Progress>,
}

/// Takes a line for a person.
pub type Progress = Arc<dyn Fn(&str) + Send + Sync>;

impl std::fmt::Debug for HostOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostOptions")
            .field("working_directory", &self.working_directory)
            .finish_non_exhaustive()
    }
}

impl HostOptions {
    /// As the binary: the user's folders, `fief.toml`, events of children forwarded.
    #[must_use]
    pub fn here(working_directory: PathBuf) -> Self {
        Self {
            configured: true,
            forward_events: true,
            ..Self::embedded(working_directory)
        }
    }

    /// Nothing but what is named: no configuration, no plugins, no archetypes but those that are built in.
    #[must_use]
    pub fn embedded(working_directory: PathBuf) -> Self {
        Self {
            working_directory,
            folders: Folders::of_user(),
            configured: false,
            config: None,
            plugins: Vec::new(),
            archetypes: Vec::new(),
            model: None,
            allow: Allow::default(),
            protect: Vec::new(),
            natives: Vec::new(),
            builtin: None,
            made: Vec::new(),
            models: BTreeMap::new(),
            instructions: HashMap::new(),
            forward_events: false,
            telemetry: None,
            observed: false,
            progress: None,
        }
    }

    /// With a directory of plugins.
    #[must_use]
    pub fn plugins_in(mut self, directory: impl Into<PathBuf>) -> Self {
        self.plugins.push(directory.into());
        self
    }

    /// With a plugin in Rust.
    #[must_use]
    pub fn native(mut self, plugin: NativePlugin) -> Self {
        self.natives.push(plugin);
        self
    }

    /// With an archetype made in Rust.
    #[must_use]
    pub fn archetype(mut self, archetype: Archetype) -> Self {
        self.made.push(archetype);
        self
    }

    /// With the main agent's model: a configured name or `PROVIDER:NAME`.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(name.into());
        self
    }

    /// With the main agent's model, made in Rust.
    #[must_use]
    pub fn model_made(mut self, name: &str, model: Arc<dyn fief_core::port::Model>) -> Self {
        self.models.insert(
            name.into(),
            Supplied {
                model,
                context: None,
                prices: None,
                identity: Arc::new(ModelIdentity {
                    provider: "_OTHER".into(),
                    model: name.into(),
                    ..ModelIdentity::default()
                }),
            },
        );
        self.model(name)
    }

    /// With an archetype's instruction written in Rust, when one of its agents starts.
    #[must_use]
    pub fn instruct<F, R>(mut self, archetype: &str, write: F) -> Self
    where
        F: Fn(Variables) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, String>> + Send + 'static,
    {
        let instruct: Instruct = Arc::new(move |variables| Box::pin(write(variables)));
        self.instructions.insert(archetype.to_ascii_lowercase(), instruct);
        self
    }
}

/// Everything that agents are made from. Cheap to clone.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    world: Arc<World>,
    supply: Arc<dyn Supply>,
    models: Arc<Models>,
    redactor: Arc<Redactor>,
    telemetry: Option<telemetry::Telemetry>,
    instructions: Arc<HashMap<String, Instruct>>,
    /// Of all runs: they share one world, and so its schemas.
    validators: Arc<Validators>,
    /// What calls without an agent run on, by plugin.
    callable: Mutex<HashMap<PluginName, Arc<OnceCell<Arc<Callable>>>>>,
    folders: Folders,
    config: Config,
    config_files: Vec<PathBuf>,
    plugin_directories: Vec<PathBuf>,
    sandbox: fief_sandbox::Sandbox,
    warnings: Vec<String>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("world", &self.0.world)
            .finish_non_exhaustive()
    }
}

impl Host {
    /// Archetypes, plugins and policy, frozen.
    #[must_use]
    pub fn world(&self) -> &Arc<World> {
        &self.0.world
    }

    /// What a person should know: keys that were ignored, plugins that did not load.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// The configuration that holds.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The files that it came from.
    #[must_use]
    pub fn config_files(&self) -> &[PathBuf] {
        &self.0.config_files
    }

    /// Where plugins were looked for, in order.
    #[must_use]
    pub fn plugin_directories(&self) -> &[PathBuf] {
        &self.0.plugin_directories
    }

    /// The user's folders.
    #[must_use]
    pub fn folders(&self) -> &Folders {
        &self.0.folders
    }

    /// Where records go by default; nowhere if the configuration says so.
    #[must_use]
    pub fn records(&self) -> Option<PathBuf> {
        self.0.config.record.unwrap_or(true).then(|| self.0.folders.runs())
    }

    /// The archetype of this name, the configured one, or `main`.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is none, with the nearest name.
    pub fn archetype(&self, name: Option<&str>) -> Result<Arc<Archetype>, Error> {
        let name = name.or(self.0.config.archetype.as_deref()).unwrap_or("main");
        let world = self.world();
        if let Some(found) = world.archetypes.get(&name.to_ascii_lowercase()) {
            return Ok(found.clone());
        }
        let names: Vec<&str> = world.archetypes.values().map(|one| one.name.as_str()).collect();
        let near = fief_core::nearest(name, names.iter().copied());
        Err(Error::Usage {
            message: format!("there is no archetype `{name}`: there are {}", names.join(", ")),
            hints: near.map(|near| format!("did you mean `{near}`?")).into_iter().collect(),
        })
    }

    /// Waits, a few seconds at most, until the collector that the configuration names has all that was told so far. A
    /// warning for a person if it does not get it; a run never fails by that.
    pub async fn flush(&self) -> Option<String> {
        self.0.telemetry.as_ref()?.flush().await
    }

    /// What tells the collector of a run, if there is one.
    pub(crate) fn trace<R: AsRef<str>>(&self, run: impl FnOnce() -> R) -> Option<telemetry::Trace> {
        let telemetry = self.0.telemetry.as_ref()?;
        Some(telemetry.trace(run().as_ref()))
    }

    pub(crate) fn supply(&self) -> Arc<dyn Supply> {
        self.0.supply.clone()
    }

    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        self.0.redactor.clone()
    }

    pub(crate) fn instructions(&self) -> Arc<HashMap<String, Instruct>> {
        self.0.instructions.clone()
    }

    pub(crate) fn validators(&self) -> Arc<Validators> {
        self.0.validators.clone()
    }

    /// Everything about the configured models, and the one of this name, for `doctor`.
    #[must_use]
    pub fn model_configs(&self, name: Option<&str>) -> BTreeMap<String, fief_core::manifest::config::ModelConfig> {
        let mut models = self.0.models.with_environment(name.unwrap_or_default());
        if let Some(name) = name
            && let Ok(config) = fief_llm::find(name, &models)
        {
            models.insert(name.into(), config);
        }
        models
    }

    /// The sandbox, for `plugin check` and `doctor`.
    #[must_use]
    pub fn sandbox(&self) -> &fief_sandbox::Sandbox {
        &self.0.sandbox
    }

    /// The value of a variable that holds a key.
    #[must_use]
    pub fn key(&self, variable: &str) -> Option<secrecy::SecretString> {
        self.0.models.key(variable)
    }
}

/// `path` on top of `base`, without symbolic links as far as it exists: what is made below a link later lies where the
/// link leads.
fn whole(base: &Path, path: &Path) -> PathBuf {
    let path = base.join(path);
    for above in path.ancestors() {
        if let Ok(found) = above.canonicalize() {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            return absolute(&found, rest);
        }
    }
    absolute(base, &path)
}
