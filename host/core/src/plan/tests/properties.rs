//! What holds for every world, every archetype and every request.
//!
//! Rights are compared as what can be done with them: files that can be read or written, origins and addresses that
//! can be reached, secrets that are sent. That way two grants that say the same in other words are the same.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::grant::egress::{check_address, decide};
use crate::grant::policy::{PolicySecret, PolicyVariable};
use crate::grant::resolve::{absolute, resolve};
use crate::grant::target::Target;
use crate::grant::{Grant, Holdings};
use crate::manifest::archetype::{FileRequest, LimitRequest, SecretRequest};
use crate::manifest::plugin::NeededSecret;
use crate::plan::{child, main};

const PATHS: [&str; 7] = [
    "/project/a.txt",
    "/project/src/lib.rs",
    "/project/src/deep/x",
    "/project/plugins/p.wasm",
    "/project/fief.toml",
    "/data/x",
    "/etc/passwd",
];
const TARGETS: [(&str, &str); 8] = [
    ("https", "a.com"),
    ("https", "x.corp"),
    ("https", "y.corp:8443"),
    ("http", "a.com"),
    ("http", "localhost:8080"),
    ("http", "127.0.0.1:8080"),
    ("http", "10.0.0.7"),
    ("http", "169.254.169.254"),
];
const ADDRESSES: [&str; 4] = ["1.1.1.1", "10.0.0.7", "127.0.0.1", "169.254.169.254"];

/// Everything that a grant lets its plugin do, as far as the probes above go.
fn rights(grant: &Grant) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for path in PATHS.map(Path::new) {
        for dir in grant.files.iter().filter(|dir| path.starts_with(&dir.host)) {
            out.insert(format!("read {}", path.display()));
            let protected = dir.protected.iter().any(|protected| path.starts_with(protected));
            if dir.mode == FileMode::Write && !protected {
                out.insert(format!("write {}", path.display()));
            }
        }
    }
    for (scheme, authority) in TARGETS {
        let target = Target::parse(scheme, authority).unwrap();
        let Ok(granted) = decide(&grant.http, &target) else {
            continue;
        };
        for address in ADDRESSES {
            if check_address(granted, &target, address.parse().unwrap()).is_ok() {
                out.insert(format!("ask {target} at {address}"));
            }
        }
        for secret in grant.secrets.iter().filter(|secret| secret.origin.matches(&target)) {
            out.insert(format!("send {} to {target}", secret.name));
        }
    }
    out.extend(grant.env.iter().map(|(name, value)| format!("env {name}={value}")));
    out.extend(grant.toolbox.then(|| "toolbox".to_owned()));
    out.extend(grant.person.then(|| "person".to_owned()));
    out
}

/// Everything that an agent can do.
fn all_rights(holdings: &Holdings) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for (plugin, holding) in holdings {
        out.extend(holding.tools.iter().map(|tool| format!("call {plugin}.{tool}")));
        out.extend(
            rights(&holding.grant)
                .into_iter()
                .map(|right| format!("{plugin}: {right}")),
        );
    }
    out
}

/// Whether `inner` is `outer` or part of it.
fn within(inner: &Holdings, outer: &Holdings) -> bool {
    inner.iter().all(|(plugin, holding)| {
        outer.get(plugin).is_some_and(|bound| {
            holding.digest == bound.digest && holding.grant == bound.grant && holding.tools.is_subset(&bound.tools)
        })
    })
}

fn some<T: Clone + std::fmt::Debug + 'static>(menu: Vec<T>) -> impl Strategy<Value = Vec<T>> {
    let all = menu.len();
    prop::sample::subsequence(menu, 0..=all).prop_shuffle()
}

