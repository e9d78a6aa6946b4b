#![allow(clippy::unwrap_used)]

use super::*;
use crate::manifest::archetype::Agents;
use crate::manifest::archetype::mapping::ToolMapping;
use crate::manifest::archetype::markdown::Known;
use crate::manifest::files::tests::Pretend;

fn archetype(name: &str, origin: &str) -> Archetype {
    Archetype {
        origin: origin.into(),
        ..Archetype::new(name.parse().unwrap(), "d", format!("You are {name}."))
    }
}

fn compiled() -> Vec<Archetype> {
    [
        "main",
        "default",
        "general-purpose",
        "explore",
        "plan",
        "auditor",
        "agent-worker",
    ]
    .map(|name| archetype(name, "built in"))
    .into()
}

fn registered(registry: &Registry) -> Vec<&str> {
    registry.registered.iter().map(ArchetypeName::as_str).collect()
}

fn builtin(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn directory(files: &[(&'static str, &'static str)]) -> Result<Parsed<Vec<Archetype>>, ManifestErrors> {
    let known = Known {
        mapping: &ToolMapping::default(),
        tools: None,
        models: None,
    };
    load_directory(Path::new("/w/a"), known, &Pretend(files.iter().copied().collect()))
}

const MD: &str = "---\nname: one\ndescription: d\n---\nbody";
const TOML: &str = "name = \"two\"\ndescription = \"d\"\ninstruction = \"i\"";
const UPPER: &str = "name = \"TWO\"\ndescription = \"d\"\ninstruction = \"i\"";

#[test]
fn only_default_is_registered_unasked_and_all_can_be_found() {
    let registry = assemble(compiled(), None, vec![]).unwrap();
    assert_eq!(registered(&registry), ["default"]);
    assert_eq!(registry.archetypes.len(), 7);
    assert!(registry.archetypes.contains_key("auditor"));
    assert_eq!(registered(&assemble(compiled(), Some(&[]), vec![]).unwrap()), [""; 0]);
    let chosen = builtin(&["plan", "explore"]);
    assert_eq!(
        registered(&assemble(compiled(), Some(&chosen), vec![]).unwrap()),
        ["plan", "explore"]
    );
}

#[test]
fn b15_an_unreadable_file_is_an_error_with_its_path() {
    for (text, why) in [("<unreadable>", "permission denied"), ("<binary>", "not UTF-8")] {
        let errors = directory(&[("/w/a/x.md", text), ("/w/a/y.toml", TOML)]).unwrap_err();
        assert_eq!(errors[0].file(), "/w/a/x.md");
        assert!(errors[0].message.contains(why), "{errors:?}");
    }
}

#[test]
fn b16_a_missing_directory_is_an_error_with_its_path() {
    let error = directory(&[]).unwrap_err().remove(0);
    assert_eq!(error.file(), "/w/a");
    assert!(error.message.contains("no such directory"), "{error:?}");
}

#[test]
fn b17_a_path_that_is_no_directory() {
    let error = directory(&[("/w/a", "text")]).unwrap_err().remove(0);
    assert!(error.message.contains("not a directory"), "{error:?}");
}

#[test]
fn b18_an_empty_directory_is_an_empty_list() {
    assert_eq!(directory(&[("/w/a/", "")]).unwrap().value, []);
}

#[test]
fn b19_other_files_are_ignored() {
    let found = directory(&[
        ("/w/a/notes.txt", "text"),
        ("/w/a/README.md", "# About"),
        ("/w/a/.hidden.md", "text"),
        ("/w/a/one.md.orig", "text"),
        ("/w/a/sub/other.toml", "broken ="),
        ("/w/a/one.md", MD),
    ])
    .unwrap()
    .value;
    assert_eq!(found.len(), 1);
}

#[test]
fn b20_alphabetical_order_in_all_three_layouts() {
    let found = directory(&[
        (
            "/w/a/zzz.toml",
            "name = \"apple\"\ndescription = \"d\"\ninstruction = \"i\"",
        ),
        (
            "/w/a/two/archetype.toml",
            "name = \"two\"\ndescription = \"d\"\ninstruction = { file = \"i.md\" }",
        ),
        ("/w/a/two/i.md", "You."),
        ("/w/a/one.md", MD),
    ])
    .unwrap()
    .value;
    let names: Vec<&str> = found.iter().map(|archetype| archetype.name.as_str()).collect();
    assert_eq!(names, ["apple", "one", "two"]);
    assert_eq!(&*found[2].instruction, "You.");
}

#[test]
fn b21_the_errors_of_all_files_are_reported_together() {
    let errors = directory(&[
        ("/w/a/x.md", "no"),
        ("/w/a/y.toml", "name = 3\nspam = 1"),
        ("/w/a/z.toml", TOML),
    ])
    .unwrap_err();
    let files: Vec<&str> = errors.iter().map(ManifestError::file).collect();
    assert_eq!(
        files,
        ["/w/a/x.md", "/w/a/y.toml", "/w/a/y.toml", "/w/a/y.toml", "/w/a/y.toml"]
    );
}

#[test]
fn b22_a_name_twice_is_an_error_that_names_both_files() {
    let found = directory(&[("/w/a/x.toml", TOML), ("/w/a/y.toml", UPPER)])
        .unwrap()
        .value;
    let errors = assemble(compiled(), None, found).unwrap_err();
    assert_eq!(errors.len(), 1);
    let text = format!("{} {}", errors[0], errors[0].hint.as_deref().unwrap());
    assert!(
        text.contains("/w/a/x.toml") && text.contains("/w/a/y.toml") && text.contains("case"),
        "{text}"
    );
}

#[test]
fn b23_a_collision_with_a_registered_built_in_is_an_error() {
    let other = |name: &str| Archetype {
        instruction: "other".into(),
        ..archetype(name, "f.toml")
    };
    let errors = assemble(compiled(), None, vec![other("Default")]).unwrap_err();
    assert!(errors[0].to_string().contains("f.toml") && errors[0].hint.as_deref().unwrap().contains("builtin"));
    assert!(
        assemble(compiled(), None, vec![other("MAIN")]).is_err(),
        "`main` always"
    );
    assert!(
        assemble(compiled(), Some(&[]), vec![other("main")]).is_err(),
        "`main` always"
    );

    let registry = assemble(compiled(), Some(&[]), vec![other("default"), other("auditor")]).unwrap();
    assert_eq!(registered(&registry), ["default", "auditor"]);
    assert_eq!(
        &*registry.archetypes["auditor"].instruction, "other",
        "it takes the place of one that is not registered"
    );
}

#[test]
fn an_identical_file_is_the_built_in() {
    let files = ["explore", "default", "main"].map(|name| archetype(name, "archetypes/x.toml"));
    let registry = assemble(compiled(), None, files.into()).unwrap();
    assert_eq!(
        registered(&registry),
        ["default", "explore"],
        "lying in a directory registers it, but never `main`"
    );
    assert_eq!(registry.archetypes["explore"].origin, "built in");
}

#[test]
fn b25_what_is_assembled_is_shared_and_cannot_change() {
    let registry = assemble(compiled(), None, vec![archetype("x", "rust")]).unwrap();
    let shared: &Arc<Archetype> = &registry.archetypes["x"];
    let mut copy = Archetype::clone(shared);
    copy.agents = Some(Agents::All);
    assert_eq!(shared.agents, None);
}

#[test]
fn b26_the_registry_keeps_the_order_of_registration() {
    let registry = assemble(compiled(), None, vec![archetype("z", "rust"), archetype("a", "rust")]).unwrap();
    assert_eq!(registered(&registry), ["default", "z", "a"]);
}
