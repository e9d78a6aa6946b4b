//! Tools: a typed function, and what a model is told of it.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::contract::orchestrator::fief::plugin::types;
use crate::{Hints, Output, ToolError};

/// From arguments, still JSON, to a result.
type Run = dyn Fn(&str) -> Result<Output, ToolError>;

/// One tool of a plugin.
pub struct Tool {
    name: &'static str,
    title: Option<&'static str>,
    description: &'static str,
    // Functions, since a call needs no schema: most instances never make one.
    input: fn() -> Value,
    output: Option<fn() -> Value>,
    hints: Hints,
    run: Box<Run>,
}

impl Tool {
    /// A tool named `name` (letters, digits, `-` and `_`, at most 48). A model chooses by `description`: what it does,
    /// and when to use it.
    pub fn new<A, T, F>(name: &'static str, description: &'static str, run: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        T: Into<Output>,
        F: Fn(A) -> Result<T, ToolError> + 'static,
    {
        let run = move |arguments: &str| {
            let arguments: A =
                serde_json::from_str(arguments).map_err(|error| ToolError::invalid(format!("`{name}`: {error}")))?;
            run(arguments).map(Into::into)
        };
        let (title, output, hints) = (None, None, Hints::empty());
        Self {
            name,
            title,
            description,
            input: schema_of::<A>,
            output,
            hints,
            run: Box::new(run),
        }
    }

    /// A name for people.
    #[must_use]
    pub fn title(mut self, title: &'static str) -> Self {
        self.title = Some(title);
        self
    }

    /// Says what the structured result holds; return it as [`Json`].
    #[must_use]
    pub fn returns<T: JsonSchema>(mut self) -> Self {
        self.output = Some(schema_of::<T>);
        self
    }

    /// It changes nothing.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.hint(Hints::READ_ONLY)
    }

    /// It may destroy what it cannot bring back.
    #[must_use]
    pub fn destructive(self) -> Self {
        self.hint(Hints::DESTRUCTIVE)
    }

    /// Twice is as once.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.hint(Hints::IDEMPOTENT)
    }

    /// It reaches beyond this machine.
    #[must_use]
    pub fn open_world(self) -> Self {
        self.hint(Hints::OPEN_WORLD)
    }

    fn hint(mut self, hint: Hints) -> Self {
        self.hints |= hint;
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name
    }

    /// Calls it as the host would: for tests.
    ///
    /// # Errors
    /// What the tool says, or [`ToolError::InvalidArguments`] for arguments that do not fit its type.
    pub fn call(&self, arguments: &str) -> Result<Output, ToolError> {
        (self.run)(arguments)
    }
}

/// A result that is data: the model reads it as JSON, and programs get it as the structured result.
#[derive(Clone, PartialEq, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize> From<Json<T>> for Output {
    fn from(value: Json<T>) -> Self {
        // A value that cannot be serialised, such as a map with keys that are no strings, is a fault of the plugin's
        // source that its first test finds.
        let text = serde_json::to_string(&value.0).expect("a plugin's result serialises to JSON");
        Self {
            structured: Some(text.clone()),
            ..Self::text(text)
        }
    }
}

/// The JSON Schema of `T` as a model reads it best: in one piece without references, without the titles that repeat
/// type names, and without number formats that JSON Schema does not know.
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(root) = &mut schema {
        root.remove("title");
        // The description of the arguments' type is for the reader of the source; the tool has its own.
        root.remove("description");
    }
    tidy(&mut schema);
    schema
}

fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            let unknown = |format: &Value| {
                format
                    .as_str()
                    .is_some_and(|f| f.starts_with("uint") || f.starts_with("int"))
            };
            if keys.get("type").is_some() && keys.get("format").is_some_and(unknown) {
                keys.remove("format");
            }
            // What an absent argument means is for its description to say; `null` says nothing.
            if keys.get("type").is_some() && keys.get("default").is_some_and(Value::is_null) {
                keys.remove("default");
            }
            keys.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

#[doc(hidden)]
#[must_use]
pub fn describe(tools: &[Tool]) -> Vec<types::Tool> {
    let describe = |tool: &Tool| types::Tool {
        name: tool.name.to_owned(),
        title: tool.title.map(str::to_owned),
        description: tool.description.to_owned(),
        input_schema: (tool.input)().to_string(),
        output_schema: tool.output.map(|schema| schema().to_string()),
        hints: tool.hints,
    };
    tools.iter().map(describe).collect()
}

#[doc(hidden)]
pub fn call(tools: &[Tool], name: &str, arguments: &str) -> Result<Output, ToolError> {
    match tools.iter().find(|tool| tool.name == name) {
        Some(tool) => tool.call(arguments),
        None => {
            let names: Vec<_> = tools.iter().map(|tool| format!("`{}`", tool.name)).collect();
            Err(ToolError::UnknownTool(format!(
                "no tool `{name}`; there are {}",
                names.join(", ")
            )))
        }
    }
}
