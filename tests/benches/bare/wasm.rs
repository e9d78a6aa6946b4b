//! Bare wasmtime: what a program does that calls a component with no host around it. A fresh store and instance for each
//! call, since that is what Fief promises, on an engine with the settings of Fief's own.

use wasmtime::component::{Component, HasSelf, Linker, ResourceTable};
use wasmtime::{Engine, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

// A second `bindgen!` beside the sandbox's: this program is to know nothing of Fief's.
#[allow(missing_docs, unused_qualifications, unreachable_pub)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "plugin",
        exports: { default: async },
        require_store_data_send: true,
    });
}

use bindings::fief::plugin::{call, types};

/// The state of one call.
struct State {
    table: ResourceTable,
    wasi: WasiCtx,
}

impl State {
    fn new() -> Self {
        Self {
            table: ResourceTable::new(),
            wasi: WasiCtx::builder().build(),
        }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

impl types::Host for State {}

impl call::Host for State {
    fn log(&mut self, _: call::Level, _: String) {}

    fn progress(&mut self, _: Option<u64>, _: Option<u64>, _: String) {}
}

/// A component, linked.
pub(crate) struct Bare {
    engine: Engine,
    linked: bindings::PluginPre<State>,
}

impl Bare {
    /// Compiles a component.
    pub(crate) fn compile(engine: &Engine, bytes: &[u8]) -> wasmtime::Result<Self> {
        Self::link(engine, &Component::from_binary(engine, bytes)?)
    }

    /// Links one.
    pub(crate) fn link(engine: &Engine, component: &Component) -> wasmtime::Result<Self> {
        let mut linker = Linker::<State>::new(engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        types::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
        call::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
        let linked = bindings::PluginPre::new(linker.instantiate_pre(component)?)?;
        Ok(Self {
            engine: engine.clone(),
            linked,
        })
    }

    /// One call in a fresh store: the text that comes back.
    pub(crate) async fn call(&self, tool: &str, arguments: &str) -> wasmtime::Result<String> {
        let mut store = Store::new(&self.engine, State::new());
        // The engine's code checks an epoch that nothing advances.
        store.set_epoch_deadline(u64::MAX / 2);
        let instance = self.linked.instantiate_async(&mut store).await?;
        let tools = instance.fief_plugin_tools();
        let answer = tools.call_call_tool(&mut store, tool, arguments).await?;
        let output = answer.map_err(|error| wasmtime::format_err!("{error:?}"))?;
        match output.content.into_iter().next() {
            Some(types::Content::Text(text)) => Ok(text),
            _ => Err(wasmtime::format_err!("no text came back")),
        }
    }
}
