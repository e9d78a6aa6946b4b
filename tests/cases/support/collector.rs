//! A collector on a loopback port: takes OTLP/HTTP requests and reads the spans in them, by the published numbers of
//! their fields alone.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What a collector was sent.
#[derive(Clone, Debug)]
pub struct Received {
    /// The request line and the headers, lower case.
    pub head: String,
    /// The message.
    pub body: Vec<u8>,
}

pub struct Collector {
    pub origin: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Collector {
    /// One that accepts whatever comes.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let seen = received.clone();
        // Ends with the process of the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let seen = seen.clone();
                std::thread::spawn(move || while answer(&stream, &seen).is_some() {});
            }
        });
        Self { origin, received }
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// All spans of all requests.
    pub fn spans(&self) -> Vec<Span> {
        self.received().iter().flat_map(|one| spans(&one.body)).collect()
    }

    /// Whether `text` stands anywhere in what came.
    pub fn holds(&self, text: &str) -> bool {
        let holds = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        self.received()
            .iter()
            .any(|one| holds(&one.body) || holds(one.head.as_bytes()))
    }
}

fn answer(mut stream: &TcpStream, seen: &Mutex<Vec<Received>>) -> Option<()> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 16 << 10]);
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.unwrap().trim().parse().unwrap();
            if bytes.len() >= end + 4 + length {
                let body = bytes[end + 4..end + 4 + length].to_vec();
                seen.lock().unwrap().push(Received { head, body });
                return stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok();
            }
        }
        let count = stream.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
    }
}

/// One span as it came.
#[derive(Clone, Debug, Default)]
pub struct Span {
    pub trace: Vec<u8>,
    pub id: Vec<u8>,
    pub parent: Vec<u8>,
    pub name: String,
    /// 1 is internal, 3 a client's.
    pub kind: u64,
    pub start: u64,
    pub end: u64,
    /// 0 is unset, 2 an error.
    pub status: u64,
    pub attributes: BTreeMap<String, String>,
    /// Those of who sends.
    pub resource: BTreeMap<String, String>,
}

fn spans(body: &[u8]) -> Vec<Span> {
    let mut found = Vec::new();
    for resource_spans in children(body, 1) {
        let resource = children(resource_spans, 1)
            .flat_map(|resource| attributes(resource, 1))
            .collect();
        for span in children(resource_spans, 2).flat_map(|scope| children(scope, 2)) {
            found.push(read(span, &resource));
        }
    }
    found
}

fn read(message: &[u8], resource: &BTreeMap<String, String>) -> Span {
    let mut span = Span {
        resource: resource.clone(),
        attributes: attributes(message, 9).collect(),
        ..Span::default()
    };
    for (field, value) in fields(message) {
        match (field, value) {
            (1, Field::Bytes(bytes)) => span.trace = bytes.to_vec(),
            (2, Field::Bytes(bytes)) => span.id = bytes.to_vec(),
            (4, Field::Bytes(bytes)) => span.parent = bytes.to_vec(),
            (5, Field::Bytes(bytes)) => span.name = text(bytes),
            (6, Field::Number(kind)) => span.kind = kind,
            (7, Field::Number(time)) => span.start = time,
            (8, Field::Number(time)) => span.end = time,
            (15, Field::Bytes(status)) => {
                span.status = fields(status)
                    .find_map(|(field, value)| number(field == 3, &value))
                    .unwrap_or(0);
            }
            _ => {}
        }
    }
    span
}

/// Keys and values; a value that is no text as it is written, a list in brackets.
fn attributes(message: &[u8], field: u64) -> impl Iterator<Item = (String, String)> {
    children(message, field).map(|pair| {
        let key = children(pair, 1).next().map(text).unwrap();
        (key, children(pair, 2).next().map(any).unwrap_or_default())
    })
}

fn any(message: &[u8]) -> String {
    match fields(message).next() {
        Some((1, Field::Bytes(bytes))) => text(bytes),
        Some((2, Field::Number(flag))) => (flag == 1).to_string(),
        Some((3, Field::Number(whole))) => whole.cast_signed().to_string(),
        Some((4, Field::Number(bits))) => f64::from_bits(bits).to_string(),
        Some((5, Field::Bytes(list))) => format!("[{}]", children(list, 1).map(any).collect::<Vec<_>>().join(", ")),
        other => panic!("no value: {other:?}"),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("a text is UTF-8")
}

fn number(wanted: bool, value: &Field<'_>) -> Option<u64> {
    match value {
        Field::Number(number) if wanted => Some(*number),
        _ => None,
    }
}

#[derive(Debug)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn children(message: &[u8], wanted: u64) -> impl Iterator<Item = &[u8]> {
    fields(message).filter_map(move |(field, value)| match value {
        Field::Bytes(bytes) if field == wanted => Some(bytes),
        _ => None,
    })
}

fn fields(mut message: &[u8]) -> impl Iterator<Item = (u64, Field<'_>)> {
    std::iter::from_fn(move || {
        if message.is_empty() {
            return None;
        }
        let key = varint(&mut message);
        let value = match key & 7 {
            0 => Field::Number(varint(&mut message)),
            1 => Field::Number(u64::from_le_bytes(take(&mut message, 8).try_into().unwrap())),
            2 => {
                let length = usize::try_from(varint(&mut message)).unwrap();
                Field::Bytes(take(&mut message, length))
            }
            5 => Field::Number(u32::from_le_bytes(take(&mut message, 4).try_into().unwrap()).into()),
            other => panic!("wire type {other}"),
        };
        Some((key >> 3, value))
    })
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(message, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn take<'a>(message: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = message.split_at(count);
    *message = rest;
    taken
}
