//! The pages that list every key of a manifest: what they show is read without a complaint, and no key is missing.

use fief_core::grant::Limits;
use fief_core::manifest::error::{ManifestErrors, Source};
use fief_core::manifest::{archetype, config, files, plugin};

use super::support::root;

/// One reader of a manifest: its warnings, or what is wrong.
type Read = fn(Source) -> Result<usize, ManifestErrors>;

fn read_archetype(source: Source) -> Result<usize, ManifestErrors> {
    archetype::toml::parse(source, &Beside).map(|parsed| parsed.warnings.len())
}

fn read_plugin(source: Source) -> Result<usize, ManifestErrors> {
    plugin::parse(source).map(|parsed| parsed.warnings.len())
}

fn read_config(source: Source) -> Result<usize, ManifestErrors> {
    config::parse(source).map(|parsed| parsed.warnings.len())
}

/// Every file beside a manifest is a schema of an object.
struct Beside;

impl files::Files for Beside {
    fn read(&self, _: &std::path::Path) -> Result<String, files::FileError> {
        Ok(r#"{"type": "object"}"#.into())
    }

    fn read_inside(&self, _: &std::path::Path, path: &std::path::Path) -> Result<String, files::FileError> {
        self.read(path)
    }

    fn list(&self, _: &std::path::Path) -> Result<Vec<files::Entry>, files::FileError> {
        Err(files::FileError::Missing)
    }

    fn canonical(&self, _: &std::path::Path) -> Result<std::path::PathBuf, files::FileError> {
        Err(files::FileError::Missing)
    }
}

/// The TOML block of `page` that stands after `heading`.
fn block(page: &str, heading: &str) -> String {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let rest = text
        .split_once(heading)
        .unwrap_or_else(|| panic!("{page}: {heading}"))
        .1;
    let rest = rest.split_once("```toml\n").expect("a TOML block").1;
    rest.split_once("```").expect("its end").0.to_owned()
}

/// `text` with a key that nothing knows as the first of one of its tables, for each of them.
fn with_a_strange_key(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let heads = (0..lines.len()).filter(|at| lines[*at].starts_with('['));
    std::iter::once(None)
        .chain(heads.map(Some))
        .map(|head| {
            let mut lines = lines.clone();
            lines.insert(head.map_or(0, |at| at + 1), "zzzzzz = 0");
            lines.join("\n")
        })
        .collect()
}

/// The keys that a reader offers in place of the strange one, if it lists them.
fn offered(errors: &ManifestErrors) -> Vec<String> {
    let hints = errors
        .iter()
        .filter(|error| error.message.contains("`zzzzzz`"))
        .filter_map(|error| error.hint.as_deref())
        .filter(|hint| hint.starts_with("the keys are "));
    hints
        .flat_map(|hint| {
            hint.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_key_of_every_manifest_is_in_its_reference() {
    let pages: [(&str, &str, Read, usize); 3] = [
        ("archetypes/README.md", "## Every key", read_archetype, 60),
        ("plugins/README.md", "## `plugin.toml`: every key", read_plugin, 15),
        ("README.md", "## Every key of `fief.toml`", read_config, 50),
    ];
    for (page, heading, read, at_least) in pages {
        let text = block(page, heading);
        let warnings = read(Source::new(page, text.clone())).unwrap_or_else(|errors| panic!("{page}: {errors:#?}"));
        assert_eq!(warnings, 0, "{page}");
        // What `[agents.config]` shares with an archetype stands on that page.
        let shared = match page {
            "README.md" => block("archetypes/README.md", "## Every key"),
            _ => String::new(),
        };
        let mut known = 0;
        for strange in with_a_strange_key(&text) {
            for key in offered(&read(Source::new(page, strange)).expect_err("a strange key is refused")) {
                known += 1;
                let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let shown = text
                    .split(|c| !word(c))
                    .chain(shared.split(|c| !word(c)))
                    .any(|part| part == key);
                assert!(shown, "{page} does not show the key `{key}`");
            }
        }
        assert!(known >= at_least, "{page}: only {known} keys were offered");
    }
}

#[test]
fn the_table_of_limits_is_the_one_that_holds() {
    let page = std::fs::read_to_string(root().join("archetypes/README.md")).unwrap();
    // Exhaustive, so that a new limit asks for its row.
    let Limits {
        memory,
        cpu,
        wall,
        output,
        tables,
        instances,
        log,
        handles,
        requests,
        request_bytes,
        response_bytes,
    } = Limits::default();
    let size = |bytes: u64| match bytes {
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", bytes >> 10),
    };
    for (name, value) in [
        ("memory", size(memory)),
        ("cpu", format!("{} s", cpu.as_secs())),
        ("wall", format!("{} s", wall.as_secs())),
        ("output", size(output)),
        ("tables", tables.to_string()),
        ("instances", instances.to_string()),
        ("log", size(log)),
        ("handles", handles.to_string()),
        ("requests", requests.to_string()),
        ("request_bytes", size(request_bytes)),
        ("response_bytes", size(response_bytes)),
    ] {
        let row = format!("| `{name}` | {value} |");
        assert!(page.contains(&row), "archetypes/README.md lacks `{row}`");
    }
}
