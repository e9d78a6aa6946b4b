//! `fief plugin`: build, check, inspect, install.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fief::core::event::CallNote;
use fief::core::grant::policy::PolicyOrigin;
use fief::core::grant::resolve::resolve;
use fief::core::id::ToolRef;
use fief::core::manifest::archetype::GrantRequest;
use fief::core::manifest::error::{ManifestWarning, Parsed, Source as Text};
use fief::core::manifest::plugin::{self as manifest, Example, Expectation, PluginManifest};
use fief::core::port::{CallContext, CallSink};
use fief::core::tool::arguments::Validator;
use fief::core::tool::{Invocation, OutcomeKind, PluginInfo};
use fief::{Host, HostOptions};
use serde_json::json;

use crate::args::Plugin;
use crate::exit::{Exit, Fault};
use crate::plugin::build::{self, Source};
use crate::render;
use crate::render::text::{Paint, one_line};

pub(crate) async fn plugin(args: Plugin) -> Result<Exit, Fault> {
    match args {
        Plugin::Build { dirs } => build(&dirs),
        Plugin::Check { path } => check(&path).await,
        Plugin::Inspect { path, json } => inspect(&path, json).await,
        Plugin::Install { paths, force } => install(&paths, force).await,
    }
}

fn build(dirs: &[PathBuf]) -> Result<Exit, Fault> {
    for dir in dirs {
        let source = source(dir)?;
        let manifest = source.dir.join("plugin.toml");
        if manifest.is_file() {
            for warning in read_manifest(&manifest)?.warnings {
                render::warn(&warning.with_its_hint());
            }
        }
        let built = build::build(&source)?;
        render::data(&built.display().to_string());
    }
    Ok(Exit::Done)
}

/// The plugin whose source lies in `dir`, its manifest checked.
pub(crate) fn source(dir: &Path) -> Result<Source, Fault> {
    let whole = dir
        .canonicalize()
        .map_err(|error| Fault::usage(format!("{}: {error}", dir.display())))?;
    if !whole.is_dir() {
        return Err(
            Fault::usage(format!("{} is no directory", dir.display())).hint("name the directory with plugin.toml")
        );
    }
    let file = whole.join("plugin.toml");
    if !file.is_file() && !whole.join("Cargo.toml").is_file() {
        return Err(
            Fault::usage(format!("{} holds neither plugin.toml nor Cargo.toml", dir.display()))
                .hint("name the directory of one plugin"),
        );
    }
    let name = whole.file_name().and_then(|name| name.to_str());
    let name = name
        .ok_or_else(|| Fault::usage(format!("{} has no name that a plugin could have", dir.display())))?
        .to_owned();
    if file.is_file() {
        read_manifest(&file)?;
    }
    Ok(Source { dir: whole, name })
}

fn read_manifest(file: &Path) -> Result<Parsed<PluginManifest>, Fault> {
    let text =
        fief::host::check::manifest_text(file).map_err(|error| Fault::usage(format!("{}: {error}", file.display())))?;
    manifest::parse(Text::new(file.display().to_string(), text)).map_err(|errors| {
        let message = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        errors
            .into_iter()
            .filter_map(|error| error.hint)
            .fold(Fault::usage(message), Fault::hint)
    })
}

/// The component that `path` means: itself, or the one in a plugin's folder.
fn component(path: &Path) -> Result<PathBuf, Fault> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let source = source(path)?;
    let component = source.component();
    if component.is_file() {
        return Ok(component);
    }
    Err(Fault::usage(format!("plugin `{}` is not built yet", path.display()))
        .hint(format!("`fief plugin build {}` builds it", path.display())))
}

/// The manifest beside a component, if there is one.
fn manifest_of(component: &Path) -> Option<PathBuf> {
    let folder = component.parent()?;
    let same = folder.file_name() == component.file_stem();
    let candidates = [
        same.then(|| folder.join("plugin.toml")),
        Some(component.with_extension("toml")),
    ];
    candidates.into_iter().flatten().find(|path| path.is_file())
}

