//! `fief demo`: recorded tasks on real files, through the real sandbox, without a key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fief::core::manifest::archetype::{Archetype, Dynamic, GrantRequest, ToolGrant};
use fief::core::port::Model;
use fief::{Host, HostOptions, SessionOptions};

use super::plugin::source;
use crate::args::{Demo, DemoKind};
use crate::exit::{Exit, Fault};
use crate::plugin::build;
use crate::render::text::{Paint, width};
use crate::render::{self, Mode, View, tree};
use crate::{person, watch};

/// The files that the task is about, for a `fief` that was copied away from its checkout.
const CONTRACT: [(&str, &str); 4] = [
    ("wit/person.wit", include_str!("../../../../wit/person.wit")),
    ("wit/toolbox.wit", include_str!("../../../../wit/toolbox.wit")),
    ("wit/tools.wit", include_str!("../../../../wit/tools.wit")),
    ("wit/types.wit", include_str!("../../../../wit/types.wit")),
];

/// Pages for the worker, and a Markdown archetype as users of other agents keep them.
const PAGES: [(&str, &str); 4] = [
    ("pages/catmull.md", include_str!("../../demo/pages/catmull.md")),
    ("pages/hanrahan.md", include_str!("../../demo/pages/hanrahan.md")),
    (
        "pages/turing-award.md",
        include_str!("../../demo/pages/turing-award.md"),
    ),
    ("agents/reviewer.md", include_str!("../../demo/reviewer.md")),
];

/// A recorded demonstration.
struct Recording {
    /// What messages call the recorded model.
    name: &'static str,
    /// The recorded model's lines.
    lines: &'static str,
    task: &'static str,
    /// What it calls, by plugin.
    plugins: &'static [&'static str],
    /// The main agent's archetype.
    archetype: &'static str,
    /// The built-in archetypes that are registered.
    builtin: &'static [&'static str],
    /// Whether it plays on the checkout's own files, where there is one.
    in_checkout: bool,
}

const TOUR: Recording = Recording {
    name: "demo",
    lines: include_str!("../../demo/tour.jsonl"),
    task: "Which interfaces of the plugin contract exist only where they were granted, and what are they for?",
    plugins: &["files", "web"],
    archetype: "main",
    builtin: &["default", "explore"],
    in_checkout: true,
};

const SPAWN: Recording = Recording {
    name: "spawn",
    lines: include_str!("../../demo/spawn.jsonl"),
    task: "What can go wrong with a tool, how long is the promise, and is the tools interface documented?",
    plugins: &["files", "web", "word-count"],
    ..TOUR
};

const INHERITING: Recording = Recording {
    name: "inheriting",
    lines: include_str!("../../demo/inheriting.jsonl"),
    task: "Explain wit/person.wit to somebody who has never seen one.",
    plugins: &["files"],
    archetype: "inheriting",
    ..TOUR
};

const BOUNDED: Recording = Recording {
    name: "bounded",
    lines: include_str!("../../demo/bounded.jsonl"),
    task: "What is (17 + 4) * 2 ^ 10, and how many words has \"one two three\"?",
    plugins: &["calculator", "word-count"],
    archetype: "bounded",
    ..TOUR
};

const WORKER: Recording = Recording {
    name: "worker",
    lines: include_str!("../../demo/worker.jsonl"),
    task: "Who were the doctoral advisors of the winners of the 2019 Turing Award? Give the sources.",
    plugins: &["files"],
    archetype: "researcher",
    in_checkout: false,
    ..TOUR
};

