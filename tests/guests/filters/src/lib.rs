//! The contract of filters, which the examples share.

/// The bindings.
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "guard",
        pub_export_macro: true,
    });
}

pub use bindings::exports::fief::plugin::filter::{CallVerdict, Guest, OutcomeVerdict, Subject};
pub use bindings::fief::plugin::types::{Output, ToolError};

/// A filter that does this before each call, and lets every outcome pass.
#[macro_export]
macro_rules! filter {
    ($before:expr) => {
        struct Component;

        impl $crate::Guest for Component {
            fn before_call(subject: $crate::Subject) -> $crate::CallVerdict {
                $before(subject)
            }

            fn after_call(_: $crate::Subject, _: Result<$crate::Output, $crate::ToolError>) -> $crate::OutcomeVerdict {
                $crate::OutcomeVerdict::Pass
            }
        }

        $crate::bindings::export!(Component with_types_in $crate::bindings);
    };
}
