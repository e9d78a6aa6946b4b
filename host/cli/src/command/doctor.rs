//! `fief doctor`: what is missing on this machine, and how to mend it.

use std::path::Path;

use fief::{Host, HostOptions};
use fief_sandbox::{Capacity, Memories};

use super::options;
use crate::args::{Allow, Doctor};
use crate::exit::{Exit, Fault};
use crate::plugin::build;
use crate::render;
use crate::render::text::{Paint, one_line, sanitise};

/// One line of the doctor's.
enum Finding {
    Fine(String),
    /// Worth knowing, and nothing is wrong.
    Note(String),
    Wrong(String, String),
}

pub(crate) async fn doctor(args: Doctor) -> Result<Exit, Fault> {
    let options = options(&args.places, &Allow::default(), None)?;
    let work = options.working_directory.clone();
    let mut findings = vec![Finding::Note(format!("fief {}", env!("CARGO_PKG_VERSION")))];
    tool_chain(&work, &mut findings);
    match Host::open(HostOptions {
        progress: Some(std::sync::Arc::new(render::note)),
        ..options
    })
    .await
    {
        Ok(host) => {
            configuration(&host, &mut findings);
            plugins(&host, &mut findings);
            models(&host, args.offline, &mut findings).await;
            sandbox(&host, &mut findings);
        }
        Err(error) => findings.push(Finding::Wrong(error.to_string(), error.hints().join("; "))),
    }
    let paint = Paint::for_stdout();
    let mut wrong = 0;
    let lines: Vec<String> = findings
        .iter()
        .map(|finding| match finding {
            Finding::Fine(text) => format!("{} {}", paint.green("✓"), sanitise(text)),
            Finding::Note(text) => format!("{} {}", paint.dim("·"), sanitise(text)),
            Finding::Wrong(text, hint) => {
                wrong += 1;
                let hint = if hint.is_empty() {
                    String::new()
                } else {
                    format!("\n  {} {}", paint.cyan("mend:"), sanitise(hint))
                };
                format!("{} {}{hint}", paint.red("✗"), sanitise(text))
            }
        })
        .collect();
    render::painted(&lines.join("\n"));
    Ok(if wrong == 0 { Exit::Done } else { Exit::Failed })
}

/// Only plugins from source need a tool chain, so that a missing one is no fault of a machine that builds none.
fn tool_chain(work: &Path, findings: &mut Vec<Finding>) {
    match build::need_cargo(work) {
        Ok(version) => {
            findings.push(Finding::Fine(version));
            findings.push(if build::has_target(work) {
                Finding::Fine(format!("the Rust target {}", build::TARGET))
            } else {
                Finding::Note(format!(
                    "the Rust target {} is missing; `fief plugin build` adds it",
                    build::TARGET
                ))
            });
        }
        Err(fault) => findings.push(Finding::Note(format!("{} ({})", fault.message, fault.hints.join("; ")))),
    }
}

fn configuration(host: &Host, findings: &mut Vec<Finding>) {
    match host.config_files() {
        [] => findings.push(Finding::Note(format!(
            "no configuration; {} would be read",
            host.folders().config_file().display()
        ))),
        files => findings.extend(
            files
                .iter()
                .map(|file| Finding::Fine(format!("configuration {}", file.display()))),
        ),
    }
    for warning in host.warnings() {
        let (hints, lines): (Vec<&str>, Vec<&str>) = warning.lines().partition(|line| line.starts_with("hint: "));
        findings.push(Finding::Wrong(lines.join("\n"), hints.join("; ").replace("hint: ", "")));
    }
}

fn plugins(host: &Host, findings: &mut Vec<Finding>) {
    for directory in host.plugin_directories() {
        findings.push(Finding::Note(format!("plugin directory {}", directory.display())));
    }
    let names: Vec<&str> = host
        .world()
        .plugins
        .keys()
        .map(fief::core::id::PluginName::as_str)
        .collect();
    findings.push(if names.is_empty() {
        Finding::Wrong(
            "no plugin was found: an agent could call nothing".into(),
            "`fief plugin install DIR` puts one into your data directory, `--plugins DIR` names another".into(),
        )
    } else {
        Finding::Fine(format!("{} plugins: {}", names.len(), names.join(", ")))
    });
    findings.push(Finding::Fine(format!("{} archetypes", host.world().archetypes.len())));
}

async fn models(host: &Host, offline: bool, findings: &mut Vec<Finding>) {
    let default = host.world().model.as_deref();
    if default.is_none() {
        findings.push(Finding::Wrong(
            "no model is configured".into(),
            "write `[run] model` and `[models]` into your fief.toml, or pass `--model openai:NAME` with OPENAI_API_KEY and \
             OPENAI_BASE_URL set"
                .into(),
        ));
    }
    for (name, config) in host.model_configs(default) {
        // A recorded model is a file: reading it asks nobody.
        if offline && config.provider != "script" {
            findings.push(Finding::Note(format!(
                "model {name}: {} {}",
                config.provider, config.model
            )));
            continue;
        }
        match host.probe(&name).await {
            Ok((text, noted)) => {
                findings.push(Finding::Fine(format!("model {name}: {}", one_line(&text))));
                findings.extend(
                    noted
                        .into_iter()
                        .map(|note| Finding::Wrong(format!("model {name}"), note)),
                );
            }
            Err(text) => findings.push(Finding::Wrong(
                format!("model {name}: {}", one_line(&text)),
                "see that the server runs, and that `base_url`, `model` and the key's variable are right".into(),
            )),
        }
    }
}

fn sandbox(host: &Host, findings: &mut Vec<Finding>) {
    let Capacity { calls, bound } = host.sandbox().capacity();
    findings.push(Finding::Fine(format!(
        "the sandbox runs {calls} calls at once, a further one waits its turn ({bound})"
    )));
    findings.push(match host.sandbox().memories() {
        Memories::Recycled => {
            Finding::Fine("memories are used again, wiped page by page: the fastest way that is safe".into())
        }
        Memories::Pooled => Finding::Note(
            "memories come from wasmtime's pool, which is slower: this system does not tell what of them was written \
             (Linux 6.7 and later do, where `/proc` is mounted)"
                .into(),
        ),
        Memories::Scanned => Finding::Note(
            "memories are wiped by `[sandbox] pagemap_scan`: a page that the system is moving or has swapped out may keep \
             what one call wrote for the next; without the setting they are safe, and no slower"
                .into(),
        ),
    });
    let store = host.folders().cache.join("store");
    if !store.is_dir() {
        findings.push(Finding::Note(format!(
            "the compiled store {} is empty",
            store.display()
        )));
        return;
    }
    match fief_sandbox::verify_store(&store) {
        Ok(damaged) if damaged.is_empty() => findings.push(Finding::Fine(format!(
            "the compiled store {} is sound",
            store.display()
        ))),
        Ok(damaged) => {
            for (path, why) in damaged {
                let text = format!("{} in the compiled store was damaged: {why}", path.display());
                findings.push(Finding::Wrong(
                    text,
                    "it was removed, and is compiled again when it is needed".into(),
                ));
            }
        }
        Err(error) => findings.push(Finding::Wrong(
            format!("the compiled store {} cannot be read: {error}", store.display()),
            "remove the directory; it is made again".into(),
        )),
    }
}
