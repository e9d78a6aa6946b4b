//! How often and how long to wait: jittered back-off, capped in tries and in time. What is worth a retry at all is
//! [`crate::fault`]'s to say.

use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use reqwest::header::HeaderMap;

/// The bounds of retrying one question.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RetryPolicy {
    /// Attempts after the first. Default: 5.
    pub retries: u32,
    /// The shortest wait; each further one is about twice as long. Default: 500 ms.
    pub first_wait: Duration,
    /// The longest wait that is the host's own choice. Default: 30 s.
    pub longest_wait: Duration,
    /// The longest time from the first attempt to the start of the last one, waits that the server asks for included.
    /// Default: 5 minutes: a rate limit by the minute passes within it, one by the day does not.
    pub total: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 5,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
            total: Duration::from_mins(5),
        }
    }
}

impl RetryPolicy {
    /// No retry at all.
    pub const NEVER: Self = Self {
        retries: 0,
        first_wait: Duration::ZERO,
        longest_wait: Duration::ZERO,
        total: Duration::ZERO,
    };

    /// The waits, one for each retry.
    pub(crate) fn waits(&self) -> impl Iterator<Item = Duration> + Send + use<> {
        let longest = self.longest_wait;
        ExponentialBuilder::new()
            .with_jitter()
            .with_factor(2.0)
            .with_min_delay(self.first_wait)
            .with_max_delay(longest)
            .with_max_times(self.retries as usize)
            .build()
            .map(move |wait| wait.min(longest))
    }
}

/// How long a server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date. A date that has passed
/// is no wait; what cannot be read is no request.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| {
        text.parse::<f64>()
            .ok()
            .filter(|number| number.is_finite() && *number >= 0.0)
    };
    if let Some(millis) = text("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let value = text("retry-after")?;
    if let Some(seconds) = number(value) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn after(name: &'static str, value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        // Thu, 01 Jan 2026 00:00:00 GMT
        retry_after(&headers, SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600))
    }

    #[test]
    fn both_forms_of_retry_after_are_read() {
        for (name, value, expected) in [
            ("retry-after", "7", Some(7000)),
            ("retry-after", " 0.5 ", Some(500)),
            ("retry-after", "Thu, 01 Jan 2026 00:00:20 GMT", Some(20_000)),
            ("retry-after", "Wed, 31 Dec 2025 23:00:00 GMT", Some(0)),
            ("retry-after-ms", "120", Some(120)),
            ("retry-after", "-1", None),
            ("retry-after", "soon", None),
            ("retry-after", "inf", None),
            ("retry-after", "1e300", None),
            ("x-other", "7", None),
        ] {
            assert_eq!(
                after(name, value),
                expected.map(Duration::from_millis),
                "{name}: {value}"
            );
        }
    }

    #[test]
    fn waits_grow_are_jittered_and_end() {
        let policy = RetryPolicy {
            retries: 8,
            first_wait: Duration::from_millis(100),
            longest_wait: Duration::from_secs(2),
            total: Duration::from_secs(60),
        };
        let waits: Vec<Duration> = policy.waits().collect();
        assert_eq!(waits.len(), 8);
        for (index, wait) in waits.iter().enumerate() {
            let floor = Duration::from_millis(100 << index).min(Duration::from_secs(2));
            assert!(*wait >= floor && *wait <= Duration::from_secs(2), "{index}: {wait:?}");
        }
        let other: Vec<Duration> = policy.waits().collect();
        assert_ne!(waits, other, "two clients must not return in step");
        assert_eq!(RetryPolicy::NEVER.waits().count(), 0);
    }
}
