use super::{needs_http, net, plugin, policy};
use crate::grant::policy::{Policy, PolicySecret};
use crate::grant::resolve::{Kind, Resolved, resolve};
use crate::manifest::archetype::{GrantRequest, GrantTable, OriginRequest, SecretRequest};
use crate::manifest::plugin::{NeededSecret, Needs};

fn http(need: &[&str], request: &[(&str, bool)], policy: &[(&str, bool)]) -> Resolved {
    let http = request
        .iter()
        .map(|(origin, private)| OriginRequest {
            origin: (*origin).into(),
            private: *private,
        })
        .collect();
    let table = GrantTable {
        http,
        ..GrantTable::default()
    };
    resolve(
        &plugin(needs_http(need)),
        &GrantRequest::Exact(table),
        &net(policy),
        "archetype `a`",
    )
    .unwrap()
}

#[test]
fn an_origin_is_what_need_archetype_and_policy_share() {
    for (need, request, policy, expected) in [
        (
            "*",
            "https://a.example.com",
            "https://a.example.com",
            vec!["https://a.example.com"],
        ),
        (
            "*",
            "https://*.example.com",
            "https://a.example.com",
            vec!["https://a.example.com"],
        ),
        (
            "*",
            "https://a.example.com",
            "https://*.example.com",
            vec!["https://a.example.com"],
        ),
        ("https://a.example.com", "*", "*", vec!["https://a.example.com"]),
        ("https://a.example.com", "https://b.example.com", "*", vec![]),
        ("*", "https://a.example.com", "http://a.example.com", vec![]),
        (
            "*",
            "http://10.0.0.0/8",
            "http://10.1.0.0/16",
            vec!["http://[10.1.0.0/16]"],
        ),
    ] {
        let resolved = http(&[need], &[(request, false)], &[(policy, false)]);
        let patterns: Vec<String> = resolved
            .grant
            .http
            .iter()
            .map(|http| http.pattern.to_string())
            .collect();
        assert_eq!(patterns, expected, "{need} {request} {policy}");
    }
}

#[test]
fn a_private_address_takes_both_the_archetype_and_policy() {
    for (request, policy, private) in [
        (("https://wiki.corp", true), ("https://wiki.corp", true), true),
        (("https://wiki.corp", false), ("https://wiki.corp", true), false),
        (("https://wiki.corp", true), ("https://wiki.corp", false), false),
        (("https://wiki.corp", true), ("*", true), true),
        (("http://127.0.0.1:8080", false), ("http://127.0.0.1:8080", false), true),
        (("http://127.0.0.1:8080", false), ("*", false), false),
        (("http://127.0.0.1:8080", false), ("*", true), true),
        (("*", false), ("http://127.0.0.1:8080", false), false),
        (("*", true), ("http://127.0.0.1:8080", false), true),
        (("http://localhost:8080", false), ("http://localhost:8080", false), true),
        (("http://localhost:8080", false), ("http://*:8080", false), false),
        (("http://10.0.0.0/8", false), ("http://10.0.0.0/8", false), true),
    ] {
        let resolved = http(&["*"], &[request], &[policy]);
        let reached = resolved.grant.http.first().is_some_and(|http| http.private);
        assert_eq!(reached, private, "{request:?} {policy:?}");
        let is_literal = |origin: &str| {
            "0123456789"
                .chars()
                .any(|digit| origin.starts_with(&format!("http://{digit}")))
        };
        // What could reach nothing at all is not granted.
        let void = !private && (is_literal(request.0) || is_literal(policy.0) || request.0.contains("localhost"));
        assert_eq!(resolved.grant.http.is_empty(), void, "{request:?} {policy:?}");
        let wanted = request.1 || request.0 != "*" && request.0 != "https://wiki.corp";
        assert_eq!(
            resolved.taken.iter().any(|taken| taken.kind == Kind::Http),
            wanted && !private || request.0 == "*"
        );
    }
}

#[test]
fn a_metadata_address_is_reached_only_if_policy_names_the_literal() {
    for (policy, metadata) in [
        (("http://169.254.169.254", false), true),
        (("http://169.254.0.0/16", true), false),
        (("*", true), false),
    ] {
        let resolved = http(&["*"], &[("http://169.254.169.254", true)], &[policy]);
        assert_eq!(
            resolved.grant.http.first().is_some_and(|http| http.metadata),
            metadata,
            "{policy:?}"
        );
    }
}

#[test]
fn an_origin_that_another_covers_is_dropped_unless_it_says_more() {
    let resolved = http(
        &["*"],
        &[("https://*.corp", false), ("https://wiki.corp", true)],
        &[("https://*.corp", true)],
    );
    assert_eq!(resolved.grant.http.len(), 2);
    let resolved = http(
        &["*", "https://*"],
        &[("https://*.corp", false)],
        &[("*", false), ("https://wiki.corp", false)],
    );
    assert_eq!(resolved.grant.http.len(), 1);
}

