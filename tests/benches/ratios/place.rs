//! Where the benches work, and what they run: the product, built as a user builds it, and its guest, built by it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// Why a bench did not come to its end.
pub(crate) type Broken = Box<dyn std::error::Error + Send + Sync>;
/// What a bench comes to.
pub(crate) type Ended<T> = Result<T, Broken>;

/// The checkout's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A directory of the benches' own below `target`, kept from run to run.
pub(crate) fn kept(name: &str) -> Ended<PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ratios").join(name);
    std::fs::create_dir_all(&path)?;
    Ok(path)
}

/// The same, emptied.
pub(crate) fn emptied(name: &str) -> Ended<PathBuf> {
    let path = kept(name)?;
    std::fs::remove_dir_all(&path)?;
    kept(name)
}

/// The release binary, built beside this bench.
pub(crate) fn fief() -> Ended<&'static Path> {
    Ok(&built()?.fief)
}

/// The bare program.
pub(crate) fn bare() -> Ended<&'static Path> {
    Ok(&built()?.bare)
}

struct Built {
    fief: PathBuf,
    bare: PathBuf,
}

/// Both are built at once, and with the workspace's tests in view, so that no dependency is compiled again for a set of
/// features that only one of them asks for.
fn built() -> Ended<&'static Built> {
    static BUILT: OnceLock<Built> = OnceLock::new();
    if let Some(built) = BUILT.get() {
        return Ok(built);
    }
    let target = std::env::current_exe()?;
    let target = target.ancestors().nth(3).ok_or("the bench is in no target directory")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // What the cargo that runs this bench says of it would make some build scripts run again, and dependencies compile.
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_BIN_",
            "CARGO_CRATE_",
            "CARGO_PRIMARY_",
        ]
        .iter()
        .any(|prefix| name.starts_with(prefix))
        {
            command.env_remove(&variable);
        }
    }
    let output = command
        .args(["build", "--release", "--workspace", "--bin", "fief", "--bench", "bare"])
        .args(["--message-format", "json", "--target-dir"])
        .arg(target)
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err("`cargo build --release` fails".into());
    }
    let messages = String::from_utf8(output.stdout)?;
    let messages: Vec<Value> = messages
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let executable = |name: &str| {
        let mut of_name = messages.iter().filter(|message| message["target"]["name"] == name);
        let path = of_name.find_map(|message| message["executable"].as_str().map(PathBuf::from));
        path.ok_or_else(|| format!("cargo names no executable `{name}`"))
    };
    let (fief, bare) = (executable("fief")?, executable("bare")?);
    Ok(BUILT.get_or_init(|| Built { fief, bare }))
}

/// The guest, built by the product.
pub(crate) fn guest() -> Ended<&'static [u8]> {
    static GUEST: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(bytes) = GUEST.get() {
        return Ok(bytes);
    }
    let folder = root().join("tests/benches/guest");
    finished(Command::new(fief()?).args(["plugin", "build"]).arg(&folder))?;
    let bytes = std::fs::read(folder.join("guest.wasm"))?;
    Ok(GUEST.get_or_init(|| bytes))
}

/// A plugin directory with the guest alone.
pub(crate) fn plugins() -> Ended<PathBuf> {
    let directory = kept("plugins")?;
    put(&directory.join("bench.wasm"), guest()?)?;
    Ok(directory)
}

/// Writes a file unless it is there as it should be, so that its times stay and an index still knows it.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> Ended<()> {
    if std::fs::read(path).ok().as_deref() != Some(bytes) {
        std::fs::write(path, bytes)?;
    }
    Ok(())
}

/// The same component as another: a custom section is all that tells them apart.
pub(crate) fn variant(component: &[u8], number: usize) -> Vec<u8> {
    let name = b"variant";
    let text = format!("{number:08}");
    let mut bytes = component.to_vec();
    bytes.extend([0, u8::try_from(1 + name.len() + text.len()).unwrap_or(0), 7]);
    bytes.extend(name);
    bytes.extend(text.as_bytes());
    bytes
}

/// The release binary in a home of its own, whose compiled store lies in `cache`.
pub(crate) fn at_home<A: AsRef<OsStr>>(cache: &Path, arguments: impl IntoIterator<Item = A>) -> Ended<Command> {
    let home = kept("home")?;
    let mut command = Command::new(fief()?);
    command
        .args(arguments)
        .current_dir(kept("work")?)
        .env_clear()
        .env("HOME", &home)
        .env("XDG_CACHE_HOME", cache)
        .stdin(Stdio::null());
    for (variable, folder) in [
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_STATE_HOME", "state"),
    ] {
        command.env(variable, home.join(folder));
    }
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    configure()?;
    Ok(command)
}

/// The operator's configuration, in that home.
pub(crate) fn configure() -> Ended<()> {
    let folder = kept("home/config/fief")?;
    put(&folder.join("fief.toml"), configuration().as_bytes())
}

/// What raises policy for the crowds, and says how memory is reset.
pub(crate) fn configuration() -> String {
    let scan = if scans() {
        "[sandbox]\npagemap_scan = true\n"
    } else {
        ""
    };
    format!("{scan}[policy]\nmax_children = 100000\nparallel_children = 10000\n")
}

/// Whether the benches run with `pagemap_scan`, which is not safe: `-- --pagemap-scan`.
pub(crate) fn scans() -> bool {
    std::env::args().any(|argument| argument == "--pagemap-scan")
}

/// The Python of an environment that has a package, as `name==version`; made once.
pub(crate) fn python(package: &str) -> Ended<PathBuf> {
    let environment = kept("python")?.join(package.replace("==", "-"));
    let python = environment.join("bin/python");
    let done = environment.join("done");
    if !done.exists() {
        finished(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&environment),
        )?;
        finished(Command::new(&python).args(["-m", "pip", "install", "--quiet", package]))?;
        std::fs::write(done, "")?;
    }
    Ok(python)
}

/// Runs a command to its end: what it wrote, if it did well.
pub(crate) fn finished(command: &mut Command) -> Ended<String> {
    let output = command.stderr(Stdio::piped()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!(
        "`{}` ends with {}: {why}",
        command.get_program().display(),
        output.status
    )
    .into())
}