fn policies() -> impl Strategy<Value = Policy> {
    let dir = |host: &str, guest: &str, mode| PolicyDir {
        host: host.into(),
        guest: guest.into(),
        mode,
        rule: format!("{mode:?} {host}").into(),
    };
    let files = some(vec![
        dir("/project", "/work", FileMode::Read),
        dir("/project", "/work", FileMode::Write),
        dir("/project/src", "/src", FileMode::Read),
        dir("/project/src", "/src", FileMode::Write),
        dir("/data", "/src", FileMode::Write),
        dir("/project/plugins", "/plugins", FileMode::Write),
        dir("/", "/root", FileMode::Read),
    ]);
    let net = |pattern: &str, private| PolicyOrigin {
        private,
        ..origin(pattern)
    };
    let net = some(vec![
        net("*", false),
        net("*", true),
        net("https://a.com", false),
        net("https://*.corp", true),
        net("https://x.corp", false),
        net("https://y.corp:8443", true),
        net("http://127.0.0.1:8080", false),
        net("http://localhost:8080", false),
        net("http://10.0.0.0/8", false),
        net("http://169.254.169.254", false),
    ]);
    let secret = |origin: &str| PolicySecret {
        name: "T".into(),
        origin: origin.parse().unwrap(),
        rule: "secret".into(),
    };
    let secrets = some(vec![secret("*"), secret("https://a.com"), secret("https://*.corp")]);
    let env = some(vec![PolicyVariable {
        name: "LANG".into(),
        value: Some("de".into()),
    }]);
    (
        files,
        net,
        secrets,
        env,
        any::<[bool; 2]>(),
        0..3_u32,
        prop::option::of(1..500_u64),
    )
        .prop_map(
            |(files, net, secrets, env, [toolbox, person], max_depth, memory)| Policy {
                working_directory: "/project".into(),
                files,
                net,
                secrets,
                env,
                toolbox,
                person,
                max_depth,
                limits: LimitRequest {
                    memory,
                    ..LimitRequest::default()
                },
                protected: vec!["/project/plugins".into(), "/project/fief.toml".into()],
                ..Policy::default()
            },
        )
}

/// A policy and one that denies more.
fn shrunk_policies() -> impl Strategy<Value = (Policy, Policy)> {
    (policies(), any::<[u64; 3]>(), any::<[bool; 6]>()).prop_map(|(policy, [files, net, secrets], switches)| {
        let mut less = policy.clone();
        let [toolbox, person, env, read_only, public, capped] = switches;
        let keep = |mask: u64| {
            let mut at = 0_u32;
            move || {
                at += 1;
                mask >> (at % 64) & 1 == 1
            }
        };
        let (mut keep_file, mut keep_net, mut keep_secret) = (keep(files), keep(net), keep(secrets));
        // What is protected stays so: dropping a `write` entry for it protects it more.
        less.files.retain(|_| keep_file());
        less.net.retain(|_| keep_net());
        less.secrets.retain(|_| keep_secret());
        less.toolbox &= toolbox;
        less.person &= person;
        if env {
            less.env.clear();
        }
        if read_only {
            less.files.iter_mut().for_each(|dir| dir.mode = FileMode::Read);
        }
        if public {
            less.net.iter_mut().for_each(|origin| origin.private = false);
        }
        if capped {
            less.limits.memory = Some(1);
        }
        (policy, less)
    })
}

fn all_needs() -> impl Strategy<Value = Needs> {
    let http = some(vec!["*", "https://a.com", "https://*.corp", "http://127.0.0.1:8080"]);
    let files = prop::option::of(prop::sample::select(vec![FileMode::Read, FileMode::Write]));
    (http, files, any::<[bool; 4]>()).prop_map(|(http, files, [env, secrets, toolbox, person])| Needs {
        http: http.into_iter().map(|origin| NeededOrigin(origin.into())).collect(),
        files,
        env: if env { vec!["LANG".into()] } else { Vec::new() },
        secrets: secrets
            .then(|| NeededSecret {
                name: "T".into(),
                origin: "*".into(),
                header: None,
                format: None,
            })
            .into_iter()
            .collect(),
        toolbox,
        person,
    })
}

fn requests() -> impl Strategy<Value = GrantRequest> {
    let file = |host: &str, guest: &str, mode| FileRequest {
        host: host.into(),
        guest: guest.into(),
        mode,
    };
    let files = some(vec![
        file(".", "/work", FileMode::Read),
        file(".", "/work", FileMode::Write),
        file("src", "/work/src", FileMode::Read),
        file("src", "/code", FileMode::Write),
        file("/data", "/work/src/deep", FileMode::Write),
        file("plugins", "/plugins", FileMode::Write),
        file("/", "/root", FileMode::Write),
        file("../etc", "/etc", FileMode::Read),
    ]);
    let http = |origin: &str, private| OriginRequest {
        origin: origin.into(),
        private,
    };
    let http = some(vec![
        http("*", false),
        http("*", true),
        http("https://a.com", false),
        http("https://x.corp", true),
        http("https://*.corp", false),
        http("http://127.0.0.1:8080", false),
        http("http://localhost:8080", false),
        http("http://169.254.169.254", false),
    ]);
    let secret = |origin: &str| SecretRequest {
        name: "T".into(),
        origin: origin.into(),
        header: None,
        format: None,
    };
    let secrets = some(vec![secret("https://a.com"), secret("https://*.corp")]);
    let exact = (files, http, secrets, any::<[bool; 3]>(), prop::option::of(1..500_u64)).prop_map(
        |(files, http, secrets, [env, toolbox, person], memory)| {
            GrantRequest::Exact(GrantTable {
                files,
                http,
                env: env.then(|| ("LANG".to_owned(), "C".to_owned())).into_iter().collect(),
                secrets,
                toolbox,
                person,
                limits: LimitRequest {
                    memory,
                    ..LimitRequest::default()
                },
            })
        },
    );
    prop_oneof![1 => Just(GrantRequest::Policy), 4 => exact]
}

