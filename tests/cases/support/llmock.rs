//! `llmock` (PyPI), a model server that nobody here wrote: started on a loopback port, stopped when dropped.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub struct Llmock {
    process: Child,
    port: u16,
}

impl Llmock {
    /// Starts a server; `None`, and a line that says so, where the program is not installed.
    pub fn start(test: &str) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let spawned = Command::new("llmock")
            .args([
                "serve",
                "--host",
                "127.0.0.1",
                "--log-level",
                "error",
                "--port",
                &port.to_string(),
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let process = match spawned {
            Ok(process) => process,
            Err(error) => {
                super::skip(
                    test,
                    &format!("`llmock` does not start ({error}); `pip install llmock==0.2.2` brings it"),
                );
                return None;
            }
        };
        let server = Self { process, port };
        let patience = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < patience, "llmock does not listen on port {port}");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }

    /// What `OPENAI_BASE_URL` and `base_url` are to be.
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Queues what the model says or how the server fails, in order.
    #[allow(clippy::needless_pass_by_value)] // Reads better at the call: `script(json!([…]))`.
    pub fn script(&self, behaviors: Value) {
        let answer = self.request(
            "POST",
            "/_llmock/scenario",
            &json!({ "behaviors": behaviors }).to_string(),
        );
        assert!(answer["queued"].is_number(), "{answer}");
    }

    /// Every request that was served, oldest first.
    pub fn requests(&self) -> Vec<Value> {
        self.request("GET", "/_llmock/requests", "")["requests"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    }

    fn request(&self, method: &str, path: &str, body: &str) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").expect("a whole answer");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }
}

impl Drop for Llmock {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
