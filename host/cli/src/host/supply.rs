//! What agents run on: configured models, sandboxed plugins, tools in Rust.

use std::sync::Arc;

use fief_core::grant::{Holding, Holdings};
use fief_core::id::PluginName;
use fief_core::port::{BoxFuture, Filter, Tools};

use super::models::Models;
use super::plugins::Plugins;
use crate::drive::{Supplied, Supply};

pub(super) struct HostSupply {
    pub(super) models: Arc<Models>,
    pub(super) plugins: Plugins,
}

impl Supply for HostSupply {
    fn model(&self, name: &str) -> Result<Supplied, String> {
        self.models.get(name)
    }

    fn tools(&self, holdings: Arc<Holdings>) -> BoxFuture<'_, Result<Arc<dyn Tools>, String>> {
        Box::pin(self.plugins.tools(holdings))
    }

    fn filter(&self, plugin: PluginName, holding: Holding) -> BoxFuture<'_, Result<Arc<dyn Filter>, String>> {
        Box::pin(self.plugins.filter(plugin, holding))
    }
}