/// A request for what a grant holds already.
fn again(grant: &Grant) -> GrantRequest {
    let Grant {
        files,
        http,
        env,
        secrets,
        toolbox,
        person,
        limits,
    } = grant;
    GrantRequest::Exact(GrantTable {
        files: files
            .iter()
            .map(|dir| FileRequest {
                host: dir.host.clone(),
                guest: dir.guest.clone(),
                mode: dir.mode,
            })
            .collect(),
        http: http
            .iter()
            .map(|http| OriginRequest {
                origin: http.pattern.to_string(),
                private: http.private,
            })
            .collect(),
        env: env.clone(),
        secrets: secrets
            .iter()
            .map(|secret| SecretRequest {
                name: secret.name.clone(),
                origin: secret.origin.to_string(),
                header: Some(secret.header.clone()),
                format: Some(secret.format.clone()),
            })
            .collect(),
        toolbox: *toolbox,
        person: *person,
        limits: LimitRequest {
            memory: Some(limits.memory),
            ..LimitRequest::default()
        },
    })
}

fn tool_grants() -> impl Strategy<Value = Option<Vec<ToolGrant>>> {
    let entry = (prop::sample::select(vec!["files", "web", "count", "relay"]), requests())
        .prop_map(|(plugin, grant)| ToolGrant { grant, ..wide(plugin) });
    let narrow = Just(allowing("files", &["read"]));
    prop::option::of(prop::collection::vec(prop_oneof![3 => entry, 1 => narrow], 0..3))
}

fn dynamics() -> impl Strategy<Value = Option<Dynamic>> {
    let dynamic = (tool_grants(), any::<bool>()).prop_map(|(tools, expose_tool_selection)| Dynamic {
        tools,
        expose_tool_selection,
        ..Dynamic::default()
    });
    prop::option::of(dynamic)
}

fn archetypes() -> impl Strategy<Value = Archetype> {
    let agents = prop::sample::select(vec![
        None,
        Some(Agents::All),
        Some(Agents::Named(Vec::new())),
        Some(Agents::Named(vec!["one".parse().unwrap()])),
    ]);
    (tool_grants(), agents, dynamics()).prop_map(|(tools, agents, dynamic)| Archetype {
        tools,
        agents,
        dynamic,
        ..archetype("x")
    })
}

/// What a model can say, sense and nonsense.
fn asked() -> impl Strategy<Value = ChildRequest> {
    let word = prop::sample::select(vec![
        "files.read",
        "files.write",
        "files",
        "files.*",
        "files__grep",
        "web.fetch",
        "count",
        "relay.run",
        "spawn_subagent",
        "one",
        "main",
        "*",
        "",
        "..",
        "files.read\n",
    ]);
    let tools = prop::option::of(prop::collection::vec(word, 0..4));
    let dynamic = tools.prop_map(|tools| make_up(tools.as_deref()));
    let named = prop::sample::select(vec!["one", "two", "main", "x", "ONE", "nobody"]).prop_map(spawn);
    prop_oneof![dynamic, named]
}

