//! The time of day, as events and records write it.

use time::OffsetDateTime;
use time::macros::format_description;

/// Now, by RFC 3339, in UTC, to the millisecond.
pub(crate) fn now() -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    OffsetDateTime::now_utc()
        .format(&format)
        .unwrap_or_else(|_| "1970-01-01T00:00:00.000Z".into())
}

/// A name for a run: sorted by name is sorted by time, and 32 random bits keep two of one second apart.
pub(crate) fn run_id() -> String {
    let format = format_description!("[year][month][day]-[hour][minute][second]");
    let stamp = OffsetDateTime::now_utc()
        .format(&format)
        .unwrap_or_else(|_| "19700101-000000".into());
    let mut random = [0u8; 4];
    if getrandom::fill(&mut random).is_err() {
        random = std::process::id().to_be_bytes();
    }
    format!("{stamp}-{}", hex::encode(random))
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_and_run_names_have_their_form() {
        let now = super::now();
        assert_eq!(now.len(), "2026-12-01T16:23:24.000Z".len());
        assert!(now.ends_with('Z') && now.as_bytes()[10] == b'T');
        let run = super::run_id();
        assert_eq!(run.len(), "20261201-162324-00000000".len());
        assert_ne!(run, super::run_id());
    }
}
