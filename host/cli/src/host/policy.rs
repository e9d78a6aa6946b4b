//! The operator's ceiling: `[policy]` and the flags, with every path made absolute and every origin parsed.

use std::path::{Path, PathBuf};

use fief_core::grant::FileMode;
use fief_core::grant::pattern::OriginPattern;
use fief_core::grant::policy::{Policy, PolicyDir, PolicyOrigin, PolicySecret, PolicyVariable};
use fief_core::manifest::config::PolicyTable;

use crate::error::Error;

/// What the command line, or an embedder, allows beside `[policy]`. It adds, and never replaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    /// Directories that tools may read: `DIR`, seen as `/NAME`, or `DIR=GUEST`.
    pub read: Vec<String>,
    /// Directories that tools may write, which includes reading.
    pub write: Vec<String>,
    /// Origins that tools may send requests to.
    pub net: Vec<String>,
    /// Secrets that the host may add to requests: `NAME@ORIGIN`.
    pub secrets: Vec<String>,
}

/// Builds the ceiling. What is odd about it is added to `warnings`.
pub(super) fn policy(
    working_directory: &Path,
    table: &PolicyTable,
    allow: &Allow,
    protected: Vec<PathBuf>,
    warnings: &mut Vec<String>,
) -> Result<Policy, Error> {
    let defaults = Policy::default();
    let mut policy = Policy {
        working_directory: working_directory.to_path_buf(),
        toolbox: table.toolbox.unwrap_or(false),
        person: table.person.unwrap_or(false),
        strict: table.strict.unwrap_or(false),
        max_depth: table.max_depth.unwrap_or(defaults.max_depth),
        max_children: table.max_children.unwrap_or(defaults.max_children),
        parallel_children: table.parallel_children.unwrap_or(defaults.parallel_children),
        ask: table.ask.clone().unwrap_or_default(),
        limits: table.limits,
        protected,
        ..defaults
    };
    let dot = [PathBuf::from(".")];
    for (mode, key, paths) in [
        (FileMode::Read, "read", table.read.as_deref().unwrap_or(&dot)),
        (FileMode::Write, "write", table.write.as_deref().unwrap_or_default()),
    ] {
        for path in paths {
            let rule = format!("[policy] {key} `{}`", path.display());
            // A line that fits some working directories and not others takes nothing away from those that it fits.
            if let Err(why) = directory(&mut policy, &path.to_string_lossy(), mode, &rule) {
                warnings.push(format!("{rule} allows nothing: {why}"));
            }
        }
    }
    for (mode, flag, paths) in [
        (FileMode::Read, "--allow-read", &allow.read),
        (FileMode::Write, "--allow-write", &allow.write),
    ] {
        for path in paths {
            directory(&mut policy, path, mode, &format!("{flag} {path}")).map_err(|why| Error::Usage {
                hints: match mode {
                    FileMode::Write if why == MISSING => vec![format!("`mkdir -p {path}` creates it")],
                    FileMode::Read | FileMode::Write => Vec::new(),
                },
                message: format!("`{flag} {path}`: {why}"),
            })?;
        }
    }
    let table_net = table.net.iter().flatten();
    let table_net = table_net.map(|one| {
        (
            one.origin.clone(),
            one.private,
            format!("[policy] net `{}`", one.origin),
        )
    });
    let flag_net = allow
        .net
        .iter()
        .map(|one| (one.clone(), false, format!("--allow-net {one}")));
    for (origin, private, rule) in table_net.chain(flag_net) {
        let pattern = origin_of(&origin, &rule)?;
        policy.net.push(PolicyOrigin {
            pattern,
            private,
            rule: rule.into(),
        });
    }
    let table_secrets = table
        .secrets
        .iter()
        .flatten()
        .map(|one| (one, format!("[policy] secrets `{one}`")));
    let flag_secrets = allow.secrets.iter().map(|one| (one, format!("--allow-secret {one}")));
    for (secret, rule) in table_secrets.chain(flag_secrets) {
        let Some((name, origin)) = secret.split_once('@').filter(|(name, _)| is_variable(name)) else {
            let message = format!("`{rule}`: `{secret}` is not `NAME@ORIGIN`");
            return Err(Error::Usage {
                message,
                hints: vec!["such as `GITHUB_TOKEN@https://api.github.com`".into()],
            });
        };
        policy.secrets.push(PolicySecret {
            name: name.into(),
            origin: origin_of(origin, &rule)?,
            rule: rule.into(),
        });
    }
    for name in table.env.iter().flatten() {
        policy.env.push(PolicyVariable {
            name: name.clone(),
            value: std::env::var(name).ok(),
        });
    }
    for dir in policy.files.iter().filter(|dir| dir.mode == FileMode::Write) {
        if policy.protected.contains(&dir.host) {
            warnings.push(format!(
                "{} names {} itself, which the host obeys or keeps: every tool that may write there can change what \
                 later runs load, trust or are allowed\nhint: allow a directory inside it, or another one, if that is not \
                 meant",
                dir.rule,
                dir.host.display()
            ));
        }
    }
    Ok(policy)
}

