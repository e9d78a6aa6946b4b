//! The pattern language for origins: scheme, host and port.
//!
//! A pattern is written `[SCHEME://]HOST[:PORT]`. Without a scheme it means `https`, without a port the scheme's own.
//! `*` alone is every origin, of both schemes and every port. What matches what:
//!
//! | pattern | matches | does not match |
//! |---|---|---|
//! | `https://api.github.com` | `https://api.github.com`, `https://API.GitHub.com.:443` | `http://api.github.com`, `https://github.com`, `https://api.github.com:8443` |
//! | `api.github.com` | the same as `https://api.github.com` | |
//! | `http://api.github.com:8080` | that scheme, host and port | `http://api.github.com` |
//! | `https://*.example.com` | `https://a.example.com` | `https://example.com`, `https://a.b.example.com` |
//! | `https://bücher.example` | `https://xn--bcher-kva.example` | |
//! | `https://*` | every name and address over TLS on port 443 | `http://example.com`, `https://example.com:8443` |
//! | `http://127.0.0.1:8080` | `http://127.0.0.1:8080`, `http://2130706433:8080`, `http://[::ffff:127.0.0.1]:8080` | `http://localhost:8080` |
//! | `http://localhost:8080` | `http://localhost:8080` | `http://127.0.0.1:8080` |
//! | `http://10.0.0.0/8`, `http://[10.0.0.0/8]` | `http://10.1.2.3` | a name that resolves to `10.1.2.3` |
//! | `https://[fd00::/8]:8443` | `https://[fd00::1]:8443` | |
//! | `*` | all of the above | |
//!
//! A wildcard stands for exactly one label, the first: where it ends is then the same for people, for certificates and
//! for the host. User information, paths, queries, zone ids, other wildcards and IPv4 addresses that are not written
//! as four decimal numbers are refused, since a pattern that looks like something else is a mistake or a trick.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use ipnet::IpNet;

use super::target::{Host, Target, parse_host};

/// A parsed origin pattern, such as `https://api.github.com` or `https://*.example.com:8443`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OriginPattern {
    /// `http` or `https`; absent only in `*`: either.
    pub scheme: Option<Scheme>,
    /// Which hosts.
    pub host: HostPattern,
    /// The port, the scheme's own where none is written; absent only in `*`: every port.
    pub port: Option<u16>,
}

/// The schemes that requests may have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scheme {
    /// Plain.
    Http,
    /// Over TLS.
    Https,
}

/// Which hosts a pattern names.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum HostPattern {
    /// Every host.
    Any,
    /// One name, lower case, in its ASCII form, without a trailing dot.
    Name(String),
    /// Every name with exactly one more label before this suffix: `*.example.com`.
    Label(String),
    /// One literal address or a range of them.
    Range(IpNet),
}

/// Why a text is no origin: the literal, the rule that it breaks, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an origin: {rule}")]
pub struct BadOrigin {
    /// What was given.
    pub text: String,
    /// The rule that it breaks, with what would be right.
    pub rule: String,
}

impl Scheme {
    /// As it is written in a URL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that a URL without one means.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("http") {
            Ok(Self::Http)
        } else if text.eq_ignore_ascii_case("https") {
            Ok(Self::Https)
        } else {
            Err(format!(
                "the scheme is `{text}`, and only `http` and `https` can be granted"
            ))
        }
    }
}

impl OriginPattern {
    /// `*`: every origin.
    #[must_use]
    pub fn any() -> Self {
        Self {
            scheme: None,
            host: HostPattern::Any,
            port: None,
        }
    }

    /// Whether a request to `target` is one of those that the pattern names.
    #[must_use]
    pub fn matches(&self, target: &Target) -> bool {
        self.scheme.is_none_or(|scheme| scheme == target.scheme)
            && self.port.is_none_or(|port| port == target.port)
            && match (&self.host, &target.host) {
                (HostPattern::Any, _) => true,
                (HostPattern::Name(name), Host::Name(host)) => name == host,
                (HostPattern::Label(suffix), Host::Name(host)) => has_one_more_label(host, suffix),
                (HostPattern::Range(net), Host::Address(address)) => net.contains(address),
                _ => false,
            }
    }

