//! One call: a fresh store, an instance, the guest's function, and what it came to.

use std::fmt;

use fief_core::grant::Limits;
use fief_core::message::{Blob, Content};
use fief_core::port::{CallContext, CallVerdict, OutcomeVerdict, Subject};
use fief_core::tool::{Outcome, OutcomeKind};
use serde_json::Value;
use wasmtime::component::{ComponentExportIndex, Instance, InstancePre};
use wasmtime::{Store, Trap};

use crate::bindings::{filter, types};
use crate::clock::{TimeUp, bounded};
use crate::engine::{CALL_STACK, Runtime};
use crate::host::toolbox::content_to_guest;
use crate::instance::Guest;
use crate::limits::Denial;
use crate::rights::Rights;

/// What a guest may pass to the host at once beside its result, in bytes: what the largest chunk of a body takes.
const TRANSFER: usize = 4 << 20;
/// How much of a guest's last words a model is shown, in bytes.
const SHOWN_WORDS: usize = 400;

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

/// A call that the sandbox ended.
pub(crate) struct Stopped {
    pub(crate) kind: OutcomeKind,
    /// For the model.
    pub(crate) text: String,
    /// For the log.
    pub(crate) detail: Option<String>,
}

impl Stopped {
    fn limit(text: String) -> Self {
        Self {
            kind: OutcomeKind::Limit,
            text,
            detail: None,
        }
    }

    fn trap(text: String) -> Self {
        Self {
            kind: OutcomeKind::Trap,
            text,
            detail: None,
        }
    }
}