/// Why a directory cannot be granted that a person could create.
const MISSING: &str = "there is no such directory";

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn origin_of(text: &str, rule: &str) -> Result<OriginPattern, Error> {
    text.parse().map_err(|error| Error::Usage {
        message: format!("`{rule}`: {error}"),
        hints: Vec::new(),
    })
}

/// Adds a directory, or widens it from read to write. Two directories that would be seen under one name are refused.
fn directory(policy: &mut Policy, text: &str, mode: FileMode, rule: &str) -> Result<(), String> {
    let (path, guest) = match text.rsplit_once('=') {
        Some((path, guest)) if guest.starts_with('/') => (path, Some(guest)),
        _ => (text, None),
    };
    let host = policy.working_directory.join(path);
    let host = host.canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => MISSING.to_owned(),
        _ => error.to_string(),
    })?;
    let guest = match guest {
        Some(guest) => {
            let clean = guest.trim_end_matches('/');
            let bad = clean.is_empty() || clean[1..].split('/').any(|part| matches!(part, "" | "." | ".."));
            if bad {
                return Err(format!("`{guest}` is no path in a guest: write one such as `/data`"));
            }
            clean.to_owned()
        }
        None => seen_as(&policy.working_directory, &host)?,
    };
    if let Some(same) = policy
        .files
        .iter_mut()
        .find(|known| known.host == host && known.guest == guest)
    {
        if mode > same.mode {
            same.mode = mode;
            same.rule = rule.into();
        }
        return Ok(());
    }
    if let Some(other) = policy
        .files
        .iter()
        .find(|known| known.guest == guest && known.host != host)
    {
        return Err(format!(
            "`{guest}` already shows {}: name another place, such as `{path}=/{}`",
            other.host.display(),
            "other"
        ));
    }
    policy.files.push(PolicyDir {
        host,
        guest,
        mode,
        rule: rule.into(),
    });
    Ok(())
}

