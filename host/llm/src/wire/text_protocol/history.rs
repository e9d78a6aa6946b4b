//! Calls and results as text.

use fief_core::id::Digest;
use fief_core::message::{Assistant, CallResult, Content, Message};

use super::split;

/// The history with no calls and no results left in it.
pub(super) fn as_text(history: &[Message]) -> Vec<Message> {
    history
        .iter()
        .map(|message| match message {
            Message::User { .. } => message.clone(),
            Message::Assistant(answer) => Message::Assistant(Assistant {
                text: with_blocks(answer),
                reasoning: answer.reasoning.clone(),
                calls: Vec::new(),
            }),
            Message::Results { results } => Message::User {
                content: results.iter().flat_map(result).collect(),
            },
        })
        .collect()
}

/// An answer as the model wrote it, but for white space; a malformed call as one with empty arguments, as elsewhere.
fn with_blocks(answer: &Assistant) -> String {
    let mut text = answer.text.clone();
    for call in &answer.calls {
        let (server, tool) = split(&call.name);
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&format!(
            "<use_mcp_tool>\n<server_name>{server}</server_name>\n<tool_name>{tool}</tool_name>\n<arguments>\n{}\n\
             </arguments>\n</use_mcp_tool>",
            call.arguments.to_value()
        ));
    }
    text
}

/// A result, between two lines that nothing inside it can forge: they carry a digest of what is between them.
fn result(result: &CallResult) -> Vec<Content> {
    let lines: Vec<String> = result.content.iter().map(Content::to_line).collect();
    let body = lines.join("\n");
    let mark = Digest::of(format!("{}\n{body}", result.call).as_bytes()).hex()[..16].to_owned();
    let (server, tool) = split(&result.name);
    let kind = if result.is_error { "error" } else { "result" };
    let mut parts = vec![Content::Text(format!(
        "[{kind} of {server} {tool}, up to the line {mark}]\n{body}\n{mark}"
    ))];
    parts.extend(
        result
            .content
            .iter()
            .filter(|part| !matches!(part, Content::Text(_)))
            .cloned(),
    );
    parts
}
