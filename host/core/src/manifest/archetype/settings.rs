//! The settings that an archetype, `[dynamic]` and `[agents.config]` share.

use super::grant::filters;
use super::{AgentConfig, BudgetRequest, Generation, Summary};
use crate::manifest::read::{Field, Table};

/// Reads the keys of [`AgentConfig`] from `table`, save `skip_summarization`, which is the parent's choice and stands
/// only in some tables.
pub(crate) fn agent_config(table: &Table<'_>) -> AgentConfig {
    AgentConfig {
        model: table.get("model").and_then(|field| model(&field)),
        generation: table
            .get("generation")
            .and_then(|field| generation(&field))
            .unwrap_or_default(),
        parallel_tool_calls: table.get("parallel_tool_calls").and_then(|field| field.boolean()),
        filters: table.get("filters").and_then(|field| filters(&field)),
        max_turns: table.get("max_turns").and_then(|field| field.limit(1)),
        max_tool_calls_per_turn: table.get("max_tool_calls_per_turn").and_then(|field| field.limit(1)),
        keep_tool_results: table.get("keep_tool_results").and_then(|field| field.limit(0)),
        include_parent_history: table.get("include_parent_history").and_then(|field| field.boolean()),
        max_parent_history_turns: table.get("max_parent_history_turns").and_then(|field| field.limit(0)),
        forward_events: table.get("forward_events").and_then(|field| field.boolean()),
        summary: table
            .get("summary")
            .and_then(|field| field.choice(&[("at-limit", Summary::AtLimit), ("always", Summary::Always)])),
        summary_instruction: table
            .get("summary_instruction")
            .and_then(|field| field.filled())
            .map(str::to_owned),
        task_suffix: table
            .get("task_suffix")
            .and_then(|field| field.text())
            .map(str::to_owned),
        skip_summarization: None,
        budget: table.get("budget").and_then(|field| budget(&field)).unwrap_or_default(),
    }
}

/// A model's name; `inherit` is as if the key were absent.
fn model(field: &Field<'_>) -> Option<String> {
    let name = field.filled()?;
    if name.chars().any(|c| c.is_whitespace() || c.is_control()) {
        field.refuse(
            format!("`{}` is not a model", field.shown()),
            "a name from `[models]` in fief.toml, `PROVIDER:NAME`, or `inherit`",
        );
        return None;
    }
    (name != "inherit").then(|| name.to_owned())
}

/// A `[generation]` table.
pub(crate) fn generation(field: &Field<'_>) -> Option<Generation> {
    let table = field.table()?;
    let generation = Generation {
        temperature: table
            .get("temperature")
            .and_then(|field| field.number_in(0.0..=f64::INFINITY)),
        top_p: table.get("top_p").and_then(|field| field.number_in(0.0..=1.0)),
        max_output_tokens: table.get("max_output_tokens").and_then(|field| field.count(1)),
        stop: table
            .get("stop")
            .and_then(|field| field.list_of(|item| item.text().map(str::to_owned))),
        seed: table.get("seed").and_then(|field| field.count(0)),
    };
    table.finish(|key| match key {
        "max_tokens" | "max_completion_tokens" => Some("did you mean `max_output_tokens`?".into()),
        _ => None,
    });
    Some(generation)
}

fn budget(field: &Field<'_>) -> Option<BudgetRequest> {
    let table = field.table()?;
    let budget = BudgetRequest {
        tokens: table.get("tokens").and_then(|field| field.count(1)),
        wall: table.get("wall").and_then(|field| field.duration()),
        children: table.get("children").and_then(|field| field.count(0)),
        cost: table.get("cost").and_then(|field| field.number_in(0.0..=f64::INFINITY)),
    };
    table.finish(|_| None);
    Some(budget)
}
