//! Asks the person who watches for what it was not granted.

use contract::{Answer, Tool, text, tool};

mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit",
        inline: "
            package guests:person;
            world asker { import fief:plugin/person@0.1.0; }
        ",
        world: "guests:person/asker",
        generate_all,
    });
}

struct Component;

impl contract::bindings::exports::fief::plugin::tools::Guest for Component {
    fn list_tools() -> Vec<Tool> {
        vec![tool("run")]
    }

    fn call_tool(_: String, arguments: String) -> Answer {
        let arguments = contract::Arguments::new(&arguments);
        let question = match arguments.text("question") {
            "" => "May I? ",
            forged => forged,
        };
        let length = usize::try_from(arguments.number("length")).unwrap_or(1);
        let question = question.repeat(length.max(1));
        text(format!("{}", bindings::fief::plugin::person::confirm(&question)))
    }
}

contract::bindings::export!(Component with_types_in contract::bindings);
