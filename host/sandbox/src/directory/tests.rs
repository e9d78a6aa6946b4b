#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use fief_core::grant::FileMode;
use tempfile::TempDir;

use super::*;
use crate::Options;
use crate::testing::Wat;

fn guest(text: &str) -> Vec<u8> {
    let body = format!(
        "(drop (i32.const {})) (call $ok (i32.const 1024) (i32.const 3))",
        text.len()
    );
    let guest = Wat {
        body: &body,
        ..Wat::default()
    };
    guest.component()
}

fn put(dir: &TempDir, path: &str, bytes: impl AsRef<[u8]>) {
    let path = dir.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn fresh(store: &TempDir) -> Sandbox {
    let options = Options {
        store: store.path().join("store"),
        ..Options::default()
    };
    Sandbox::new(options).unwrap()
}

async fn scan(sandbox: &Sandbox, directories: &[&TempDir]) -> Scan {
    let directories: Vec<_> = directories.iter().map(|dir| dir.path().to_owned()).collect();
    sandbox.scan(&directories, &|_| {}).await
}

fn names(scan: &Scan) -> Vec<&str> {
    scan.plugins.iter().map(|plugin| plugin.name.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_good_load_and_the_bad_are_named() {
    let (store, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let good = guest("a");
    put(&dir, "good.wasm", &good);
    put(&dir, "folder/folder.wasm", guest("ab"));
    put(
        &dir,
        "folder/plugin.toml",
        "[plugin]\nname = \"named\"\nversion = \"1\"\ndescription = \"d\"\n[needs]\nfiles = \"read\"\n",
    );
    put(
        &dir,
        "unbuilt/plugin.toml",
        "[plugin]\nname = \"unbuilt\"\nversion = \"1\"\ndescription = \"d\"\n",
    );
    put(&dir, "cut.wasm", &good[..good.len() / 2]);
    put(&dir, "empty.wasm", "");
    put(&dir, "text.wasm", "hello");
    put(&dir, "core.wasm", b"\0asm\x01\0\0\0");
    put(&dir, "Bad_Name.wasm", guest("abc"));
    put(&dir, "fief.wasm", guest("abc"));
    put(&dir, "second.wasm", guest("abcd"));
    put(
        &dir,
        "second.toml",
        "[plugin]\nname = \"good\"\nversion = \"1\"\ndescription = \"d\"\n",
    );
    put(&dir, "wrong.wasm", guest("abcde"));
    put(&dir, "wrong.toml", "[plugin]\nnmae = \"wrong\"\n");
    put(&dir, "readme.txt", "no plugin");
    std::os::unix::fs::symlink("nowhere", dir.path().join("gone.wasm")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("endless.wasm")).unwrap();
    put(&dir, "huge.wasm", guest("abcdef"));
    put(&dir, "huge.toml", "#".repeat((1 << 20) + 1));

    let scan = scan(&fresh(&store), &[&dir]).await;
    assert_eq!(names(&scan), ["good", "named"]);
    assert_eq!(scan.plugins[1].needs.files, Some(FileMode::Read));
    assert_eq!(scan.plugins[0].tools[0].name.as_str(), "run");
    let said = |file: &str| {
        let problem = scan.problems.iter().find(|problem| problem.path.ends_with(file));
        let problem = problem.unwrap_or_else(|| panic!("nothing was said of {file}: {:?}", scan.problems));
        format!("{} {}", problem.message, problem.hint.as_deref().unwrap_or_default())
    };
    for (file, says) in [
        ("unbuilt", "fief plugin build"),
        ("cut.wasm", "is not a valid component"),
        ("empty.wasm", "it is empty"),
        ("text.wasm", "a text file"),
        ("core.wasm", "a core module"),
        ("Bad_Name.wasm", "is not a plugin name"),
        ("fief.wasm", "reserved"),
        ("second.wasm", "another plugin named `good`"),
        ("gone.wasm", "cannot be read"),
        ("endless.wasm", "not a regular file"),
        ("huge.wasm", "at most 1048576 bytes are read"),
        ("wrong.wasm", "nmae"),
    ] {
        let said = said(file);
        assert!(said.contains(says), "{file}: {said}");
    }
    assert_eq!(scan.problems.len(), 12, "{:?}", scan.problems);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_manifest_says_in_vain_is_told_at_every_start() {
    let (store, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(&dir, "vain.wasm", guest("a"));
    let manifest = "[plugin]\nname = \"vain\"\nversion = \"1\"\ndescription = \"d\"\n[needs]\n\
                    secrets = [{ name = \"TOKEN\", for = \"https://api.github.com\" }]\n";
    put(&dir, "vain.toml", manifest);
    // The second start reads the index alone.
    for _ in 0..2 {
        let scan = scan(&fresh(&store), &[&dir]).await;
        assert_eq!(names(&scan), ["vain"]);
        let [problem] = &scan.problems[..] else {
            panic!("{:?}", scan.problems)
        };
        assert!(problem.message.contains("vain.toml:6:"), "{problem:?}");
        assert!(problem.message.contains("without `needs.http`"), "{problem:?}");
        assert!(problem.hint.as_deref().unwrap().contains("http = ["), "{problem:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_that_are_none_are_named() {
    let store = tempfile::tempdir().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let missing = store.path().join("missing");
    let sandbox = fresh(&store);
    let scan = sandbox.scan(&[missing.clone(), file.path().to_owned()], &|_| {}).await;
    assert_eq!(scan.problems.len(), 2);
    assert!(scan.problems[0].message.contains(missing.to_str().unwrap()));
    assert!(scan.plugins.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_file_is_not_read_again_and_a_changed_one_is() {
    let (store, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(&dir, "a.wasm", guest("a"));
    put(&dir, "b.wasm", guest("ab"));
    let first = scan(&fresh(&store), &[&dir]).await;
    assert_eq!(names(&first), ["a", "b"]);

    // What cannot be read shows that it is not: the index knows it by its size and times.
    let sandbox = fresh(&store);
    let second = scan(&sandbox, &[&dir]).await;
    assert_eq!(second.plugins, first.plugins);
    assert!(sandbox.0.components_loaded() == 0, "a known component was loaded");

    put(&dir, "a.wasm", guest("abcdef"));
    fs::remove_file(dir.path().join("b.wasm")).unwrap();
    let third = scan(&fresh(&store), &[&dir]).await;
    assert_eq!(names(&third), ["a"]);
    assert_ne!(third.plugins[0].digest, first.plugins[0].digest);

    fs::write(store.path().join("store/index.json"), "nonsense").unwrap();
    assert_eq!(scan(&fresh(&store), &[&dir]).await.plugins, third.plugins);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_directory_counts_and_the_same_build_twice_is_one_plugin() {
    let store = tempfile::tempdir().unwrap();
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(&one, "a.wasm", guest("a"));
    put(&two, "a.wasm", guest("a"));
    put(&one, "b.wasm", guest("ab"));
    put(&two, "b.wasm", guest("abc"));
    let scan = scan(&fresh(&store), &[&one, &two]).await;
    assert_eq!(names(&scan), ["a", "b"]);
    assert!(scan.plugins[1].path.starts_with(one.path()));
    assert_eq!(scan.problems.len(), 1, "{:?}", scan.problems);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_after_the_start_is_not_linked() {
    let (store, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(&dir, "a.wasm", guest("a"));
    let plugin = scan(&fresh(&store), &[&dir]).await.plugins.remove(0);
    put(&dir, "a.wasm", guest("ab"));
    fs::remove_dir_all(store.path().join("store")).unwrap();
    let linked = fresh(&store).link(&plugin, &fief_core::grant::Grant::default()).await;
    let error = linked.map(drop).unwrap_err().to_string();
    assert!(error.contains("has changed since it was found"), "{error}");
}

#[test]
fn a_plugin_without_a_manifest_needs_what_it_imports() {
    let imports = [
        "wasi:http/outgoing-handler@0.2.4",
        "fief:plugin/person@0.1.0",
        "wasi:filesystem/types@0.2.4",
    ];
    let needs = needs_of(&imports.map(str::to_owned));
    assert!(needs.person && !needs.toolbox && needs.files.is_none());
    assert_eq!(needs.http, [NeededOrigin("*".into())]);
}

/// What a call of `PLUGIN.run` comes to for an agent that holds these tools of `guest`, in the build of `build`. Another
/// plugin with a tool of the same name is installed.
async fn dispatched(tools: &[&str], build: &str, plugin: &str) -> fief_core::tool::Outcome {
    use fief_core::grant::{Grant, Holding, Holdings};
    use fief_core::port::Tools as _;

    let (store, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(&dir, "guest.wasm", guest("a"));
    put(&dir, "other.wasm", guest("ab"));
    let sandbox = fresh(&store);
    let found = scan(&sandbox, &[&dir]).await.plugins;
    let plugins: BTreeMap<_, _> = found.into_iter().map(|plugin| (plugin.name.clone(), plugin)).collect();
    let holding = Holding {
        digest: plugins[&build.parse::<PluginName>().unwrap()].digest,
        tools: tools.iter().map(|tool| tool.parse().unwrap()).collect(),
        grant: Grant::default(),
    };
    let holdings: Holdings = if tools.is_empty() {
        Holdings::new()
    } else {
        [("guest".parse().unwrap(), holding)].into()
    };
    let mut invocation = crate::testing::invocation("");
    invocation.tool.plugin = plugin.parse().unwrap();
    let context = crate::testing::context(&Arc::default());
    sandbox.tools(plugins, &holdings).call(invocation, context).await
}

fn denied(outcome: &fief_core::tool::Outcome, says: &str) {
    assert_eq!(outcome.kind, fief_core::tool::OutcomeKind::Denied, "{outcome:?}");
    assert!(outcome.text().contains(says), "{}", outcome.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn b48_a_call_of_what_is_not_granted_says_what_may_be_called() {
    denied(&dispatched(&["run"], "guest", "other").await, "it may call `guest.run`");
    denied(&dispatched(&[], "guest", "guest").await, "holds no tools");
}

#[tokio::test(flavor = "multi_thread")]
async fn b49_holdings_are_enforced_where_a_call_is_dispatched() {
    assert_eq!(dispatched(&["run"], "guest", "guest").await.text(), "run");
    denied(&dispatched(&["run"], "other", "guest").await, "another build");
}

#[tokio::test(flavor = "multi_thread")]
async fn b50_narrowing_reaches_inside_a_plugin() {
    denied(
        &dispatched(&["else"], "guest", "guest").await,
        "not granted to this agent",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn b52_a_call_is_never_routed_to_another_plugin_with_a_tool_of_that_name() {
    denied(
        &dispatched(&["run"], "guest", "other").await,
        "`other.run` cannot be called",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_starts_at_once_share_what_is_compiled() {
    let (store, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(&dir, "a.wasm", guest("a"));
    let notes = Mutex::new(Vec::new());
    let (one, two) = (fresh(&store), fresh(&store));
    let directories = [dir.path().to_owned()];
    let note = |note| notes.lock().unwrap().push(note);
    let (one, two) = tokio::join!(one.scan(&directories, &note), two.scan(&directories, &note));
    assert_eq!(one.plugins, two.plugins);
    assert!(one.problems.is_empty() && two.problems.is_empty());
}
