#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::time::Duration;

use super::{Kind, resolve};
use crate::grant::FileMode::{self, Read};
use crate::grant::Limits;
use crate::grant::policy::{Policy, PolicyDir, PolicyOrigin, PolicyVariable};
use crate::id::Digest;
use crate::manifest::archetype::{FileRequest, GrantRequest, GrantTable, LimitRequest};
use crate::manifest::plugin::{NeededOrigin, Needs};
use crate::tool::PluginInfo;

mod files;
mod net;

fn plugin(needs: Needs) -> PluginInfo {
    PluginInfo {
        name: "probe".parse().unwrap(),
        version: String::new(),
        description: String::new(),
        digest: Digest::of(b"probe"),
        path: PathBuf::from("/plugins/probe.wasm"),
        needs,
        tools: Vec::new(),
        imports: Vec::new(),
        filter: false,
    }
}

fn policy() -> Policy {
    Policy {
        working_directory: "/home/me/project".into(),
        ..Policy::default()
    }
}

fn dir(host: &str, guest: &str, mode: FileMode) -> PolicyDir {
    PolicyDir {
        host: host.into(),
        guest: guest.into(),
        mode,
        rule: format!("[policy] `{host}`").into(),
    }
}

fn file(host: &str, guest: &str, mode: FileMode) -> FileRequest {
    FileRequest {
        host: host.into(),
        guest: guest.into(),
        mode,
    }
}

fn net(origins: &[(&str, bool)]) -> Policy {
    let net = origins
        .iter()
        .map(|(origin, private)| PolicyOrigin {
            pattern: origin.parse().unwrap(),
            private: *private,
            rule: format!("--allow-net {origin}").into(),
        })
        .collect();
    Policy { net, ..policy() }
}

fn needs_http(origins: &[&str]) -> Needs {
    Needs {
        http: origins.iter().map(|origin| NeededOrigin((*origin).into())).collect(),
        ..Needs::default()
    }
}

#[test]
fn a_variable_is_the_manifests_literal_else_the_hosts_value() {
    let needs = Needs {
        env: vec!["LANG".into(), "HOME".into()],
        files: Some(Read),
        ..Needs::default()
    };
    let variable = |name: &str, value: Option<&str>| PolicyVariable {
        name: name.into(),
        value: value.map(Into::into),
    };
    let policy = Policy {
        env: vec![variable("LANG", Some("de")), variable("HOME", None)],
        ..policy()
    };
    let table = |literal: Option<&str>| GrantTable {
        env: literal
            .map(|value| ("LANG".to_owned(), value.to_owned()))
            .into_iter()
            .collect(),
        files: vec![file(".", "/work", Read)],
        ..GrantTable::default()
    };
    let limits_alone = GrantTable {
        limits: LimitRequest {
            memory: Some(1),
            ..LimitRequest::default()
        },
        ..GrantTable::default()
    };
    for (request, expected) in [
        (GrantRequest::Policy, Some("de")),
        (GrantRequest::Exact(table(Some("C"))), Some("C")),
        (GrantRequest::Exact(table(None)), Some("de")),
        // Without any grant the plugin can only compute.
        (GrantRequest::Exact(GrantTable::default()), None),
        (GrantRequest::Exact(limits_alone), None),
    ] {
        let resolved = resolve(&plugin(needs.clone()), &request, &policy, "archetype `a`").unwrap();
        assert_eq!(
            resolved.grant.env.get("LANG").map(String::as_str),
            expected,
            "{request:?}"
        );
        assert!(!resolved.grant.env.contains_key("HOME"));
    }
    let table = GrantTable {
        env: [("PATH".to_owned(), "/bin".to_owned())].into(),
        ..GrantTable::default()
    };
    let resolved = resolve(&plugin(needs), &GrantRequest::Exact(table), &policy, "archetype `a`").unwrap();
    assert!(!resolved.grant.env.contains_key("PATH"));
    assert!(
        resolved.warnings[0].contains("env `PATH`, which the plugin does not need"),
        "{:?}",
        resolved.warnings
    );
}

#[test]
fn toolbox_and_person_take_all_three() {
    for needed in [false, true] {
        for granted in [None, Some(false), Some(true)] {
            for allowed in [false, true] {
                let needs = Needs {
                    toolbox: needed,
                    person: needed,
                    ..Needs::default()
                };
                let request = match granted {
                    None => GrantRequest::Policy,
                    Some(on) => GrantRequest::Exact(GrantTable {
                        toolbox: on,
                        person: on,
                        ..GrantTable::default()
                    }),
                };
                let policy = Policy {
                    toolbox: allowed,
                    person: allowed,
                    ..policy()
                };
                let resolved = resolve(&plugin(needs), &request, &policy, "archetype `a`").unwrap();
                let expected = needed && granted.unwrap_or(true) && allowed;
                assert_eq!(resolved.grant.toolbox, expected, "{needed} {granted:?} {allowed}");
                assert_eq!(resolved.grant.person, expected, "{needed} {granted:?} {allowed}");
                assert_eq!(resolved.wanted.toolbox, needed && granted.unwrap_or(true));
                let taken = needed && granted == Some(true) && !allowed;
                assert_eq!(resolved.taken.len(), if taken { 2 } else { 0 });
            }
        }
    }
}

#[test]
fn limits_are_the_manifests_else_the_default_and_policy_caps_both() {
    let table = GrantTable {
        limits: LimitRequest {
            memory: Some(64 << 20),
            cpu: Some(Duration::from_secs(20)),
            ..LimitRequest::default()
        },
        ..GrantTable::default()
    };
    let policy = Policy {
        limits: LimitRequest {
            memory: Some(256 << 20),
            cpu: Some(Duration::from_secs(10)),
            wall: Some(Duration::from_secs(1)),
            ..LimitRequest::default()
        },
        ..policy()
    };
    let resolved = resolve(
        &plugin(Needs::default()),
        &GrantRequest::Exact(table),
        &policy,
        "archetype `a`",
    )
    .unwrap();
    let limits = resolved.grant.limits;
    assert_eq!(limits.memory, 64 << 20);
    assert_eq!(limits.cpu, Duration::from_secs(10));
    assert_eq!(limits.wall, Duration::from_secs(1));
    assert_eq!(limits.output, Limits::default().output);
    // Only what the manifest asked for was taken from it.
    assert_eq!(resolved.taken.len(), 1);
    assert_eq!(resolved.taken[0].target, "cpu");
}

#[test]
fn every_right_names_the_manifest_and_the_rule_behind_it() {
    let needs = Needs {
        files: Some(Read),
        ..needs_http(&["*"])
    };
    let policy = Policy {
        files: vec![dir("/home/me/project", "/work", Read)],
        ..net(&[("https://a.com", false)])
    };
    let resolved = resolve(&plugin(needs), &GrantRequest::Policy, &policy, "archetype `main`").unwrap();
    assert_eq!(
        &*resolved.grant.files[0].rule,
        "archetype `main`, [policy] `/home/me/project`"
    );
    assert_eq!(
        &*resolved.grant.http[0].rule,
        "archetype `main`, --allow-net https://a.com"
    );
    let row = resolved.reach.iter().find(|row| row.kind == Kind::Http).unwrap();
    assert_eq!(row.need.as_deref(), Some("*"));
    assert_eq!(row.archetype.as_deref(), Some("as wide as policy"));
    assert_eq!(row.policy.as_deref(), Some("--allow-net https://a.com"));
    assert_eq!(row.effective.as_deref(), Some("https://a.com"));
}
