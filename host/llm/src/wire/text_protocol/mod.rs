//! The text protocol: tool calls as blocks of text, for models and servers without calls of their own.
//!
//! ```text
//! <use_mcp_tool>
//! <server_name>files</server_name>
//! <tool_name>read</tool_name>
//! <arguments>
//! {"path": "/work/notes.txt"}
//! </arguments>
//! </use_mcp_tool>
//! ```
//!
//! It lies over any model: the tools are described in the system prompt ([`prompt`]), calls and results of the history
//! become text ([`history`]), and the answer's text is read for blocks ([`parser`], [`block`]), whose arguments are repaired only
//! where one reading is possible ([`lenient`]). What is doubtful becomes a call with malformed arguments, which the
//! agent reports to the model and never runs.

mod block;
mod history;
mod lenient;
mod parser;
mod prompt;

use std::collections::HashMap;
use std::sync::Arc;

use fief_core::message::{Answer, Arguments, Finish, Request, ToolCall};
use fief_core::port::{BoxStream, Model, ModelEvent};
use fief_core::tool::Declaration;
use futures::StreamExt as _;

use self::block::Block;
use self::parser::Parser;
use crate::ask::{emit, send};
use crate::draft::fresh_id;

/// The server under which the ways to a child stand that are no server of their own.
const AGENTS: &str = "agents";
/// The one tool of an agent that is served as a server of its own.
const EXECUTE: &str = "execute_subtask";
/// The name of a call whose block does not say what it calls.
const UNNAMED: &str = "use_mcp_tool";

/// The model, spoken to in the text protocol.
pub(crate) fn over(model: Arc<dyn Model>) -> Arc<dyn Model> {
    Arc::new(TextProtocol(model))
}

struct TextProtocol(Arc<dyn Model>);

/// A tool's name as the protocol splits it: a plugin's tool is `plugin` and `tool`, `agent-worker` is
/// `agent-worker` and `execute_subtask`, and any other way to a child is `agents` and its name.
fn split(name: &str) -> (&str, &str) {
    match name.split_once('.') {
        Some(pair) => pair,
        None if name.starts_with("agent-") => (name, EXECUTE),
        None => (AGENTS, name),
    }
}

/// The tools of one request, by server and tool.
struct Servers(HashMap<(String, String), String>);

impl Servers {
    fn of(tools: &[Declaration]) -> Self {
        let pair = |tool: &Declaration| {
            let (server, name) = split(&tool.name);
            ((server.to_owned(), name.to_owned()), tool.name.clone())
        };
        Self(tools.iter().map(pair).collect())
    }

    /// The name as people write it. What is not declared keeps both parts, so that no call reaches a tool of the same
    /// name elsewhere.
    fn name(&self, server: &str, tool: &str) -> String {
        let key = (server.to_owned(), tool.to_owned());
        self.0
            .get(&key)
            .map_or_else(|| format!("{server}.{tool}"), Clone::clone)
    }

    fn call(&self, block: Block) -> ToolCall {
        let (name, arguments) = match block {
            Block::Call {
                server,
                tool,
                arguments,
            } => (self.name(&server, &tool), Arguments::Object(arguments)),
            Block::Broken { server, tool, raw, why } => {
                let name = match (server, tool) {
                    (Some(server), Some(tool)) => self.name(&server, &tool),
                    _ => UNNAMED.to_owned(),
                };
                (name, Arguments::Malformed { raw, why })
            }
        };
        ToolCall {
            id: fresh_id(),
            name,
            arguments,
        }
    }

    /// The answer with the blocks of its text as calls.
    fn read(&self, mut answer: Answer) -> (Answer, String) {
        let mut parser = Parser::default();
        parser.push(&answer.message.text);
        let parsed = parser.finish();
        if !parsed.blocks.is_empty() {
            answer.message.text = parsed.prose.trim().to_owned();
            answer
                .message
                .calls
                .extend(parsed.blocks.into_iter().map(|block| self.call(block)));
            if matches!(answer.finish, Finish::Stop | Finish::Other) {
                answer.finish = Finish::ToolCalls;
            }
        }
        (answer, parsed.prose)
    }
}

impl Model for TextProtocol {
    fn ask(&self, request: Request) -> BoxStream<'static, ModelEvent> {
        let servers = Servers::of(&request.tools);
        let mut stream = self.0.ask(rewrite(&request));
        drop(request);
        emit(move |mut events| async move {
            let mut parser = Parser::default();
            let mut shown = 0;
            while let Some(event) = stream.next().await {
                let event = match event {
                    ModelEvent::Delta(piece) => {
                        let text = parser.push(&piece);
                        if text.is_empty() {
                            continue;
                        }
                        shown += text.len();
                        ModelEvent::Delta(text)
                    }
                    retry @ ModelEvent::Retry { .. } => {
                        parser = Parser::default();
                        shown = 0;
                        retry
                    }
                    ModelEvent::Done(answer) => {
                        let (answer, prose) = servers.read(answer);
                        if let Some(rest) = prose.get(shown..).filter(|rest| !rest.is_empty()) {
                            send(&mut events, ModelEvent::Delta(rest.to_owned())).await;
                        }
                        ModelEvent::Done(answer)
                    }
                    other @ (ModelEvent::Spent(_) | ModelEvent::Failed(_)) => other,
                };
                let last = matches!(event, ModelEvent::Done(_) | ModelEvent::Failed(_));
                send(&mut events, event).await;
                if last {
                    return;
                }
            }
        })
    }
}

/// The request without tools: they stand in the system prompt, and calls and results in the text.
fn rewrite(request: &Request) -> Request {
    Request {
        session: request.session.clone(),
        system: prompt::system(&request.system, &request.tools, request.parallel_tool_calls).into(),
        history: Arc::new(history::as_text(&request.history)),
        tools: Arc::new([]),
        generation: request.generation.clone(),
        parallel_tool_calls: None,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
