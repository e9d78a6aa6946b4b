#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::testing::{Wat, sandbox};

/// Loads and says whether it had to compile.
fn load(store: &Store, bytes: &[u8]) -> bool {
    let engine = sandbox().0.runtime.small();
    let compiled = AtomicUsize::new(0);
    let component = store.load(
        |size| sandbox().0.runtime.engine(size).ok(),
        &Digest::of(bytes),
        || {
            compiled.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>((Size::Small, Component::from_binary(engine, bytes).unwrap()))
        },
    );
    let exports = component.unwrap().get_export_index(None, crate::component::TOOLS);
    assert!(exports.is_some());
    compiled.into_inner() == 1
}

fn guest() -> Vec<u8> {
    Wat::default().component()
}

fn only_file(dir: &Path) -> PathBuf {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut code: Vec<_> = files
        .filter(|path| path.extension() == Some(OsStr::new("code")))
        .collect();
    assert_eq!(code.len(), 1);
    code.remove(0)
}

#[test]
fn a_component_is_compiled_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::new(path.clone(), sandbox().0.runtime.small());
    let bytes = guest();
    assert!(load(&store, &bytes));
    assert!(!load(&store, &bytes));
    assert_eq!(verify_store(&path).unwrap(), []);
}

#[test]
fn damage_is_noticed_and_mended() {
    let bytes = guest();
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 5] = [
        ("cut off", |path| {
            OpenOptions::new().write(true).open(path).unwrap().set_len(100).unwrap();
        }),
        ("empty", |path| fs::write(path, "").unwrap()),
        ("another trailer", |path| {
            let mut bytes = fs::read(path).unwrap();
            let at = bytes.len() - 40;
            bytes[at] ^= 1;
            fs::write(path, bytes).unwrap();
        }),
        ("another header", |path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[..64].fill(0);
            fs::write(path, bytes).unwrap();
        }),
        ("a link", |path| {
            let aside = path.with_extension("aside");
            fs::rename(path, &aside).unwrap();
            std::os::unix::fs::symlink(aside, path).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let store = Store::new(path.clone(), sandbox().0.runtime.small());
        assert!(load(&store, &bytes));
        damage(&only_file(&path));
        assert!(load(&store, &bytes), "{name} was mapped");
        assert!(!load(&store, &bytes), "{name} was not mended");
    }
}

#[test]
fn what_others_could_have_written_is_not_mapped() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::new(path.clone(), sandbox().0.runtime.small());
    let bytes = guest();
    assert!(load(&store, &bytes));
    fs::set_permissions(only_file(&path), fs::Permissions::from_mode(0o620)).unwrap();
    assert!(load(&store, &bytes), "a file that others may write was mapped");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(load(&store, &bytes), "a directory that others may write was trusted");
}

#[test]
fn flipped_code_is_found_by_the_long_check() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::new(path.clone(), sandbox().0.runtime.small());
    assert!(load(&store, &guest()));
    let file = only_file(&path);
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    assert_eq!(verify_store(&path).unwrap().len(), 1);
    assert!(!file.exists());
}

#[test]
fn a_store_that_cannot_be_used_costs_time_alone() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let store = Store::new(file.path().join("store"), sandbox().0.runtime.small());
    let bytes = guest();
    assert!(load(&store, &bytes));
    assert!(load(&store, &bytes));
}
