//! Patterns of origins, and what plugins need ∩ archetypes grant ∩ policy allows.

use std::path::{Path, PathBuf};

use fief_core::grant::FileMode;
use fief_core::grant::pattern::OriginPattern;
use fief_core::grant::policy::{Policy, PolicyDir, PolicyOrigin, PolicySecret};
use fief_core::grant::resolve::resolve;
use fief_core::grant::target::Target;
use fief_core::id::Digest;
use fief_core::manifest::archetype::{FileRequest, GrantRequest, GrantTable, OriginRequest, SecretRequest};
use fief_core::manifest::files::stays_inside;
use fief_core::manifest::plugin::{NeededOrigin, NeededSecret, Needs};
use fief_core::tool::PluginInfo;

use super::text;

/// Two patterns and an origin, a line each.
///
/// # Panics
/// If reading what is written does not give it back, or if the overlap of two patterns matches anything but what both
/// match.
pub fn patterns(bytes: &[u8]) {
    let text = text(bytes);
    let mut lines = text.lines();
    let mut next = || lines.next().unwrap_or_default();
    let (one, other, origin) = (next(), next(), next());
    let _ = stays_inside(Path::new(origin));
    let target = origin
        .split_once("://")
        .and_then(|(scheme, authority)| Target::parse(scheme, authority).ok());
    if let Some(target) = &target {
        let written = target.to_string();
        let (scheme, authority) = written.split_once("://").expect("an origin has a scheme");
        assert_eq!(Target::parse(scheme, authority).as_ref(), Ok(target), "{written}");
    }
    let read = |line: &str| {
        let pattern: OriginPattern = line.parse().ok()?;
        assert_eq!(pattern.to_string().parse().as_ref(), Ok(&pattern), "{line}");
        assert!(pattern.contains(&pattern), "{line}");
        Some(pattern)
    };
    let (Some(one), Some(other)) = (read(one), read(other)) else {
        return;
    };
    let both = one.intersect(&other);
    assert_eq!(both, other.intersect(&one));
    if let Some(both) = &both {
        assert!(one.contains(both) && other.contains(both), "{one} and {other}: {both}");
    }
    if let Some(target) = &target {
        let matched = both.is_some_and(|both| both.matches(target));
        assert_eq!(
            matched,
            one.matches(target) && other.matches(target),
            "{one}, {other}: {target}"
        );
    }
}

/// Lines of needs, grants and policy: who speaks, a word for what, and a text: `need http *`, `grant write out`,
/// `policy private http://10.0.0.1`.
///
/// # Panics
/// If a right comes out that policy or the grant does not hold, or if less policy gives more.
pub fn resolution(bytes: &[u8]) {
    let text = text(bytes);
    let (mut needs, mut table, mut policy) = (Needs::default(), None, Policy::default());
    policy.working_directory = "/w".into();
    for line in text.lines().take(64) {
        let mut words = line.splitn(3, ' ');
        let mut next = || words.next().unwrap_or_default();
        match (next(), next(), next()) {
            ("need", key, value) => need(&mut needs, key, value),
            ("grant", key, value) => grant(table.get_or_insert_default(), key, value),
            ("policy", key, value) => allow(&mut policy, key, value),
            _ => {}
        }
    }
    let plugin = PluginInfo {
        name: "guest".parse().expect("a name"),
        version: String::new(),
        description: String::new(),
        digest: Digest::of(b""),
        path: PathBuf::new(),
        needs,
        tools: Vec::new(),
        imports: Vec::new(),
        filter: false,
    };
    let request = table.map_or(GrantRequest::Policy, GrantRequest::Exact);
    let Ok(resolved) = resolve(&plugin, &request, &policy, "archetype `a`") else {
        return;
    };
    let held = resolved.grant;
    for dir in &held.files {
        let allows = |allowed: &PolicyDir| dir.host.starts_with(&allowed.host) && dir.mode <= allowed.mode;
        assert!(policy.files.iter().any(allows), "{dir:?} under {:?}", policy.files);
        assert!(plugin.needs.files.is_some_and(|need| dir.mode <= need), "{dir:?}");
    }
    for origin in &held.http {
        let allows = |allowed: &PolicyOrigin| {
            let private = allowed.private || allowed.pattern.is_explicit();
            allowed.pattern.contains(&origin.pattern) && (private || !origin.private)
        };
        assert!(policy.net.iter().any(allows), "{origin:?} under {:?}", policy.net);
        assert!(!plugin.needs.http.is_empty());
    }
    for secret in &held.secrets {
        let allows = |allowed: &PolicySecret| allowed.name == secret.name && allowed.origin.contains(&secret.origin);
        assert!(
            policy.secrets.iter().any(allows),
            "{secret:?} under {:?}",
            policy.secrets
        );
    }
    assert!(!held.toolbox || (policy.toolbox && plugin.needs.toolbox));
    assert!(!held.person || (policy.person && plugin.needs.person));

    // The same again, and with less policy.
    let again = resolve(&plugin, &request, &policy, "archetype `a`").expect("as before");
    assert_eq!(again.grant, held);
    (policy.toolbox, policy.person) = (false, false);
    policy.net.clear();
    policy.files.retain(|dir| dir.mode == FileMode::Read);
    let less = resolve(&plugin, &request, &policy, "archetype `a`")
        .expect("as before")
        .grant;
    assert!(less.http.is_empty() && !less.toolbox && !less.person);
    assert!(less.files.iter().all(|dir| dir.mode == FileMode::Read));
}

