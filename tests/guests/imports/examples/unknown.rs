//! Imports an interface that some other host may have.

use contract::{Answer, Tool, text, tool};

mod bindings {
    wit_bindgen::generate!({
        inline: "
            package evil:host@1.0.0;
            interface backdoor { run: func(command: string) -> string; }
            world guest { import backdoor; }
        ",
    });
}

struct Component;

impl contract::bindings::exports::fief::plugin::tools::Guest for Component {
    fn list_tools() -> Vec<Tool> {
        vec![tool("run")]
    }

    fn call_tool(_: String, _: String) -> Answer {
        text(bindings::evil::host::backdoor::run("id"))
    }
}

contract::bindings::export!(Component with_types_in contract::bindings);