pub(crate) async fn demo(args: Demo) -> Result<Exit, Fault> {
    let here = std::env::current_dir().map_err(|error| Fault::usage(format!("the working directory: {error}")))?;
    let checkout = here.ancestors().find(|folder| is_checkout(folder)).map(Path::to_owned);
    let recordings = match args.which {
        None => vec![TOUR],
        Some(DemoKind::Spawn) => vec![SPAWN],
        Some(DemoKind::Dynamic) => vec![INHERITING, BOUNDED],
        Some(DemoKind::Worker) => vec![WORKER],
    };
    let mut last = Exit::Done;
    for recording in &recordings {
        let stage = Stage::new(recording, checkout.as_deref())?;
        last = play(recording, stage.options(recording)?, args.json).await?;
        if last != Exit::Done {
            return Ok(last);
        }
    }
    if !args.json {
        let fief = if std::env::var_os("CARGO").is_some() {
            "cargo run --release --"
        } else {
            "fief"
        };
        render::note(&format!(
            "\nnext, with a model of your own:\n  OPENAI_API_KEY=… {fief} run --model openai:NAME \"What does this project do?\""
        ));
    }
    Ok(last)
}

/// Archetypes that the demonstrations make in Rust.
fn made(recording: &Recording) -> Result<Vec<Archetype>, Fault> {
    let grant = |plugin: &str, tools: Option<&[&str]>| -> Result<ToolGrant, Fault> {
        let name = |tool: &&str| tool.parse().map_err(|error| Fault::usage(format!("{error}")));
        Ok(ToolGrant {
            plugin: plugin.parse().map_err(|error| Fault::usage(format!("{error}")))?,
            digest: None,
            allow: tools.map(|tools| tools.iter().map(name).collect()).transpose()?,
            grant: GrantRequest::Policy,
        })
    };
    let new = |description: &str, instruction: &str| -> Result<Archetype, Fault> {
        let name = if recording.name == "spawn" {
            "counter"
        } else {
            recording.archetype
        };
        let name = name.parse().map_err(|error| Fault::usage(format!("{error}")))?;
        Ok(Archetype::new(name, description, instruction))
    };
    let reads = || grant("files", Some(&["read", "glob", "grep"]));
    Ok(vec![match recording.name {
        "spawn" => {
            let mut counter = new(
                "Counts words, with a tool for it.",
                "You count words with your tool, and say the number alone.",
            )?;
            counter.tools = Some(vec![grant("word-count", None)?]);
            counter
        }
        "inheriting" => {
            let mut main = new(
                "Reads files, and makes up experts.",
                "You work on a task, and make up an expert where one helps.",
            )?;
            main.tools = Some(vec![reads()?]);
            main.dynamic = Some(Dynamic::default());
            main
        }
        "bounded" => {
            let mut main = new(
                "Holds nothing, and makes up experts.",
                "You work on a task through experts that you make up.",
            )?;
            main.tools = Some(Vec::new());
            main.dynamic = Some(Dynamic {
                tools: Some(vec![grant("calculator", None)?, grant("word-count", None)?]),
                ..Dynamic::default()
            });
            main
        }
        "worker" => {
            let mut main = new(
                "Plans research, and hands out the parts.",
                "You plan, hand out subtasks, and put the parts together.",
            )?;
            main.tools = Some(vec![reads()?]);
            main.agent_tools = Some(vec![
                "agent-worker"
                    .parse()
                    .map_err(|error| Fault::usage(format!("{error}")))?,
            ]);
            main
        }
        _ => return Ok(Vec::new()),
    }])
}

fn is_checkout(folder: &Path) -> bool {
    folder.join("plugins/files/plugin.toml").is_file()
        && folder.join("host/cli/Cargo.toml").is_file()
        && folder.join("wit").is_dir()
}

/// Where a demonstration plays.
struct Stage {
    work: PathBuf,
    /// One directory for each plugin: what else lies beside it is of no interest.
    plugins: Vec<PathBuf>,
    /// Kept as long as it plays.
    files: Option<tempfile::TempDir>,
}

