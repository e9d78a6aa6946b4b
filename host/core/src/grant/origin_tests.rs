#![allow(clippy::unwrap_used)]

use std::net::IpAddr;

use proptest::prelude::*;

use super::OriginGrant;
use super::address::{AddressClass, address_class};
use super::egress::{check_address, decide};
use super::pattern::OriginPattern;
use super::target::Target;

fn pattern(text: &str) -> OriginPattern {
    text.parse().unwrap()
}

fn target(url: &str) -> Target {
    let (scheme, authority) = url.split_once("://").unwrap();
    Target::parse(scheme, authority).unwrap()
}

fn grant(text: &str, private: bool, metadata: bool) -> OriginGrant {
    OriginGrant {
        pattern: pattern(text),
        private,
        metadata,
        rule: format!("test `{text}`").into(),
    }
}

#[test]
fn patterns_have_one_written_form() {
    for (written, shown) in [
        ("*", "*"),
        ("api.github.com", "https://api.github.com"),
        ("HTTPS://API.GitHub.com.", "https://api.github.com"),
        ("https://api.github.com/", "https://api.github.com"),
        ("https://api.github.com:443", "https://api.github.com"),
        ("http://api.github.com:443", "http://api.github.com:443"),
        ("https://*", "https://*"),
        ("*:8443", "https://*:8443"),
        ("https://*.Example.com:8443", "https://*.example.com:8443"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("https://*.bücher.example", "https://*.xn--bcher-kva.example"),
        ("localhost:8080", "https://localhost:8080"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://10.0.0.0/8", "http://[10.0.0.0/8]"),
        ("http://[10.0.0.0/8]:81", "http://[10.0.0.0/8]:81"),
        ("http://10.0.0.0/8:81", "http://[10.0.0.0/8]:81"),
        ("https://[fd00::/8]:8443", "https://[fd00::/8]:8443"),
        ("http://[0:0::1]", "http://[::1]"),
        ("http://[::ffff:10.0.0.1]", "http://10.0.0.1"),
        ("http://[::ffff:10.0.0.0/104]", "http://[10.0.0.0/8]"),
        ("http://0.0.0.0/0", "http://[0.0.0.0/0]"),
    ] {
        let parsed = pattern(written);
        assert_eq!(parsed.to_string(), shown, "{written}");
        assert_eq!(pattern(shown), parsed, "{shown} is not read as it is shown");
    }
}

#[test]
fn what_is_no_origin_is_refused_with_what_would_be_right() {
    for (written, says) in [
        ("", "https://api.github.com"),
        ("ftp://example.com", "only `http` and `https`"),
        ("file:///etc/passwd", "only `http` and `https`"),
        ("https://user:pw@example.com", "user information"),
        ("https://example.com@evil.example", "user information"),
        ("https://example.com/path", "a path"),
        ("https://example.com:443/path", "a path"),
        ("https://10.0.0.1/path", "a path"),
        ("https://10.0.0.1//", "a path"),
        ("https://example.com?q", "a query"),
        ("https://example.com#f", "a fragment"),
        ("https://example.com\\@evil", "a"),
        ("https://exa mple.com", "blank"),
        ("https://example.com\n", "blank"),
        ("https://foo.*.com", "first label"),
        ("https://*foo.com", "first label"),
        ("https://*.*.com", "first label"),
        ("https://example.*", "first label"),
        ("https://*.10.0.0.1", "write a range"),
        ("https://example.com:*", "name one port"),
        ("https://example.com:0", "1 to 65535"),
        ("https://example.com:65536", "1 to 65535"),
        ("https://example.com:+80", "1 to 65535"),
        ("https://example.com:", "1 to 65535"),
        ("https://", "no host"),
        ("https://.example.com", "not a host name"),
        ("https://a..b", "not a host name"),
        ("https://exa$mple.com", "not a host name"),
        ("http://2130706433", "write `127.0.0.1`"),
        ("http://0x7f.1", "write `127.0.0.1`"),
        ("http://0177.0.0.1", "write `127.0.0.1`"),
        ("http://127.1", "write `127.0.0.1`"),
        ("http://127.0.0.1.", "write `127.0.0.1`"),
        ("http://127.0.0.256", "neither a host name nor an address"),
        ("http://10.0.0.1/8", "write `10.0.0.0/8`"),
        ("http://10.0.0.0/33", "not an address range"),
        ("http://[fd00::1/8]", "write `fd00::/8`"),
        ("http://fd00::1", "brackets"),
        ("http://[fe80::1%eth0]", "zone ids"),
        ("http://[::1", "without `]`"),
        ("http://[::1]x", "only `:PORT`"),
        ("http://[127.0.0.1]", "neither a host name nor an address"),
        ("http://[example.com]", "neither a host name nor an address"),
        ("http://%31.example", "zone ids and escapes"),
    ] {
        let error = written.parse::<OriginPattern>().unwrap_err().to_string();
        assert!(error.contains(says), "{written}: {error}");
    }
}

#[test]
fn targets_are_what_a_browser_would_ask() {
    for (url, shown) in [
        ("HTTP://EXAMPLE.com.", "http://example.com"),
        ("https://example.com:443", "https://example.com"),
        ("https://example.com:", "https://example.com"),
        ("http://0x7f.1", "http://127.0.0.1"),
        ("http://2130706433", "http://127.0.0.1"),
        ("http://0177.0.0.1", "http://127.0.0.1"),
        ("http://127.1:81", "http://127.0.0.1:81"),
        ("http://0", "http://0.0.0.0"),
        ("http://127.0.0.1.", "http://127.0.0.1"),
        ("http://%31%32%37.0.0.1", "http://127.0.0.1"),
        ("http://①②⑦.0.0.1", "http://127.0.0.1"),
        ("http://169。254。169。254", "http://169.254.169.254"),
        ("http://[::ffff:127.0.0.1]", "http://127.0.0.1"),
        ("http://[::FFFF:7F00:1]:9", "http://127.0.0.1:9"),
        ("http://[0:0:0:0:0:0:0:1]", "http://[::1]"),
        ("https://BÜCHER.example", "https://xn--bcher-kva.example"),
    ] {
        assert_eq!(target(url).to_string(), shown, "{url}");
    }
    for (scheme, authority) in [
        ("ftp", "example.com"),
        ("https", ""),
        ("https", "user@example.com"),
        ("https", "example.com:80:80"),
        ("https", "example.com:x"),
        ("https", "example.com:0"),
        ("https", "example.com/evil"),
        ("https", "example.com\\evil"),
        ("https", "exa\tmple.com"),
        ("https", "*.example.com"),
        ("https", "[fe80::1%25eth0]"),
        ("https", "[::1"),
        ("https", "::1"),
        ("https", "a..b"),
        ("https", "256.256.256.256"),
        ("https", "example.com%00.evil"),
    ] {
        assert!(Target::parse(scheme, authority).is_err(), "{scheme}://{authority}");
    }
}

#[test]
fn a_pattern_matches_what_its_table_says() {
    for (written, url, expected) in [
        ("https://api.github.com", "https://API.GitHub.com.:443", true),
        ("https://api.github.com", "http://api.github.com", false),
        ("https://api.github.com", "http://api.github.com:443", false),
        ("https://api.github.com", "https://github.com", false),
        ("https://api.github.com", "https://api.github.com:8443", false),
        ("https://api.github.com", "https://api.github.com.evil.example", false),
        ("api.github.com", "https://api.github.com", true),
        ("https://*.example.com", "https://a.example.com", true),
        ("https://*.example.com", "https://example.com", false),
        ("https://*.example.com", "https://a.b.example.com", false),
        ("https://*.example.com", "https://aexample.com", false),
        ("https://bücher.example", "https://xn--bcher-kva.example", true),
        ("https://*", "https://10.0.0.1", true),
        ("https://*", "http://example.com", false),
        ("https://*", "https://example.com:8443", false),
        ("http://127.0.0.1:8080", "http://2130706433:8080", true),
        ("http://127.0.0.1:8080", "http://[::ffff:127.0.0.1]:8080", true),
        ("http://127.0.0.1:8080", "http://localhost:8080", false),
        ("http://localhost:8080", "http://127.0.0.1:8080", false),
        ("http://10.0.0.0/8", "http://10.1.2.3", true),
        ("http://10.0.0.0/8", "http://11.1.2.3", false),
        ("http://10.0.0.0/8", "http://ten.example", false),
        ("https://[fd00::/8]:8443", "https://[fd00::1]:8443", true),
        ("http://0.0.0.0/0", "http://[::1]", false),
        ("*", "http://example.com:1", true),
        ("*", "https://[::1]", true),
    ] {
        assert_eq!(pattern(written).matches(&target(url)), expected, "{written} {url}");
    }
}

#[test]
fn an_address_is_classed_by_what_it_leads_to() {
    use AddressClass::*;
    for (address, class) in [
        ("1.1.1.1", Public),
        ("10.0.0.1", Private),
        ("172.16.0.1", Private),
        ("172.32.0.1", Public),
        ("192.168.1.1", Private),
        ("100.64.0.1", Private),
        ("100.128.0.1", Public),
        ("127.0.0.1", Loopback),
        ("127.255.255.254", Loopback),
        ("0.0.0.0", Unspecified),
        ("0.1.2.3", Unspecified),
        ("169.254.1.1", LinkLocal),
        ("169.254.169.254", Metadata),
        ("169.254.170.2", Metadata),
        ("100.100.100.200", Metadata),
        ("168.63.129.16", Metadata),
        ("224.0.0.1", Multicast),
        ("255.255.255.255", Multicast),
        ("240.0.0.1", Reserved),
        ("198.18.0.1", Reserved),
        ("192.0.2.1", Reserved),
        ("192.88.99.1", Reserved),
        ("::", Unspecified),
        ("::1", Loopback),
        ("2606:4700::1111", Public),
        ("fd00::1", Private),
        ("fc00::1", Private),
        ("fec0::1", Private),
        ("fe80::1", LinkLocal),
        ("fd00:ec2::254", Metadata),
        ("ff02::1", Multicast),
        ("2001:db8::1", Reserved),
        ("4000::1", Reserved),
        ("::ffff:10.0.0.1", Private),
        ("::ffff:169.254.169.254", Metadata),
        ("64:ff9b::1.1.1.1", Public),
        ("64:ff9b::10.0.0.1", Private),
        ("64:ff9b::169.254.169.254", Metadata),
        ("64:ff9b:1::1.1.1.1", Private),
        ("64:ff9b:1::169.254.169.254", Metadata),
        ("64:ff9b:1:a9fe:a9:fe00::", Metadata),
        ("2002:101:101::1", Public),
        ("2002:7f00:1::1", Loopback),
        ("2002:a9fe:a9fe::", Metadata),
        ("2001:0:101:101::f5ff:fffe", Reserved),
        ("2001:0:101:101::5601:5601", Metadata),
        ("::10.0.0.1", Reserved),
        ("::169.254.169.254", Metadata),
        ("::ffff:0:169.254.169.254", Metadata),
    ] {
        assert_eq!(address_class(address.parse().unwrap()), class, "{address}");
    }
}

#[test]
fn a_request_leaves_only_under_a_grant() {
    let grants = [
        grant("https://api.github.com", false, false),
        grant("https://*.example.com", false, false),
    ];
    assert_eq!(decide(&grants, &target("https://a.example.com")).unwrap(), &grants[1]);
    let refusal = decide(&grants, &target("https://example.com")).unwrap_err();
    let message = refusal.to_string();
    assert_eq!(
        message,
        "`https://example.com` is not granted: only `https://api.github.com`, `https://*.example.com`"
    );
    assert!(
        decide(&[], &target("https://example.com"))
            .unwrap_err()
            .to_string()
            .contains("no origin is")
    );
}

#[test]
fn the_widest_of_the_grants_that_match_decides() {
    let grants = [
        grant("https://*.example.com", false, false),
        grant("https://wiki.example.com", true, false),
    ];
    assert!(decide(&grants, &target("https://wiki.example.com")).unwrap().private);
    assert!(!decide(&grants, &target("https://api.example.com")).unwrap().private);
}

#[test]
fn a_name_reaches_no_address_off_the_internet_without_private() {
    let open = grant("*", false, false);
    let private = grant("*", true, false);
    let name = target("https://rebind.example");
    for address in [
        "10.0.0.1",
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "169.254.1.1",
        "fd00::1",
        "100.64.0.1",
    ] {
        let address: IpAddr = address.parse().unwrap();
        let refusal = check_address(&open, &name, address).unwrap_err();
        assert!(refusal.to_string().contains("`private = true`"), "{refusal}");
        assert_eq!(check_address(&private, &name, address), Ok(()), "{address}");
    }
    for address in [
        "169.254.169.254",
        "64:ff9b::169.254.169.254",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "255.255.255.255",
    ] {
        let address: IpAddr = address.parse().unwrap();
        assert!(check_address(&private, &name, address).is_err(), "{address}");
    }
    assert_eq!(check_address(&open, &name, "1.1.1.1".parse().unwrap()), Ok(()));
}

#[test]
fn a_literal_address_needs_a_grant_that_says_so() {
    for (url, private, metadata, allowed) in [
        ("http://127.0.0.1", false, false, false),
        ("http://127.0.0.1", true, false, true),
        ("http://2130706433", false, false, false),
        ("http://169.254.169.254", true, false, false),
        ("http://169.254.169.254", true, true, true),
        ("http://0.0.0.0", true, true, false),
        ("http://1.1.1.1", false, false, true),
    ] {
        let grants = [grant("*", private, metadata)];
        assert_eq!(
            decide(&grants, &target(url)).is_ok(),
            allowed,
            "{url} {private} {metadata}"
        );
    }
}

#[test]
fn a_literal_address_is_no_other() {
    let granted = grant("http://1.1.1.1", false, false);
    let literal = target("http://1.1.1.1");
    assert_eq!(
        check_address(&granted, &literal, "::ffff:1.1.1.1".parse().unwrap()),
        Ok(())
    );
    let refusal = check_address(&granted, &literal, "8.8.8.8".parse().unwrap()).unwrap_err();
    assert!(
        refusal.to_string().contains("not the one that was asked for"),
        "{refusal}"
    );
}

#[test]
fn localhost_is_this_machine_whatever_a_resolver_says() {
    let granted = grant("http://localhost", true, false);
    let localhost = target("http://localhost");
    assert_eq!(
        check_address(&granted, &localhost, "127.0.0.1".parse().unwrap()),
        Ok(())
    );
    assert!(check_address(&granted, &localhost, "10.0.0.1".parse().unwrap()).is_err());
    assert!(check_address(&granted, &localhost, "1.1.1.1".parse().unwrap()).is_err());
}

fn any_pattern() -> impl Strategy<Value = OriginPattern> {
    let host = prop::sample::select(vec![
        "*",
        "a.example.com",
        "b.example.com",
        "example.com",
        "*.example.com",
        "*.com",
        "localhost",
        "10.0.0.1",
        "[10.0.0.0/8]",
        "[10.1.0.0/16]",
        "[0.0.0.0/0]",
        "[::1]",
        "[fd00::/8]",
    ]);
    let port = prop::sample::select(vec!["", ":80", ":443", ":8080"]);
    let scheme = prop::sample::select(vec!["http://", "https://"]);
    prop_oneof![
        1 => Just(OriginPattern::any()),
        9 => (scheme, host, port).prop_map(|(scheme, host, port)| pattern(&format!("{scheme}{host}{port}"))),
    ]
}

fn any_target() -> impl Strategy<Value = Target> {
    let host = prop::sample::select(vec![
        "a.example.com",
        "b.example.com",
        "example.com",
        "x.y.example.com",
        "localhost",
        "10.0.0.1",
        "10.1.0.1",
        "[::1]",
        "[fd00::1]",
        "0x7f.1",
    ]);
    let port = prop::sample::select(vec!["", ":80", ":443", ":8080"]);
    let scheme = prop::sample::select(vec!["http", "https"]);
    (scheme, host, port).prop_map(|(scheme, host, port)| Target::parse(scheme, &format!("{host}{port}")).unwrap())
}

proptest! {
    #[test]
    fn an_intersection_matches_what_both_match(a in any_pattern(), b in any_pattern(), t in any_target()) {
        let both = a.intersect(&b);
        prop_assert_eq!(&both, &b.intersect(&a));
        prop_assert_eq!(both.is_some_and(|both| both.matches(&t)), a.matches(&t) && b.matches(&t));
        prop_assert!(a.contains(&a));
        if a.contains(&b) && b.matches(&t) {
            prop_assert!(a.matches(&t));
        }
    }

    #[test]
    fn no_text_breaks_the_parsers(text in "\\PC{0,40}") {
        if let Ok(parsed) = text.parse::<OriginPattern>() {
            prop_assert_eq!(parsed.to_string().parse::<OriginPattern>(), Ok(parsed));
        }
        if let Ok(parsed) = Target::parse("https", &text) {
            let shown = parsed.to_string();
            prop_assert_eq!(Target::parse("https", shown.strip_prefix("https://").unwrap()), Ok(parsed));
        }
    }

    #[test]
    fn every_address_is_a_target_of_its_own_literal(bits in any::<u128>()) {
        let address = std::net::Ipv6Addr::from(bits);
        let literal = pattern(&format!("https://[{address}]"));
        let asked = Target::parse("https", &format!("[{address}]")).unwrap();
        prop_assert!(literal.matches(&asked));
        prop_assert_eq!(pattern(&literal.to_string()), literal);
    }
}
