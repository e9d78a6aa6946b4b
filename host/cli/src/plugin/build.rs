//! Builds a Rust plugin with cargo for `wasm32-wasip2` and puts the component beside its manifest.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use serde_json::Value;

use crate::exit::Fault;
use crate::render;

/// The target of every plugin: WASI 0.2 components.
pub(crate) const TARGET: &str = "wasm32-wasip2";

/// Variables that an outer cargo, or a user's setting for the host, leaves behind and that break or misplace a build
/// for wasm: native code generation flags, another target, the outer package's own description.
const LEFTOVERS: [&str; 7] = [
    "RUSTFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_TARGET_DIR",
    "CARGO_MANIFEST_DIR",
    "RUSTC",
];

/// A plugin's folder with its source.
#[derive(Debug)]
pub(crate) struct Source {
    /// The folder, canonical.
    pub(crate) dir: PathBuf,
    /// The plugin's name.
    pub(crate) name: String,
}

impl Source {
    /// Where the component belongs: `NAME/NAME.wasm`.
    pub(crate) fn component(&self) -> PathBuf {
        self.dir.join(format!("{}.wasm", self.name))
    }

    /// Whether the component is missing or older than something that it is made from.
    pub(crate) fn is_stale(&self) -> bool {
        let Some(built) = modified(&self.component()) else {
            return true;
        };
        let mut sources = vec![self.dir.clone()];
        let workspace = self.dir.parent().unwrap_or(&self.dir);
        let shared = ["Cargo.lock", "Cargo.toml"].map(|file| workspace.join(file));
        if shared
            .iter()
            .any(|file| modified(file).is_some_and(|time| time > built))
        {
            return true;
        }
        while let Some(path) = sources.pop() {
            let Ok(entries) = fs::read_dir(&path) else { continue };
            for entry in entries.flatten() {
                let (path, name) = (entry.path(), entry.file_name());
                if path.is_dir() {
                    if name != "target" {
                        sources.push(path);
                    }
                } else if path
                    .extension()
                    .is_some_and(|end| ["rs", "toml", "wit", "lock"].iter().any(|is| end == *is))
                    && modified(&path).is_some_and(|time| time > built)
                {
                    return true;
                }
            }
        }
        false
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

/// Builds one plugin and returns the component's path. `--locked` where the workspace has a lock file would refuse a
/// plugin that is being written; so that is left to the plugin's own workspace.
pub(crate) fn build(source: &Source) -> Result<PathBuf, Fault> {
    if !source.dir.join("Cargo.toml").is_file() {
        let missing = format!("`{}` has no Cargo.toml: it is no Rust plugin", source.dir.display());
        return Err(Fault::usage(missing)
            .hint("a plugin of another language is built by its own tools and put beside plugin.toml"));
    }
    need_cargo(&source.dir)?;
    need_target(&source.dir)?;
    if !target_dir_has_builds(&source.dir) {
        render::note(&format!(
            "building `{}`: the first time takes a minute or two",
            source.name
        ));
    } else {
        render::note(&format!("building `{}`", source.name));
    }
    let built = cargo_build(source)?;
    let place = source.component();
    let bytes = fs::read(&built).map_err(|error| Fault::usage(format!("{}: {error}", built.display())))?;
    let write = || -> std::io::Result<()> {
        // In one step, so that a run that starts meanwhile never sees half a file.
        let mut file = tempfile::Builder::new().prefix(".building-").tempfile_in(&source.dir)?;
        std::io::Write::write_all(&mut file, &bytes)?;
        file.persist(&place)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&place, fs::Permissions::from_mode(0o644))?;
        }
        Ok(())
    };
    write().map_err(|error| Fault::usage(format!("{}: {error}", place.display())))?;
    Ok(place)
}

fn command(program: impl AsRef<OsStr>, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).stdin(Stdio::null());
    for name in LEFTOVERS {
        command.env_remove(name);
    }
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_PROFILE_"))
        {
            command.env_remove(name);
        }
    }
    command
}

