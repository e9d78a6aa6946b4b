//! The plugin contract as Rust types: the only `bindgen!` of the project.

#![allow(missing_docs, unused_qualifications, unreachable_pub)] // generated code

wasmtime::component::bindgen!({
    path: "../../wit",
    inline: "
        package fief:host;

        // Everything that a plugin of any world may import or export. No component is checked against this world: each
        // interface is linked, and each export looked up, by itself.
        world host {
            import fief:plugin/call@0.1.0;
            import fief:plugin/toolbox@0.1.0;
            import fief:plugin/person@0.1.0;
            export fief:plugin/tools@0.1.0;
            export fief:plugin/filter@0.1.0;
        }
    ",
    world: "fief:host/host",
    imports: {
        "fief:plugin/toolbox@0.1.0.list-tools": async | trappable,
        "fief:plugin/toolbox@0.1.0.call-tool": async | trappable,
        "fief:plugin/person@0.1.0.confirm": async | trappable,
        default: trappable,
    },
    exports: { default: async },
    require_store_data_send: true,
});

pub use exports::fief::plugin::filter;
pub use fief::plugin::{call, person, toolbox, types};
