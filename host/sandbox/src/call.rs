//! One call: a fresh store, an instance, the guest's function, and what it came to.

use fief_core::message::Content;
use fief_core::port::{CallContext, CallVerdict, OutcomeVerdict, Subject};
use fief_core::tool::{Outcome, OutcomeKind};
use serde_json::Value;
use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, Instance, InstancePre};

use crate::bindings::{filter, types};
use crate::clock::bounded;
use crate::engine::Runtime;
use crate::host::toolbox::content_to_guest;
use crate::instance::Guest;
use crate::rights::Rights;

mod outcome;
#[cfg(test)]
mod tests;

pub(crate) use outcome::Stopped;
use outcome::{accept, explain, refused, time_up};

/// What a guest may pass to the host at once beside its result, in bytes: what the largest chunk of a body takes.
const TRANSFER: usize = 4 << 20;
/// A plugin linked under one grant, ready to be called.
pub(crate) struct Entry {
    pub(crate) pre: InstancePre<Guest>,
    pub(crate) rights: Rights,
    /// Places of the pool that a call takes.
    pub(crate) weight: u32,
    /// For messages: the plugin's name.
    pub(crate) name: String,
    pub(crate) exports: Exports,
}

/// Where a component's functions are.
pub(crate) struct Exports {
    pub(crate) list_tools: Option<ComponentExportIndex>,
    pub(crate) call_tool: Option<ComponentExportIndex>,
    pub(crate) before_call: Option<ComponentExportIndex>,
    pub(crate) after_call: Option<ComponentExportIndex>,
}

impl Exports {
    pub(crate) fn of(component: &wasmtime::component::Component) -> Self {
        let find = |interface: &str, function: &str| {
            let interface = component.get_export_index(None, interface)?;
            component.get_export_index(Some(&interface), function)
        };
        Self {
            list_tools: find(crate::component::TOOLS, "list-tools"),
            call_tool: find(crate::component::TOOLS, "call-tool"),
            before_call: find(crate::component::FILTER, "before-call"),
            after_call: find(crate::component::FILTER, "after-call"),
        }
    }
}

/// What to call.
enum Work {
    ListTools,
    CallTool { name: String, arguments: String },
    BeforeCall(filter::Subject),
    AfterCall(filter::Subject, Result<types::Output, types::ToolError>),
}

/// What the guest answered.
enum Answer {
    Tools(Vec<types::Tool>),
    Output(Result<types::Output, types::ToolError>),
    CallVerdict(filter::CallVerdict),
    OutcomeVerdict(filter::OutcomeVerdict),
}

/// Asks for the tools. Only ever done in the inspection linker.
pub(crate) async fn list_tools(
    runtime: &Runtime,
    entry: &Entry,
    context: CallContext,
) -> Result<Vec<types::Tool>, Stopped> {
    match run(runtime, entry, &entry.name, Work::ListTools, context).await? {
        Answer::Tools(tools) => Ok(tools),
        _ => unreachable!("list-tools answers with tools"),
    }
}

/// Calls a tool.
pub(crate) async fn call_tool(
    runtime: &Runtime,
    entry: &Entry,
    name: &str,
    arguments: &Value,
    context: CallContext,
) -> Outcome {
    let subject = format!("{}.{name}", entry.name);
    let work = Work::CallTool {
        name: name.to_owned(),
        arguments: text(arguments),
    };
    let answer = run(runtime, entry, &subject, work, context).await;
    let limits = &entry.rights.grant.limits;
    let mut outcome = match answer {
        Ok(Answer::Output(Ok(output))) => accept(&subject, output, limits),
        Ok(Answer::Output(Err(error))) => refused(error, limits),
        Ok(_) => unreachable!("call-tool answers with an output"),
        Err(stopped) => stopped.into(),
    };
    redact(&entry.rights, &mut outcome);
    outcome
}

/// A value as JSON. Its `Display` writes the same, through the formatting machinery, at a third of the speed.
fn text(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| value.to_string())
}

/// Takes out of an outcome what a guest may have made of a secret that reached it in spite of all.
fn redact(rights: &Rights, outcome: &mut Outcome) {
    let redactor = rights.vault.redactor();
    if redactor.is_empty() {
        return;
    }
    for content in &mut outcome.content {
        match content {
            Content::Text(text) => *text = redactor.text(text).into_owned(),
            Content::Image(blob) | Content::Audio(blob) | Content::File(blob) => {
                blob.data = redactor.bytes(&blob.data).into_owned();
            }
        }
    }
    if let Some(structured) = &mut outcome.structured {
        redactor.value(structured);
    }
    if let Some(detail) = &mut outcome.detail {
        *detail = redactor.text(detail).into_owned();
    }
}

/// Asks a filter before a call. One that cannot answer refuses.
pub(crate) async fn before_call(
    runtime: &Runtime,
    entry: &Entry,
    subject: Subject,
    context: CallContext,
) -> CallVerdict {
    let work = Work::BeforeCall(subject_to_guest(subject));
    match run(runtime, entry, &entry.name, work, context).await {
        Ok(Answer::CallVerdict(filter::CallVerdict::Pass)) => CallVerdict::Pass,
        Ok(Answer::CallVerdict(filter::CallVerdict::Refuse(reason))) => CallVerdict::Refuse(reason),
        Ok(Answer::CallVerdict(filter::CallVerdict::Change(arguments))) => match serde_json::from_str(&arguments) {
            Ok(arguments @ Value::Object(_)) => CallVerdict::Change(arguments),
            _ => CallVerdict::Refuse(format!(
                "filter `{}` changed the arguments into no JSON object",
                entry.name
            )),
        },
        Ok(_) => unreachable!("before-call answers with a verdict on a call"),
        Err(stopped) => CallVerdict::Refuse(format!("filter {}", stopped.text)),
    }
}

