//! One call of one tool, without a model: what the plugin needs, within policy.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use fief_core::event::{Event, EventKind};
use fief_core::id::{PluginName, ToolRef};
use fief_core::manifest::archetype::{Archetype, GrantRequest, ToolGrant};
use fief_core::plan::{self, LeftOut, Planned};
use fief_core::tool::{Declaration, Invocation, Outcome, OutcomeKind, ToolSpec};
use fief_core::world::World;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::Host;
use crate::clock;
use crate::drive::agent::Body;
use crate::drive::ask::{Asker, Question};
use crate::drive::kit::Kit;
use crate::drive::stream::{Emitter, EventStream, Source};
use crate::drive::{Run, millis};
use crate::error::Error;
use crate::telemetry::{Note, Profile};

/// The id of the one call; those that its plugin makes are numbered below it.
const CALL: &str = "1";

/// What calls of one plugin's tools run on.
pub(super) struct Callable {
    kit: Arc<Kit>,
    /// Why it has no tools, if it could not be linked within policy.
    left_out: Vec<LeftOut>,
}

/// That a call began, and how it ended, also if whoever waited for it has gone.
struct Told<'a> {
    emitter: &'a Emitter,
    tool: &'a ToolRef,
    started: Instant,
    ended: bool,
}

impl<'a> Told<'a> {
    fn begin(emitter: &'a Emitter, tool: &'a ToolRef, arguments: &Arc<Value>) -> Self {
        emitter.emit(EventKind::ToolStarted {
            call: CALL.into(),
            plugin: Some(tool.plugin.to_string()),
            tool: tool.to_string(),
            arguments: arguments.clone(),
        });
        Self {
            emitter,
            tool,
            started: Instant::now(),
            ended: false,
        }
    }

    fn end(mut self, outcome: Outcome) -> Outcome {
        self.tell(outcome.kind, outcome.text(), outcome.detail.clone());
        outcome
    }

    fn tell(&mut self, outcome: OutcomeKind, content: String, error: Option<String>) {
        self.ended = true;
        self.emitter.emit(EventKind::ToolFinished {
            call: CALL.into(),
            plugin: Some(self.tool.plugin.to_string()),
            tool: self.tool.to_string(),
            outcome,
            content,
            error,
            ms: millis(self.started),
        });
    }
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.tell(OutcomeKind::Cancelled, "the call was cancelled".into(), None);
        }
    }
}

impl Host {
    /// Calls a tool with what its plugin needs, as wide as policy, in a store of its own. Its start, what it says of its
    /// progress, and its end go to `events`. A plugin is linked once, however often it is called.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown tool or arguments that do not fit its schema.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Value,
        events: UnboundedSender<Event>,
        questions: Option<UnboundedSender<Question>>,
    ) -> Result<Outcome, Error> {
        let tool = self.find(tool)?;
        let arguments = Arc::new(arguments);
        let callable = self.callable(&tool.plugin).await?;
        let trace = self.trace(clock::run_id);
        let traced = trace.is_some();
        let stream = EventStream::traced("call".into(), self.redactor(), None, 0, Some(events), trace);
        let emitter = Emitter::new(stream.clone(), Source::default());
        let Some((_, spec)) = callable.kit.spec.tools.get(&tool.to_string()) else {
            // Every interface that is missing is named there, with the flag that would allow it.
            let why: Vec<String> = callable.left_out.iter().map(LeftOut::with_flag).collect();
            let refused = Outcome::refused(OutcomeKind::Denied, why.join("\n"));
            return Ok(Told::begin(&emitter, &tool, &arguments).end(refused));
        };
        self.check(&tool, spec, &arguments)?;
        if traced {
            let declaration = Declaration {
                name: tool.to_string(),
                description: spec.description.clone(),
                input_schema: spec.input_schema.clone(),
            };
            emitter.tell(&Note::Agent(&Profile {
                declarations: [declaration].into(),
                ..Profile::default()
            }));
        }
        let run = Run::new(
            self.world().clone(),
            self.supply(),
            stream,
            Asker::new(questions),
            self.instructions(),
            self.validators(),
            0,
        );
        let body = Body::without_model(run, callable.kit.clone(), emitter.clone());
        let told = Told::begin(&emitter, &tool, &arguments);
        let invocation = Invocation {
            call: CALL.into(),
            tool: tool.clone(),
            arguments,
        };
        Ok(told.end(body.call(invocation).await))
    }

    fn check(&self, tool: &ToolRef, spec: &ToolSpec, arguments: &Value) -> Result<(), Error> {
        let validators = self.validators();
        let schema = validators.get(&spec.input_schema);
        let schema = schema.map_err(|error| Error::usage(error.to_string()))?;
        schema
            .check(arguments)
            .map_err(|error| Error::usage(format!("the arguments of `{tool}`: {error}")))
    }

    /// What calls of a plugin's tools run on: planned and linked once.
    async fn callable(&self, plugin: &PluginName) -> Result<Arc<Callable>, Error> {
        let cell = {
            let mut all = self.0.callable.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(plugin.clone()).or_default())
        };
        let made = || async {
            let mut archetype = Archetype::new(
                "call".parse().map_err(|error| Error::usage(format!("{error}")))?,
                "One call.",
                "",
            );
            archetype.origin = "fief call".into();
            archetype.tools = Some(vec![ToolGrant {
                plugin: plugin.clone(),
                digest: None,
                allow: None,
                grant: GrantRequest::Policy,
            }]);
            let world = World {
                model: Some("none".into()),
                ..(**self.world()).clone()
            };
            let Planned { spec, left_out, .. } = plan::main(&world, &archetype)?;
            let kit = Kit::new(&*self.supply(), spec, Vec::new())
                .await
                .map_err(Error::usage)?;
            Ok(Arc::new(Callable { kit, left_out }))
        };
        cell.get_or_try_init(made).await.cloned()
    }

    /// The tool that is meant by `PLUGIN.TOOL`.
    fn find(&self, text: &str) -> Result<ToolRef, Error> {
        let plugins = &self.world().plugins;
        let all = || {
            plugins
                .values()
                .flat_map(|plugin| plugin.tools.iter().map(|tool| format!("{}.{}", plugin.name, tool.name)))
        };
        let unknown = |message: String| {
            let names: Vec<String> = all().collect();
            let near = fief_core::nearest(text, names.iter().map(String::as_str));
            let mut hints: Vec<String> = near.map(|near| format!("did you mean `{near}`?")).into_iter().collect();
            if names.is_empty() {
                hints.push("no plugin was found: `--plugins DIR` names a directory, `fief plugin install` fills the user's own".into());
            }
            Error::Usage { message, hints }
        };
        let tool: ToolRef = text.parse().map_err(|error| unknown(format!("{error}")))?;
        let plugin: &PluginName = &tool.plugin;
        let Some(found) = plugins.get(plugin) else {
            return Err(unknown(format!("there is no plugin `{plugin}`")));
        };
        if found.tools.iter().any(|one| one.name == tool.tool) {
            return Ok(tool);
        }
        let has: Vec<&str> = found.tools.iter().map(|one| one.name.as_str()).collect();
        Err(unknown(format!(
            "plugin `{plugin}` has no tool `{}`: it has {}",
            tool.tool,
            has.join(", ")
        )))
    }
}
