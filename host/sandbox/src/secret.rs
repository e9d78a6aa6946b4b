//! Secrets: where their values come from, and what a value must be like to be used.
//!
//! A value is read by the host when a request that was granted it is about to be sent, and by whoever builds the
//! [`Redactor`](crate::redact::Redactor) of a run. No guest, event, log or history holds one, and no type here shows one
//! when it is printed.

use std::collections::BTreeMap;
use std::env::VarError;
use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use crate::redact::Redactor;

/// The shortest value that can be a secret, in bytes. Redacting a shorter one would tear holes into ordinary text, and
/// would tell more by the holes than it hides.
pub const MIN_SECRET: usize = 6;
/// The longest, in bytes: what common servers accept as one header.
pub const MAX_SECRET: usize = 8 << 10;

/// Why a secret cannot be used. Names it, never shows it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SecretError {
    /// Nobody defined it.
    #[error("secret `{0}` is defined neither in the environment nor in the secrets file")]
    Missing(String),
    /// The environment holds bytes that are no text.
    #[error("secret `{0}` is not UTF-8 text")]
    NotText(String),
    /// Too short to be redacted.
    #[error("secret `{0}` is shorter than {MIN_SECRET} bytes, too short to be redacted where it turns up")]
    TooShort(String),
    /// Too long for a header.
    #[error("secret `{0}` is longer than {MAX_SECRET} bytes")]
    TooLong(String),
    /// It would end the header that carries it.
    #[error("secret `{0}` holds a line break or another control character and fits in no header")]
    Control(String),
}

/// Where the values of secrets come from.
pub trait Secrets: Send + Sync {
    /// The value of one.
    ///
    /// # Errors
    /// [`SecretError`] says why it cannot be used.
    fn get(&self, name: &str) -> Result<SecretString, SecretError>;
}

/// Secrets from the host's environment, and from a secrets file for what the environment does not define.
#[derive(Default)]
pub struct EnvironmentSecrets {
    file: BTreeMap<String, SecretString>,
}

impl EnvironmentSecrets {
    /// With what [`parse_secrets`] read from the secrets file.
    #[must_use]
    pub fn new(file: BTreeMap<String, SecretString>) -> Self {
        Self { file }
    }
}

impl Secrets for EnvironmentSecrets {
    fn get(&self, name: &str) -> Result<SecretString, SecretError> {
        let value = match std::env::var(name) {
            Ok(value) => value.into(),
            Err(VarError::NotUnicode(_)) => return Err(SecretError::NotText(name.into())),
            Err(VarError::NotPresent) => self
                .file
                .get(name)
                .cloned()
                .ok_or_else(|| SecretError::Missing(name.into()))?,
        };
        check(name, &value)?;
        Ok(value)
    }
}

impl Secrets for BTreeMap<String, SecretString> {
    fn get(&self, name: &str) -> Result<SecretString, SecretError> {
        let value = BTreeMap::get(self, name).ok_or_else(|| SecretError::Missing(name.into()))?;
        check(name, value)?;
        Ok(value.clone())
    }
}

impl fmt::Debug for EnvironmentSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvironmentSecrets")
            .field("file", &self.file.keys())
            .finish()
    }
}

/// The secrets of a run: read once, when it starts, together with the redactor that finds all of them. A value that is
/// not in here can be put into no request, so none leaves without being redacted on its way back.
#[derive(Default)]
pub struct Vault {
    values: BTreeMap<String, Result<SecretString, SecretError>>,
    redactor: Redactor,
}

impl Vault {
    /// Reads these secrets. One that cannot be used is no error yet: it refuses the requests that would need it.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>, secrets: &dyn Secrets) -> Self {
        let values: BTreeMap<_, _> = names
            .into_iter()
            .map(|name| (name.to_owned(), secrets.get(name)))
            .collect();
        let redactor = Redactor::new(values.values().flatten());
        Self { values, redactor }
    }

    /// The value of one.
    ///
    /// # Errors
    /// [`SecretError`] says why it cannot be used.
    pub fn get(&self, name: &str) -> Result<&SecretString, SecretError> {
        match self.values.get(name) {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => Err(error.clone()),
            None => Err(SecretError::Missing(name.into())),
        }
    }

    /// What is wrong with those that cannot be used.
    pub fn problems(&self) -> impl Iterator<Item = &SecretError> {
        self.values.values().filter_map(|value| value.as_ref().err())
    }

    /// Finds every secret in here.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("names", &self.values.keys()).finish()
    }
}

