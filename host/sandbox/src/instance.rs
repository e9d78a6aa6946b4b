//! What lives as long as one call: a store holds a fresh one of these, and nothing outlives it.

use std::sync::Arc;

use fief_core::port::{CallContext, Person, Toolbox};
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::audit::Audit;
use crate::bindings::types;
use crate::clock::WallClock;
use crate::host::fs::Files;
use crate::host::http::Egress;
use crate::host::log::Words;
use crate::limits::Limiter;
use crate::redact::RedactingSink;
use crate::rights::Rights;

/// The state of one call.
pub(crate) struct Guest {
    pub(crate) table: ResourceTable,
    pub(crate) wasi: WasiCtx,
    pub(crate) http: WasiHttpCtx,
    pub(crate) egress: Egress,
    pub(crate) files: Files,
    pub(crate) limiter: Limiter,
    pub(crate) audit: Arc<Audit>,
    pub(crate) words: Words,
    pub(crate) clock: Arc<WallClock>,
    pub(crate) toolbox: Option<Arc<dyn Toolbox>>,
    pub(crate) person: Option<Arc<dyn Person>>,
}

impl Guest {
    /// A fresh one, holding what `rights` say and nothing else.
    pub(crate) fn new(rights: &Rights, context: CallContext) -> Self {
        let CallContext { sink, toolbox, person } = context;
        // Whatever a guest or the host says of this call, no secret is in it.
        let sink = RedactingSink::wrap(sink, rights.vault.redactor());
        let limits = &rights.grant.limits;
        let audit = Arc::new(Audit::new(Arc::clone(&sink)));
        let words = Words::new(sink, limits.log);
        let mut table = ResourceTable::new();
        table.set_max_capacity(usize::try_from(limits.handles).unwrap_or(usize::MAX));
        Self {
            table,
            wasi: crate::wasi::context(&rights.grant, &words),
            http: WasiHttpCtx::new(),
            egress: Egress::new(
                &rights.grant,
                Arc::clone(&rights.vault),
                Arc::clone(&rights.network),
                Arc::clone(&audit),
            ),
            files: Files::new(&rights.files, Arc::clone(&audit)),
            limiter: Limiter::new(limits),
            audit,
            words,
            clock: WallClock::new(limits.wall),
            // A context may carry more than was granted; nothing but the grant counts.
            toolbox: toolbox.filter(|_| rights.grant.toolbox),
            person: person.filter(|_| rights.grant.person),
        }
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            ctx: &mut self.http,
            table: &mut self.table,
            hooks: &mut self.egress,
        }
    }
}

impl types::Host for Guest {}
