#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use fief_core::event::CallNote;
use fief_core::grant::Grant;
use tempfile::TempDir;
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host as _;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, ErrorCode, HostDescriptor as _, NewTimestamp, OpenFlags, PathFlags,
};

use super::*;
use crate::host::http::Network;
use crate::rights::Rights;
use crate::testing::{Notes, context};

/// A guest that holds directories of a tree made for the test.
struct World {
    guest: Guest,
    notes: Arc<Notes>,
    preopens: Vec<(u32, String)>,
}

fn grant(host: &Path, guest: &str, mode: FileMode, protected: &[&str]) -> DirGrant {
    let host = host.canonicalize().unwrap();
    DirGrant {
        guest: guest.into(),
        mode,
        protected: protected.iter().map(|path| host.join(path)).collect(),
        rule: "a test".into(),
        host,
    }
}

impl World {
    fn new(files: Vec<DirGrant>) -> Self {
        let grant = Grant {
            files,
            ..Grant::default()
        };
        let secrets = std::collections::BTreeMap::new();
        let rights = Rights::new(&grant, &secrets, Arc::new(Network::new())).unwrap();
        let notes = Arc::new(Notes::default());
        let mut guest = Guest::new(&rights, context(&notes));
        let preopens = guest.files().get_directories().unwrap();
        Self {
            guest,
            notes,
            preopens: preopens.into_iter().map(|(fd, name)| (fd.rep(), name)).collect(),
        }
    }

    fn root(&self, name: &str) -> Resource<Descriptor> {
        let (rep, _) = self.preopens.iter().find(|(_, guest)| guest == name).unwrap();
        Resource::new_borrow(*rep)
    }

    async fn open(&mut self, root: &str, path: &str, how: &str) -> Result<Resource<Descriptor>, ErrorCode> {
        let mut flags = DescriptorFlags::READ;
        let mut open = OpenFlags::empty();
        for what in how.chars() {
            match what {
                'w' => flags |= DescriptorFlags::WRITE,
                'c' => open |= OpenFlags::CREATE,
                't' => open |= OpenFlags::TRUNCATE,
                'd' => open |= OpenFlags::DIRECTORY,
                _ => {}
            }
        }
        let fd = self.root(root);
        let opened = self
            .guest
            .files()
            .open_at(fd, PathFlags::SYMLINK_FOLLOW, path.into(), open, flags)
            .await;
        opened.map_err(code)
    }

