//! A model's server on a loopback port: says what it is told to, whoever asks, and remembers the requests.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// One request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The request line and the headers, lower case.
    pub head: String,
    pub body: Value,
}

pub struct Server {
    pub origin: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// One that gives these answers (a status line, further headers, a body), one after the other, and then the last
    /// again and again.
    pub fn start(answers: Vec<(&str, &str, Value)>) -> Self {
        let answers: Vec<String> = answers
            .into_iter()
            .map(|(status, headers, body)| {
                let body = body.to_string();
                format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\
                     {headers}\r\n{body}",
                    body.len()
                )
            })
            .collect();
        Self::playing(answers.into_iter().map(String::into_bytes).collect())
    }

    /// The same with whole responses, byte for byte; each connection ends with its own.
    pub fn playing(answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let seen = asked.clone();
        // Ends with the process of the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let _ = answer(stream, &answers, &seen);
            }
        });
        Self { origin, asked }
    }

    /// One that always gives this body.
    pub fn answering(body: Value) -> Self {
        Self::start(vec![("200 OK", "", body)])
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, answers: &[Vec<u8>], seen: &Mutex<Vec<Asked>>) -> Option<()> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 16 << 10]);
    let request = loop {
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
        if bytes.len() >= end + 4 + length {
            let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default();
            break Asked { head, body };
        }
    };
    let number = {
        let mut seen = seen.lock().unwrap();
        seen.push(request);
        seen.len() - 1
    };
    stream.write_all(&answers[number.min(answers.len() - 1)]).ok()
}
