//! One call of one tool, without a model: what the plugin needs, within policy.

use std::sync::Arc;
use std::time::Instant;

use fief_core::event::{Event, EventKind};
use fief_core::id::{PluginName, ToolRef};
use fief_core::manifest::archetype::{Archetype, GrantRequest, ToolGrant};
use fief_core::plan::{self, LeftOut};
use fief_core::tool::{Declaration, Invocation, Outcome, OutcomeKind};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::Host;
use crate::clock;
use crate::drive::agent::Body;
use crate::drive::ask::{Asker, Question};
use crate::drive::stream::{Emitter, EventStream, Source};
use crate::drive::{Run, millis};
use crate::error::Error;
use crate::telemetry::{Note, Profile};

/// The id of the one call; those that its plugin makes are numbered below it.
const CALL: &str = "1";

/// What the collector is told of the call. No watcher and no record is: whoever makes one call has its outcome.
struct Told {
    emitter: Emitter,
    tool: ToolRef,
    started: Instant,
    ended: bool,
}

impl Told {
    fn begin(emitter: Emitter, tool: &ToolRef, arguments: &Value) -> Self {
        emitter.tell_of(EventKind::ToolStarted {
            call: CALL.into(),
            plugin: Some(tool.plugin.to_string()),
            tool: tool.to_string(),
            arguments: arguments.clone(),
        });
        Self {
            emitter,
            tool: tool.clone(),
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
        self.emitter.tell_of(EventKind::ToolFinished {
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

impl Drop for Told {
    /// Whoever waited for the call has gone.
    fn drop(&mut self) {
        if !self.ended {
            self.tell(OutcomeKind::Cancelled, "the call was cancelled".into(), None);
        }
    }
}

impl Host {
    /// Calls a tool with what its plugin needs, as wide as policy. Progress goes to `events`.
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
        let world = self.world();
        let mut archetype = Archetype::new(
            "call".parse().map_err(|error| Error::usage(format!("{error}")))?,
            "One call.",
            "",
        );
        archetype.origin = "fief call".into();
        archetype.tools = Some(vec![ToolGrant {
            plugin: tool.plugin.clone(),
            digest: None,
            allow: None,
            grant: GrantRequest::Policy,
        }]);
        let world = Arc::new(fief_core::world::World {
            model: Some("none".into()),
            ..(**world).clone()
        });
        let planned = plan::main(&world, &archetype)?;
        let trace = self.trace(&clock::run_id());
        let stream = EventStream::traced("call".into(), self.redactor(), None, 0, Some(events), trace);
        let emitter = Emitter::new(stream.clone(), Source::default());
        let Some((_, spec)) = planned.spec.tools.get(&tool.to_string()) else {
            // Every interface that is missing is named there, with the flag that would allow it.
            let why: Vec<String> = planned.left_out.iter().map(LeftOut::with_flag).collect();
            let refused = Outcome::refused(OutcomeKind::Denied, why.join("\n"));
            return Ok(Told::begin(emitter, &tool, &arguments).end(refused));
        };
        let run = Run::new(
            world,
            self.supply(),
            stream,
            Asker::new(questions),
            self.instructions(),
            0,
        );
        let checked = run
            .validators
            .get(&spec.input_schema)
            .map_err(|error| Error::usage(error.to_string()))?;
        checked
            .check(&arguments)
            .map_err(|error| Error::usage(format!("the arguments of `{tool}`: {error}")))?;
        let declaration = Declaration {
            name: tool.to_string(),
            description: spec.description.clone(),
            input_schema: spec.input_schema.clone(),
        };
        emitter.tell(&Note::Agent(&Profile {
            declarations: [declaration].into(),
            ..Profile::default()
        }));
        let body = Body::with_tools(run, planned.spec, emitter.clone())
            .await
            .map_err(Error::usage)?;
        let told = Told::begin(emitter, &tool, &arguments);
        let outcome = body
            .call(Invocation {
                call: CALL.into(),
                tool,
                arguments,
            })
            .await;
        Ok(told.end(outcome))
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