    async fn read(&mut self, root: &str, path: &str) -> Result<String, ErrorCode> {
        let fd = self.open(root, path, "").await?;
        let (bytes, _) = self.guest.files().read(fd, 1 << 16, 0).await.map_err(code)?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    async fn write(&mut self, root: &str, path: &str) -> Result<(), ErrorCode> {
        let fd = self.open(root, path, "wct").await?;
        let again = Resource::new_borrow(fd.rep());
        self.guest
            .files()
            .write(fd, b"written".to_vec(), 0)
            .await
            .map_err(code)?;
        self.guest.files().sync(again).await.map_err(code)
    }

    async fn rename(&mut self, root: &str, from: &str, to: &str) -> Result<(), ErrorCode> {
        let (one, two) = (self.root(root), self.root(root));
        self.guest
            .files()
            .rename_at(one, from.into(), two, to.into())
            .await
            .map_err(code)
    }

    fn refusals(&self) -> usize {
        let refused = |note: &CallNote| matches!(note, CallNote::Capability { allowed: false, .. });
        self.notes.take().iter().filter(|note| refused(note)).count()
    }
}

fn code(error: FsError) -> ErrorCode {
    error.downcast().unwrap()
}

fn tree() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in [("work/a.txt", "a"), ("work/sub/b.txt", "b"), ("secret.txt", "secret")] {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_for_reading_reads_and_changes_nothing() {
    let tree = tree();
    let work = tree.path().join("work");
    let mut world = World::new(vec![grant(&work, "/work", FileMode::Read, &[])]);
    assert_eq!(world.read("/work", "sub/b.txt").await.unwrap(), "b");
    assert_eq!(world.read("/work", "./sub/../a.txt").await.unwrap(), "a");
    for (path, how) in [("a.txt", "w"), ("new.txt", "wc"), ("new.txt", "c"), ("a.txt", "t")] {
        assert_eq!(
            world.open("/work", path, how).await.unwrap_err(),
            ErrorCode::NotPermitted,
            "{path} {how}"
        );
    }
    let fd = world.root("/work");
    let made = world.guest.files().create_directory_at(fd, "d".into()).await;
    assert_eq!(code(made.unwrap_err()), ErrorCode::NotPermitted);
    assert_eq!(
        world.rename("/work", "a.txt", "c.txt").await.unwrap_err(),
        ErrorCode::NotPermitted
    );
    let fd = world.open("/work", "a.txt", "").await.unwrap();
    let touched = world
        .guest
        .files()
        .set_times(fd, NewTimestamp::Now, NewTimestamp::Now)
        .await;
    assert_eq!(code(touched.unwrap_err()), ErrorCode::NotPermitted);
    assert_eq!(world.refusals(), 7);
    assert_eq!(fs::read_to_string(work.join("a.txt")).unwrap(), "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_leads_out() {
    let tree = tree();
    let work = tree.path().join("work");
    symlink("../secret.txt", work.join("out")).unwrap();
    symlink(tree.path().join("secret.txt"), work.join("absolute")).unwrap();
    symlink("..", work.join("up")).unwrap();
    symlink("sub/../a.txt", work.join("fine")).unwrap();
    symlink("/proc/self/root", work.join("proc")).unwrap();
    symlink("loop", work.join("loop")).unwrap();
    let mut world = World::new(vec![grant(&work, "/work", FileMode::Write, &[])]);
    assert_eq!(world.read("/work", "fine").await.unwrap(), "a");
    let absolute = tree.path().join("secret.txt");
    for path in [
        "../secret.txt",
        "sub/../../secret.txt",
        "out",
        "absolute",
        "up/secret.txt",
        "proc/etc/passwd",
        "/etc/passwd",
        absolute.to_str().unwrap(),
    ] {
        for how in ["", "w", "wct"] {
            assert_eq!(
                world.open("/work", path, how).await.unwrap_err(),
                ErrorCode::NotPermitted,
                "{path} {how}"
            );
        }
    }
    assert_eq!(world.open("/work", "loop", "").await.unwrap_err(), ErrorCode::Loop);
    for target in ["../secret.txt", "/etc/passwd", "sub/../../secret.txt"] {
        let fd = world.root("/work");
        let made = world.guest.files().symlink_at(fd, target.into(), "link".into()).await;
        assert_eq!(code(made.unwrap_err()), ErrorCode::NotPermitted, "{target}");
    }
    let fd = world.root("/work");
    world
        .guest
        .files()
        .symlink_at(fd, "../a.txt".into(), "sub/link".into())
        .await
        .unwrap();
    assert_eq!(world.read("/work", "sub/link").await.unwrap(), "a");
    assert_eq!(fs::read_to_string(tree.path().join("secret.txt")).unwrap(), "secret");
}

#[tokio::test(flavor = "multi_thread")]
async fn special_files_are_refused_and_block_nobody() {
    let tree = tree();
    let work = tree.path().join("work");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, work.join("fifo"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(work.join("socket")).unwrap();
    symlink("fifo", work.join("link")).unwrap();
    let mut world = World::new(vec![grant(&work, "/work", FileMode::Write, &[])]);
    for path in ["fifo", "socket", "link"] {
        for how in ["", "w"] {
            let opening = world.open("/work", path, how);
            let opened = tokio::time::timeout(std::time::Duration::from_secs(10), opening)
                .await
                .unwrap();
            assert_eq!(opened.unwrap_err(), ErrorCode::NotPermitted, "{path} {how}");
        }
    }
    assert_eq!(world.refusals(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn hard_links_are_not_made() {
    let tree = tree();
    let work = tree.path().join("work");
    let mut world = World::new(vec![grant(&work, "/work", FileMode::Write, &[])]);
    let (one, two) = (world.root("/work"), world.root("/work"));
    let linked = world
        .guest
        .files()
        .link_at(one, PathFlags::empty(), "a.txt".into(), two, "hard".into())
        .await;
    assert_eq!(code(linked.unwrap_err()), ErrorCode::NotPermitted);
    assert_eq!(world.refusals(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_host_obeys_is_read_and_never_changed() {
    let tree = tree();
    let work = tree.path().join("work");
    fs::write(work.join("fief.toml"), "policy").unwrap();
    fs::create_dir_all(work.join("deep/plugins/files")).unwrap();
    fs::write(work.join("deep/plugins/files/x.wasm"), "code").unwrap();
    fs::hard_link(work.join("fief.toml"), work.join("alias")).unwrap();
    symlink("fief.toml", work.join("link")).unwrap();
    symlink("deep/plugins", work.join("way")).unwrap();
    let protected = ["fief.toml", "deep/plugins", "later.toml", "not/yet/there"];
    let mut world = World::new(vec![grant(&work, "/work", FileMode::Write, &protected)]);

    assert_eq!(world.read("/work", "link").await.unwrap(), "policy");
    assert_eq!(world.read("/work", "way/files/x.wasm").await.unwrap(), "code");
    world.write("/work", "a.txt").await.unwrap();
    world.write("/work", "deep/free.txt").await.unwrap();
    for path in [
        "fief.toml",
        "./sub/../fief.toml",
        "link",
        "alias",
        "later.toml",
        "LATER.toml",
        "deep/plugins/files/x.wasm",
        "deep/plugins/new.wasm",
        "way/new.wasm",
        "way/files/x.wasm",
        "not",
    ] {
        assert_eq!(
            world.write("/work", path).await.unwrap_err(),
            ErrorCode::NotPermitted,
            "{path}"
        );
    }
    for (from, to) in [
        ("a.txt", "fief.toml"),
        ("fief.toml", "gone.toml"),
        ("a.txt", "later.toml"),
        ("deep", "moved"),
        ("deep/plugins", "moved"),
        ("deep/plugins/files", "moved"),
        ("sub", "not"),
        ("sub", "way/sub"),
    ] {
        assert_eq!(
            world.rename("/work", from, to).await.unwrap_err(),
            ErrorCode::NotPermitted,
            "{from} -> {to}"
        );
    }
    for path in ["fief.toml", "way/files/x.wasm"] {
        let fd = world.root("/work");
        let removed = world.guest.files().unlink_file_at(fd, path.into()).await;
        assert_eq!(code(removed.unwrap_err()), ErrorCode::NotPermitted, "{path}");
    }
    for path in ["not", "way/new"] {
        let fd = world.root("/work");
        let made = world.guest.files().create_directory_at(fd, path.into()).await;
        assert_eq!(code(made.unwrap_err()), ErrorCode::NotPermitted, "{path}");
    }
    // What was opened for reading is not changed by its descriptor, nor is a directory by its own.
    let fd = world.open("/work", "alias", "").await.unwrap();
    let touched = world
        .guest
        .files()
        .set_times(fd, NewTimestamp::Now, NewTimestamp::Now)
        .await;
    assert_eq!(code(touched.unwrap_err()), ErrorCode::NotPermitted);
    let fd = world.open("/work", "deep/plugins/files", "d").await.unwrap();
    let removed = world.guest.files().unlink_file_at(fd, "x.wasm".into()).await;
    assert_eq!(code(removed.unwrap_err()), ErrorCode::NotPermitted);

    assert_eq!(fs::read_to_string(work.join("fief.toml")).unwrap(), "policy");
    assert_eq!(
        fs::read_to_string(work.join("deep/plugins/files/x.wasm")).unwrap(),
        "code"
    );
    assert_eq!(fs::read_to_string(work.join("a.txt")).unwrap(), "written");
}

#[tokio::test(flavor = "multi_thread")]
async fn nested_grants_keep_their_modes() {
    let tree = tree();
    let work = tree.path().join("work");
    let mut world = World::new(vec![
        grant(&work, "/work", FileMode::Read, &[]),
        grant(&work.join("sub"), "/work/sub", FileMode::Write, &[]),
    ]);
    world.write("/work/sub", "new.txt").await.unwrap();
    assert_eq!(
        world.write("/work", "sub/new.txt").await.unwrap_err(),
        ErrorCode::NotPermitted
    );
    let mut world = World::new(vec![
        grant(&work, "/work", FileMode::Write, &[]),
        grant(&work.join("sub"), "/work/sub", FileMode::Read, &[]),
    ]);
    world.write("/work", "new.txt").await.unwrap();
    assert_eq!(
        world.write("/work", "sub/b.txt").await.unwrap_err(),
        ErrorCode::NotPermitted
    );
    assert_eq!(
        world.write("/work/sub", "b.txt").await.unwrap_err(),
        ErrorCode::NotPermitted
    );
    assert_eq!(
        world.rename("/work", "sub", "moved").await.unwrap_err(),
        ErrorCode::NotPermitted
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_put_in_the_place_of_a_granted_directory_gains_nothing() {
    let tree = tree();
    let sub = tree.path().join("work/sub");
    let granted = grant(&sub, "/sub", FileMode::Read, &[]);
    fs::rename(&sub, tree.path().join("moved")).unwrap();
    symlink(tree.path(), &sub).unwrap();
    let opened = Root::open(&[granted]);
    assert!(opened.is_err(), "a link was followed");
}

#[tokio::test(flavor = "multi_thread")]
async fn uses_are_told_once_with_their_number_and_refusals_each_time() {
    let tree = tree();
    let work = tree.path().join("work");
    let mut world = World::new(vec![grant(&work, "/work", FileMode::Read, &[])]);
    for _ in 0..3 {
        world.read("/work", "a.txt").await.unwrap();
        world.open("/work", "../secret.txt", "").await.unwrap_err();
    }
    let World { guest, notes, .. } = world;
    drop(guest);
    let notes = notes.take();
    let allowed: Vec<_> = notes
        .iter()
        .filter_map(|note| match note {
            CallNote::Capability {
                allowed: true,
                target,
                rule,
                count,
                ..
            } => Some((target.as_str(), rule.as_str(), *count)),
            _ => None,
        })
        .collect();
    assert_eq!(allowed, [("/work/a.txt", "a test", Some(3))]);
    let refused = notes
        .iter()
        .filter(|note| matches!(note, CallNote::Capability { allowed: false, .. }));
    assert_eq!(refused.count(), 3);
}