fn need(needs: &mut Needs, key: &str, value: &str) {
    match key {
        "http" => needs.http.push(NeededOrigin(value.into())),
        "read" => needs.files = needs.files.max(Some(FileMode::Read)),
        "write" => needs.files = Some(FileMode::Write),
        "secret" => {
            if let Some((name, origin)) = value.split_once('@') {
                needs.secrets.push(NeededSecret {
                    name: name.into(),
                    origin: origin.into(),
                    header: None,
                    format: None,
                });
            }
        }
        "toolbox" => needs.toolbox = true,
        "person" => needs.person = true,
        _ => {}
    }
}

fn grant(table: &mut GrantTable, key: &str, value: &str) {
    let file = |mode| FileRequest {
        host: value.into(),
        guest: format!("/{}", value.trim_matches(['/', '.'])),
        mode,
    };
    match key {
        "http" | "private" => table.http.push(OriginRequest {
            origin: value.into(),
            private: key == "private",
        }),
        "read" => table.files.push(file(FileMode::Read)),
        "write" => table.files.push(file(FileMode::Write)),
        "secret" => {
            if let Some((name, origin)) = value.split_once('@') {
                table.secrets.push(SecretRequest {
                    name: name.into(),
                    origin: origin.into(),
                    header: None,
                    format: None,
                });
            }
        }
        "toolbox" => table.toolbox = true,
        "person" => table.person = true,
        _ => {}
    }
}

fn allow(policy: &mut Policy, key: &str, value: &str) {
    let dir = |mode| PolicyDir {
        host: fief_core::grant::resolve::absolute(Path::new("/w"), Path::new(value)),
        guest: "/work".into(),
        mode,
        rule: "policy".into(),
    };
    match key {
        "net" | "private" => {
            if let Ok(pattern) = value.parse() {
                policy.net.push(PolicyOrigin {
                    pattern,
                    private: key == "private",
                    rule: "policy".into(),
                });
            }
        }
        "read" => policy.files.push(dir(FileMode::Read)),
        "write" => policy.files.push(dir(FileMode::Write)),
        "secret" => {
            if let Some((name, origin)) = value.split_once('@')
                && let Ok(origin) = origin.parse()
            {
                policy.secrets.push(PolicySecret {
                    name: name.into(),
                    origin,
                    rule: "policy".into(),
                });
            }
        }
        "toolbox" => policy.toolbox = true,
        "person" => policy.person = true,
        "protect" => policy.protected.push(value.into()),
        _ => {}
    }
}
