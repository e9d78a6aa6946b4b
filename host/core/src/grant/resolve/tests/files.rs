use std::path::{Path, PathBuf};

use super::{dir, file, plugin, policy};
use crate::grant::FileMode::{self, Read, Write};
use crate::grant::policy::Policy;
use crate::grant::resolve::{Kind, Resolved, absolute, resolve};
use crate::manifest::archetype::{FileRequest, GrantRequest, GrantTable};
use crate::manifest::plugin::Needs;

fn files(need: FileMode, requests: Vec<FileRequest>, policy: &Policy) -> Resolved {
    let needs = Needs {
        files: Some(need),
        ..Needs::default()
    };
    let table = GrantTable {
        files: requests,
        ..GrantTable::default()
    };
    resolve(&plugin(needs), &GrantRequest::Exact(table), policy, "archetype `a`").unwrap()
}

fn shown(resolved: &Resolved) -> Vec<String> {
    let files = &resolved.grant.files;
    files
        .iter()
        .map(|dir| format!("{} {} {:?}", dir.host.display(), dir.guest, dir.mode))
        .collect()
}

#[test]
fn the_narrower_of_two_directories_is_granted_in_its_place() {
    let work = "/home/me/project";
    let src = "/home/me/project/src";
    for (need, request, allowed, expected) in [
        (
            Write,
            (".", Write),
            vec![(work, Write)],
            vec!["/home/me/project /work Write"],
        ),
        (
            Write,
            (".", Write),
            vec![(work, Read)],
            vec!["/home/me/project /work Read"],
        ),
        (
            Read,
            (".", Write),
            vec![(work, Write)],
            vec!["/home/me/project /work Read"],
        ),
        (
            Write,
            (".", Read),
            vec![(work, Write)],
            vec!["/home/me/project /work Read"],
        ),
        (
            Write,
            ("src", Write),
            vec![(work, Write)],
            vec!["/home/me/project/src /work Write"],
        ),
        (
            Write,
            (".", Write),
            vec![(src, Read)],
            vec!["/home/me/project/src /work/src Read"],
        ),
        (
            Write,
            (".", Write),
            vec![(work, Read), (src, Write)],
            vec!["/home/me/project /work Read", "/home/me/project/src /work/src Write"],
        ),
        (
            Write,
            (".", Write),
            vec![(work, Write), (src, Read)],
            vec!["/home/me/project /work Write"],
        ),
        (
            Write,
            ("..", Read),
            vec![(work, Read)],
            vec!["/home/me/project /work/project Read"],
        ),
        (Write, ("../other", Read), vec![(work, Read)], vec![]),
        (Write, ("/etc", Read), vec![(work, Read)], vec![]),
        (Write, ("src/../../../../etc", Read), vec![(work, Read)], vec![]),
        // A name that only starts alike is another directory.
        (Write, ("../project-secrets", Read), vec![(work, Read)], vec![]),
        (Write, (".", Read), vec![], vec![]),
    ] {
        let policy = Policy {
            files: allowed
                .iter()
                .map(|(host, mode)| dir(host, "/somewhere", *mode))
                .collect(),
            ..policy()
        };
        let resolved = files(need, vec![file(request.0, "/work", request.1)], &policy);
        assert_eq!(shown(&resolved), expected, "{need:?} {request:?} {allowed:?}");
    }
}

#[test]
fn a_plugin_that_needs_no_files_gets_none() {
    let policy = Policy {
        files: vec![dir("/home/me/project", "/work", Write)],
        ..policy()
    };
    let table = GrantTable {
        files: vec![file(".", "/work", Write)],
        ..GrantTable::default()
    };
    for request in [GrantRequest::Exact(table), GrantRequest::Policy] {
        let resolved = resolve(&plugin(Needs::default()), &request, &policy, "archetype `a`").unwrap();
        assert!(resolved.grant.files.is_empty());
        let exact = matches!(request, GrantRequest::Exact(_));
        assert_eq!(
            resolved
                .warnings
                .iter()
                .any(|warning| warning.contains("does not need")),
            exact
        );
    }
}

#[test]
fn as_wide_as_policy_uses_policys_own_places() {
    let needs = Needs {
        files: Some(Write),
        ..Needs::default()
    };
    let policy = Policy {
        files: vec![
            dir("/home/me/project", "/work", Read),
            dir("/data/src", "/src", Write),
            dir("/x/src", "/src", Read),
        ],
        ..policy()
    };
    let resolved = resolve(&plugin(needs), &GrantRequest::Policy, &policy, "main").unwrap();
    assert_eq!(
        shown(&resolved),
        [
            "/home/me/project /work Read",
            "/data/src /src Write",
            "/x/src /src-2 Read"
        ]
    );
}