/// Whether cargo answers, as seen from a plugin's folder.
pub(crate) fn need_cargo(dir: &Path) -> Result<String, Fault> {
    match command("cargo", dir).arg("--version").output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Ok(output) => Err(Fault::usage(format!(
            "`cargo --version` failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))
        .hint("`rustup show` says which tool chain is meant")),
        Err(error) => Err(Fault::usage(format!(
            "`cargo` cannot be run: {error}; a Rust plugin is built with it"
        ))
        .hint("install Rust from https://rustup.rs")),
    }
}

/// Whether the standard library for [`TARGET`] is there.
pub(crate) fn has_target(dir: &Path) -> bool {
    let output = command("rustc", dir)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output();
    output.is_ok_and(|output| {
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        output.status.success() && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
    })
}

fn need_target(dir: &Path) -> Result<(), Fault> {
    if has_target(dir) {
        return Ok(());
    }
    render::note(&format!(
        "the Rust target `{TARGET}` is missing: adding it with `rustup target add {TARGET}`"
    ));
    match command("rustup", dir).args(["target", "add", TARGET]).stdout(Stdio::null()).status() {
        Ok(status) if status.success() && has_target(dir) => Ok(()),
        Ok(status) => Err(Fault::usage(format!("`rustup target add {TARGET}` failed ({status})"))
            .hint("it needs the network once; run it by hand to see more")),
        Err(error) => Err(Fault::usage(format!("the Rust target `{TARGET}` is missing, and `rustup` cannot be run: {error}"))
            .hint(format!("install rustup from https://rustup.rs, or the `{TARGET}` standard library with your system's package manager"))),
    }
}

fn target_dir_has_builds(dir: &Path) -> bool {
    let folders = [Some(dir), dir.parent()];
    folders
        .into_iter()
        .flatten()
        .any(|dir| dir.join("target").join(TARGET).join("release").is_dir())
}

/// Runs cargo and finds the component among the artifacts that it says it made, wherever the target directory is.
fn cargo_build(source: &Source) -> Result<PathBuf, Fault> {
    let output = command("cargo", &source.dir)
        .args([
            "build",
            "--release",
            "--target",
            TARGET,
            "--message-format=json-render-diagnostics",
        ])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Fault::usage(format!("`cargo build` cannot be run: {error}")))?;
    if !output.status.success() {
        return Err(Fault::usage(format!(
            "`cargo build` failed for plugin `{}` ({})",
            source.name, output.status
        ))
        .hint("the compiler's words are above"));
    }
    let manifest = source.dir.join("Cargo.toml");
    let made: Vec<PathBuf> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter(|message| message["reason"] == "compiler-artifact")
        .filter(|message| {
            message["manifest_path"]
                .as_str()
                .is_some_and(|path| Path::new(path).canonicalize().is_ok_and(|path| path == manifest))
        })
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .filter(|file| file.extension().is_some_and(|end| end == "wasm"))
        .collect();
    match made.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Fault::usage(format!("`{}` made no component", manifest.display()))
            .hint("its Cargo.toml needs `[lib]` with `crate-type = [\"cdylib\"]`")),
        many => {
            let stem = source.name.replace('-', "_");
            many.iter()
                .find(|file| {
                    file.file_stem()
                        .is_some_and(|name| name == stem.as_str() || name == source.name.as_str())
                })
                .cloned()
                .ok_or_else(|| {
                    Fault::usage(format!(
                        "`{}` made {} components, none named after the plugin",
                        manifest.display(),
                        many.len()
                    ))
                })
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn source(dir: &Path) -> Source {
        Source {
            dir: dir.canonicalize().unwrap(),
            name: "echo".into(),
        }
    }

    #[test]
    fn a_component_is_stale_until_it_is_newer_than_its_sources() {
        let dir = tempfile::tempdir().unwrap();
        let plugin = dir.path().join("echo");
        fs::create_dir_all(plugin.join("src")).unwrap();
        fs::write(plugin.join("src/lib.rs"), "").unwrap();
        let source = source(&plugin);
        assert!(source.is_stale(), "there is none");
        fs::write(source.component(), "").unwrap();
        assert!(!source.is_stale());
        let later = SystemTime::now() + std::time::Duration::from_secs(5);
        fs::File::open(plugin.join("src/lib.rs"))
            .unwrap()
            .set_modified(later)
            .unwrap();
        assert!(source.is_stale(), "its source is newer");
    }

    #[test]
    fn a_folder_without_a_crate_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let fault = build(&source(dir.path())).unwrap_err();
        assert!(
            fault.message.ends_with("has no Cargo.toml: it is no Rust plugin"),
            "{}",
            fault.message
        );
    }
}
