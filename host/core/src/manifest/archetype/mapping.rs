//! What other products call their tools, and what those are here.

use std::collections::BTreeMap;

use crate::id::ToolRef;

/// The names that another product's files use for tools that exist here.
const KNOWN: &[(&str, &[&str])] = &[
    ("Read", &["files.read"]),
    ("Write", &["files.write"]),
    ("Edit", &["files.edit"]),
    // One tool there that makes several edits of one file; here each is a call of its own.
    ("MultiEdit", &["files.edit"]),
    ("Glob", &["files.glob"]),
    ("Grep", &["files.grep"]),
    ("LS", &["files.list"]),
    ("WebFetch", &["web.fetch"]),
];

/// Names known there that have no counterpart here. To leave them out narrows, so it is safe.
const WITHOUT_COUNTERPART: &[&str] = &[
    "Agent",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "EnterPlanMode",
    "ExitPlanMode",
    "KillBash",
    "KillShell",
    "ListMcpResourcesTool",
    "LSP",
    "Monitor",
    "NotebookEdit",
    "NotebookRead",
    "PowerShell",
    "ReadMcpResourceTool",
    "SendMessage",
    "Skill",
    "SlashCommand",
    "StructuredOutput",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "WebSearch",
];

/// Resolves the tool names of other products. Names match without regard to case.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolMapping {
    names: BTreeMap<String, Vec<ToolRef>>,
    /// As they were written, for suggestions.
    written: Vec<String>,
}

/// What another product's name is here.
#[derive(Clone, PartialEq, Debug)]
pub enum Mapped<'m> {
    /// These tools.
    Tools(&'m [ToolRef]),
    /// Nothing: the tool exists only there.
    WithoutCounterpart,
    /// Not a name of another product that is known.
    Unknown,
}

impl Default for ToolMapping {
    fn default() -> Self {
        Self::new(&BTreeMap::new())
    }
}

impl ToolMapping {
    /// The built-in names, with those of `[agents] tool_mapping` over them.
    #[must_use]
    pub fn new(custom: &BTreeMap<String, ToolRef>) -> Self {
        let mut names = BTreeMap::new();
        let mut written = Vec::new();
        for (name, tools) in KNOWN {
            let tools = tools
                .iter()
                .map(|tool| tool.parse().expect("the table above holds tools"))
                .collect();
            names.insert(name.to_ascii_lowercase(), tools);
            written.push((*name).to_owned());
        }
        for (name, tool) in custom {
            names.insert(name.to_ascii_lowercase(), vec![tool.clone()]);
            written.push(name.clone());
        }
        Self { names, written }
    }

    /// What `name` is here.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Mapped<'_> {
        if let Some(tools) = self.names.get(&name.to_ascii_lowercase()) {
            return Mapped::Tools(tools);
        }
        if without_counterpart(name) {
            Mapped::WithoutCounterpart
        } else {
            Mapped::Unknown
        }
    }

    /// The names that stand for tools, as they were written.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.written.iter().map(String::as_str)
    }
}

/// Whether `name` is one that has a meaning already: a mapping that came with a repository must not give it another.
#[must_use]
pub fn is_built_in(name: &str) -> bool {
    KNOWN.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) || without_counterpart(name)
}

fn without_counterpart(name: &str) -> bool {
    // A tool of a server that speaks the Model Context Protocol: `mcp__SERVER__TOOL`.
    name.starts_with("mcp__") || WITHOUT_COUNTERPART.iter().any(|known| known.eq_ignore_ascii_case(name))
}
