//! What is looked for, by its form.

use std::borrow::Cow;

use regex::{Captures, Regex};

/// What each form is called in its place, and the form. The more exact ones come first.
const FORMS: [(&str, &str); 12] = [
    (
        "private key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)",
    ),
    ("AWS key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    (
        "GitHub token",
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})\b",
    ),
    ("GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("Google key", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("Stripe key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("API key", r"\bsk-[A-Za-z0-9_-]{20,}"),
    (
        "JWT",
        r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    ),
    ("credentials", r"(?i)\b(?:bearer|basic)[ \t]+[A-Za-z0-9+/_.~-]{16,}=*"),
    ("password", r"://[^\s/:@]+:[^\s/@]+@"),
    (
        "e-mail address",
        r"(?i)\b[a-z0-9._%+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,24}\b",
    ),
];

/// `password = "…"` and the like: the name stays, the value goes.
const ASSIGNED: &str = concat!(
    r#"(?i)\b([a-z0-9_.-]*(?:api[_-]?key|secret|token|passw(?:or)?d|passphrase|credential)[a-z0-9_-]*["']?[ \t]*[:=][ \t]*)"#,
    r#"(?:"([^"\r\n]{6,})"|'([^'\r\n]{6,})'|([^\s"',;()\[\]{}<>$&|]{8,}))"#,
);

const NAME: &str = r"(?i)^[a-z0-9_.-]*(?:api[_-]?key|secret|token|passw(?:or)?d|passphrase|credential)s?$";

/// Everything that is looked for.
pub(crate) struct Patterns {
    forms: Vec<(String, Regex)>,
    assigned: Regex,
    name: Regex,
}

impl Patterns {
    /// The built-in forms, and those of `more`, one a line.
    pub(crate) fn new(more: Option<&str>) -> Result<Self, regex::Error> {
        let own = more
            .into_iter()
            .flat_map(str::lines)
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let own = own.map(|pattern| ("pattern", pattern));
        let forms = own
            .chain(FORMS)
            .map(|(name, form)| Ok((format!("[redacted {name}]"), Regex::new(form)?)));
        Ok(Self {
            forms: forms.collect::<Result<_, regex::Error>>()?,
            assigned: Regex::new(ASSIGNED)?,
            name: Regex::new(NAME)?,
        })
    }

    /// `text` without what is looked for.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut text = Cow::Borrowed(text);
        for (mark, form) in &self.forms {
            // An empty match would put a mark between every two characters.
            if form.find_iter(&text).any(|found| !found.is_empty()) {
                let replaced = form.replace_all(&text, |found: &Captures<'_>| match &found[0] {
                    "" => String::new(),
                    address if mark == "[redacted password]" => {
                        let user = address.trim_start_matches("://").split(':').next().unwrap_or_default();
                        format!("://{user}:{mark}@")
                    }
                    _ => mark.clone(),
                });
                text = Cow::Owned(replaced.into_owned());
            }
        }
        let replaced = self.assigned.replace_all(&text, |found: &Captures<'_>| {
            let value = found
                .get(2)
                .or(found.get(3))
                .or(found.get(4))
                .map_or("", |value| value.as_str());
            if value.starts_with("[redacted ") {
                return found[0].to_owned();
            }
            let quote = if found.get(2).is_some() {
                "\""
            } else if found.get(3).is_some() {
                "'"
            } else {
                ""
            };
            format!("{}{quote}[redacted secret]{quote}", &found[1])
        });
        replaced.into_owned()
    }

    /// Whether `key` is a name that secrets are kept under.
    pub(crate) fn names_a_secret(&self, key: &str) -> bool {
        self.name.is_match(key)
    }
}
