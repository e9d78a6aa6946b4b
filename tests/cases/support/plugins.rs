//! The first-party plugins, built once by the product itself.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The plugin directory of the checkout, with every plugin built.
pub fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let directory = super::root().join("plugins");
        let mut plugins: Vec<PathBuf> = std::fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.join("plugin.toml").is_file())
            .collect();
        plugins.sort();
        assert!(!plugins.is_empty(), "{} holds no plugin", directory.display());
        let status = Command::new(super::binary::path())
            .args(["plugin", "build"])
            .args(&plugins)
            .current_dir(super::root())
            .status()
            .expect("fief starts");
        assert!(status.success(), "`fief plugin build` fails");
        directory
    })
}
