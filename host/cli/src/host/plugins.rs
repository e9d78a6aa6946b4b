//! The plugins of a host: sandboxed ones, found in directories, and those in Rust.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use fief_core::grant::{Holding, Holdings};
use fief_core::id::PluginName;
use fief_core::port::{BoxFuture, CallContext, Filter, Tools};
use fief_core::tool::{Invocation, Outcome, OutcomeKind, PluginInfo};
use fief_sandbox::secret::Secrets;
use fief_sandbox::{AgentTools, Options, Sandbox, ScanNote};

use super::Progress;
use crate::error::Error;
use crate::folders::Folders;
use crate::native::NativePlugin;

/// Every plugin that loaded.
pub(super) struct Plugins {
    pub(super) sandbox: Sandbox,
    infos: BTreeMap<PluginName, Arc<PluginInfo>>,
    natives: BTreeMap<PluginName, NativePlugin>,
}

impl Plugins {
    /// Starts the sandbox and finds the plugins. One that does not load is a warning.
    pub(super) async fn open(
        folders: &Folders,
        pagemap_scan: bool,
        directories: &[PathBuf],
        natives: &[NativePlugin],
        secrets: Arc<dyn Secrets>,
        progress: Option<&Progress>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, Error> {
        let options = Options {
            store: folders.cache.join("store"),
            pagemap_scan,
            secrets,
        };
        let sandbox = Sandbox::new(options).map_err(|error| Error::Sandbox(error.to_string()))?;
        let tell = |note: ScanNote| {
            let ScanNote::Compiling { path } = note;
            if let Some(progress) = progress {
                progress(&format!("compiling {}, once for this build of it", path.display()));
            }
        };
        let scan = sandbox.scan(directories, &tell).await;
        for problem in scan.problems {
            warnings.push(match problem.hint {
                Some(hint) => format!("{}\nhint: {hint}", problem.message),
                None => problem.message,
            });
        }
        let mut infos: BTreeMap<_, _> = scan
            .plugins
            .into_iter()
            .map(|plugin| (plugin.name.clone(), plugin))
            .collect();
        for native in natives {
            if let Some(other) = infos.insert(native.name().clone(), Arc::new(native.info())) {
                let message = format!(
                    "plugin `{}` in Rust has the name of {}",
                    native.name(),
                    other.path.display()
                );
                return Err(Error::usage(message));
            }
        }
        let natives = natives
            .iter()
            .map(|native| (native.name().clone(), native.clone()))
            .collect();
        Ok(Self {
            sandbox,
            infos,
            natives,
        })
    }

    pub(super) fn infos(&self) -> BTreeMap<PluginName, Arc<PluginInfo>> {
        self.infos.clone()
    }

    /// What carries out the calls of an agent with these holdings, everything linked.
    pub(super) async fn tools(&self, holdings: Arc<Holdings>) -> Result<Arc<dyn Tools>, String> {
        let (natives, sandboxed): (Holdings, Holdings) = holdings
            .iter()
            .map(|(name, holding)| (name.clone(), holding.clone()))
            .partition(|(name, _)| self.natives.contains_key(name));
        let sandboxed = self.sandbox.tools(self.infos.clone(), &sandboxed);
        sandboxed.link().await.map_err(|failed| {
            let lines = failed.into_iter().map(|(_, error)| match error.hint() {
                Some(hint) => format!("{error}\nhint: {hint}"),
                None => error.to_string(),
            });
            lines.collect::<Vec<_>>().join("\n")
        })?;
        if natives.is_empty() {
            return Ok(Arc::new(sandboxed));
        }
        let natives = natives
            .into_iter()
            .filter_map(|(name, holding)| Some((name.clone(), (self.natives.get(&name)?.clone(), holding))))
            .collect();
        Ok(Arc::new(Mixed { natives, sandboxed }))
    }

    /// A filter under its own grant.
    pub(super) async fn filter(&self, plugin: PluginName, holding: Holding) -> Result<Arc<dyn Filter>, String> {
        let Some(info) = self.infos.get(&plugin) else {
            return Err(format!("there is no plugin `{plugin}`"));
        };
        if info.digest != holding.digest {
            return Err(format!("plugin `{plugin}` is not the build that was resolved"));
        }
        self.sandbox
            .link(info, &holding.grant)
            .await
            .map_err(|error| error.to_string())?;
        Ok(Arc::new(self.sandbox.filter(info, &holding)))
    }
}

/// The tools of an agent that holds plugins in Rust too.
struct Mixed {
    natives: BTreeMap<PluginName, (NativePlugin, Holding)>,
    sandboxed: AgentTools,
}

impl Tools for Mixed {
    fn call(&self, invocation: Invocation, context: CallContext) -> BoxFuture<'static, Outcome> {
        let Some((native, holding)) = self.natives.get(&invocation.tool.plugin) else {
            return self.sandboxed.call(invocation, context);
        };
        let tool = &invocation.tool;
        let held = holding.tools.contains(&tool.tool);
        let running = held
            .then(|| native.call(&tool.tool, (*invocation.arguments).clone(), context))
            .flatten();
        running.unwrap_or_else(|| {
            let text = format!("`{tool}` is not among what this agent holds");
            Box::pin(async move { Outcome::refused(OutcomeKind::Denied, text) })
        })
    }
}
