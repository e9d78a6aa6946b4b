//! `fief:plugin/toolbox`: the other tools of the same agent, under the same grants, filters and accounts as a call of
//! the model's.

use fief_core::event::CapabilityKind;
use fief_core::message::Content;
use fief_core::tool::OutcomeKind;

use crate::bindings::{toolbox, types};
use crate::instance::Guest;

impl toolbox::Host for Guest {
    async fn list_tools(&mut self) -> wasmtime::Result<Vec<types::Tool>> {
        let Some(toolbox) = &self.toolbox else {
            self.audit
                .refused(CapabilityKind::Toolbox, "list-tools", "no toolbox is granted");
            return Ok(Vec::new());
        };
        let tools = toolbox.list().into_iter().map(|declaration| types::Tool {
            name: declaration.name,
            title: None,
            description: declaration.description,
            input_schema: declaration.input_schema.to_string(),
            output_schema: None,
            hints: types::Hints::empty(),
        });
        Ok(tools.collect())
    }

    async fn call_tool(
        &mut self,
        name: String,
        arguments: String,
    ) -> wasmtime::Result<Result<types::Output, types::ToolError>> {
        let Some(toolbox) = &self.toolbox else {
            self.audit
                .refused(CapabilityKind::Toolbox, &name, "no toolbox is granted");
            return Ok(Err(types::ToolError::Denied("no toolbox is granted".into())));
        };
        let arguments = match serde_json::from_str(&arguments) {
            Ok(arguments @ serde_json::Value::Object(_)) => arguments,
            Ok(_) => return Ok(Err(types::ToolError::InvalidArguments("not a JSON object".into()))),
            Err(error) => return Ok(Err(types::ToolError::InvalidArguments(format!("not JSON: {error}")))),
        };
        let outcome = toolbox.call(name.clone(), arguments).await;
        if outcome.kind == OutcomeKind::Denied {
            self.audit.refused(CapabilityKind::Toolbox, &name, &outcome.text());
            return Ok(Err(types::ToolError::Denied(outcome.text())));
        }
        self.audit.allowed(CapabilityKind::Toolbox, &name, "grant `toolbox`");
        Ok(match outcome.kind {
            OutcomeKind::Ok => Ok(types::Output {
                content: outcome.content.into_iter().map(content_to_guest).collect(),
                structured: outcome.structured.map(|value| value.to_string()),
            }),
            OutcomeKind::Denied => Err(types::ToolError::Denied(outcome.text())),
            OutcomeKind::ToolError | OutcomeKind::Limit | OutcomeKind::Trap | OutcomeKind::Cancelled => {
                Err(types::ToolError::Failed(outcome.text()))
            }
        })
    }
}

/// One part of an outcome as the contract writes it.
pub(crate) fn content_to_guest(content: Content) -> types::Content {
    let blob = |blob: fief_core::message::Blob| types::Blob {
        media_type: blob.media_type,
        data: blob.data,
    };
    match content {
        Content::Text(text) => types::Content::Text(text),
        Content::Image(image) => types::Content::Image(blob(image)),
        Content::Audio(audio) => types::Content::Audio(blob(audio)),
        Content::File(file) => types::Content::File(blob(file)),
    }
}