proptest! {
    #[test]
    fn less_policy_never_gives_more(
        needs in all_needs(), request in requests(), (policy, less) in shrunk_policies()
    ) {
        let plugin = plugin("probe", &["x"], &[], needs);
        let full = resolve(&plugin, &request, &policy, "a").unwrap().grant;
        let part = resolve(&plugin, &request, &less, "a").unwrap().grant;
        let (full_rights, part_rights) = (rights(&full), rights(&part));
        // A literal of the manifest stands in for the host's value whatever policy says, so values are as they were.
        let more: Vec<_> = part_rights.difference(&full_rights).collect();
        prop_assert!(more.is_empty(), "{more:?}");
        prop_assert!(part.limits.memory <= full.limits.memory);
    }

    #[test]
    fn nothing_is_granted_beyond_need_or_policy(needs in all_needs(), request in requests(), policy in policies()) {
        let plugin = plugin("probe", &["x"], &[], needs.clone());
        let grant = resolve(&plugin, &request, &policy, "a").unwrap().grant;
        for dir in &grant.files {
            prop_assert!(needs.files.is_some_and(|need| need >= dir.mode));
            let allowed = policy.files.iter().any(|allowed| dir.host.starts_with(&allowed.host) && allowed.mode >= dir.mode);
            prop_assert!(allowed, "{dir:?}");
            prop_assert_eq!(&absolute(Path::new("/"), &dir.host), &dir.host);
        }
        let places: BTreeSet<&str> = grant.files.iter().map(|dir| dir.guest.as_str()).collect();
        prop_assert_eq!(places.len(), grant.files.len(), "one directory for a place");
        for http in &grant.http {
            prop_assert!(policy.net.iter().any(|allowed| allowed.pattern.contains(&http.pattern)));
            prop_assert!(needs.http.iter().any(|need| need.0.parse::<crate::grant::pattern::OriginPattern>().unwrap().contains(&http.pattern)));
        }
        for secret in &grant.secrets {
            prop_assert!(policy.secrets.iter().any(|allowed| allowed.origin.contains(&secret.origin)));
        }
        prop_assert!(!grant.toolbox || needs.toolbox && policy.toolbox);
        prop_assert!(!grant.person || needs.person && policy.person);
        prop_assert!(grant.env.keys().all(|name| needs.env.contains(name)));
    }

    #[test]
    fn resolving_what_was_resolved_changes_nothing(
        needs in all_needs(), request in requests(), policy in policies()
    ) {
        let plugin = plugin("probe", &["x"], &[], needs);
        let once = resolve(&plugin, &request, &policy, "a").unwrap();
        let twice = resolve(&plugin, &again(&once.grant), &policy, "a").unwrap();
        prop_assert_eq!(rights(&once.grant), rights(&twice.grant));
        prop_assert!(once.grant.env.is_empty() || once.grant.env == twice.grant.env);
        prop_assert_eq!(once.grant.limits.memory, twice.grant.limits.memory);
    }

    #[test]
    fn no_request_takes_a_child_beyond_its_bound(
        top in archetypes(), one in archetypes(), two in archetypes(), policy in policies(),
        requests in prop::collection::vec(asked(), 1..6)
    ) {
        let named = |name: &str, archetype: Archetype| Archetype { name: name.parse().unwrap(), ..archetype };
        let world = World { policy, ..world() };
        let world = with(world, [archetype("main"), named("one", one), named("two", two)]);
        let Ok(top) = main(&world, &top) else { return Ok(()) };
        let mut agents = vec![top.spec];
        for request in requests {
            let parent = agents.last().unwrap().clone();
            let Ok(made) = child(&world, &parent, &request) else { continue };
            let made = made.spec;
            prop_assert_eq!(made.depth, parent.depth + 1);
            prop_assert!(made.depth <= world.policy.max_depth);
            prop_assert!(made.holdings.keys().all(|plugin| world.plugins.contains_key(plugin)));
            // Every declared tool is held, and every held tool declared.
            let held: usize = made.holdings.values().map(|holding| holding.tools.len()).sum();
            prop_assert_eq!(made.tools.len(), held);
            match &request {
                ChildRequest::Archetype { name, .. } => {
                    let archetype = &world.archetypes[&name.key()];
                    prop_assert!(name.key() != "main");
                    prop_assert_eq!(&made.instruction, &archetype.instruction);
                    match &archetype.tools {
                        None => prop_assert_eq!(&made.holdings, &parent.holdings),
                        // What it holds depends on its manifest and policy, not on who asks or how.
                        Some(_) => {
                            let alone = Archetype { agents: None, dynamic: None, ..Archetype::clone(archetype) };
                            let alone = main(&world, &alone).unwrap().spec;
                            prop_assert_eq!(all_rights(&made.holdings), all_rights(&alone.holdings));
                        }
                    }
                }
                ChildRequest::Dynamic { .. } => {
                    let ways = &made.ways;
                    prop_assert!(ways.spawn.is_empty() && ways.agent_tools.is_empty() && ways.dynamic.is_none());
                    match parent.ways.dynamic.as_ref().unwrap().tools.clone() {
                        None => prop_assert!(within(&made.holdings, &parent.holdings)),
                        Some(tools) => {
                            let bound = Archetype { tools: Some(tools), ..archetype("bound") };
                            let bound = main(&world, &bound).unwrap().spec;
                            let (made, bound) = (all_rights(&made.holdings), all_rights(&bound.holdings));
                            prop_assert!(made.is_subset(&bound));
                        }
                    }
                }
            }
            agents.push(made);
        }
    }

    #[test]
    fn less_policy_never_gives_an_agent_more(top in archetypes(), (policy, less) in shrunk_policies()) {
        let full = World { policy, ..world() };
        let part = World { policy: Policy { max_depth: full.policy.max_depth, ..less }, ..world() };
        let Ok(part) = main(&part, &top) else { return Ok(()) };
        // An agent that starts with less policy starts with more: policy's lacks leave plugins out, they refuse nobody.
        let full = main(&full, &top).unwrap();
        prop_assert!(all_rights(&part.spec.holdings).is_subset(&all_rights(&full.spec.holdings)));
    }
}
