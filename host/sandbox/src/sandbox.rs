//! The sandbox as the rest of the host uses it: find, link, call.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fief_core::event::CallNote;
use fief_core::grant::{Grant, Holding, Holdings, Limits};
use fief_core::id::{Digest, PluginName};
use fief_core::port::{CallContext, CallSink, CallVerdict, OutcomeVerdict, Subject};
use fief_core::tool::{Invocation, Outcome, PluginInfo, ToolSpec};
use tokio::sync::OnceCell;
use wasmtime::component::Component;

use crate::call::{self, Entry, Exports};
use crate::component::{self, Kinds};
use crate::engine::{self, Capacity, Memories, Runtime, Size};
use crate::host::http::Network;
use crate::linker::{self, Purpose};
use crate::rights::Rights;
use crate::secret::{EnvironmentSecrets, Secrets};
use crate::store::Store;
use crate::tools::{AgentTools, PluginFilter};
use crate::{LinkError, LoadError, SandboxError, listing};

/// How a sandbox is set up.
pub struct Options {
    /// Where compiled components and the index of plugins are kept.
    pub store: PathBuf,
    /// `[sandbox] pagemap_scan`: faster, and not isolated under memory pressure.
    pub pagemap_scan: bool,
    /// Where the values of granted secrets come from.
    pub secrets: Arc<dyn Secrets>,
}

impl Default for Options {
    /// A store in the system's directory for temporary files, by user; secrets from the environment.
    fn default() -> Self {
        #[cfg(unix)]
        let user = rustix::process::geteuid().as_raw().to_string();
        #[cfg(not(unix))]
        let user = "user";
        Self {
            store: std::env::temp_dir().join(format!("fief-store-{user}")),
            pagemap_scan: false,
            secrets: Arc::new(EnvironmentSecrets::default()),
        }
    }
}

/// The sandbox. Cheap to clone: all clones share one engine.
#[derive(Clone)]
pub struct Sandbox(pub(crate) Arc<Shared>);

/// What is made once for each key, by whoever asks first, while the others wait for it.
type OnceEach<K, V> = Mutex<HashMap<K, Arc<OnceCell<V>>>>;

pub(crate) struct Shared {
    pub(crate) runtime: Runtime,
    pub(crate) store: Store,
    pub(crate) index: PathBuf,
    secrets: Arc<dyn Secrets>,
    network: Arc<Network>,
    /// Every component that was needed, once.
    components: OnceEach<Digest, Component>,
    /// Every plugin that was linked, once for each grant.
    linked: OnceEach<(Digest, PluginName, Grant), Arc<Linked>>,
}

/// What a plugin turned out to be when it was inspected.
pub(crate) struct Inspected {
    pub(crate) digest: Digest,
    pub(crate) imports: Vec<String>,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) kinds: Kinds,
}

impl Sandbox {
    /// Starts the engine.
    ///
    /// # Errors
    /// [`SandboxError`] if this machine cannot run it.
    pub fn new(options: Options) -> Result<Self, SandboxError> {
        let Options {
            store,
            pagemap_scan,
            secrets,
        } = options;
        let runtime = Runtime::new(pagemap_scan)?;
        Ok(Self(Arc::new(Shared {
            index: store.join("index.json"),
            store: Store::new(store, runtime.small()),
            runtime,
            secrets,
            network: Arc::new(Network::new()),
            components: Mutex::default(),
            linked: Mutex::default(),
        })))
    }

    /// How many calls are in flight at most on this machine, and why not more; a further one waits its turn.
    #[must_use]
    pub fn capacity(&self) -> &Capacity {
        self.0.runtime.capacity()
    }

    /// How a call comes to an empty memory.
    #[must_use]
    pub fn memories(&self) -> Memories {
        self.0.runtime.memories()
    }

