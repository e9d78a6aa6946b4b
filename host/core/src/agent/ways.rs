//! The ways to a child as a model is shown them: `spawn_subagent`, `agent-NAME`, `dynamic_subagent`.
//!
//! The same catalogue always gives the same text, so that providers can cache it. Descriptions come from archetypes,
//! which are the operator's; nothing here comes from a model.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::spec::Ways;
use crate::manifest::archetype::{AgentConfig, Archetype, Disallowed, Dynamic};
use crate::tool::Declaration;

/// The tool that starts an archetype of the catalogue.
pub const SPAWN: &str = "spawn_subagent";
/// The prefix of the tools that are archetypes.
pub const AGENT_PREFIX: &str = "agent-";

/// The instruction of a dynamic child where neither the model nor the configuration gives one.
pub const FALLBACK_INSTRUCTION: &str = "You are a capable assistant. Do the one task that you are given, with the \
    tools that you have, and answer with its result. Say so if you cannot do it.";

/// The declarations of the ways to a child, in order. `own_tools` are the names, as people write them, of what the
/// agent itself may call. Empty ways declare nothing.
#[must_use]
pub fn declarations(ways: &Ways, own_tools: &[String]) -> Vec<Declaration> {
    let mut all = Vec::new();
    if !ways.spawn.is_empty() {
        all.push(spawn(ways));
    }
    all.extend(ways.agent_tools.iter().map(|archetype| agent_tool(archetype, ways)));
    if let Some(dynamic) = &ways.dynamic {
        all.push(self::dynamic(dynamic, ways, ways.dynamic_bound(own_tools)));
    }
    all
}

impl Ways {
    /// The names, as people write them, of the most that a dynamic child can hold.
    #[must_use]
    pub fn dynamic_bound<'a>(&'a self, own_tools: &'a [String]) -> &'a [String] {
        match &self.dynamic {
            Some(dynamic) if dynamic.tools.is_some() => &self.dynamic_tools,
            _ => own_tools,
        }
    }

    /// Whether a child of this configuration sees the agent's history.
    fn shows_history(&self, config: &AgentConfig) -> bool {
        let own = config.include_parent_history;
        own.or(self.defaults.include_parent_history).unwrap_or(false)
    }

    /// Whether `name` is one of these ways.
    #[must_use]
    pub fn holds(&self, name: &str) -> bool {
        (name == SPAWN && !self.spawn.is_empty())
            || self.agent_tool(name).is_some()
            || self.dynamic.as_ref().is_some_and(|dynamic| dynamic.name == name)
    }

    /// The archetype that is served as the tool `name`.
    pub(super) fn agent_tool(&self, name: &str) -> Option<&Arc<Archetype>> {
        self.agent_tools
            .iter()
            .find(|archetype| archetype.name.as_str().eq_ignore_ascii_case(name))
    }
}

fn spawn(ways: &Ways) -> Declaration {
    let catalogue = &ways.spawn;
    let sees = |archetype: &Archetype| ways.shows_history(&archetype.config);
    let mut description = String::from(
        "Starts a sub-agent for one task and returns its report. It works alone, in a conversation of its own, with \
         its own instruction and tools, which cannot be changed here. Use it for work whose intermediate steps would \
         only fill this conversation, or that a specialist below does better; do small things yourself. Several calls \
         in one answer run at once.\n",
    );
    description.push_str(if catalogue.iter().all(|archetype| sees(archetype)) {
        "It sees the conversation so far, as background; its task is the prompt alone: say what is wanted, and in what \
         form.\n"
    } else if catalogue.iter().any(|archetype| sees(archetype)) {
        "Unless marked below as seeing the conversation, it knows nothing of it: the prompt must hold all that it \
         needs, such as paths, facts already known, and the form of the answer.\n"
    } else {
        "It sees nothing of this conversation: the prompt must hold all that it needs, such as paths, facts already \
         known, and the form of the answer.\n"
    });
    description.push_str("Types:");
    for archetype in catalogue {
        let mark = if sees(archetype) { "; sees the conversation" } else { "" };
        let _ = write!(
            description,
            "\n- {}: {} (tools: {}{mark})",
            archetype.name,
            archetype.description.trim(),
            tools(archetype)
        );
    }
    let names: Vec<&str> = catalogue.iter().map(|archetype| archetype.name.as_str()).collect();
    Declaration {
        name: SPAWN.into(),
        description,
        input_schema: Arc::new(json!({
            "type": "object",
            "properties": {
                "subagent_type": {"type": "string", "enum": names, "description": "Which sub-agent."},
                "prompt": {"type": "string", "description": "Its whole task."},
                "description": {"type": "string", "description": "The task in three to five words, for the person who watches."},
            },
            "required": ["subagent_type", "prompt"],
        })),
    }
}