#[test]
fn what_policy_takes_of_the_network_is_named_with_its_flag() {
    for (request, policy, flag) in [
        (("https://a.com", false), vec![], "--allow-net https://a.com"),
        (
            ("https://*.a.com", false),
            vec![("https://x.a.com", false)],
            "--allow-net https://*.a.com",
        ),
        (
            ("http://127.0.0.1", false),
            vec![("*", false)],
            "--allow-net http://127.0.0.1",
        ),
        (
            ("https://wiki.corp", true),
            vec![("*", false)],
            "[policy] net = [{ origin = \"https://wiki.corp\", private = true }]",
        ),
    ] {
        let resolved = http(&["*"], &[request], &policy);
        assert_eq!(resolved.taken.len(), 1, "{request:?}");
        assert_eq!(resolved.taken[0].flag, flag);
    }
    assert!(
        http(&["*"], &[("http://1.1.1.1", false)], &[("*", false)])
            .taken
            .is_empty()
    );
}

#[test]
fn an_origin_that_cannot_be_read_names_its_place() {
    let table = GrantTable {
        http: vec![OriginRequest {
            origin: "http://0x7f.1".into(),
            private: false,
        }],
        ..GrantTable::default()
    };
    let error = resolve(
        &plugin(needs_http(&["*"])),
        &GrantRequest::Exact(table),
        &policy(),
        "archetype `a`",
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "archetype `a`, plugin `probe`, `http`: `http://0x7f.1` is not an origin: the host is the address 127.0.0.1 in \
         another notation; write `127.0.0.1`"
    );
    let error = resolve(
        &plugin(needs_http(&["ftp://x"])),
        &GrantRequest::Policy,
        &policy(),
        "main",
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("plugin `probe`, `[needs] http`: `ftp://x`"),
        "{error}"
    );
}

#[test]
fn a_secret_is_what_all_three_name_for_the_origins_that_they_share() {
    let needs = Needs {
        secrets: vec![NeededSecret {
            name: "TOKEN".into(),
            origin: "https://*.a.com".into(),
            header: Some("X-Token".into()),
            format: None,
        }],
        ..needs_http(&["*"])
    };
    let secret = |name: &str, origin: &str, header: Option<&str>| SecretRequest {
        name: name.into(),
        origin: origin.into(),
        header: header.map(Into::into),
        format: None,
    };
    let allowed = |name: &str, origin: &str| PolicySecret {
        name: name.into(),
        origin: origin.parse().unwrap(),
        rule: "[policy] secrets".into(),
    };
    for (request, policy, expected) in [
        (
            secret("TOKEN", "https://api.a.com", None),
            vec![allowed("TOKEN", "*")],
            Some(("https://api.a.com", "x-token")),
        ),
        (
            secret("TOKEN", "https://*.a.com", Some("Authorization")),
            vec![allowed("TOKEN", "https://api.a.com")],
            Some(("https://api.a.com", "authorization")),
        ),
        (
            secret("TOKEN", "https://api.a.com", None),
            vec![allowed("OTHER", "*")],
            None,
        ),
        (
            secret("TOKEN", "https://b.com", None),
            vec![allowed("TOKEN", "*")],
            None,
        ),
        (
            secret("OTHER", "https://api.a.com", None),
            vec![allowed("OTHER", "*")],
            None,
        ),
        (secret("TOKEN", "https://api.a.com", None), vec![], None),
    ] {
        let table = GrantTable {
            http: vec![OriginRequest {
                origin: "https://api.a.com".into(),
                private: false,
            }],
            secrets: vec![request.clone()],
            ..GrantTable::default()
        };
        let policy = Policy {
            secrets: policy,
            ..net(&[("*", false)])
        };
        let resolved = resolve(
            &plugin(needs.clone()),
            &GrantRequest::Exact(table),
            &policy,
            "archetype `a`",
        )
        .unwrap();
        let got = resolved.grant.secrets.first();
        let got = got.map(|secret| (secret.origin.to_string(), secret.header.clone()));
        assert_eq!(
            got,
            expected.map(|(origin, header)| (origin.into(), header.into())),
            "{request:?}"
        );
        assert!(got.is_none() || resolved.grant.secrets[0].format == "Bearer {}");
        assert!(got.is_some() || !resolved.taken.is_empty() || !resolved.warnings.is_empty());
    }
}

#[test]
fn a_secret_without_an_origin_to_travel_to_is_a_warning() {
    let needs = Needs {
        secrets: vec![NeededSecret {
            name: "T".into(),
            origin: "https://a.com".into(),
            header: None,
            format: None,
        }],
        ..needs_http(&["*"])
    };
    let allowed = PolicySecret {
        name: "T".into(),
        origin: "https://a.com".parse().unwrap(),
        rule: "r".into(),
    };
    let policy = Policy {
        secrets: vec![allowed],
        ..net(&[("https://b.com", false)])
    };
    let resolved = resolve(&plugin(needs), &GrantRequest::Policy, &policy, "main").unwrap();
    assert!(
        resolved.warnings[0].contains("to which it may send no request"),
        "{:?}",
        resolved.warnings
    );
}
