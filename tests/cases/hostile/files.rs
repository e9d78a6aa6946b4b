//! Files: a guest reaches what it was granted, as it was granted, and nothing else. Each test looks at the host's own
//! side afterwards.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fief_core::event::CapabilityKind::File;
use fief_core::grant::FileMode::{Read, Write};
use fief_core::tool::OutcomeKind::Ok;
use serde_json::json;
use tempfile::TempDir;

use super::stage::{Report, Stage, ms};

const OUTSIDE: &str = "leads out of the granted directory";
const PROTECTED: &str = "the host itself obeys what lies there";

/// A directory to be granted, `work`, beside what must not be reached.
struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        let tree = Self(TempDir::new().unwrap());
        for (path, content) in [
            ("work/mine", "mine"),
            ("work/inner/deep/file", "deep"),
            ("outside/secret", "SECRET"),
        ] {
            tree.put(path, content);
        }
        tree
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn link(&self, target: impl AsRef<Path>, path: &str) {
        symlink(target, self.path(path)).unwrap();
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    /// Names in a directory, in order.
    fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Fails if anything outside the granted directory is not as it was.
    fn is_whole(&self) {
        assert_eq!(self.read("outside/secret"), "SECRET");
        assert_eq!(self.names("outside"), ["secret"]);
        assert!(
            self.names("")
                .iter()
                .all(|name| ["outside", "readable", "work"].contains(&name.as_str()))
        );
    }

    async fn writable(&self) -> Stage {
        self.protecting(&[]).await
    }

    async fn protecting(&self, protected: &[&str]) -> Stage {
        let stage = Stage::new("tricks").await.limits(|limits| limits.wall = ms(10_000));
        stage.files(&self.path("work"), "/work", Write, protected)
    }
}

/// No target that was allowed names what a guest must not reach.
fn allowed_only(report: &Report, names: &[&str]) {
    for (target, _) in report.allowed(File) {
        assert!(names.iter().any(|name| target.contains(name)), "{target}");
    }
}

pub async fn climb_out() {
    let tree = Tree::new();
    let report = tree.writable().await.call("climb_out", json!({})).await.held();
    report.refuses(File, 30, OUTSIDE);
    tree.is_whole();
    assert_eq!(tree.names("work"), ["inner", "mine"]);
    // A grant for reading gives no more.
    let stage = Stage::new("tricks").await.files(&tree.path("work"), "/work", Read, &[]);
    let report = stage.call("climb_out", json!({})).await.held();
    allowed_only(&report, &[]);
}

pub async fn name_absolute() {
    let tree = Tree::new();
    let secret = tree.path("outside/secret");
    let report = tree
        .writable()
        .await
        .call("name_absolute", json!({ "secret": secret }))
        .await
        .held();
    allowed_only(&report.refuses(File, 8, OUTSIDE), &[]);
    tree.is_whole();
}

pub async fn follow_links() {
    let tree = Tree::new();
    tree.link("../outside/secret", "work/to-secret");
    tree.link("../outside", "work/to-outside");
    tree.link(tree.path("outside/secret"), "work/to-absolute");
    tree.link("to-secret", "work/to-link");
    tree.link("/proc", "work/to-proc");
    tree.link("/", "work/to-root");
    tree.link("..", "work/inner/up");
    tree.link("../outside", "work/up");
    tree.link("loop", "work/loop");
    tree.link("../outside/nothing", "work/dangling");
    let before = tree.names("work");
    let report = tree.writable().await.call("follow_links", json!({})).await.held();
    allowed_only(&report.refuses(File, 20, OUTSIDE), &[]);
    tree.is_whole();
    assert_eq!(tree.names("work"), before);
}

pub async fn make_links() {
    let tree = Tree::new();
    let report = tree.writable().await.call("make_links", json!({})).await.held();
    allowed_only(&report.refuses(File, 6, OUTSIDE), &["moved"]);
    tree.is_whole();
    assert!(!tree.path("work/planted").is_symlink());
}

pub async fn make_hard_link() {
    let tree = Tree::new();
    tree.put("readable/data", "data");
    let stage = tree
        .writable()
        .await
        .files(&tree.path("readable"), "/readable", Read, &[]);
    let report = stage.call("make_hard_link", json!({})).await.held();
    report.refuses(File, 4, "hard links are not made");
    tree.is_whole();
    assert_eq!(tree.names("work"), ["inner", "mine"]);
}

