#![allow(clippy::unwrap_used)]

use super::imports::{Blame, missing};
use super::policy::{Policy, PolicyOrigin};
use super::resolve::resolve;
use crate::id::Digest;
use crate::manifest::archetype::{GrantRequest, GrantTable, OriginRequest};
use crate::manifest::plugin::{NeededOrigin, Needs};
use crate::tool::PluginInfo;

fn plugin(imports: &[&str], needs: Needs) -> PluginInfo {
    PluginInfo {
        name: "probe".parse().unwrap(),
        version: String::new(),
        description: String::new(),
        digest: Digest::of(b"probe"),
        path: "/plugins/probe.wasm".into(),
        needs,
        tools: Vec::new(),
        imports: imports.iter().map(|import| (*import).to_owned()).collect(),
        filter: false,
    }
}

fn lacks(plugin: &PluginInfo, request: &GrantRequest, policy: &Policy) -> Vec<String> {
    let resolved = resolve(plugin, request, policy, "archetype `a`").unwrap();
    missing(plugin, request, &resolved)
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn nothing() -> GrantRequest {
    GrantRequest::Exact(GrantTable::default())
}

#[test]
fn base_wasi_and_what_every_plugin_may_use_is_always_there() {
    let plugin = plugin(
        &[
            "fief:plugin/types@0.1.0",
            "fief:plugin/call@0.1.3",
            "wasi:cli/environment@0.2.3",
            "wasi:cli/terminal-stdout@0.2.9",
            "wasi:io/streams@0.2.0",
            "wasi:clocks/wall-clock@0.2.6",
            "wasi:random/insecure-seed@0.2.6",
            "wasi:filesystem/preopens@0.2.6",
        ],
        Needs::default(),
    );
    assert_eq!(lacks(&plugin, &nothing(), &Policy::default()), Vec::<String>::new());
}

#[test]
fn what_no_agent_has_is_named_with_what_to_do_instead() {
    for (interface, hint) in [
        ("wasi:sockets/tcp@0.2.6", "componentize-py --stub-wasi"),
        ("wasi:sockets/ip-name-lookup@0.2.0", "componentize-py --stub-wasi"),
        ("wasi:http/incoming-handler@0.2.6", "serves no requests"),
        ("wasi:keyvalue/store@0.2.0", "this host links base WASI"),
        ("wasi:clocks/timezone@0.2.6", "this host links base WASI"),
        ("wasi:cli/environment@0.3.0", "`wasi:cli/environment` in version 0.2"),
        (
            "wasi:http/outgoing-handler@0.3.0",
            "`wasi:http/outgoing-handler` in version 0.2",
        ),
        ("wasi:io/streams", "in version 0.2"),
        ("wasi:io/streams@0.20.0", "in version 0.2"),
        ("fief:plugin/toolbox@0.2.0", "`fief:plugin/toolbox` in version 0.1"),
        ("fief:plugin/agents@0.1.0", "does not know it"),
        ("acme:database/query@1.0.0", "does not know it"),
        ("nonsense", "does not know it"),
    ] {
        let needs = Needs {
            http: vec![NeededOrigin("*".into())],
            toolbox: true,
            ..Needs::default()
        };
        let policy = Policy {
            toolbox: true,
            net: vec![],
            ..Policy::default()
        };
        let lacks = lacks(&plugin(&[interface], needs), &GrantRequest::Policy, &policy);
        assert_eq!(lacks.len(), 1, "{interface}");
        assert!(
            lacks[0].starts_with(&format!("`{interface}`: never granted; ")),
            "{}",
            lacks[0]
        );
        assert!(lacks[0].contains(hint), "{}", lacks[0]);
    }
}

#[test]
fn every_missing_interface_is_named_with_the_line_that_would_grant_it() {
    let imports = [
        "wasi:http/types@0.2.4",
        "wasi:http/outgoing-handler@0.2.4",
        "fief:plugin/toolbox@0.1.0",
        "fief:plugin/person@0.1.0",
        "wasi:sockets/udp@0.2.4",
    ];
    let needs = Needs {
        http: vec![NeededOrigin("https://a.com".into())],
        toolbox: true,
        ..Needs::default()
    };
    assert_eq!(
        lacks(&plugin(&imports, needs), &nothing(), &Policy::default()),
        [
            "`wasi:http/types@0.2.4`: not granted; `[tools.grant] http = [\"https://a.com\"]` would grant it",
            "`wasi:http/outgoing-handler@0.2.4`: not granted; `[tools.grant] http = [\"https://a.com\"]` would grant it",
            "`fief:plugin/toolbox@0.1.0`: not granted; `[tools.grant] toolbox = true` would grant it",
            "`fief:plugin/person@0.1.0`: its `plugin.toml` does not ask for it; `[needs] person = true` would",
            "`wasi:sockets/udp@0.2.4`: never granted; a plugin reaches the network through `wasi:http` (for Python: \
         `componentize-py --stub-wasi`)",
        ]
    );
}

#[test]
fn what_policy_took_is_told_from_what_the_manifest_never_granted() {
    let needs = Needs {
        http: vec![NeededOrigin("*".into())],
        person: true,
        ..Needs::default()
    };
    let plugin = plugin(&["wasi:http/outgoing-handler@0.2.4", "fief:plugin/person@0.1.0"], needs);
    let granting = |origin: &str| {
        GrantRequest::Exact(GrantTable {
            http: vec![OriginRequest {
                origin: origin.into(),
                private: false,
            }],
            person: true,
            ..GrantTable::default()
        })
    };
    assert_eq!(
        lacks(&plugin, &granting("https://a.com"), &Policy::default()),
        [
            "`wasi:http/outgoing-handler@0.2.4`: not allowed by policy; `--allow-net https://a.com` would allow it",
            "`fief:plugin/person@0.1.0`: not allowed by policy; `[policy] person = true` would allow it",
        ]
    );
    assert_eq!(
        lacks(&plugin, &GrantRequest::Policy, &Policy::default())[0]
            .split_once("; ")
            .unwrap()
            .1,
        "`--allow-net ORIGIN` would allow it"
    );
    let net = vec![PolicyOrigin {
        pattern: "https://a.com".parse().unwrap(),
        private: false,
        rule: "net".into(),
    }];
    let policy = Policy {
        net,
        person: true,
        ..Policy::default()
    };
    assert!(lacks(&plugin, &granting("https://a.com"), &policy).is_empty());
    let resolved = resolve(&plugin, &granting("https://b.com"), &policy, "archetype `a`").unwrap();
    let lacking = missing(&plugin, &granting("https://b.com"), &resolved);
    assert!(matches!(lacking[0].blame, Blame::Policy { .. }), "{lacking:?}");
}

#[test]
fn a_grant_that_no_need_meets_is_the_manifests_fault() {
    let needs = Needs {
        http: vec![NeededOrigin("https://a.com".into())],
        ..Needs::default()
    };
    let plugin = plugin(&["wasi:http/outgoing-handler@0.2.4"], needs);
    let request = GrantRequest::Exact(GrantTable {
        http: vec![OriginRequest {
            origin: "https://b.com".into(),
            private: false,
        }],
        ..GrantTable::default()
    });
    let resolved = resolve(&plugin, &request, &Policy::default(), "archetype `a`").unwrap();
    assert!(matches!(
        missing(&plugin, &request, &resolved)[0].blame,
        Blame::Manifest { .. }
    ));
}