    /// Links a plugin under a grant: done once for each pair of them.
    ///
    /// # Errors
    /// [`LinkError`] names everything that the plugin imports and cannot have.
    pub async fn link(&self, plugin: &Arc<PluginInfo>, grant: &Grant) -> Result<Arc<Linked>, LinkError> {
        let key = (plugin.digest, plugin.name.clone(), grant.clone());
        let cell = {
            let mut linked = self.0.linked.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(linked.entry(key).or_default())
        };
        let linked = cell.get_or_try_init(|| async {
            let component = self.component(plugin).await?;
            let (shared, plugin, grant) = (Arc::clone(&self.0), Arc::clone(plugin), grant.clone());
            // Directories are opened here, and a mount may not answer.
            let entry = tokio::task::spawn_blocking(move || shared.entry(&plugin, &component, &grant)).await;
            let entry = entry.map_err(|error| host_fault(Path::new(""), &error))??;
            Ok::<_, LinkError>(Arc::new(Linked {
                shared: Arc::clone(&self.0),
                entry,
            }))
        });
        linked.await.cloned()
    }

    /// The calls of an agent that holds `holdings` of these plugins, and of nothing else.
    #[must_use]
    pub fn tools(&self, plugins: BTreeMap<PluginName, Arc<PluginInfo>>, holdings: &Holdings) -> AgentTools {
        AgentTools::new(self.clone(), plugins, holdings)
    }

    /// A filter: a plugin that exports one, under the grant of its holding. One that cannot be linked refuses every call.
    #[must_use]
    pub fn filter(&self, plugin: &Arc<PluginInfo>, holding: &Holding) -> PluginFilter {
        PluginFilter::new(self.clone(), Arc::clone(plugin), holding.clone())
    }

    /// Looks at one component alone: its tools, its imports, its digest, with what its manifest beside it says.
    ///
    /// # Errors
    /// [`LoadError`] says why it is no plugin.
    pub async fn inspect(&self, component: &Path) -> Result<PluginInfo, LoadError> {
        let found = crate::directory::Found::of_component(component);
        let (read, inspected) = self.look_at(found).await?;
        Ok(read.into_info(inspected))
    }

    /// Reads, compiles and lists one plugin.
    pub(crate) async fn look_at(
        &self,
        found: crate::directory::Found,
    ) -> Result<(crate::directory::Read, Inspected), LoadError> {
        let path = found.component.clone();
        let read = tokio::task::spawn_blocking(move || found.read()).await;
        let (read, bytes) = read.map_err(|error| host_fault(&path, &error))??;
        let inspected = self.inspect_bytes(&path, bytes, &read.name).await?;
        Ok((read, inspected))
    }

    async fn inspect_bytes(&self, path: &Path, bytes: Vec<u8>, name: &PluginName) -> Result<Inspected, LoadError> {
        let digest = Digest::of(&bytes);
        let owned = path.to_owned();
        let component = self.load(&digest, path, move || Ok((owned, bytes))).await?;
        let kinds = component::kinds(&component);
        if !kinds.tools && !kinds.filter {
            return Err(LoadError::NoExports { path: path.into() });
        }
        let imports = component::imports(&component);
        let tools = if kinds.tools {
            let tools = self.list_tools(path, name, &component).await?;
            listing::accept(tools).map_err(|why| LoadError::BadTools { path: path.into(), why })?
        } else {
            Vec::new()
        };
        Ok(Inspected {
            digest,
            imports,
            tools,
            kinds,
        })
    }

    /// Asks a component for its tools in the inspection linker, the only time that anybody is linked with it. What it
    /// lists another time counts for nothing.
    async fn list_tools(
        &self,
        path: &Path,
        name: &PluginName,
        component: &Component,
    ) -> Result<Vec<crate::bindings::types::Tool>, LoadError> {
        let failed = |why: String, hint: Option<String>| LoadError::Inspection {
            path: path.into(),
            why,
            hint,
        };
        let pre = linker::link(name, component, Purpose::Inspection)
            .map_err(|error| failed(error.to_string(), error.hint()))?;
        // All tools with their schemas may take more than one result, and no more memory or time than a call.
        let limits = Limits {
            output: 4 << 20,
            ..Limits::default()
        };
        let entry = Entry {
            pre,
            rights: Rights::none(limits, Arc::clone(&self.0.network)),
            weight: engine::weight(component),
            name: name.to_string(),
            exports: Exports::of(component),
        };
        let context = CallContext {
            sink: Arc::new(Nobody),
            toolbox: None,
            person: None,
        };
        let listed = call::list_tools(&self.0.runtime, &entry, context).await;
        listed.map_err(|stopped| failed(stopped.text, None))
    }