pub async fn open_special() {
    let tree = Tree::new();
    let fifo = tree.path("work/fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.is_ok_and(|made| made.success()), "mkfifo makes a FIFO");
    let _socket = std::os::unix::net::UnixListener::bind(tree.path("work/socket")).unwrap();
    // A call that blocked on the FIFO would not end before its time is up.
    let stage = tree.writable().await.files(Path::new("/dev"), "/dev", Read, &[]);
    let report = stage.call_beside_another("open_special", json!({})).await.held();
    let report = report.refuses(
        File,
        10,
        "a special file, which only files and directories may be opened as",
    );
    allowed_only(&report, &[]);
}

pub async fn look_into_proc() {
    let own = PathBuf::from(format!("/proc/{}", std::process::id()));
    if !own.is_dir() {
        return crate::support::skip("look_into_proc", "this system has no `/proc`");
    }
    let stage = Stage::new("tricks").await.files(&own, "/proc", Read, &[]);
    allowed_only(&stage.call("look_into_proc", json!({})).await.held(), &[]);
}

pub async fn race_a_rename() {
    let tree = Tree::new();
    tree.put("work/door/file", "inside");
    tree.put("outside/file", "SECRET");
    tree.link("../outside", "work/link");
    let stop = Arc::new(AtomicBool::new(false));
    let (work, stopped) = (tree.path("work"), Arc::clone(&stop));
    let swapping = std::thread::spawn(move || {
        let name = |name| work.join(name);
        let mut swaps = 0_u64;
        while !stopped.load(Ordering::Relaxed) {
            for (from, to) in [("door", "kept"), ("link", "door"), ("door", "link"), ("kept", "door")] {
                std::fs::rename(name(from), name(to)).unwrap();
            }
            swaps += 1;
        }
        swaps
    });
    let stage = tree.writable().await.limits(|limits| limits.wall = ms(60_000));
    let report = stage.call("race_a_rename", json!({ "tries": 4_000 })).await;
    stop.store(true, Ordering::Relaxed);
    let swaps = swapping.join().unwrap();
    let report = report.is(Ok, &["read "]);
    assert!(swaps > 10, "{swaps} swaps, {}", report.outcome.text());
    assert_eq!(tree.names("outside"), ["file", "secret"]);
    assert_eq!(tree.read("outside/file"), "SECRET");
}

pub async fn odd_names() {
    let tree = Tree::new();
    let name = std::ffi::OsStr::from_bytes(b"\xff\xfe-no-text");
    std::fs::write(tree.path("work").join(name), "x").unwrap();
    let report = tree.writable().await.call("odd_names", json!({})).await.held();
    assert!(
        report.outcome.text().contains("held seen: \"mine\""),
        "{}",
        report.outcome.text()
    );
    tree.is_whole();
}

pub async fn many_entries() {
    let tree = Tree::new();
    std::fs::remove_dir_all(tree.path("work")).unwrap();
    std::fs::create_dir(tree.path("work")).unwrap();
    for number in 0..10_000 {
        std::fs::write(tree.path("work").join(format!("file-{number}")), "").unwrap();
    }
    let stage = tree.writable().await;
    stage
        .call_beside_another("many_entries", json!({}))
        .await
        .is(Ok, &["10000 entries"]);
}

pub async fn huge_file() {
    let tree = Tree::new();
    let file = std::fs::File::create(tree.path("work/huge")).unwrap();
    file.set_len(1 << 30).unwrap();
    // What is read at once is bounded by the host, whatever is asked for.
    let stage = tree.writable().await.limits(|limits| limits.memory = 16 << 20);
    for how in ["", "stream"] {
        stage
            .call_beside_another("huge_file", json!({ "how": how }))
            .await
            .is(Ok, &["read 65536 bytes"]);
    }
}

pub async fn write_what_is_read_only() {
    let tree = Tree::new();
    tree.put("readable/data", "data");
    std::fs::create_dir(tree.path("readable/empty")).unwrap();
    let stage = tree
        .writable()
        .await
        .files(&tree.path("readable"), "/readable", Read, &[]);
    let report = stage.call("write_what_is_read_only", json!({})).await.held();
    report.refuses(File, 15, "granted for reading only");
    tree.is_whole();
    assert_eq!(tree.read("readable/data"), "data");
    assert_eq!(tree.names("readable"), ["data", "empty"]);
    assert_eq!(tree.names("work"), ["inner", "mine"]);
}

pub async fn write_protected() {
    let tree = Tree::new();
    tree.put("work/fief.toml", "[policy]\nread = []\n");
    tree.put("work/plugins/files/files.wasm", "component");
    std::fs::hard_link(tree.path("work/fief.toml"), tree.path("work/second")).unwrap();
    let stage = tree.protecting(&["fief.toml", "plugins"]).await;
    let report = stage.call("write_protected", json!({})).await.held();
    report.refuses(File, 15, PROTECTED);
    assert_eq!(tree.read("work/fief.toml"), "[policy]\nread = []\n");
    assert!(!tree.path("work/fief.toml").is_symlink());
    assert_eq!(tree.names("work/plugins"), ["files"]);
    assert_eq!(tree.read("work/plugins/files/files.wasm"), "component");
    tree.is_whole();
}

pub async fn move_protected() {
    let tree = Tree::new();
    tree.put("work/config/fief.toml", "[policy]\n");
    std::fs::create_dir(tree.path("work/evil")).unwrap();
    let stage = tree.protecting(&["config/fief.toml", "later/fief.toml"]).await;
    let report = stage.call("move_protected", json!({})).await.held();
    report.refuses(File, 6, PROTECTED);
    assert_eq!(tree.read("work/config/fief.toml"), "[policy]\n");
    assert_eq!(tree.names("work"), ["config", "evil", "inner", "mine"]);
}

pub async fn borrow_rights() {
    let tree = Tree::new();
    tree.put("work/inner/file", "file");
    let stage = tree.writable().await;
    let stage = stage.files(&tree.path("work/inner"), "/work/inner", Read, &[]);
    let report = stage.call("borrow_rights", json!({})).await.held();
    report
        .refuses(File, 4, PROTECTED)
        .refuses(File, 1, "granted for reading only");
    assert_eq!(tree.read("work/inner/file"), "file");
    assert_eq!(tree.read("work/mine"), "fine");
}

pub async fn leave_by_rename() {
    let tree = Tree::new();
    let report = tree.writable().await.call("leave_by_rename", json!({})).await.held();
    report.refuses(File, 6, OUTSIDE);
    tree.is_whole();
}
