//! The pattern language for origins: scheme, host and port.

use std::fmt;

use ipnet::IpNet;

/// A parsed origin pattern, such as `https://api.github.com` or `https://*.example.com:8443`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OriginPattern {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// Which hosts.
    pub host: HostPattern,
    /// The port; the scheme's own where none is written.
    pub port: u16,
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
    /// Every host; only a need or a policy may say it.
    Any,
    /// One name, lower case, in its ASCII form, without a trailing dot.
    Name(String),
    /// Every name with one more label before this suffix: `*.example.com`.
    Label(String),
    /// One literal address or a range of them.
    Range(IpNet),
}

impl fmt::Display for OriginPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://")?;
        match &self.host {
            HostPattern::Any => f.write_str("*")?,
            HostPattern::Name(name) => f.write_str(name)?,
            HostPattern::Label(suffix) => write!(f, "*.{suffix}")?,
            HostPattern::Range(net) => write!(f, "[{net}]")?,
        }
        write!(f, ":{}", self.port)
    }
}
