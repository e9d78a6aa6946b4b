//! Names and identifiers. Each is checked once, where it enters, so that the rest of the code can trust it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest name of a plugin or an archetype, in characters: with a tool's 48 and the separator it can pass the
/// 64 that providers allow, in which case the name a model sees is shortened (see [`crate::tool::wire_name`]).
pub const MAX_NAME: usize = 64;
/// The longest name of a tool within its plugin, in characters, as the WIT package says.
pub const MAX_TOOL_NAME: usize = 48;

/// Why a name was refused: the literal, the rule it breaks and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not {}: {rule}", self.what())]
pub struct BadName {
    /// What was given.
    pub name: String,
    /// What it was meant to be: `plugin name`, `tool name`, …
    pub kind: &'static str,
    /// The rule.
    pub rule: &'static str,
}

impl BadName {
    /// What it was meant to be, with its article.
    pub(crate) fn what(&self) -> String {
        let article = if self.kind.starts_with(['a', 'e', 'i', 'o', 'u']) {
            "an"
        } else {
            "a"
        };
        format!("{article} {}", self.kind)
    }
}

macro_rules! name_type {
    ($(#[$doc:meta])* $type:ident, $kind:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks and keeps a name.
            ///
            /// # Errors
            /// [`BadName`] with the rule that it breaks.
            pub fn new(name: impl AsRef<str>) -> Result<Self, BadName> {
                let name = name.as_ref();
                let check: fn(&str) -> bool = $check;
                if check(name) {
                    Ok(Self(name.into()))
                } else {
                    Err(BadName { name: name.into(), kind: $kind, rule: $rule })
                }
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
        impl FromStr for $type {
            type Err = BadName;
            fn from_str(name: &str) -> Result<Self, BadName> {
                Self::new(name)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

name_type!(
    /// The name of a plugin, the namespace of its tools: `files` of `files.read`.
    PluginName,
    "plugin name",
    "1 to 64 of a-z, 0-9 and `-`, starting with a letter or digit; `agents`, `fief` and what starts with `agent-` are reserved",
    |name| {
        (1..=MAX_NAME).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !name.starts_with('-')
            && !name.starts_with("agent-")
            && name != "agents"
            && name != "fief"
    }
);
name_type!(
    /// The name of a tool within its plugin: `read` of `files.read`.
    ToolName,
    "tool name",
    "1 to 48 of letters, digits, `-` and `_`; what starts with `agent-` is reserved",
    |name| {
        (1..=MAX_TOOL_NAME).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !name.starts_with("agent-")
    }
);
name_type!(
    /// The name of an archetype. Two names are the same if they differ in case only ([`ArchetypeName::key`]).
    ArchetypeName,
    "archetype name",
    "a letter, then up to 63 of letters, digits, `-` and `_`",
    |name| {
        (1..=MAX_NAME).contains(&name.len())
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    }
);
name_type!(
    /// A session of a run: `main`, or a child by its archetype and one counter of the run, such as `explore_1`.
    SessionId,
    "session",
    "letters, digits, `-` and `_`",
    |name| {
        !name.is_empty()
            && name.len() <= 96
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    }
);

impl ArchetypeName {
    /// The form by which names are compared: lower case.
    #[must_use]
    pub fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl SessionId {
    /// The session of the main agent.
    #[must_use]
    pub fn main() -> Self {
        Self("main".into())
    }

    /// The session of the `count`th child of a run (from 1), named after `label`, an archetype's name or `dynamic`.
    #[must_use]
    pub fn child(label: &str, count: u64) -> Self {
        Self(format!("{label}_{count}").into())
    }
}

/// The SHA-256 digest of a component's bytes, written `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The digest's own bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 hexadecimal digits alone, for file names.
    #[must_use]
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}
impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl FromStr for Digest {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let bad = || BadName {
            name: text.into(),
            kind: "digest",
            rule: "`sha256:` and 64 hexadecimal digits",
        };
        let digits = text.strip_prefix("sha256:").ok_or_else(bad)?;
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| bad())?;
        Ok(Self(bytes))
    }
}
impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// A tool as people write it: `files.read`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ToolRef {
    /// The plugin.
    pub plugin: PluginName,
    /// The tool within it.
    pub tool: ToolName,
}

impl fmt::Display for ToolRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.plugin, self.tool)
    }
}
impl FromStr for ToolRef {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let Some((plugin, tool)) = text.split_once('.') else {
            return Err(BadName {
                name: text.into(),
                kind: "tool",
                rule: "`PLUGIN.TOOL`, such as `files.read`",
            });
        };
        Ok(Self {
            plugin: plugin.parse()?,
            tool: tool.parse()?,
        })
    }
}
impl Serialize for ToolRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for ToolRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
