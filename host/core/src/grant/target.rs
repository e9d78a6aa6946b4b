//! Where a request goes: an origin with every notation of its host undone, as a browser would.

use std::fmt;
use std::net::IpAddr;

use super::pattern::{BadOrigin, Scheme, parse_port};

/// The origin of one request, normalised: what patterns are compared with, and what the host connects to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Target {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// A name or an address.
    pub host: Host,
    /// The port; the scheme's own where the URL has none.
    pub port: u16,
}

/// The host of a [`Target`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Host {
    /// A name: lower case, in its ASCII form, without a trailing dot.
    Name(String),
    /// An address, however it was written; an IPv4-mapped one is the IPv4 address that it means.
    Address(IpAddr),
}

impl Target {
    /// Reads the parts of a URL that decide where it goes. Integer, octal and hexadecimal IPv4, upper case, international
    /// names, escapes and a trailing dot come out as the one form that they mean, as the WHATWG URL standard says.
    ///
    /// ```
    /// use fief_core::grant::target::Target;
    /// let target = Target::parse("http", "0x7f.1:8080").unwrap();
    /// assert_eq!(target.to_string(), "http://127.0.0.1:8080");
    /// ```
    ///
    /// # Errors
    /// [`BadOrigin`] for another scheme, user information, a zone id, and whatever is no host or no port.
    pub fn parse(scheme: &str, authority: &str) -> Result<Self, BadOrigin> {
        parse(scheme, authority).map_err(|rule| BadOrigin {
            text: format!("{scheme}://{authority}"),
            rule,
        })
    }
}

fn parse(scheme: &str, authority: &str) -> Result<Target, String> {
    let scheme = Scheme::parse(scheme)?;
    if authority.contains('@') {
        return Err("it holds user information before `@`".into());
    }
    if authority
        .chars()
        .any(|c| c.is_whitespace() || c.is_control() || "/?#\\".contains(c))
    {
        return Err("its host holds a character that no host can have".into());
    }
    let (host, port) = match authority.rfind(']') {
        Some(end) => {
            let (host, after) = authority.split_at(end + 1);
            match after.strip_prefix(':') {
                Some(port) => (host, port),
                None if after.is_empty() => (host, ""),
                None => return Err("only `:PORT` may follow `]`".into()),
            }
        }
        None => authority.split_once(':').unwrap_or((authority, "")),
    };
    let port = match port {
        "" => scheme.default_port(),
        port => parse_port(port)?,
    };
    Ok(Target {
        scheme,
        host: parse_host(host)?,
        port,
    })
}

/// Reads a host as the WHATWG URL standard does, and then holds names to what resolvers and certificates know.
pub(super) fn parse_host(text: &str) -> Result<Host, String> {
    if text.starts_with('[') && text.contains('%') {
        return Err("a zone id names an interface of this machine, which nobody can be granted".into());
    }
    match url::Host::parse(text) {
        Ok(url::Host::Ipv4(address)) => Ok(Host::Address(address.into())),
        Ok(url::Host::Ipv6(address)) => Ok(Host::Address(IpAddr::V6(address).to_canonical())),
        Ok(url::Host::Domain(name)) => check_name(name.strip_suffix('.').unwrap_or(&name)),
        Err(_) if text.is_empty() => Err("it has no host".into()),
        Err(_) => Err(format!("`{text}` is neither a host name nor an address")),
    }
}

fn check_name(name: &str) -> Result<Host, String> {
    const LONGEST_NAME: usize = 253; // RFC 1035, without the trailing dot
    const LONGEST_LABEL: usize = 63; // RFC 1035
    let letters = |label: &str| {
        label
            .bytes()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
    };
    let sound = |label: &str| (1..=LONGEST_LABEL).contains(&label.len()) && letters(label);
    if name.len() <= LONGEST_NAME && name.split('.').all(sound) {
        Ok(Host::Name(name.into()))
    } else {
        Err(format!(
            "`{name}` is not a host name: labels of 1 to 63 letters, digits, `-` and `_`, 253 characters in all"
        ))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.host)?;
        if self.port == self.scheme.default_port() {
            Ok(())
        } else {
            write!(f, ":{}", self.port)
        }
    }
}