    /// What both patterns match, if anything. The language is closed under it: any two patterns overlap in one
    /// pattern or not at all.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        Some(Self {
            scheme: common(self.scheme, other.scheme)?,
            host: self.host.intersect(&other.host)?,
            port: common(self.port, other.port)?,
        })
    }

    /// Whether everything that `other` matches is matched by this one too.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        self.intersect(other).as_ref() == Some(other)
    }

    /// Whether it names addresses, or this machine, outright, so that reaching a private address is its plain meaning:
    /// a literal address, a range, or `localhost`.
    #[must_use]
    pub fn is_explicit(&self) -> bool {
        match &self.host {
            HostPattern::Range(_) => true,
            HostPattern::Name(name) => name == "localhost",
            HostPattern::Any | HostPattern::Label(_) => false,
        }
    }

    /// The one address that it names, if it names one address and nothing else.
    #[must_use]
    pub fn literal(&self) -> Option<IpAddr> {
        match &self.host {
            HostPattern::Range(net) if net.prefix_len() == net.max_prefix_len() => Some(net.addr()),
            _ => None,
        }
    }
}

/// The meet of two choices of which absent means every one; `None` if they exclude each other.
fn common<T: PartialEq>(one: Option<T>, other: Option<T>) -> Option<Option<T>> {
    match (one, other) {
        (None, choice) | (choice, None) => Some(choice),
        (Some(one), Some(other)) => (one == other).then_some(Some(one)),
    }
}

impl HostPattern {
    fn intersect(&self, other: &Self) -> Option<Self> {
        let narrower = match (self, other) {
            (Self::Any, host) | (host, Self::Any) => host,
            (Self::Name(name), Self::Label(suffix)) | (Self::Label(suffix), Self::Name(name)) => {
                return has_one_more_label(name, suffix).then(|| Self::Name(name.clone()));
            }
            (Self::Name(one), Self::Name(other)) | (Self::Label(one), Self::Label(other)) if one == other => self,
            (Self::Range(one), Self::Range(other)) if one.contains(other) => return Some(Self::Range(*other)),
            (Self::Range(one), Self::Range(other)) if other.contains(one) => self,
            _ => return None,
        };
        Some(narrower.clone())
    }
}

fn has_one_more_label(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix)
        .and_then(|rest| rest.strip_suffix('.'))
        .is_some_and(|label| !label.is_empty() && !label.contains('.'))
}

impl fmt::Display for OriginPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(scheme) = self.scheme else {
            return f.write_str("*");
        };
        write!(f, "{}://", scheme.as_str())?;
        match &self.host {
            HostPattern::Any => f.write_str("*")?,
            HostPattern::Name(name) => f.write_str(name)?,
            HostPattern::Label(suffix) => write!(f, "*.{suffix}")?,
            HostPattern::Range(net) => match self.literal() {
                Some(IpAddr::V4(address)) => write!(f, "{address}")?,
                Some(IpAddr::V6(address)) => write!(f, "[{address}]")?,
                None => write!(f, "[{net}]")?,
            },
        }
        match self.port {
            Some(port) if port != scheme.default_port() => write!(f, ":{port}"),
            _ => Ok(()),
        }
    }
}

impl FromStr for OriginPattern {
    type Err = BadOrigin;

    fn from_str(text: &str) -> Result<Self, BadOrigin> {
        parse(text).map_err(|rule| BadOrigin {
            text: text.into(),
            rule,
        })
    }
}

fn parse(text: &str) -> Result<OriginPattern, String> {
    if text == "*" {
        return Ok(OriginPattern::any());
    }
    if text.is_empty() {
        return Err("it is empty; write `SCHEME://HOST:PORT`, such as `https://api.github.com`".into());
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("it holds a blank or a control character".into());
    }
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Scheme::parse(scheme)?, rest),
        None => (Scheme::Https, text),
    };
    for (sign, what) in [
        ('@', "user information before `@`; a secret goes under `secrets`"),
        ('?', "a query"),
        ('#', "a fragment"),
        ('\\', "a backslash"),
        ('%', "a `%`: zone ids and escapes have no place in it"),
    ] {
        if rest.contains(sign) {
            return Err(format!("it holds {what}; only scheme, host and port can be granted"));
        }
    }
    let (host, port) = split(rest)?;
    let port = match port {
        None => scheme.default_port(),
        Some("*") => return Err("the port is `*`; name one port, or grant `*` alone for every origin".into()),
        Some(port) => parse_port(port)?,
    };
    Ok(OriginPattern {
        scheme: Some(scheme),
        host: parse_pattern(host)?,
        port: Some(port),
    })
}