/// What an archetype's `tools` say: all, none, or names; without what it refuses itself.
fn tools(archetype: &Archetype) -> String {
    let without: Vec<String> = archetype
        .disallow
        .iter()
        .map(|one| match one {
            Disallowed::Plugin(plugin) => format!("{plugin}.*"),
            Disallowed::Tool(tool) => tool.to_string(),
        })
        .collect();
    let Some(grants) = &archetype.tools else {
        return if without.is_empty() {
            "all of yours".into()
        } else {
            format!("all of yours but {}", without.join(", "))
        };
    };
    let names: Vec<String> = grants
        .iter()
        .flat_map(|grant| match &grant.allow {
            None => vec![format!("{}.*", grant.plugin)],
            Some(allow) => allow
                .iter()
                .filter(|tool| !archetype.disallows(&grant.plugin, tool))
                .map(|tool| format!("{}.{tool}", grant.plugin))
                .collect(),
        })
        .filter(|name| !without.contains(name))
        .collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}

fn agent_tool(archetype: &Archetype, ways: &Ways) -> Declaration {
    let schema = archetype.input_schema.clone().unwrap_or_else(|| {
        Arc::new(json!({
            "type": "object",
            "properties": {
                "subtask": {
                    "type": "string",
                    "description": if ways.shows_history(&archetype.config) {
                        "The one task that it is to do. It sees the conversation so far as background."
                    } else {
                        "The one task that it is to do, with all that it needs to know: it sees nothing of this \
                         conversation."
                    },
                },
            },
            "required": ["subtask"],
        }))
    });
    Declaration {
        name: archetype.name.to_string(),
        description: archetype.description.clone(),
        input_schema: schema,
    }
}

fn dynamic(dynamic: &Dynamic, ways: &Ways, bound: &[String]) -> Declaration {
    let history = ways.shows_history(&dynamic.config);
    let description = dynamic.description.clone().unwrap_or_else(|| {
        let mut text = String::from(
            "Starts a sub-agent that you define for one task, and returns its report. It works alone, in a \
             conversation of its own. Use it for a task that needs an expertise, a role or a view of its own; do small \
             things yourself. Several calls in one answer run at once. ",
        );
        text.push_str(if history {
            "It sees the conversation so far, as background."
        } else {
            "It sees nothing of this conversation: instruction and prompt must hold all that it needs."
        });
        text
    });
    let mut properties = json!({
        "instruction": {
            "type": "string",
            "description": "Who it is and how it works, in the second person: \"You are …\". Its system prompt.",
        },
        "prompt": {"type": "string", "description": "Its whole task."},
    });
    if dynamic.expose_tool_selection {
        properties["tools"] = selection(bound);
    }
    Declaration {
        name: dynamic.name.clone(),
        description,
        input_schema: Arc::new(json!({
            "type": "object",
            "properties": properties,
            "required": ["instruction", "prompt"],
        })),
    }
}

fn selection(bound: &[String]) -> Value {
    let mut items = json!({"type": "string"});
    if !bound.is_empty() {
        items["enum"] = json!(bound);
    }
    json!({
        "type": "array",
        "items": items,
        "description": "The tools that it gets, some of those that it may have; absent: all of them.",
    })
}
