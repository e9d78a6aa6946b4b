//! What the hostile guests share: the plugin contract, and a report of what was tried.

use std::fmt::Debug;

use serde_json::Value;

/// The contract of plugins with a toolbox. What a guest does not use, its component does not import.
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "orchestrator",
        pub_export_macro: true,
    });
}

pub use bindings::fief::plugin::types::{Blob, Content, Hints, Output, Tool, ToolError};
pub use bindings::fief::plugin::{call, toolbox};

/// What a call comes to.
pub type Answer = Result<Output, ToolError>;

/// One text.
pub fn text(text: impl Into<String>) -> Answer {
    Ok(Output {
        content: vec![Content::Text(text.into())],
        structured: None,
    })
}

/// A tool that takes anything.
pub fn tool(name: &str) -> Tool {
    Tool {
        name: name.to_owned(),
        title: None,
        description: "A trick.".to_owned(),
        input_schema: r#"{"type":"object"}"#.to_owned(),
        output_schema: None,
        hints: Hints::empty(),
    }
}

/// The arguments of a call.
pub struct Arguments(Value);

impl Arguments {
    /// Reads them.
    pub fn new(json: &str) -> Self {
        Self(serde_json::from_str(json).expect("the host passes JSON"))
    }

    /// A text.
    pub fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_default()
    }

    /// A tool to call, and its arguments.
    pub fn call(&self) -> Option<(String, String)> {
        Some((self.0["call"].as_str()?.to_owned(), self.0["with"].to_string()))
    }

    /// A number.
    pub fn number(&self, key: &str) -> u64 {
        self.0[key].as_u64().unwrap_or_default()
    }
}

/// What was tried: a line each, `held` if it came to nothing, `broke` if it worked.
#[derive(Default)]
pub struct Attempts(Vec<String>);

impl Attempts {
    /// Takes note of a try that should come to nothing.
    pub fn note<T: Debug, E: Debug>(&mut self, what: impl AsRef<str>, came_to: Result<T, E>) {
        let what = what.as_ref();
        self.0.push(match came_to {
            Ok(value) => format!("broke {what}: {value:?}"),
            Err(error) => format!("held {what}: {error:?}"),
        });
    }

    /// The report.
    pub fn answer(self) -> Answer {
        text(self.0.join("\n"))
    }
}

/// A plugin of tools, each a module with a function `run`.
#[macro_export]
macro_rules! tools {
    ($($name:ident)*) => {
        $(mod $name;)*

        struct Component;

        impl $crate::bindings::exports::fief::plugin::tools::Guest for Component {
            fn list_tools() -> Vec<$crate::Tool> {
                vec![$($crate::tool(stringify!($name))),*]
            }

            fn call_tool(name: String, arguments: String) -> $crate::Answer {
                let arguments = $crate::Arguments::new(&arguments);
                match name.as_str() {
                    $(stringify!($name) => $name::run(&arguments),)*
                    name => Err($crate::ToolError::UnknownTool(name.to_owned())),
                }
            }
        }

        $crate::bindings::export!(Component with_types_in $crate::bindings);
    };
}