async fn host() -> Result<Host, Fault> {
    let here = std::env::current_dir().map_err(|error| Fault::usage(format!("the working directory: {error}")))?;
    let options = HostOptions {
        progress: Some(Arc::new(render::note)),
        ..HostOptions::embedded(here)
    };
    Ok(Host::open(options).await?)
}

async fn look(host: &Host, path: &Path) -> Result<PluginInfo, Fault> {
    let component = component(path)?;
    let component = component
        .canonicalize()
        .map_err(|error| Fault::usage(format!("{}: {error}", component.display())))?;
    host.sandbox().inspect(&component).await.map_err(|error| {
        let hint = error.hint();
        hint.into_iter().fold(Fault::usage(error.to_string()), Fault::hint)
    })
}

async fn inspect(path: &Path, as_json: bool) -> Result<Exit, Fault> {
    let info = look(&host().await?, path).await?;
    if as_json {
        let shown = json!({
            "plugin": info.name,
            "version": info.version,
            "description": info.description,
            "digest": info.digest,
            "path": info.path,
            "needs": info.needs,
            "imports": info.imports,
            "filter": info.filter,
            "tools": info.tools,
        });
        render::json(&shown);
        return Ok(Exit::Done);
    }
    let paint = Paint::for_stdout();
    let mut lines = vec![
        format!("{} {}", paint.bold(info.name.as_str()), one_line(&info.version)),
        format!("  {}", one_line(&info.description)),
        format!("  {}", info.digest),
        format!("  needs {}", one_line(&json!(info.needs).to_string())),
    ];
    lines.extend(
        info.tools
            .iter()
            .map(|tool| format!("  {}  {}", paint.cyan(tool.name.as_str()), one_line(&tool.description))),
    );
    if info.filter {
        lines.push("  it is a filter".into());
    }
    lines.extend(
        info.imports
            .iter()
            .map(|import| format!("  imports {}", one_line(import))),
    );
    render::painted(&lines.join("\n"));
    Ok(Exit::Done)
}

async fn check(path: &Path) -> Result<Exit, Fault> {
    let host = host().await?;
    let info = Arc::new(look(&host, path).await?);
    let mut findings = Vec::new();
    for tool in &info.tools {
        if tool.description.trim().is_empty() {
            findings.push(format!(
                "tool `{}` has no description: a model chooses by it",
                tool.name
            ));
        }
        let schemas = [
            Some(("input", &tool.input_schema)),
            tool.output_schema.as_ref().map(|schema| ("output", schema)),
        ];
        for (which, schema) in schemas.into_iter().flatten() {
            if let Err(error) = Validator::new(schema) {
                findings.push(format!("the {which} schema of `{}`: {error}", tool.name));
            }
        }
    }
    let manifest = match manifest_of(&info.path) {
        Some(file) => {
            let read = read_manifest(&file)?;
            findings.extend(read.warnings.iter().map(ManifestWarning::with_its_hint));
            read.value
        }
        None => PluginManifest::default(),
    };
    for (number, example) in manifest.examples.iter().enumerate() {
        if let Err(why) = try_example(&host, &info, example).await {
            findings.push(format!("example {} (`{}`): {why}", number + 1, example.tool));
        }
    }
    if findings.is_empty() {
        let tried = manifest.examples.len();
        render::data(&format!(
            "clean: {}, {} tools, {tried} examples",
            info.name,
            info.tools.len()
        ));
        return Ok(Exit::Done);
    }
    for finding in findings {
        render::warn(&finding);
    }
    Ok(Exit::Failed)
}

