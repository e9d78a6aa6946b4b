//! `fief demo`, in the checkout and away from it.

use super::support::binary::{Finished, Workplace};
use super::support::{plugins, root};

#[test]
fn the_demonstration_runs_on_the_checkouts_own_files() {
    plugins::directory();
    let place = Workplace::new();
    let mut command = place.fief(["demo"]);
    command.current_dir(root());
    let finished = Finished::of(command).expect_code(0);
    assert!(finished.stdout.contains("exist only where"), "{}", finished.stdout);
    for part in [
        "explore_1",
        "files.grep",
        "files.write denied",
        "what happened:",
        "next, with a model of your own:",
    ] {
        assert!(finished.stderr.contains(part), "{part} in {}", finished.stderr);
    }
    assert!(!root().join("wit/FINDINGS.md").exists());
}

#[test]
fn away_from_a_checkout_it_names_what_installs_its_plugins_and_then_runs() {
    let directory = plugins::directory();
    let place = Workplace::new();
    let missing = Finished::of(place.fief(["demo"])).expect_code(2);
    assert!(
        missing.stderr.contains("fief plugin install plugins/files plugins/web"),
        "{}",
        missing.stderr
    );
    let mut install = place.fief(["plugin", "install"]);
    install.args(["files", "web"].map(|name| directory.join(name)));
    Finished::of(install).expect_code(0);
    let finished = Finished::of(place.fief(["demo", "--json"])).expect_code(0);
    let events = finished.lines();
    assert_eq!(events.last().unwrap()["status"], "done");
    assert!(
        events
            .iter()
            .any(|event| event["tool"] == "files.write" && event["outcome"] == "denied")
    );
}
