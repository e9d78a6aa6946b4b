//! One call of one tool, without a model: what the plugin needs, within policy.

use std::sync::Arc;

use fief_core::event::Event;
use fief_core::id::{PluginName, ToolRef};
use fief_core::manifest::archetype::{Archetype, GrantRequest, ToolGrant};
use fief_core::plan::{self, LeftOut};
use fief_core::tool::{Invocation, Outcome, OutcomeKind};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::Host;
use crate::drive::Run;
use crate::drive::agent::Body;
use crate::drive::ask::{Asker, Question};
use crate::drive::stream::{Emitter, EventStream, Source};
use crate::error::Error;

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
        let Some((_, spec)) = planned.spec.tools.get(&tool.to_string()) else {
            // Every interface that is missing is named there, with the flag that would allow it.
            let why: Vec<String> = planned.left_out.iter().map(LeftOut::with_flag).collect();
            return Ok(Outcome::refused(OutcomeKind::Denied, why.join("\n")));
        };
        let stream = EventStream::new("call".into(), self.redactor(), None, 0, Some(events));
        let run = Run::new(
            world,
            self.supply(),
            stream.clone(),
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
        let body = Body::with_tools(run, planned.spec, Emitter::new(stream, Source::default()))
            .await
            .map_err(Error::usage)?;
        Ok(body
            .call(Invocation {
                call: "1".into(),
                tool,
                arguments,
            })
            .await)
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
