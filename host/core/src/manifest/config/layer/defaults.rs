//! `[agents.config]` of a repository.

use super::{Layer, lower};
use crate::manifest::archetype::AgentConfig;
use crate::manifest::config::Config;

/// Each key that `over` has replaces that of `base`.
pub(super) fn replaced(base: &AgentConfig, over: AgentConfig) -> AgentConfig {
    let budget = &base.budget;
    AgentConfig {
        model: over.model.or_else(|| base.model.clone()),
        generation: over.generation.or(&base.generation),
        parallel_tool_calls: over.parallel_tool_calls.or(base.parallel_tool_calls),
        filters: over.filters.or_else(|| base.filters.clone()),
        max_turns: over.max_turns.or(base.max_turns),
        max_tool_calls_per_turn: over.max_tool_calls_per_turn.or(base.max_tool_calls_per_turn),
        keep_tool_results: over.keep_tool_results.or(base.keep_tool_results),
        include_parent_history: over.include_parent_history.or(base.include_parent_history),
        max_parent_history_turns: over.max_parent_history_turns.or(base.max_parent_history_turns),
        forward_events: over.forward_events.or(base.forward_events),
        summary: over.summary.or(base.summary),
        summary_instruction: over.summary_instruction.or_else(|| base.summary_instruction.clone()),
        task_suffix: over.task_suffix.or_else(|| base.task_suffix.clone()),
        skip_summarization: over.skip_summarization.or(base.skip_summarization),
        budget: crate::manifest::archetype::BudgetRequest {
            tokens: over.budget.tokens.or(budget.tokens),
            wall: over.budget.wall.or(budget.wall),
            children: over.budget.children.or(budget.children),
            cost: over.budget.cost.or(budget.cost),
        },
    }
}

/// A limit as a bound: -1 and absent are none.
fn bound(limit: Option<i64>) -> Option<i64> {
    limit.filter(|limit| *limit >= 0)
}

impl Layer<'_> {
    /// Narrows the defaults of every child, the operator's own archetypes among them.
    pub(super) fn defaults(&mut self, operator: &Config, config: &mut AgentConfig) {
        let over = self.repository.config.agents.clone();
        let base = operator.agents.clone();
        *config = replaced(&base, over.clone());

        // Only what the operator has set up: another provider's model would be his money and his data.
        if let Some(model) = &over.model
            && !operator.models.contains_key(model)
        {
            self.ignore("agents.config.model", &format!("`{model}` is none of your own models"));
            config.model.clone_from(&base.model);
        }
        // A filter sees and changes the calls of the operator's archetypes too, and one of his must not go.
        if over.filters.is_some() && over.filters != base.filters {
            self.ignore("agents.config.filters", "filters of every agent are yours to choose");
            config.filters.clone_from(&base.filters);
        }
        self.limit("max_turns", base.max_turns, &mut config.max_turns);
        self.limit(
            "max_tool_calls_per_turn",
            base.max_tool_calls_per_turn,
            &mut config.max_tool_calls_per_turn,
        );
        self.limit(
            "keep_tool_results",
            base.keep_tool_results,
            &mut config.keep_tool_results,
        );
        self.limit(
            "max_parent_history_turns",
            base.max_parent_history_turns,
            &mut config.max_parent_history_turns,
        );
        if over.include_parent_history == Some(true) && base.include_parent_history != Some(true) {
            self.ignore(
                "agents.config.include_parent_history",
                "it would show children what their parent was told",
            );
            config.include_parent_history = base.include_parent_history;
        }
        if over.forward_events == Some(false) && base.forward_events != Some(false) {
            self.ignore(
                "agents.config.forward_events",
                "it would hide from you what children do",
            );
            config.forward_events = base.forward_events;
        }
        let tokens = base.generation.max_output_tokens;
        self.capped(
            "generation.max_output_tokens",
            tokens,
            &mut config.generation.max_output_tokens,
        );
        self.capped("budget.tokens", base.budget.tokens, &mut config.budget.tokens);
        self.capped("budget.wall", base.budget.wall, &mut config.budget.wall);
        self.capped("budget.children", base.budget.children, &mut config.budget.children);
        self.capped("budget.cost", base.budget.cost, &mut config.budget.cost);
    }

    fn limit(&mut self, key: &str, base: Option<i64>, limit: &mut Option<i64>) {
        let lowest = lower(bound(base), bound(*limit));
        if lowest.is_some() && lowest != bound(*limit) {
            self.ignore(&format!("agents.config.{key}"), "your own limit is lower");
            *limit = base;
        }
    }

    fn capped<T: PartialOrd + Copy>(&mut self, key: &str, base: Option<T>, value: &mut Option<T>) {
        let lowest = lower(base, *value);
        if lowest < *value || (lowest.is_some() && value.is_none()) {
            self.ignore(&format!("agents.config.{key}"), "your own limit is lower");
            *value = lowest;
        }
    }
}
