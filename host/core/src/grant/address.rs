//! What kind of place an IP address is: the open internet, or something that a name must not lead to unasked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of place that an address names, after every way of writing an IPv4 address inside an IPv6 one is undone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AddressClass {
    /// The open internet.
    Public,
    /// A network of one's own: RFC 1918, shared (100.64.0.0/10), unique local, site-local, local-use NAT64.
    Private,
    /// This machine.
    Loopback,
    /// This link.
    LinkLocal,
    /// A cloud's metadata service, which hands out credentials to whoever asks.
    Metadata,
    /// Many machines at once, broadcast included.
    Multicast,
    /// `0.0.0.0/8` and `::`, which systems take for this machine.
    Unspecified,
    /// Documentation, benchmarking, transition mechanisms and what is not assigned: no honest service is there.
    Reserved,
}

impl AddressClass {
    /// As messages name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Metadata => "metadata",
            Self::Multicast => "multicast",
            Self::Unspecified => "unspecified",
            Self::Reserved => "reserved",
        }
    }
}

/// Where clouds serve metadata and credentials: AWS, GCP, Azure, OpenStack, Oracle, DigitalOcean and others share the
/// first; then AWS ECS and EKS, Tencent, Scaleway, Alibaba, Azure's WireServer, Oracle's classic one.
const METADATA_V4: [Ipv4Addr; 8] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    Ipv4Addr::new(169, 254, 0, 23),
    Ipv4Addr::new(169, 254, 42, 42),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// The same over IPv6: AWS, AWS EKS, GCP, Scaleway, and OpenStack's link-local one.
const METADATA_V6: [Ipv6Addr; 5] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

/// The class of `address`.
///
/// IPv4-mapped, NAT64 and 6to4 addresses are what they embed; where an address embeds several or an unknowable one
/// (local-use NAT64, Teredo, IPv4-compatible), the worst that it can mean counts.
#[must_use]
pub fn address_class(address: IpAddr) -> AddressClass {
    match address.to_canonical() {
        IpAddr::V4(address) => class_v4(address),
        IpAddr::V6(address) => class_v6(address),
    }
}

fn class_v4(address: Ipv4Addr) -> AddressClass {
    use AddressClass as Class;
    if METADATA_V4.contains(&address) {
        return Class::Metadata;
    }
    match address.octets() {
        [0, ..] => Class::Unspecified,
        [127, ..] => Class::Loopback,
        [169, 254, ..] => Class::LinkLocal,
        [10, ..] | [192, 168, ..] => Class::Private,
        [172, second, ..] if (16..32).contains(&second) => Class::Private,
        // RFC 6598, carrier-grade NAT: somebody's inner network.
        [100, second, ..] if (64..128).contains(&second) => Class::Private,
        [192, 0, 0, _] | [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Class::Reserved,
        // RFC 7526, relays of 6to4, and RFC 2544, benchmarking.
        [192, 88, 99, _] | [198, 18 | 19, ..] => Class::Reserved,
        [224..=239, ..] | [255, 255, 255, 255] => Class::Multicast,
        [240..=255, ..] => Class::Reserved,
        _ => Class::Public,
    }
}

fn class_v6(address: Ipv6Addr) -> AddressClass {
    use AddressClass as Class;
    if METADATA_V6.contains(&address) {
        return Class::Metadata;
    }
    let s = address.segments();
    match s {
        [0, 0, 0, 0, 0, 0, 0, 0] => Class::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Class::Loopback,
        // NAT64 of RFC 6052: the IPv4 address is reached through a translator.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => class_v4(v4(high, low)),
        // RFC 8215: a local translator, whose place for the IPv4 address only its operator knows.
        [0x64, 0xff9b, 1, ..] => worst(&local_nat64(s), Class::Private),
        // 6to4: the IPv4 address is the tunnel's other end.
        [0x2002, high, low, ..] => class_v4(v4(high, low)),
        // Teredo: the client's address is there too, inverted.
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            worst(&[v4(server_high, server_low), v4(!high, !low)], Class::Reserved)
        }
        // IPv4-compatible (RFC 4291, deprecated) and IPv4-translated (RFC 2765).
        [0, 0, 0, 0, 0, 0, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => worst(&[v4(high, low)], Class::Reserved),
        [0x100, 0, 0, 0, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Class::Reserved,
        // The other special-purpose blocks of 2001::/23: benchmarking, ORCHID, drone ids.
        [0x2001, 0..=0x1ff, ..] => Class::Reserved,
        [0xff00..=0xffff, ..] => Class::Multicast,
        [0xfe80..=0xfebf, ..] => Class::LinkLocal,
        // Site-local, deprecated, and unique local.
        [0xfec0..=0xfeff, ..] | [0xfc00..=0xfdff, ..] => Class::Private,
        // Only 2000::/3 is assigned to the open internet.
        [0x2000..=0x3fff, ..] => Class::Public,
        _ => Class::Reserved,
    }
}

/// The four places in which RFC 6052 lets the operator of a /48 put the IPv4 address.
fn local_nat64(s: [u16; 8]) -> [Ipv4Addr; 4] {
    let b: Vec<u8> = s.iter().flat_map(|segment| segment.to_be_bytes()).collect();
    [
        Ipv4Addr::new(b[6], b[7], b[9], b[10]),
        Ipv4Addr::new(b[7], b[9], b[10], b[11]),
        Ipv4Addr::new(b[9], b[10], b[11], b[12]),
        Ipv4Addr::new(b[12], b[13], b[14], b[15]),
    ]
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))
}

/// Metadata if any of `embedded` is, else `otherwise`.
fn worst(embedded: &[Ipv4Addr], otherwise: AddressClass) -> AddressClass {
    if embedded
        .iter()
        .any(|address| class_v4(*address) == AddressClass::Metadata)
    {
        AddressClass::Metadata
    } else {
        otherwise
    }
}
