//! What an absent key means: an archetype over `[agents.config]` over the parent, or the table's default.

use super::{PlanError, choices};
use crate::agent::spec::{AgentSpec, Bounds};
use crate::manifest::archetype::{AgentConfig, BudgetRequest, Generation, Summary, ToolGrant};
use crate::world::World;

/// Layers of configuration, the nearest first, and the parent whose settings stand where all are silent.
pub(super) struct Layers<'a> {
    pub(super) world: &'a World,
    /// Whose, for messages: ``archetype `explore` (PATH)``.
    pub(super) who: String,
    /// A Markdown archetype's model is a wish: one that is not configured is a warning, and inherits.
    pub(super) lenient_model: bool,
    /// The archetype's own configuration, or `[dynamic]`.
    pub(super) own: &'a AgentConfig,
    /// `[agents.config]`; absent for the main agent, which is nobody's child.
    pub(super) defaults: Option<&'a AgentConfig>,
    /// The parent; absent for the main agent.
    pub(super) parent: Option<&'a AgentSpec>,
}

/// What an agent is set to.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) model: String,
    pub(super) generation: Generation,
    pub(super) parallel_tool_calls: Option<bool>,
    pub(super) bounds: Bounds,
    pub(super) parent_history: Option<Option<u32>>,
    pub(super) forward_events: bool,
    pub(super) summary: Summary,
    pub(super) summary_instruction: Option<String>,
    pub(super) task_suffix: Option<String>,
}

impl<'a> Layers<'a> {
    /// The value of a key in the nearest layer that has it.
    fn find<T>(&self, key: impl Fn(&'a AgentConfig) -> Option<T>) -> Option<T> {
        key(self.own).or_else(|| self.defaults.and_then(key))
    }

    /// The filters that the layers name.
    pub(super) fn filters(&self) -> &'a [ToolGrant] {
        self.find(|config| config.filters.as_deref()).unwrap_or_default()
    }

    pub(super) fn settle(&self, warnings: &mut Vec<String>) -> Result<Settings, PlanError> {
        let generation = match (self.defaults, self.parent) {
            (Some(defaults), Some(parent)) => self.own.generation.or(&defaults.generation).or(&parent.generation),
            (Some(defaults), None) => self.own.generation.or(&defaults.generation),
            (None, _) => self.own.generation.clone(),
        };
        let history = self.find(|config| config.include_parent_history).unwrap_or(false);
        let turns = self.bound("max_parent_history_turns", true, |config| {
            config.max_parent_history_turns
        })?;
        let inherited = self.parent.and_then(|parent| parent.parallel_tool_calls);
        Ok(Settings {
            model: self.model(warnings)?,
            generation,
            parallel_tool_calls: self.find(|config| config.parallel_tool_calls).or(inherited),
            bounds: self.bounds()?,
            parent_history: (history && turns != Some(0)).then_some(turns),
            forward_events: self
                .find(|config| config.forward_events)
                .unwrap_or(self.world.forward_events),
            summary: self.find(|config| config.summary).unwrap_or_default(),
            summary_instruction: self.find(|config| config.summary_instruction.clone()),
            task_suffix: self.find(|config| config.task_suffix.clone()),
        })
    }

    fn bounds(&self) -> Result<Bounds, PlanError> {
        let defaults = self
            .defaults
            .map_or_else(BudgetRequest::default, |config| config.budget);
        // Taken apart exhaustively: a new bound does not compile before it is layered.
        let BudgetRequest {
            tokens,
            wall,
            children,
            cost,
        } = self.own.budget;
        Ok(Bounds {
            max_turns: self.bound("max_turns", false, |config| config.max_turns)?,
            max_tool_calls_per_turn: self.bound("max_tool_calls_per_turn", false, |config| {
                config.max_tool_calls_per_turn
            })?,
            keep_tool_results: self.bound("keep_tool_results", true, |config| config.keep_tool_results)?,
            tokens: tokens.or(defaults.tokens),
            cost: cost.or(defaults.cost),
            children: children.or(defaults.children),
            wall: wall.or(defaults.wall),
        })
    }

    /// A count of which -1 means no limit. What parsing refuses is refused here too: archetypes made in Rust are not
    /// parsed.
    fn bound(
        &self,
        key: &str,
        zero: bool,
        get: impl Fn(&'a AgentConfig) -> Option<i64>,
    ) -> Result<Option<u32>, PlanError> {
        match self.find(get) {
            None | Some(-1) => Ok(None),
            Some(count) if count > 0 || (zero && count == 0) => Ok(Some(u32::try_from(count).unwrap_or(u32::MAX))),
            Some(count) => Err(PlanError::configuration(format!(
                "{}: `{key}` is {count}; write a count from {}, or -1 for no limit",
                self.who,
                i32::from(!zero)
            ))),
        }
    }

    /// Archetype, then sub-agent configuration, then parent; for the main agent what the host was told.
    fn model(&self, warnings: &mut Vec<String>) -> Result<String, PlanError> {
        if let Some(model) = self.own.model.as_deref() {
            if is_known(self.world, model) {
                return Ok(model.to_owned());
            }
            if !self.lenient_model {
                return Err(unknown(self.world, &self.who, model));
            }
            warnings.push(format!(
                "{}: model `{model}` is not configured, so its parent's is used",
                self.who
            ));
        }
        if let Some(model) = self.defaults.and_then(|defaults| defaults.model.as_deref()) {
            return match is_known(self.world, model) {
                true => Ok(model.to_owned()),
                false => Err(unknown(self.world, "`[agents.config]`", model)),
            };
        }
        let inherited = match self.parent {
            Some(parent) => Some(&parent.model),
            None => self.world.model.as_ref(),
        };
        inherited.cloned().ok_or_else(|| {
            PlanError::configuration(format!(
                "{}: no model is configured\n\
                 hint: pass `--model PROVIDER:NAME`, such as `--model openai:NAME` with `OPENAI_API_KEY` (and \
                 `OPENAI_BASE_URL`) set, or write `[run] model` and `[models]` in `fief.toml`",
                self.who
            ))
        })
    }
}

/// Whether `model` is configured, or names a provider and its model outright. What the host itself was told to use
/// counts as known.
pub(super) fn is_known(world: &World, model: &str) -> bool {
    const PROVIDERS: [&str; 5] = ["openai", "openai-responses", "anthropic", "gemini", "script"];
    let outright = model
        .split_once(':')
        .is_some_and(|(provider, name)| PROVIDERS.contains(&provider) && !name.is_empty());
    (outright && !world.untrusted)
        || world.model.as_deref() == Some(model)
        || world.models.iter().any(|known| known == model)
}

fn unknown(world: &World, who: &str, model: &str) -> PlanError {
    if world.untrusted {
        return PlanError::configuration(format!(
            "{who}: model `{model}` is not one of your `[models]`, and this directory's `fief.toml` is not trusted\n\
             hint: read it and the archetypes that it names, then accept it with `fief trust`"
        ));
    }
    PlanError::configuration(format!(
        "{who}: model `{model}` is not configured; `PROVIDER:NAME` or one of {}",
        choices(model, world.models.iter().map(String::as_str))
    ))
}
