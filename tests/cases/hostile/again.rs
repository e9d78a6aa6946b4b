//! The same guests once more, with `[sandbox] pagemap_scan = true`: what the operator may choose for speed must hold all
//! that does not depend on memory pressure. A process has one sandbox, so that this takes another.

use std::process::Command;

use super::stage::{PAGEMAP_SCAN, pagemap_scan};

#[test]
fn every_guest_is_held_with_pagemap_scan_too() {
    if pagemap_scan() {
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        // These start programs or sandboxes of their own, which know nothing of the choice.
        .args(["hostile::", "--skip", "hostile::binary", "--skip", "hostile::malformed"])
        .env(PAGEMAP_SCAN, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "with `pagemap_scan`:\n{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let passed = text.lines().filter(|line| line.ends_with("... ok")).count();
    eprintln!("with `pagemap_scan`: {passed} passed");
    assert!(passed > 90, "{passed} tests ran\n{text}");
}