/// Splits what follows the scheme into host and port. A slash is a path unless it is the prefix length of a range.
fn split(rest: &str) -> Result<(&str, Option<&str>), String> {
    const PATH: &str = "it holds a path; only scheme, host and port can be granted";
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, after) = if rest.starts_with('[') {
        let end = rest.find(']').ok_or("`[` without `]`")?;
        rest.split_at(end + 1)
    } else {
        if rest.matches(':').count() > 1 {
            return Err("an IPv6 address stands in brackets, such as `https://[fd00::1]:8443`".into());
        }
        rest.split_at(rest.find(':').unwrap_or(rest.len()))
    };
    if !host.starts_with('[')
        && let Some((address, prefix)) = host.split_once('/')
        && (address.parse::<Ipv4Addr>().is_err() || prefix.is_empty() || !prefix.bytes().all(|b| b.is_ascii_digit()))
    {
        return Err(PATH.into());
    }
    match after.strip_prefix(':') {
        None if after.is_empty() => Ok((host, None)),
        Some(port) if !port.contains('/') => Ok((host, Some(port))),
        Some(_) => Err(PATH.into()),
        None if after.starts_with('/') => Err(PATH.into()),
        None => Err("only `:PORT` may follow `]`".into()),
    }
}

/// A port from 1 to 65535, digits alone.
pub(super) fn parse_port(port: &str) -> Result<u16, String> {
    port.parse::<u16>()
        .ok()
        .filter(|number| *number != 0 && port.bytes().all(|b| b.is_ascii_digit()))
        .ok_or_else(|| format!("the port is `{port}`, and must be a number from 1 to 65535"))
}

fn parse_pattern(host: &str) -> Result<HostPattern, String> {
    const WILDCARD: &str = "`*` stands for the whole host or for its first label, as in `https://*.example.com`";
    if host == "*" {
        return Ok(HostPattern::Any);
    }
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(range) = inner.or(host.contains('/').then_some(host))
        && range.contains('/')
    {
        return parse_range(range);
    }
    if let Some(suffix) = host.strip_prefix("*.") {
        if suffix.contains('*') {
            return Err(WILDCARD.into());
        }
        return match parse_host(suffix)? {
            Host::Name(suffix) => Ok(HostPattern::Label(suffix)),
            Host::Address(_) => Err("a wildcard before an address; write a range, such as `https://10.0.0.0/8`".into()),
        };
    }
    if host.contains('*') {
        return Err(WILDCARD.into());
    }
    match parse_host(host)? {
        Host::Address(IpAddr::V4(address)) if inner.is_none() && host.parse() != Ok(address) => Err(format!(
            "the host is the address {address} in another notation; write `{address}`"
        )),
        Host::Address(address) => Ok(HostPattern::Range(address.into())),
        Host::Name(name) => Ok(HostPattern::Name(name)),
    }
}

fn parse_range(range: &str) -> Result<HostPattern, String> {
    let net: IpNet = range
        .parse()
        .map_err(|_| format!("`{range}` is not an address range, such as `10.0.0.0/8`"))?;
    if net.trunc() != net {
        return Err(format!("`{range}` has bits beyond its prefix; write `{}`", net.trunc()));
    }
    // Requests to IPv4-mapped addresses are requests to IPv4 addresses, so that a range of them is one of those.
    if let IpNet::V6(v6) = net
        && v6.prefix_len() >= 96
        && let Some(v4) = v6.addr().to_ipv4_mapped()
        && let Ok(mapped) = IpNet::new(v4.into(), v6.prefix_len() - 96)
    {
        return Ok(HostPattern::Range(mapped));
    }
    Ok(HostPattern::Range(net))
}
