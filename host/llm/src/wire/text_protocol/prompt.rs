//! The tools, described to a model that knows only text.

use fief_core::tool::Declaration;

use super::split;

/// The system prompt with the tools at its end; unchanged where there are none.
pub(super) fn system(system: &str, tools: &[Declaration], parallel: Option<bool>) -> String {
    if tools.is_empty() {
        return system.to_owned();
    }
    let several = if parallel == Some(false) {
        "Write at most one block in an answer, at its end."
    } else {
        "An answer may hold several blocks, one after the other."
    };
    let mut text = system.to_owned();
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(&HEAD.replace("{several}", several));
    let mut shown: Option<&str> = None;
    for tool in tools {
        let (server, name) = split(&tool.name);
        if shown != Some(server) {
            text.push_str(&format!("\n## Server name: {server}\n"));
            shown = Some(server);
        }
        text.push_str(&format!(
            "\n### Tool name: {name}\n{}\nJSON Schema of the arguments: {}\n",
            tool.description.trim(),
            tool.input_schema
        ));
    }
    text
}

const HEAD: &str = "# Tools

You can call the tools that are listed below. To call one, write a block of exactly this form, at the start of a line \
and outside of any code block:

<use_mcp_tool>
<server_name>SERVER NAME</server_name>
<tool_name>TOOL NAME</tool_name>
<arguments>
{\"parameter\": \"value\"}
</arguments>
</use_mcp_tool>

- The arguments are one JSON object that fits the tool's schema. Use double quotes, and escape quotes, backslashes and \
line breaks inside strings.
- {several}
- Write nothing after your blocks. The results are given to you in the next message; never write one yourself.
- An answer without a block is your final answer.
";
