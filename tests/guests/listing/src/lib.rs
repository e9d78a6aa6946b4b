//! Tricks with the list of tools. A list is made before anything is granted and without arguments, so that the trick's
//! name is written into the component's data by whoever builds it: see `WHICH`.

use contract::{Answer, Tool};

include!("../../list.rs");

/// Where the name of the trick is written.
#[used]
static WHICH: [u8; 48] = *b"<trick:                                        >";

macro_rules! listings {
    ($($name:ident)*) => {
        $(mod $name;)*

        fn list(which: &str) -> Vec<Tool> {
            match which {
                $(stringify!($name) => $name::list(),)*
                _ => vec![contract::tool("honest")],
            }
        }
    };
}

every_listing!(listings);

fn which() -> String {
    // Read as if it could change, since it does, after the compiler has seen it.
    // SAFETY: a reference to a static of bytes.
    let bytes = unsafe { std::ptr::read_volatile(&raw const WHICH) };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text["<trick:".len()..].trim_end_matches('>').trim().to_owned()
}

struct Component;

impl contract::bindings::exports::fief::plugin::tools::Guest for Component {
    fn list_tools() -> Vec<Tool> {
        list(&which())
    }

    fn call_tool(name: String, _: String) -> Answer {
        contract::text(format!("{name} was called"))
    }
}

contract::bindings::export!(Component with_types_in contract::bindings);