/// What every value must satisfy, wherever it is from.
fn check(name: &str, value: &SecretString) -> Result<(), SecretError> {
    let value = value.expose_secret();
    match value.len() {
        0..MIN_SECRET => Err(SecretError::TooShort(name.into())),
        MIN_SECRET..=MAX_SECRET if value.chars().any(|c| c.is_ascii_control()) => {
            Err(SecretError::Control(name.into()))
        }
        MIN_SECRET..=MAX_SECRET => Ok(()),
        _ => Err(SecretError::TooLong(name.into())),
    }
}

/// A line of a secrets file that cannot be read. Says where, never what stands there.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct SecretsFileError {
    /// From 1.
    pub line: usize,
    /// What is wrong with it and what would be right.
    pub problem: &'static str,
}

/// Reads a secrets file: lines of `NAME=value`, an `export` before them allowed. A value may stand in single quotes, as
/// it is, or in double quotes, where `\n`, `\t`, `\"` and `\\` are escapes. Blank lines and those that begin with `#` are
/// passed over; behind an unquoted value ` #` begins a comment.
///
/// # Errors
/// The first line that cannot be read, or that defines a name again.
pub fn parse_secrets(text: &str) -> Result<BTreeMap<String, SecretString>, SecretsFileError> {
    let mut secrets = BTreeMap::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let fail = |problem| SecretsFileError {
            line: index + 1,
            problem,
        };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").map_or(line, str::trim_start);
        let (name, value) = line
            .split_once('=')
            .ok_or_else(|| fail("has no `=`; write `NAME=value`"))?;
        let name = name.trim_end();
        let mut characters = name.chars();
        let starts = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !starts || !characters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(fail(
                "the name before `=` must be letters, digits and `_`, not beginning with a digit",
            ));
        }
        let value = parse_value(value.trim_start()).map_err(fail)?;
        if value.is_empty() {
            return Err(fail("the value is empty"));
        }
        if secrets.insert(name.to_owned(), SecretString::from(value)).is_some() {
            return Err(fail("defines a name that an earlier line defines"));
        }
    }
    Ok(secrets)
}

