//! A server on a loopback port that answers as badly as a hostile one may.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Answers every path in its own way and keeps every request as it came over the wire.
pub struct Server {
    pub port: u16,
    seen: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Starts one whose `/redirect` leads to this authority.
    pub async fn start(elsewhere: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (kept, elsewhere) = (Arc::clone(&seen), elsewhere.to_owned());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&kept), elsewhere.clone()));
            }
        });
        Self { port, seen, task }
    }

    pub fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.authority())
    }

    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, seen: Arc<Mutex<Vec<String>>>, elsewhere: String) {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read_buf(&mut bytes).await {
            Ok(read) if read > 0 => {}
            _ => break,
        }
    }
    if bytes.is_empty() {
        return;
    }
    let request = String::from_utf8_lossy(&bytes).into_owned();
    let at = {
        let mut seen = seen.lock().unwrap();
        seen.push(request.clone());
        seen.len() - 1
    };
    let path = request.split(' ').nth(1).unwrap_or_default();
    let sent = request
        .lines()
        .find_map(|line| line.strip_prefix("authorization: "))
        .unwrap_or("nothing")
        .to_owned();
    let whole = |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let answer = match path {
        "/redirect" => {
            format!("HTTP/1.1 302 Found\r\nlocation: http://{elsewhere}/stolen\r\ncontent-length: 0\r\n\r\n")
        }
        "/huge" => "HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\nx".to_owned(),
        "/huge-chunked" => {
            let piece = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(piece.as_bytes()).await.is_ok() {}
            return;
        }
        "/huge-head" => format!(
            "HTTP/1.1 200 OK\r\nx-huge: {}\r\ncontent-length: 0\r\n\r\n",
            "x".repeat(200_000)
        ),
        "/many-headers" => {
            let headers: String = (0..1_000).map(|number| format!("x-{number}: y\r\n")).collect();
            format!("HTTP/1.1 200 OK\r\n{headers}content-length: 0\r\n\r\n")
        }
        "/endless" => {
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
                .await;
            while stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            return;
        }
        "/length" => {
            // Takes whatever else comes, so that a test sees what was sent after the head.
            let mut rest = Vec::new();
            let reading = stream.read_to_end(&mut rest);
            let _ = tokio::time::timeout(std::time::Duration::from_millis(300), reading).await;
            seen.lock().unwrap()[at].push_str(&String::from_utf8_lossy(&rest));
            whole("read")
        }
        "/echo" => whole(&request),
        "/echo-pieces" => {
            let mut answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
            for piece in request.as_bytes().chunks(3) {
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.flush().await;
                answer = format!("{:x}\r\n{}\r\n", piece.len(), String::from_utf8_lossy(piece));
                tokio::task::yield_now().await;
            }
            format!("{answer}0\r\n\r\n")
        }
        "/echo-header" => {
            format!("HTTP/1.1 200 OK\r\nx-echo: {sent}\r\nset-cookie: {sent}\r\ncontent-length: 0\r\n\r\n")
        }
        "/echo-base64" => {
            let engine = base64::engine::general_purpose::STANDARD;
            whole(&format!(
                "{} {}",
                engine.encode(&sent),
                engine.encode(format!("x{sent}yz"))
            ))
        }
        "/echo-hex" => whole(&sent.bytes().map(|byte| format!("{byte:02x}")).collect::<String>()),
        "/echo-json" => whole(&sent.bytes().map(|byte| format!("\\u00{byte:02x}")).collect::<String>()),
        "/echo-url" => whole(&sent.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>()),
        "/echo-status-error" => format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {sent}\r\n\r\n"),
        _ => whole("here"),
    };
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}
