//! The `fief` binary, run with a home of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::SystemTime;

use serde_json::Value;
use tempfile::TempDir;

/// The path of the binary. A test of the whole workspace has built it beside this test, with the same features of
/// every dependency; where it is missing, or older than its sources, cargo builds it.
pub fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let test = std::env::current_exe().expect("a test has a path");
        let beside = test
            .ancestors()
            .nth(2)
            .map(|folder| folder.join(format!("fief{}", std::env::consts::EXE_SUFFIX)));
        if let Some(beside) = beside
            && modified(&beside).is_some_and(|built| built >= newest(&super::root().join("host")))
        {
            return beside;
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["build", "--package", "fief", "--bin", "fief", "--message-format=json"])
            .current_dir(super::root())
            .stderr(std::process::Stdio::inherit())
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "the binary does not build");
        let messages = String::from_utf8(output.stdout).unwrap();
        messages
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find_map(|message| message["executable"].as_str().map(PathBuf::from))
            .expect("cargo names the executable")
    })
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

/// When anything below a folder was changed last.
fn newest(folder: &Path) -> SystemTime {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let times = entries.map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            newest(&path)
        } else {
            modified(&path).unwrap_or(SystemTime::UNIX_EPOCH)
        }
    });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// A directory to work in and a home that holds nothing of this machine's user.
pub struct Workplace {
    directory: TempDir,
}

impl Workplace {
    pub fn new() -> Self {
        let directory = TempDir::new().unwrap();
        for part in ["home", "work"] {
            std::fs::create_dir(directory.path().join(part)).unwrap();
        }
        Self { directory }
    }

    /// Where commands run.
    pub fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    /// Stands in for the user's home.
    pub fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// Writes a file below the working directory.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// The binary, in the working directory, with nothing of this machine's environment but the tool chains.
    pub fn fief<A: AsRef<std::ffi::OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let home = self.home();
        let mut command = Command::new(path());
        command.args(arguments).current_dir(self.work()).env_clear();
        for variable in ["PATH", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
            if let Some(value) = std::env::var_os(variable) {
                command.env(variable, value);
            }
        }
        if let Some(user) = std::env::var_os("HOME") {
            for (variable, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
                if std::env::var_os(variable).is_none() {
                    command.env(variable, Path::new(&user).join(folder));
                }
            }
        }
        command
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_DATA_HOME", home.join("data"))
            .env("XDG_STATE_HOME", home.join("state"))
            // One compiled store for all tests: each component is compiled once for the whole run.
            .env("XDG_CACHE_HOME", super::root().join("target/test-cache"));
        command
    }
}

/// What a finished command left.
pub struct Finished {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Runs a command to its end.
    pub fn of(mut command: Command) -> Self {
        Self::from(command.output().expect("the command starts"))
    }

    /// Standard output as one JSON value a line.
    pub fn lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }

    /// Fails with everything that was printed unless the exit code is `code`.
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "standard output:\n{}\nstandard error:\n{}",
            self.stdout, self.stderr
        );
        self
    }
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).expect("standard output is text"),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