#[test]
fn a_manifest_may_grant_less_of_a_directory_inside_another() {
    let policy = Policy {
        files: vec![dir("/home/me/project", "/work", Write)],
        ..policy()
    };
    let requests = vec![file(".", "/work", Write), file("docs", "/work/docs", Read)];
    let resolved = files(Write, requests, &policy);
    assert_eq!(
        shown(&resolved),
        ["/home/me/project /work Write", "/home/me/project/docs /work/docs Read"]
    );
    // Nor does a policy entry for that very directory widen it again.
    let policy = Policy {
        files: vec![
            dir("/home/me/project", "/work", Write),
            dir("/home/me/project/docs", "/docs", Write),
        ],
        ..policy
    };
    let requests = vec![file(".", "/work", Write), file("docs", "/work/docs", Read)];
    let resolved = files(Write, requests, &policy);
    assert_eq!(
        shown(&resolved),
        ["/home/me/project /work Write", "/home/me/project/docs /work/docs Read"]
    );
}

#[test]
fn two_directories_for_one_place_are_a_warning_and_the_first_is_used() {
    let policy = Policy {
        files: vec![dir("/", "/root", Read)],
        ..policy()
    };
    let resolved = files(
        Read,
        vec![file("/a", "/work", Read), file("/b", "/work/", Read)],
        &policy,
    );
    assert_eq!(shown(&resolved), ["/a /work Read"]);
    assert!(
        resolved.warnings[0].contains("two directories for `/work/`"),
        "{:?}",
        resolved.warnings
    );
}

#[test]
fn what_the_host_obeys_is_written_only_if_policy_names_that_very_path() {
    let plugins = "/home/me/project/plugins";
    let protected = vec![PathBuf::from("/home/me/project/fief.toml"), PathBuf::from(plugins)];
    let policy = Policy {
        files: vec![dir("/home/me/project", "/work", Write)],
        protected,
        ..policy()
    };
    let resolved = files(Write, vec![file(".", "/work", Write)], &policy);
    assert_eq!(resolved.grant.files[0].protected.len(), 2);

    // A directory inside a protected one can only be read.
    let resolved = files(Write, vec![file("plugins/mine", "/mine", Write)], &policy);
    assert_eq!(shown(&resolved), ["/home/me/project/plugins/mine /mine Read"]);
    assert_eq!(resolved.taken[0].flag, format!("--allow-write {plugins}"));

    // Reading it through policy is no leave to write it; naming it is.
    for (mode, left) in [(Read, 2), (Write, 1)] {
        let mut files_allowed = policy.files.clone();
        files_allowed.push(dir(plugins, "/plugins", mode));
        let policy = Policy {
            files: files_allowed,
            ..policy.clone()
        };
        let resolved = files(Write, vec![file(".", "/work", Write)], &policy);
        assert_eq!(resolved.grant.files[0].protected.len(), left, "{mode:?}");
    }
}

#[test]
fn what_policy_takes_of_files_is_named_with_its_flag() {
    for (request, allowed, flag, why) in [
        (
            ("src", Write),
            vec![("/home/me/project", Read)],
            "--allow-write src",
            "only reading",
        ),
        (
            ("/etc", Read),
            vec![("/home/me/project", Read)],
            "--allow-read /etc",
            "does not allow it",
        ),
        (
            (".", Read),
            vec![("/home/me/project/src", Read)],
            "--allow-read .",
            "allows only `/home/me/project/src`",
        ),
    ] {
        let policy = Policy {
            files: allowed
                .iter()
                .map(|(host, mode)| dir(host, "/somewhere", *mode))
                .collect(),
            ..policy()
        };
        let taken = files(Write, vec![file(request.0, "/work", request.1)], &policy).taken;
        assert_eq!(taken.len(), 1);
        assert_eq!((taken[0].kind, taken[0].flag.as_str()), (Kind::File, flag));
        assert!(taken[0].why.contains(why), "{}", taken[0].why);
    }
}

#[test]
fn paths_are_made_absolute_as_text() {
    for (path, expected) in [
        (".", "/a/b"),
        ("", "/a/b"),
        ("../c", "/a/c"),
        ("../../../..", "/"),
        ("/x/./y/../z", "/x/z"),
        ("c/..", "/a/b"),
    ] {
        assert_eq!(
            absolute(Path::new("/a/b"), Path::new(path)),
            Path::new(expected),
            "{path}"
        );
    }
}