/// Where a guest sees a directory: the working directory is `/work`, what lies in it lies there, another is `/NAME`.
fn seen_as(working_directory: &Path, host: &Path) -> Result<String, String> {
    let not_text = || format!("{} is no UTF-8 path: name it, as in `DIR=/data`", host.display());
    if let Ok(inside) = host.strip_prefix(working_directory) {
        let mut guest = "/work".to_owned();
        for part in inside.components() {
            guest.push('/');
            guest.push_str(part.as_os_str().to_str().ok_or_else(not_text)?);
        }
        return Ok(guest);
    }
    match host.file_name() {
        Some(name) => Ok(format!("/{}", name.to_str().ok_or_else(not_text)?)),
        None => Err("it has no name of its own: name it, as in `/=/host`".into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn build(table: &PolicyTable, allow: &Allow, work: &Path) -> Result<(Policy, Vec<String>), String> {
        let mut warnings = Vec::new();
        policy(work, table, allow, Vec::new(), &mut warnings)
            .map(|policy| (policy, warnings))
            .map_err(|error| error.to_string())
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().canonicalize().unwrap().join("w");
        std::fs::create_dir_all(work.join("out")).unwrap();
        std::fs::create_dir(work.join("../data")).unwrap();
        (dir, work)
    }

    fn files(policy: &Policy) -> Vec<(String, FileMode)> {
        policy.files.iter().map(|dir| (dir.guest.clone(), dir.mode)).collect()
    }

    #[test]
    fn without_configuration_the_working_directory_can_be_read_and_nothing_else() {
        let (_dir, work) = place();
        let (policy, warnings) = build(&PolicyTable::default(), &Allow::default(), &work).unwrap();
        assert_eq!(files(&policy), [("/work".to_owned(), FileMode::Read)]);
        assert!(policy.net.is_empty() && policy.secrets.is_empty() && policy.env.is_empty());
        assert!(!policy.toolbox && !policy.person && !policy.strict);
        assert!(warnings.is_empty());
    }

    #[test]
    fn a_present_key_replaces_and_flags_add() {
        let (_dir, work) = place();
        let table = PolicyTable {
            read: Some(Vec::new()),
            write: Some(vec!["out".into()]),
            ..PolicyTable::default()
        };
        let allow = Allow {
            read: vec!["../data".into(), "../data=/more".into()],
            ..Allow::default()
        };
        let (policy, _) = build(&table, &allow, &work).unwrap();
        let expected = [
            ("/work/out", FileMode::Write),
            ("/data", FileMode::Read),
            ("/more", FileMode::Read),
        ];
        assert_eq!(files(&policy), expected.map(|(guest, mode)| (guest.to_owned(), mode)));
    }

    #[test]
    fn a_directory_is_widened_not_doubled() {
        let (_dir, work) = place();
        let allow = Allow {
            write: vec![".".into()],
            ..Allow::default()
        };
        let (policy, _) = build(&PolicyTable::default(), &allow, &work).unwrap();
        assert_eq!(files(&policy), [("/work".to_owned(), FileMode::Write)]);
        assert_eq!(&*policy.files[0].rule, "--allow-write .");
    }

    #[test]
    fn a_directory_that_the_host_obeys_is_not_opened_to_writing_in_silence() {
        let (_dir, work) = place();
        let protected = vec![work.join("out"), work.join("elsewhere")];
        let table = PolicyTable {
            write: Some(vec!["out".into()]),
            ..PolicyTable::default()
        };
        let flag = Allow {
            write: vec!["out".into()],
            ..Allow::default()
        };
        let around = Allow {
            write: vec![".".into()],
            ..Allow::default()
        };
        for (table, allow, said) in [
            (&table, &Allow::default(), Some("[policy] write `out` names ")),
            (&PolicyTable::default(), &flag, Some("--allow-write out names ")),
            // What lies around it does not lift its protection.
            (&PolicyTable::default(), &around, None),
        ] {
            let mut warnings = Vec::new();
            policy(&work, table, allow, protected.clone(), &mut warnings).unwrap();
            match said {
                None => assert_eq!(warnings, Vec::<String>::new()),
                Some(said) => assert!(warnings.len() == 1 && warnings[0].starts_with(said), "{warnings:?}"),
            }
        }
    }

    #[test]
    fn bad_flags_are_named() {
        let (_dir, work) = place();
        let read = |text: &str| Allow {
            read: vec![text.into()],
            ..Allow::default()
        };
        let cases = [
            (read("nowhere"), "`--allow-read nowhere`: there is no such directory"),
            (read("out=/../x"), "is no path in a guest"),
            (
                Allow {
                    read: vec!["../data=/a".into(), "out=/a".into()],
                    ..Allow::default()
                },
                "`/a` already shows",
            ),
            (
                Allow {
                    net: vec!["ftp://x".into()],
                    ..Allow::default()
                },
                "`--allow-net ftp://x`: ",
            ),
            (
                Allow {
                    secrets: vec!["TOKEN".into()],
                    ..Allow::default()
                },
                "`TOKEN` is not `NAME@ORIGIN`",
            ),
        ];
        for (allow, says) in cases {
            let error = build(&PolicyTable::default(), &allow, &work).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_line_of_the_configuration_that_fits_no_directory_here_is_a_warning() {
        let (_dir, work) = place();
        let table = PolicyTable {
            write: Some(vec!["nowhere".into()]),
            ..PolicyTable::default()
        };
        let (policy, warnings) = build(&table, &Allow::default(), &work).unwrap();
        assert_eq!(policy.files.len(), 1);
        assert_eq!(
            warnings,
            ["[policy] write `nowhere` allows nothing: there is no such directory"]
        );
    }
}