/// Runs an example with what the plugin needs, within what can be had without configuration.
async fn try_example(host: &Host, plugin: &Arc<PluginInfo>, example: &Example) -> Result<(), String> {
    let tool = plugin
        .tools
        .iter()
        .find(|tool| tool.name.as_str() == example.tool)
        .ok_or("there is no such tool")?;
    let schema = Validator::new(&tool.input_schema).map_err(|error| error.to_string())?;
    schema.check(&example.arguments).map_err(|error| error.to_string())?;
    // What a capability opens is linked, so that the component starts; nothing real is behind it but the files of the
    // working directory, for reading. Requests may go to a host that cannot exist, and nobody answers a question.
    let mut policy = host.world().policy.clone();
    let nowhere = "https://plugin-check.invalid"
        .parse()
        .map_err(|error| format!("{error}"))?;
    policy.net = vec![PolicyOrigin {
        pattern: nowhere,
        private: false,
        rule: "`fief plugin check`".into(),
    }];
    (policy.toolbox, policy.person) = (true, true);
    let resolved =
        resolve(plugin, &GrantRequest::Policy, &policy, "`fief plugin check`").map_err(|error| error.to_string())?;
    let linked = host
        .sandbox()
        .link(plugin, &resolved.grant)
        .await
        .map_err(|error| error.to_string())?;
    let tool = ToolRef {
        plugin: plugin.name.clone(),
        tool: tool.name.clone(),
    };
    let invocation = Invocation {
        call: "1".into(),
        tool,
        arguments: Arc::new(example.arguments.clone()),
    };
    let context = CallContext {
        sink: Arc::new(Nobody),
        toolbox: None,
        person: None,
    };
    let outcome = linked.call(invocation, context).await;
    let (kind, text) = (outcome.kind, outcome.text());
    let (right, expected) = match &example.expect {
        Expectation::Text(expected) => (
            kind == OutcomeKind::Ok && text == *expected,
            format!("text `{expected}`"),
        ),
        Expectation::Structured(expected) => (
            kind == OutcomeKind::Ok && outcome.structured.as_ref() == Some(expected),
            format!("structured `{expected}`"),
        ),
        Expectation::Error(expected) => (
            kind == OutcomeKind::ToolError && text.contains(expected),
            format!("an error with `{expected}`"),
        ),
    };
    if right {
        return Ok(());
    }
    let structured = outcome
        .structured
        .map(|value| format!(", structured `{value}`"))
        .unwrap_or_default();
    Err(format!(
        "expected {expected}, it came to `{text}`{structured} ({kind:?})"
    ))
}

struct Nobody;

impl CallSink for Nobody {
    fn note(&self, _: CallNote) {}
}

async fn install(paths: &[PathBuf], force: bool) -> Result<Exit, Fault> {
    let host = host().await?;
    let target = host.folders().plugins();
    for path in paths {
        if path.is_dir() {
            let source = source(path)?;
            if source.dir.join("Cargo.toml").is_file() && source.is_stale() {
                build::build(&source)?;
            }
        }
        let info = look(&host, path).await?;
        let folder = target.join(info.name.as_str());
        let place = folder.join(format!("{}.wasm", info.name));
        let flat = target.join(format!("{}.wasm", info.name));
        for old in [&place, &flat] {
            let same = fs::read(old).is_ok_and(|bytes| fief::core::id::Digest::of(&bytes) == info.digest);
            if old.exists() && !same && !force {
                return Err(Fault::usage(format!(
                    "another build of plugin `{}` is installed: {}",
                    info.name,
                    old.display()
                ))
                .hint("`--force` replaces it"));
            }
        }
        let copy = || -> std::io::Result<()> {
            fs::create_dir_all(&folder)?;
            if flat.exists() {
                fs::remove_file(&flat)?;
            }
            if let Some(manifest) = manifest_of(&info.path) {
                replace(&manifest, &folder.join("plugin.toml"))?;
            }
            replace(&info.path, &place)
        };
        copy().map_err(|error| Fault::usage(format!("{}: {error}", folder.display())))?;
        render::note(&format!("installed `{}` into {}", info.name, folder.display()));
    }
    Ok(Exit::Done)
}

/// Copies in one step: a run that starts meanwhile sees the old file or the new one.
fn replace(from: &Path, to: &Path) -> std::io::Result<()> {
    let folder = to.parent().unwrap_or(Path::new("."));
    let file = tempfile::Builder::new().prefix(".installing-").tempfile_in(folder)?;
    fs::copy(from, file.path())?;
    file.persist(to)?;
    Ok(())
}