/// Asks a filter after a call. One that cannot answer refuses.
pub(crate) async fn after_call(
    runtime: &Runtime,
    entry: &Entry,
    subject: Subject,
    outcome: &Outcome,
    context: CallContext,
) -> OutcomeVerdict {
    let seen = match outcome.kind {
        OutcomeKind::Ok => Ok(types::Output {
            content: outcome.content.iter().cloned().map(content_to_guest).collect(),
            structured: outcome.structured.as_ref().map(Value::to_string),
        }),
        OutcomeKind::Denied => Err(types::ToolError::Denied(outcome.text())),
        _ => Err(types::ToolError::Failed(outcome.text())),
    };
    let work = Work::AfterCall(subject_to_guest(subject), seen);
    match run(runtime, entry, &entry.name, work, context).await {
        Ok(Answer::OutcomeVerdict(filter::OutcomeVerdict::Pass)) => OutcomeVerdict::Pass,
        Ok(Answer::OutcomeVerdict(filter::OutcomeVerdict::Refuse(reason))) => OutcomeVerdict::Refuse(reason),
        Ok(Answer::OutcomeVerdict(filter::OutcomeVerdict::Change(output))) => {
            let mut changed = accept(&entry.name, output, &entry.rights.grant.limits);
            if changed.kind != OutcomeKind::Ok {
                return OutcomeVerdict::Refuse(format!("filter {}", changed.text()));
            }
            // What failed has failed, whatever a filter makes of its text.
            changed.kind = outcome.kind;
            changed.detail.clone_from(&outcome.detail);
            redact(&entry.rights, &mut changed);
            OutcomeVerdict::Change(changed)
        }
        Ok(_) => unreachable!("after-call answers with a verdict on an outcome"),
        Err(stopped) => OutcomeVerdict::Refuse(format!("filter {}", stopped.text)),
    }
}

fn subject_to_guest(subject: Subject) -> filter::Subject {
    filter::Subject {
        session: subject.session.to_string(),
        tool: subject.tool,
        arguments: text(&subject.arguments),
    }
}

/// Runs one function of a fresh instance. Dropping the future drops the guest with all that it holds.
async fn run(
    runtime: &Runtime,
    entry: &Entry,
    subject: &str,
    work: Work,
    context: CallContext,
) -> Result<Answer, Stopped> {
    let limits = entry.rights.grant.limits;
    // Waiting for a place is the host's affair: the call's clock has not started.
    let place = runtime.place(entry.weight, entry.pre.engine()).await;
    let _place = place.map_err(|error| Stopped::limit(format!("`{subject}` was not run: {error}")))?;
    let guest = Guest::new(&entry.rights, context);
    let clock = std::sync::Arc::clone(&guest.clock);
    let mut store = Store::new(entry.pre.engine(), guest);
    store.limiter(|guest| &mut guest.limiter);
    let handles = usize::try_from(limits.handles).unwrap_or(usize::MAX);
    store.set_max_component_handles(handles);
    let output = usize::try_from(limits.output).unwrap_or(usize::MAX);
    store.set_hostcall_fuel(output.saturating_mul(2).saturating_add(TRANSFER));
    Runtime::yield_every_tick(&mut store);

    let call = async {
        let instance = entry.pre.instantiate_async(&mut store).await?;
        call(&mut store, &instance, &entry.exports, work).await
    };
    let answer = bounded(limits.cpu, &clock, call).await;
    match answer {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(explain(subject, &error, store.data(), &limits)),
        Err(up) => Err(time_up(subject, up, store.data(), &limits)),
    }
}

async fn call(
    store: &mut Store<Guest>,
    instance: &Instance,
    exports: &Exports,
    work: Work,
) -> wasmtime::Result<Answer> {
    fn index(index: Option<&ComponentExportIndex>) -> wasmtime::Result<&ComponentExportIndex> {
        index.ok_or_else(|| wasmtime::format_err!("the component does not export the function"))
    }
    Ok(match work {
        Work::ListTools => {
            let index = index(exports.list_tools.as_ref())?;
            let function = instance.get_typed_func::<(), (Vec<types::Tool>,)>(&mut *store, index)?;
            Answer::Tools(function.call_async(&mut *store, ()).await?.0)
        }
        Work::CallTool { name, arguments } => {
            let index = index(exports.call_tool.as_ref())?;
            type Returned = (Result<types::Output, types::ToolError>,);
            let function = instance.get_typed_func::<(&str, &str), Returned>(&mut *store, index)?;
            Answer::Output(function.call_async(&mut *store, (&name, &arguments)).await?.0)
        }
        Work::BeforeCall(subject) => {
            let index = index(exports.before_call.as_ref())?;
            type Returned = (filter::CallVerdict,);
            let function = instance.get_typed_func::<(&filter::Subject,), Returned>(&mut *store, index)?;
            Answer::CallVerdict(function.call_async(&mut *store, (&subject,)).await?.0)
        }
        Work::AfterCall(subject, outcome) => {
            let index = index(exports.after_call.as_ref())?;
            type Taken<'a> = (&'a filter::Subject, Result<&'a types::Output, &'a types::ToolError>);
            type Returned = (filter::OutcomeVerdict,);
            let function = instance.get_typed_func::<Taken<'_>, Returned>(&mut *store, index)?;
            let taken = (&subject, outcome.as_ref());
            Answer::OutcomeVerdict(function.call_async(&mut *store, taken).await?.0)
        }
    })
}
