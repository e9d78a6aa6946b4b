//! A person at a terminal: a command under a pseudo-terminal of its own, typed at as a test says.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Runs a command below a pseudo-terminal. Python has one in its standard library, and makes the terminal the
/// command's own, so that Ctrl-C interrupts it. Waiting for a text takes two minutes at most, which no step comes near.
const DRIVER: &str = r#"
import fcntl, json, os, pty, select, struct, sys, termios, time
spec = json.load(sys.stdin)
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    os.chdir(spec["directory"])
    os.execve(spec["program"], [spec["program"]] + spec["arguments"], spec["environment"])
seen, at, ended = b"", 0, False
def read(until):
    global seen, ended
    while not ended and not until():
        if not select.select([fd], [], [], 120)[0]:
            break
        try:
            more = os.read(fd, 65536)
        except OSError:
            more = b""
        ended = not more
        seen += more
for wait, pause, type in spec["steps"]:
    wait = wait.encode()
    read(lambda: wait in seen[at:])
    if wait not in seen[at:]:
        sys.exit("`%s` was never shown; what was:\n%s" % (wait.decode(), seen.decode("utf-8", "replace")))
    at = seen.index(wait, at) + len(wait)
    time.sleep(pause)
    os.write(fd, type.encode())
read(lambda: False)
_, status = os.waitpid(pid, 0)
print(json.dumps({"shown": seen.decode("utf-8", "replace"), "code": os.waitstatus_to_exitcode(status)}))
"#;

/// One thing that the person does: waits until a text is shown, thinks for so many seconds, types.
pub struct Step(pub &'static str, pub f64, pub &'static str);

/// What the terminal showed in the end, and the exit code. `None` where there is no Python to make a terminal.
pub fn at_a_terminal(command: &Command, steps: &[Step]) -> Option<(String, i64)> {
    let text = |text: &std::ffi::OsStr| text.to_str().expect("it is text").to_owned();
    let environment: serde_json::Map<String, Value> = command
        .get_envs()
        .filter_map(|(name, value)| Some((text(name), Value::from(text(value?)))))
        .chain([("TERM".to_owned(), Value::from("xterm"))])
        .collect();
    let spec = json!({
        "program": text(command.get_program()),
        "arguments": command.get_args().map(text).collect::<Vec<_>>(),
        "directory": command.get_current_dir().expect("it runs somewhere"),
        "environment": environment,
        "steps": steps.iter().map(|Step(wait, pause, types)| json!([wait, pause, types])).collect::<Vec<_>>(),
    });
    let driver = Command::new("python3")
        .args(["-c", DRIVER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut driver = match driver {
        Ok(driver) => driver,
        Err(error) => {
            super::skip("a test at a terminal", &format!("python3: {error}"));
            return None;
        }
    };
    // Dropped, and so closed, at the end of the statement.
    driver
        .stdin
        .take()
        .unwrap()
        .write_all(spec.to_string().as_bytes())
        .unwrap();
    let output = driver.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let line: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    Some((
        line["shown"].as_str().unwrap().to_owned(),
        line["code"].as_i64().unwrap(),
    ))
}