impl From<Stopped> for Outcome {
    fn from(stopped: Stopped) -> Self {
        let mut outcome = Self::refused(stopped.kind, stopped.text);
        outcome.detail = stopped.detail;
        outcome
    }
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
        arguments: arguments.to_string(),
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
        arguments: subject.arguments.to_string(),
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
    let place = runtime.place(entry.weight).await;
    let _place = place.map_err(|error| Stopped::limit(format!("`{subject}` was not run: {error}")))?;
    let guest = Guest::new(&entry.rights, context);
    let clock = std::sync::Arc::clone(&guest.clock);
    let mut store = Store::new(runtime.engine(), guest);
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
        Err(up) => {
            let mut stopped = Stopped::limit(match up {
                TimeUp::Cpu => format!("`{subject}` computed for longer than its limit of {}", Span(limits.cpu)),
                TimeUp::Wall => format!("`{subject}` took longer than its limit of {}", Span(limits.wall)),
            });
            let words = store.data().words.last();
            stopped.detail = (!words.is_empty()).then(|| format!("its last words: {words}"));
            Err(stopped)
        }
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

/// Says what ended a guest: the limit with its value, or the crash with the guest's last words.
fn explain(subject: &str, error: &wasmtime::Error, guest: &Guest, limits: &Limits) -> Stopped {
    let words = guest.words.last();
    let mut stopped = reason(subject, error, guest, limits);
    if stopped.kind == OutcomeKind::Trap && !words.is_empty() {
        stopped.text.push_str("\nits last words: ");
        stopped.text.push_str(shortened(&words));
    }
    let words = if words.is_empty() {
        String::new()
    } else {
        format!("\nits last words: {words}")
    };
    stopped.detail = Some(format!("{error:?}{words}"));
    stopped
}

fn reason(subject: &str, error: &wasmtime::Error, guest: &Guest, limits: &Limits) -> Stopped {
    let memory = || format!("`{subject}` ran out of memory: its limit is {}", Size(limits.memory));
    if let Some(exit) = error.downcast_ref::<wasmtime_wasi::I32Exit>() {
        return Stopped::trap(format!(
            "`{subject}` exited with status {} instead of answering",
            exit.0
        ));
    }
    let text = format!("{error:#}");
    if text.contains("fuel allocated for hostcalls") {
        return Stopped::limit(format!(
            "`{subject}` passed more to the host than its limit: a result is at most {}",
            Size(limits.output)
        ));
    }
    if error
        .downcast_ref::<wasmtime::component::ResourceTableError>()
        .is_some()
        || text.contains("component handles")
    {
        return Stopped::limit(format!(
            "`{subject}` held more handles open than its limit of {}",
            limits.handles
        ));
    }
    if text.contains("resource limit exceeded") {
        return Stopped::limit(format!(
            "`{subject}` needs more instances, memories or tables than its limit of {} each",
            limits.instances
        ));
    }
    let trap = error.downcast_ref::<Trap>().copied();
    match (trap, guest.limiter.denial) {
        (Some(Trap::StackOverflow), _) => Stopped::limit(format!(
            "`{subject}` recursed beyond its call stack of {}",
            Size(CALL_STACK as u64)
        )),
        // An allocation that fails ends most guests: what they show of it is a trap.
        (_, Some(Denial::Memory)) => Stopped::limit(memory()),
        (_, Some(Denial::Tables)) => Stopped::limit(format!(
            "`{subject}` grew its tables beyond its limit of {} elements",
            limits.tables
        )),
        (Some(Trap::MemoryOutOfBounds), None) => Stopped::trap(format!(
            "`{subject}` crashed: it touched memory that it does not have, or overflowed the stack that it keeps there"
        )),
        (Some(Trap::UnreachableCodeReached), None) => Stopped::trap(format!("`{subject}` crashed")),
        (Some(trap), None) => Stopped::trap(format!("`{subject}` crashed: {trap}")),
        (None, None) => Stopped::trap(format!("`{subject}` failed: {}", error.root_cause())),
    }
}

/// The end of a guest's last words, from the start of its panic message if there is one.
fn shortened(words: &str) -> &str {
    let from = words.rfind("panicked at").unwrap_or(0);
    let words = &words[from..];
    if from > 0 || words.len() <= SHOWN_WORDS {
        &words[..words.floor_char_boundary(SHOWN_WORDS)]
    } else {
        &words[words.ceil_char_boundary(words.len() - SHOWN_WORDS)..]
    }
}

/// Checks what a tool returned.
fn accept(subject: &str, output: types::Output, limits: &Limits) -> Outcome {
    let parts = output.content.iter().map(|content| match content {
        types::Content::Text(text) => text.len(),
        types::Content::Image(blob) | types::Content::Audio(blob) | types::Content::File(blob) => {
            blob.data.len() + blob.media_type.len()
        }
    });
    let size = parts.sum::<usize>() + output.structured.as_ref().map_or(0, String::len);
    if size as u64 > limits.output {
        let (size, limit) = (Size(size as u64), Size(limits.output));
        return Stopped::limit(format!(
            "`{subject}` returned {size}, more than its limit of {limit}: ask it for less"
        ))
        .into();
    }
    let structured = match output.structured.as_deref().map(serde_json::from_str).transpose() {
        Ok(structured) => structured,
        Err(error) => {
            let text = format!("`{subject}` returned a structured result that is not JSON: {error}");
            return Outcome::refused(OutcomeKind::ToolError, text);
        }
    };
    let mut content = Vec::with_capacity(output.content.len());
    for part in output.content {
        content.push(match part {
            types::Content::Text(text) => Content::Text(text),
            types::Content::Image(part) => Content::Image(blob(part)),
            types::Content::Audio(part) => Content::Audio(blob(part)),
            types::Content::File(part) => Content::File(blob(part)),
        });
    }
    Outcome {
        kind: OutcomeKind::Ok,
        content,
        structured,
        detail: None,
    }
}

/// A blob whose media type is one: it ends up in requests to providers.
fn blob(blob: types::Blob) -> Blob {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "!#$&-^_.+".contains(c);
    let fits = blob.media_type.len() <= 127
        && blob.media_type.split_once('/').is_some_and(|(kind, subtype)| {
            [kind, subtype]
                .iter()
                .all(|part| !part.is_empty() && part.chars().all(allowed))
        });
    Blob {
        media_type: if fits {
            blob.media_type
        } else {
            "application/octet-stream".into()
        },
        data: blob.data,
    }
}

/// A tool's own refusal.
fn refused(error: types::ToolError, limits: &Limits) -> Outcome {
    let (what, mut text) = match error {
        types::ToolError::UnknownTool(text) => ("unknown tool", text),
        types::ToolError::InvalidArguments(text) => ("invalid arguments", text),
        types::ToolError::Denied(text) => ("denied by the tool", text),
        types::ToolError::Failed(text) => ("", text),
    };
    let most = usize::try_from(limits.output).unwrap_or(usize::MAX);
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    let text = match (what, text.trim().is_empty()) {
        ("", true) => "the tool failed and did not say why".into(),
        (what, true) => what.into(),
        ("", false) => text,
        (what, false) => format!("{what}: {text}"),
    };
    Outcome::refused(OutcomeKind::ToolError, text)
}

/// Bytes, as people write them.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        match bytes {
            _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => write!(f, "{} MiB", bytes >> 20),
            _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => write!(f, "{} KiB", bytes >> 10),
            _ => write!(f, "{bytes} bytes"),
        }
    }
}

/// A time, as people write it.
struct Span(std::time::Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.subsec_nanos() == 0 {
            write!(f, "{} s", self.0.as_secs())
        } else {
            write!(f, "{} ms", self.0.as_millis())
        }
    }
}

#[cfg(test)]
mod tests;
