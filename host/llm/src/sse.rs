//! Server-sent events, read incrementally from bytes that may be split anywhere.
//!
//! The format is the HTML standard's, with two departures that real servers need: a line that is bare JSON counts as
//! data (gateways write their error that way), and so does the field `error` (llama.cpp does). Invalid UTF-8 is a
//! fault and is never replaced: a path with a replacement character in it is another path.

/// The longest line, and the longest event, in bytes. Ten megabytes of arguments in one event are legitimate; without
/// any bound a server could fill the memory.
pub(crate) const MAX_EVENT: usize = 32 << 20;

/// One event.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct SseEvent {
    /// The field `event`; empty if there was none.
    pub(crate) name: String,
    /// All data lines, joined by a line feed.
    pub(crate) data: String,
}

/// What no server may send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SseFault {
    /// A line or an event above [`MAX_EVENT`].
    TooLong,
    /// A line that is not UTF-8.
    NotUtf8,
}

/// The state between two pieces of a stream.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The event that has not ended yet.
    event: SseEvent,
    /// Whether the event has any data line.
    has_data: bool,
    /// Whether the last byte was a carriage return, so that a line feed belongs to it.
    after_cr: bool,
    /// Whether the first line has ended; until then a byte order mark is skipped.
    started: bool,
}

impl SseParser {
    /// Takes a piece and appends the events that it completes to `events`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseFault> {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + piece.len() > MAX_EVENT {
                return Err(SseFault::TooLong);
            }
            self.line.extend_from_slice(piece);
            let Some(end) = end else { return Ok(()) };
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.end_line(events)?;
        }
        Ok(())
    }

    /// The stream is over: what has no blank line after it still counts, since servers forget it after their last
    /// event. Whether the answer is whole is decided by its content.
    pub(crate) fn finish(mut self, events: &mut Vec<SseEvent>) -> Result<(), SseFault> {
        if !self.line.is_empty() {
            self.end_line(events)?;
        }
        self.end_event(events);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<SseEvent>) -> Result<(), SseFault> {
        let bytes = std::mem::take(&mut self.line);
        let mut line = std::str::from_utf8(&bytes).map_err(|_| SseFault::NotUtf8)?;
        if !std::mem::replace(&mut self.started, true) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            self.end_event(events);
        } else if line.starts_with('{') {
            self.add_data(line)?;
        } else {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "data" => self.add_data(value)?,
                "event" => value.clone_into(&mut self.event.name),
                "error" => {
                    "error".clone_into(&mut self.event.name);
                    self.add_data(value)?;
                }
                // A comment (the field is empty), `id`, `retry`, and whatever else: nothing for us.
                _ => {}
            }
        }
        self.line = bytes;
        self.line.clear();
        Ok(())
    }

    fn add_data(&mut self, value: &str) -> Result<(), SseFault> {
        if self.event.data.len() + value.len() > MAX_EVENT {
            return Err(SseFault::TooLong);
        }
        if std::mem::replace(&mut self.has_data, true) {
            self.event.data.push('\n');
        }
        self.event.data.push_str(value);
        Ok(())
    }

    fn end_event(&mut self, events: &mut Vec<SseEvent>) {
        let event = std::mem::take(&mut self.event);
        if std::mem::take(&mut self.has_data) {
            events.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<SseEvent> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        for piece in pieces {
            parser.push(piece, &mut events).unwrap();
        }
        parser.finish(&mut events).unwrap();
        events
    }

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent {
            name: name.into(),
            data: data.into(),
        }
    }

    #[test]
    fn reads_fields_and_joins_data_lines() {
        let text =
            b"\xef\xbb\xbf: hello\nevent: ping\nid: 7\nretry: 10\ndata: a\ndata:b\ndata:  c\n\ndata\n\n\n\ndata: z";
        assert_eq!(
            read(&[text]),
            [event("ping", "a\nb\n c"), event("", ""), event("", "z")]
        );
    }

    #[test]
    fn bare_json_and_the_error_field_are_data() {
        assert_eq!(read(&[b"{\"error\":1}\n\n"]), [event("", "{\"error\":1}")]);
        assert_eq!(
            read(&[b"error: {\"code\":500}\n\n"]),
            [event("error", "{\"code\":500}")]
        );
    }

    #[test]
    fn an_event_without_data_is_none() {
        assert_eq!(
            read(&[b"event: ping\n\n: comment\n\nevent: x\ndata: 1\n\n"]),
            [event("x", "1")]
        );
    }

    #[test]
    fn every_split_and_every_line_ending_reads_the_same() {
        let text = "event: a\ndata: grüße 🦀\ndata: 二\n\n: keep-alive\n\ndata: [DONE]\n\n";
        let expected = [event("a", "grüße 🦀\n二"), event("", "[DONE]")];
        for ending in ["\n", "\r", "\r\n"] {
            let bytes = text.replace('\n', ending).into_bytes();
            for at in 0..=bytes.len() {
                assert_eq!(
                    read(&[&bytes[..at], &bytes[at..]]),
                    expected,
                    "{ending:?} split at {at}"
                );
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(read(&single), expected);
        }
    }

    #[test]
    fn invalid_utf8_and_endless_lines_are_faults() {
        let mut events = Vec::new();
        let mut parser = SseParser::default();
        assert_eq!(parser.push(b"data: \xff\n\n", &mut events), Err(SseFault::NotUtf8));
        let mut parser = SseParser::default();
        let piece = vec![b'x'; 1 << 20];
        let outcome = (0..40).find_map(|_| parser.push(&piece, &mut events).err());
        assert_eq!(outcome, Some(SseFault::TooLong));
    }

    #[test]
    fn ten_megabytes_in_one_line_are_read_in_one_pass() {
        let mut bytes = b"data: ".to_vec();
        bytes.resize(10 << 20, b'a');
        bytes.extend_from_slice(b"\n\n");
        let pieces: Vec<&[u8]> = bytes.chunks(1000).collect();
        assert_eq!(read(&pieces)[0].data.len(), (10 << 20) - 6);
    }
}
