//! What the README shows works as it stands there.

use super::support::binary::{Finished, Workplace};
use super::support::{plugins, root};

#[test]
fn the_recorded_model_of_the_readme_runs() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let block = readme
        .split("```json\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .find(|block| block.contains("\"session\""))
        .expect("the README has a recorded model");
    let place = Workplace::new();
    place.write("recording.jsonl", block);
    place.write("notes.txt", "sea\nharbour\n");
    let mut command = place.fief(["run", "--model", "script:recording.jsonl", "--plugins"]);
    command.arg(plugins::directory()).arg("Where is the harbour?");
    let finished = Finished::of(command).expect_code(0);
    assert_eq!(finished.stdout, "notes.txt mentions it.\n");
}
