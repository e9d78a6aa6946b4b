//! Text as results show it.

/// `bytes` as text of at most `longest` bytes, cut between characters; and how many bytes were left out.
pub(crate) fn cut(bytes: &[u8], longest: usize) -> (String, usize) {
    if bytes.len() <= longest {
        return (String::from_utf8_lossy(bytes).into_owned(), 0);
    }
    let mut end = longest;
    // A continuation byte cannot start the part that is left out; after three there is no character to keep whole.
    while end > longest.saturating_sub(3) && bytes[end] & 0b1100_0000 == 0b1000_0000 {
        end -= 1;
    }
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), bytes.len() - end)
}

/// The line without its line break.
pub(crate) fn without_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// `1 line`, `2 lines`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{number} {many}")
    }
}