impl Stage {
    /// In a checkout its own files and plugins, built if they are missing or stale; elsewhere installed plugins, and
    /// the files that were compiled in.
    fn new(recording: &Recording, checkout: Option<&Path>) -> Result<Self, Fault> {
        if let Some(root) = checkout {
            let plugins = root.join("plugins");
            for name in recording.plugins {
                let source = source(&plugins.join(name))?;
                if source.is_stale() {
                    build::build(&source)?;
                }
            }
            let plugins = recording.plugins.iter().map(|name| plugins.join(name)).collect();
            if recording.in_checkout && recording.name != "spawn" {
                return Ok(Self {
                    work: root.to_owned(),
                    plugins,
                    files: None,
                });
            }
            let files = write_files()?;
            let work = if recording.in_checkout {
                root.to_owned()
            } else {
                files.path().to_owned()
            };
            return Ok(Self {
                work,
                plugins,
                files: Some(files),
            });
        }
        let installed = fief::folders::Folders::of_user().plugins();
        let missing: Vec<&str> = recording
            .plugins
            .iter()
            .copied()
            .filter(|name| {
                !installed.join(name).join(format!("{name}.wasm")).is_file()
                    && !installed.join(format!("{name}.wasm")).is_file()
            })
            .collect();
        if !missing.is_empty() {
            let paths: Vec<String> = missing.iter().map(|name| format!("plugins/{name}")).collect();
            let message = format!(
                "the demonstration needs plugins that are not installed: {}",
                missing.join(", ")
            );
            return Err(Fault::usage(message).hint(format!(
                "in a checkout of Fief, `fief plugin install {}` installs them",
                paths.join(" ")
            )));
        }
        let files = write_files()?;
        Ok(Self {
            work: files.path().to_owned(),
            plugins: vec![installed],
            files: Some(files),
        })
    }

    fn options(&self, recording: &Recording) -> Result<HostOptions, Fault> {
        let mut options = HostOptions {
            forward_events: true,
            observed: true,
            plugins: self.plugins.clone(),
            made: made(recording)?,
            builtin: Some(recording.builtin.iter().map(|name| (*name).to_owned()).collect()),
            progress: Some(Arc::new(render::note)),
            ..HostOptions::embedded(self.work.clone())
        };
        if let (Some(files), "spawn") = (&self.files, recording.name) {
            options.archetypes.push(files.path().join("agents"));
        }
        Ok(options)
    }
}

/// A directory with the files that were compiled in.
fn write_files() -> Result<tempfile::TempDir, Fault> {
    let failed = |error: std::io::Error| Fault::usage(format!("a temporary directory: {error}"));
    let files = tempfile::tempdir().map_err(failed)?;
    for (name, text) in CONTRACT.iter().chain(&PAGES) {
        let path = files.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(files.path())).map_err(failed)?;
        std::fs::write(&path, text).map_err(failed)?;
    }
    Ok(files)
}

/// Plays a recording, and ends with its report and a tree of what happened.
async fn play(recording: &Recording, options: HostOptions, as_json: bool) -> Result<Exit, Fault> {
    let model: Arc<dyn Model> = fief::script(recording.name, recording.lines).map_err(Fault::usage)?;
    let options = options.model_made(&format!("script:{}", recording.name), model);
    let host = Host::open(options).await?;
    for warning in host.warnings() {
        render::warn(warning);
    }
    if !as_json {
        render::note(&format!("task: {}", recording.task));
    }
    let (sender, mut questions) = person::questions(as_json);
    let options = SessionOptions {
        archetype: Some(recording.archetype.into()),
        record: Some(host.folders().runs()),
        questions: sender,
        ..SessionOptions::default()
    };
    let mut session = host.session(options).await?;
    let mut events = session.events();
    let mut view = View::new(if as_json { Mode::Json } else { Mode::People });
    let report = watch::task(
        &mut session,
        recording.task.to_owned(),
        &mut events,
        &mut questions,
        &mut view,
    )
    .await;
    let exit = watch::exit(&report);
    if !as_json {
        render::note("");
        render::data(&report.text);
        if let Some(folder) = session.folder() {
            let events = fief::record::Past::open(folder).and_then(|past| past.events());
            let events = events.map_err(|error| Fault::usage(error.to_string()))?;
            render::note("\nwhat happened:");
            render::painted_note(&tree::tree(&events, Paint::for_stderr(), width().unwrap_or(120)).join("\n"));
        }
    }
    super::flush(&host).await;
    match report.failure {
        Some(failure) if exit != Exit::Done => Err(Fault::new(exit, failure.message)),
        _ => Ok(exit),
    }
}
