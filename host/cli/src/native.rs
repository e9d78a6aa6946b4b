//! Tools written in Rust by an embedder. They are trusted code of the host's own process: nothing sandboxes them, and
//! they stand beside the plugins under one name, with the digest of that name.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use fief_core::id::{BadName, Digest, PluginName, ToolName};
use fief_core::manifest::plugin::Needs;
use fief_core::port::{BoxFuture, CallContext};
use fief_core::tool::{Hints, Outcome, OutcomeKind, PluginInfo, ToolSpec};
use serde_json::Value;

type Handler = Arc<dyn Fn(Value, CallContext) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// A plugin whose tools are Rust functions.
///
/// ```
/// use fief::NativePlugin;
/// use serde_json::json;
///
/// let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
/// let plugin = NativePlugin::new("words")?
///     .tool("count", "Counts the words of a text.", schema, |arguments| async move {
///         let text = arguments["text"].as_str().unwrap_or_default();
///         Ok(text.split_whitespace().count().to_string())
///     })?;
/// # Ok::<(), fief::core::id::BadName>(())
/// ```
#[derive(Clone)]
pub struct NativePlugin {
    name: PluginName,
    tools: Vec<ToolSpec>,
    handlers: BTreeMap<ToolName, Handler>,
}

impl std::fmt::Debug for NativePlugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativePlugin")
            .field("name", &self.name)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

impl NativePlugin {
    /// A plugin without tools.
    ///
    /// # Errors
    /// [`BadName`] if the name is none of a plugin.
    pub fn new(name: &str) -> Result<Self, BadName> {
        Ok(Self {
            name: name.parse()?,
            tools: Vec::new(),
            handlers: BTreeMap::new(),
        })
    }

    /// Adds a tool: its arguments are valid against `input_schema` when `run` sees them; an `Err` is a tool error that
    /// the model reads. A tool of the same name is replaced.
    ///
    /// # Errors
    /// [`BadName`] if the name is none of a tool.
    pub fn tool<F, R>(mut self, name: &str, description: &str, input_schema: Value, run: F) -> Result<Self, BadName>
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, String>> + Send + 'static,
    {
        let name: ToolName = name.parse()?;
        self.tools.retain(|tool| tool.name != name);
        self.tools.push(ToolSpec {
            name: name.clone(),
            title: None,
            description: description.into(),
            input_schema: Arc::new(input_schema),
            output_schema: None,
            hints: Hints::default(),
        });
        let handler: Handler = Arc::new(move |arguments, _| {
            let result = run(arguments);
            Box::pin(async move {
                match result.await {
                    Ok(text) => Outcome::ok(text),
                    Err(why) => Outcome::refused(OutcomeKind::ToolError, why),
                }
            })
        });
        self.handlers.insert(name, handler);
        Ok(self)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &PluginName {
        &self.name
    }

    /// As grants and listings see it: it needs nothing, since nothing holds it.
    pub(crate) fn info(&self) -> PluginInfo {
        PluginInfo {
            name: self.name.clone(),
            version: String::new(),
            description: "native".into(),
            digest: Digest::of(format!("native:{}", self.name).as_bytes()),
            path: PathBuf::from("native"),
            needs: Needs::default(),
            tools: self.tools.clone(),
            imports: Vec::new(),
            filter: false,
        }
    }

    /// Runs a tool, if it has it.
    pub(crate) fn call(
        &self,
        tool: &ToolName,
        arguments: Value,
        context: CallContext,
    ) -> Option<BoxFuture<'static, Outcome>> {
        self.handlers.get(tool).map(|handler| handler(arguments, context))
    }
}
