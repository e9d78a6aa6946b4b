//! A grant as calls use it: made once when a plugin is linked, shared by all calls under it.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use fief_core::grant::{Grant, Limits};

use crate::host::fs::Root;
use crate::host::http::Network;
use crate::secret::{Secrets, Vault};

/// What the calls of one linked plugin may do.
pub(crate) struct Rights {
    pub(crate) grant: Grant,
    pub(crate) vault: Arc<Vault>,
    pub(crate) network: Arc<Network>,
    pub(crate) files: Arc<[Root]>,
}

impl Rights {
    /// Opens the granted directories and reads the granted secrets; blocks.
    pub(crate) fn new(
        grant: &Grant,
        secrets: &dyn Secrets,
        network: Arc<Network>,
    ) -> Result<Self, (PathBuf, io::Error)> {
        let vault = Vault::new(grant.secrets.iter().map(|secret| secret.name.as_str()), secrets);
        Ok(Self {
            files: Root::open(&grant.files)?,
            grant: grant.clone(),
            vault: Arc::new(vault),
            network,
        })
    }

    /// Nothing but computing, within `limits`.
    pub(crate) fn none(limits: Limits, network: Arc<Network>) -> Self {
        let grant = Grant {
            limits,
            ..Grant::default()
        };
        Self {
            grant,
            vault: Arc::new(Vault::new([], &BTreeMap::new())),
            network,
            files: Arc::new([]),
        }
    }
}
