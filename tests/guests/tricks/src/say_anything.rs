//! Returns whatever it is told to, in any form that the contract has.

use contract::{Answer, Arguments, Blob, Content, Output, ToolError};

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let words = || arguments.text("text").to_owned();
    let blob = || Blob {
        media_type: arguments.text("media_type").to_owned(),
        data: arguments.text("text").bytes().map(|byte| byte ^ 0x80).collect(),
    };
    let content = match arguments.text("kind") {
        "unknown-tool" => return Err(ToolError::UnknownTool(words())),
        "invalid-arguments" => return Err(ToolError::InvalidArguments(words())),
        "denied" => return Err(ToolError::Denied(words())),
        "failed" => return Err(ToolError::Failed(words())),
        "image" => Content::Image(blob()),
        "audio" => Content::Audio(blob()),
        "file" => Content::File(blob()),
        _ => Content::Text(words()),
    };
    let structured = arguments.text("structured");
    Ok(Output {
        content: vec![content],
        structured: (!structured.is_empty()).then(|| structured.to_owned()),
    })
}