fn parse_value(value: &str) -> Result<String, &'static str> {
    const AFTER: &str = "has something behind the closing quote; only a comment may stand there";
    let nothing_after = |rest: &str| rest.trim().is_empty() || rest.trim_start().starts_with('#');
    if let Some(quoted) = value.strip_prefix('\'') {
        let (value, rest) = quoted.split_once('\'').ok_or("has no closing `'`")?;
        return if nothing_after(rest) {
            Ok(value.to_owned())
        } else {
            Err(AFTER)
        };
    }
    let Some(quoted) = value.strip_prefix('"') else {
        let end = value.find(" #").or_else(|| value.find("\t#")).unwrap_or(value.len());
        return Ok(value[..end].trim_end().to_owned());
    };
    let mut parsed = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next().ok_or("has no closing `\"`")? {
            '"' => break,
            '\\' => parsed.push(match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(same @ ('"' | '\\' | '$')) => same,
                _ => return Err("has an unknown escape; `\\n`, `\\t`, `\\\"`, `\\\\` and `\\$` are known"),
            }),
            other => parsed.push(other),
        }
    }
    if nothing_after(characters.as_str()) {
        Ok(parsed)
    } else {
        Err(AFTER)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_secrets_file_is_read() {
        let text =
            "\u{feff}# comment\n\nA=one\nexport B = 'two #2' # note\n  C=\"th\\\"ree\\n\"\nD=four # note\nE=a#b=c\r\n";
        let read = parse_secrets(text).unwrap();
        let read: Vec<_> = read
            .iter()
            .map(|(name, value)| (&**name, value.expose_secret()))
            .collect();
        let expected = [
            ("A", "one"),
            ("B", "two #2"),
            ("C", "th\"ree\n"),
            ("D", "four"),
            ("E", "a#b=c"),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn a_bad_line_is_named_and_not_shown() {
        for (text, line, says) in [
            ("A=one\nhunter2-secret", 2, "no `=`"),
            ("1A=hunter2-secret", 1, "letters, digits"),
            ("A B=hunter2-secret", 1, "letters, digits"),
            ("=hunter2-secret", 1, "letters, digits"),
            ("\n\nA=", 3, "empty"),
            ("A=''", 1, "empty"),
            ("A='hunter2-secret", 1, "closing `'`"),
            ("A=\"hunter2-secret", 1, "closing `\"`"),
            ("A=\"hunter2-secret\\q\"", 1, "unknown escape"),
            ("A='x' hunter2-secret", 1, "behind the closing quote"),
            ("A=\"x\"hunter2-secret", 1, "behind the closing quote"),
            ("A=1\nA=hunter2-secret", 2, "earlier line"),
        ] {
            let error = parse_secrets(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            let shown = format!("{error} {error:?}");
            assert!(shown.contains(says), "{shown}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }

    #[test]
    fn values_that_cannot_be_used_are_refused_by_name() {
        let secrets: BTreeMap<String, SecretString> = [
            ("SHORT", "12345".to_owned()),
            ("LONG", "x".repeat(MAX_SECRET + 1)),
            ("LINES", "abcdef\r\nx-injected: 1".to_owned()),
            ("FINE", "123456".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value.into()))
        .into();
        for (name, says) in [
            ("SHORT", "shorter"),
            ("LONG", "longer"),
            ("LINES", "line break"),
            ("NONE", "neither"),
        ] {
            let error = Secrets::get(&secrets, name).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains(name), "{error}");
            assert!(!error.contains("abcdef"), "{error}");
        }
        assert_eq!(Secrets::get(&secrets, "FINE").unwrap().expose_secret(), "123456");
    }

    #[test]
    fn the_environment_comes_before_the_file() {
        let file = parse_secrets("PATH=from-the-file\nFIEF_TEST_ONLY_IN_FILE=from-the-file").unwrap();
        let secrets = EnvironmentSecrets::new(file);
        assert_ne!(secrets.get("PATH").unwrap().expose_secret(), "from-the-file");
        assert_eq!(
            secrets.get("FIEF_TEST_ONLY_IN_FILE").unwrap().expose_secret(),
            "from-the-file"
        );
        assert_eq!(
            secrets.get("FIEF_TEST_NOWHERE").unwrap_err(),
            SecretError::Missing("FIEF_TEST_NOWHERE".into())
        );
    }

    #[test]
    fn a_vault_redacts_exactly_what_it_can_give() {
        let secrets: BTreeMap<String, SecretString> =
            [("A", "hunter2-secret"), ("B", "short"), ("C", "unrelated-secret")]
                .map(|(n, v)| (n.to_owned(), v.into()))
                .into();
        let vault = Vault::new(["A", "B", "D"], &secrets);
        assert_eq!(vault.get("A").unwrap().expose_secret(), "hunter2-secret");
        assert_eq!(vault.get("B").unwrap_err(), SecretError::TooShort("B".into()));
        assert_eq!(vault.get("C").unwrap_err(), SecretError::Missing("C".into()));
        assert_eq!(vault.problems().count(), 2);
        assert_eq!(vault.redactor().text("hunter2-secret short"), "[redacted] short");
        assert!(!format!("{vault:?}").contains("hunter2"));
    }

    #[test]
    fn debug_and_panics_show_no_secret() {
        let secrets = EnvironmentSecrets::new(parse_secrets("A=hunter2-secret").unwrap());
        assert!(!format!("{secrets:?}").contains("hunter2"));
        assert!(!format!("{:?}", secrets.get("A")).contains("hunter2"));
        let panic = std::panic::catch_unwind(|| panic!("{:?}", secrets.get("A"))).unwrap_err();
        assert!(!panic.downcast_ref::<String>().unwrap().contains("hunter2"));
    }
}
