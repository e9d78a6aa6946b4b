//! Sizes and durations as people write them.

use std::time::Duration;

/// Longer is nobody's intention, and the sum with a clock's reading must not overflow.
pub const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Bytes: a plain number, or one with a unit, such as `64MiB`, `256KiB` or `1GB` (a thousand million).
///
/// # Errors
/// What would be right.
pub fn size(text: &str) -> Result<u64, String> {
    const WANTED: &str = "a size is a number of bytes or a text such as \"64MiB\", \"256KiB\" or \"1GB\"";
    let (number, unit) = split(text).ok_or(WANTED)?;
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return Err(format!("{WANTED}, and the units are B, KB, MB, GB, KiB, MiB and GiB")),
    };
    number
        .checked_mul(factor)
        .ok_or_else(|| "this is more than any machine holds".to_owned())
}

/// Time: a number with a unit, such as `500ms`, `2s`, `10m` or `1h`.
///
/// # Errors
/// What would be right.
pub fn duration(text: &str) -> Result<Duration, String> {
    const WANTED: &str = "a duration is a text such as \"500ms\", \"2s\", \"10m\" or \"1h\"";
    let (number, unit) = split(text).ok_or(WANTED)?;
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(WANTED.to_owned()),
    };
    number
        .checked_mul(milliseconds)
        .map(Duration::from_millis)
        .filter(|duration| *duration <= LONGEST)
        .ok_or_else(|| "a duration is at most a year, 8784h".to_owned())
}

/// The whole number in front, underscores allowed between digits, and what follows it.
fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if number.starts_with('_') || number.ends_with('_') {
        return None;
    }
    Some((number.replace('_', "").parse().ok()?, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, expected) in [
            ("64MiB", Some(64 << 20)),
            ("256 KiB", Some(256 << 10)),
            ("1GB", Some(1_000_000_000)),
            ("1gib", Some(1 << 30)),
            ("512", Some(512)),
            ("10_000B", Some(10_000)),
            ("0", Some(0)),
            ("", None),
            ("MiB", None),
            ("-1MiB", None),
            ("1.5GiB", None),
            ("64M", None),
            ("_1", None),
            ("18446744073709551615GiB", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(size(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, expected) in [
            ("500ms", Some(500)),
            ("2s", Some(2_000)),
            ("10m", Some(600_000)),
            ("1h", Some(3_600_000)),
            ("8784h", Some(366 * 24 * 3_600_000)),
            ("8785h", None),
            ("2", None),
            ("2 days", None),
            ("1.5s", None),
            ("-2s", None),
            ("18446744073709551615h", None),
        ] {
            assert_eq!(duration(text).ok(), expected.map(Duration::from_millis), "{text}");
        }
    }
}