    /// The component of a plugin, from the store or from its file.
    async fn component(&self, plugin: &Arc<PluginInfo>) -> Result<Component, LoadError> {
        let (path, expected) = (plugin.path.clone(), plugin.digest);
        let owned = path.clone();
        self.load(&expected, &path, move || {
            let bytes = component::read(&owned)?;
            let found = Digest::of(&bytes);
            if found == expected {
                return Ok((owned, bytes));
            }
            Err(LoadError::Changed {
                path: owned,
                expected,
                found,
            })
        })
        .await
    }

    /// Loads each component once in this process; `bytes` are asked for only if it must be compiled.
    async fn load(
        &self,
        digest: &Digest,
        path: &Path,
        bytes: impl FnOnce() -> Result<(PathBuf, Vec<u8>), LoadError> + Send + 'static,
    ) -> Result<Component, LoadError> {
        let cell = {
            let mut components = self.0.components.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(components.entry(*digest).or_default())
        };
        let loaded = cell.get_or_try_init(|| async {
            let (shared, digest) = (Arc::clone(&self.0), *digest);
            // Compiling takes seconds, and waiting for another process that compiles does too.
            let loading = tokio::task::spawn_blocking(move || {
                let runtime = &shared.runtime;
                let engine = |size| runtime.engine(size).inspect_err(|error| tracing::warn!("{error}")).ok();
                shared.store.load(engine, &digest, || {
                    let (path, bytes) = bytes()?;
                    let size = Size::of(&bytes);
                    let engine = runtime.engine(size).map_err(|error| host_fault(&path, &error))?;
                    Ok((size, component::compile(engine, &path, &bytes)?))
                })
            });
            loading.await.map_err(|error| host_fault(path, &error))?
        });
        loaded.await.cloned()
    }
}

impl Shared {
    #[cfg(test)]
    pub(crate) fn components_loaded(&self) -> usize {
        let components = self.components.lock().unwrap_or_else(PoisonError::into_inner);
        components.values().filter(|cell| cell.initialized()).count()
    }

    fn entry(&self, plugin: &PluginInfo, component: &Component, grant: &Grant) -> Result<Entry, LinkError> {
        let pre = linker::link(&plugin.name, component, Purpose::Calls(grant))?;
        let rights = Rights::new(grant, &*self.secrets, Arc::clone(&self.network));
        let rights = rights.map_err(|(path, error)| LinkError::Directory {
            plugin: plugin.name.clone(),
            path,
            why: error.to_string(),
        })?;
        Ok(Entry {
            pre,
            rights,
            weight: engine::weight(component),
            name: plugin.name.to_string(),
            exports: Exports::of(component),
        })
    }
}

/// A task of the host's own that panicked: never the plugin's doing alone, and never the end of the host.
fn host_fault(path: &Path, error: &dyn std::error::Error) -> LoadError {
    LoadError::Host {
        path: path.into(),
        why: error.to_string(),
    }
}

/// Nobody listens to what a guest says while its tools are listed.
struct Nobody;

impl CallSink for Nobody {
    fn note(&self, _: CallNote) {}
}

/// A plugin linked under one grant.
pub struct Linked {
    shared: Arc<Shared>,
    entry: Entry,
}

impl Linked {
    /// Calls one of its tools in a fresh instance. Dropping the future ends the guest.
    pub async fn call(&self, invocation: Invocation, context: CallContext) -> Outcome {
        let tool = invocation.tool.tool.as_str();
        call::call_tool(&self.shared.runtime, &self.entry, tool, &invocation.arguments, context).await
    }

    /// Shows it a call that is about to run. One that cannot answer refuses.
    pub async fn before_call(&self, subject: Subject, context: CallContext) -> CallVerdict {
        call::before_call(&self.shared.runtime, &self.entry, subject, context).await
    }

    /// Shows it what a call came to. One that cannot answer refuses.
    pub async fn after_call(&self, subject: Subject, outcome: &Outcome, context: CallContext) -> OutcomeVerdict {
        call::after_call(&self.shared.runtime, &self.entry, subject, outcome, context).await
    }
}
