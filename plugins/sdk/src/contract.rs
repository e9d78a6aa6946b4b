//! The plugin contract: the bindings of `wit/`, made once, and what makes their types pleasant to build.

#![allow(missing_docs, unused_qualifications, unreachable_pub)] // Generated from WIT, whose documentation it carries.

/// Tools, with everything that a plugin of tools may import. What a plugin does not use, its component does not import.
pub mod orchestrator {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "orchestrator",
        pub_export_macro: true,
        additional_derives: [PartialEq],
    });
}

/// Filters, likewise.
pub mod guard {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "guard-with-person",
        pub_export_macro: true,
        with: {
            "fief:plugin/types@0.1.0": crate::contract::orchestrator::fief::plugin::types,
            "fief:plugin/call@0.1.0": crate::contract::orchestrator::fief::plugin::call,
        },
    });
}

pub use orchestrator::fief::plugin::types::{Blob, Content, Hints, Output, ToolError};

impl Output {
    /// One text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::Text(text.into())],
            structured: None,
        }
    }

    /// One image, such as `image/png`.
    #[must_use]
    pub fn image(media_type: impl Into<String>, data: Vec<u8>) -> Self {
        Self {
            content: vec![Content::Image(Blob {
                media_type: media_type.into(),
                data,
            })],
            structured: None,
        }
    }

    /// The texts among the content, one after the other.
    #[must_use]
    pub fn as_text(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match part {
            Content::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for Output {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl ToolError {
    /// The arguments are wrong: say which, and what would be right.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidArguments(message.into())
    }

    /// It went wrong: say what, and what the model can do about it.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// A right is missing: say which, and who can grant it.
    #[must_use]
    pub fn denied(message: impl Into<String>) -> Self {
        Self::Denied(message.into())
    }

    /// What the model is told.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::UnknownTool(text) | Self::InvalidArguments(text) | Self::Denied(text) | Self::Failed(text) => text,
        }
    }
}
