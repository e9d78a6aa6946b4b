//! Other ways to give a model a tool: servers of the Model Context Protocol, over standard input and output.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::pair::{Fief, fief_times, micros};
use crate::place::{self, Ended};
use crate::table::{Bar, Row, Table, Unit, median};

/// The rows.
pub(crate) const ROWS: &[Row] = &[
    Row::new(
        "server-node",
        "an echo of 100 bytes by Node's MCP SDK over stdio, against a call of Fief's: how many times faster",
        Bar::AtLeast(4.0),
        Unit::Ratio,
    ),
    Row::new(
        "server-python",
        "the same by Python's MCP SDK",
        Bar::AtLeast(30.0),
        Unit::Ratio,
    ),
];

/// The versions of their SDKs that are asked for.
const NODE: &str = "@modelcontextprotocol/sdk@1.32.2";
const PYTHON: &str = "mcp==2.3.0";

const ROUNDS: usize = 20;
const CALLS: usize = 50;

/// Measures them.
pub(crate) fn measure(table: &mut Table) -> Ended<()> {
    let servers: [fn() -> Ended<Command>; 2] = [node, python];
    for (row, server) in ROWS.iter().zip(servers) {
        let rows = std::slice::from_ref(row);
        if !table.wants(rows) {
            continue;
        }
        match server().and_then(Server::start) {
            Ok(server) => compare(table, row, server)?,
            Err(why) => table.skip(rows, &why.to_string()),
        }
    }
    Ok(())
}

fn compare(table: &mut Table, row: &'static Row, mut server: Server) -> Ended<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut fief = runtime.block_on(Fief::open(place::plugins()?))?;
    let work = crate::calls::small();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    runtime.block_on(fief_times(&mut fief, &work, CALLS))?;
    server.times(CALLS)?;
    for _ in 0..ROUNDS {
        ours.extend(runtime.block_on(fief_times(&mut fief, &work, CALLS))?);
        theirs.extend(server.times(CALLS)?);
    }
    let (ours, theirs) = (median(&ours), median(&theirs));
    table.put(row, theirs / ours, format!("{theirs:.0} µs against {ours:.1} µs"));
    Ok(())
}

/// Node with its SDK, installed once.
fn node() -> Ended<Command> {
    let directory = place::kept("node")?;
    if !directory.join("node_modules/@modelcontextprotocol/sdk").is_dir() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", NODE, "zod@4"]);
        place::finished(npm.current_dir(&directory))?;
    }
    // Beside its modules, where Node looks for them.
    place::put(&directory.join("echo.mjs"), include_bytes!("echo.mjs"))?;
    let mut command = Command::new("node");
    command.arg(directory.join("echo.mjs"));
    Ok(command)
}

/// Python with its SDK, in an environment of its own.
fn python() -> Ended<Command> {
    let python = place::python(PYTHON)?;
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/ratios/servers/echo.py"));
    Ok(command)
}

/// A server that runs, greeted.
struct Server {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Server {
    fn start(mut command: Command) -> Ended<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = process.stdin.take().ok_or("no standard input")?;
        let output = BufReader::new(process.stdout.take().ok_or("no standard output")?);
        let mut server = Self {
            process,
            input,
            output,
            asked: 0,
        };
        let client = json!({ "name": "fief-bench", "version": "1.0.0" });
        let greeting = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        server.ask("initialize", &greeting)?;
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    fn send(&mut self, message: &Value) -> Ended<()> {
        self.input.write_all(format!("{message}\n").as_bytes())?;
        Ok(self.input.flush()?)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Ended<Value> {
        self.asked += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }))?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let answer: Value =
            serde_json::from_str(&line).map_err(|error| format!("the server answered {line:?}: {error}"))?;
        if answer["id"] != self.asked || answer["result"].is_null() {
            return Err(format!("the server answered {line}").into());
        }
        Ok(answer)
    }

    /// The microseconds of each of so many calls.
    fn times(&mut self, calls: usize) -> Ended<Vec<f64>> {
        let text = "a".repeat(89);
        let params = json!({ "name": "echo", "arguments": { "text": text } });
        let mut taken = Vec::with_capacity(calls);
        for _ in 0..calls {
            let started = Instant::now();
            let answer = self.ask("tools/call", &params)?;
            taken.push(micros(started.elapsed()));
            if answer["result"]["content"][0]["text"] != text {
                return Err(format!("the server answered {answer}").into());
            }
        }
        Ok(taken)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
