//! `word-count.count`: the size of a text, in the units that people ask for.

use fief_plugin::prelude::*;

/// What is counted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// The text, whole.
    text: String,
}

/// What there is of each.
#[derive(Serialize, JsonSchema, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Runs of characters that are no white space.
    words: u64,
    /// Lines; the last one needs no line break.
    lines: u64,
    /// Unicode characters.
    characters: u64,
    /// Bytes in UTF-8.
    bytes: u64,
}

fn count(args: Count) -> Result<Json<Counts>, ToolError> {
    Ok(Json(counts(&args.text)))
}

fn counts(text: &str) -> Counts {
    Counts {
        words: text.split_whitespace().count() as u64,
        lines: text.lines().count() as u64,
        characters: text.chars().count() as u64,
        bytes: text.len() as u64,
    }
}

/// The plugin's tools.
#[must_use]
pub fn tools() -> Vec<Tool> {
    let about = "Count the words, lines, characters and bytes of a text. Use it instead of counting by eye: \
                 it is exact. Pass the text itself, not a path.";
    vec![
        Tool::new("count", about, count)
            .title("Count words")
            .returns::<Counts>()
            .read_only()
            .idempotent(),
    ]
}

fief_plugin::export_tools!(tools);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_people_count() {
        let table = [
            ("", (0, 0, 0, 0)),
            ("one", (1, 1, 3, 3)),
            ("one two\nthree\n", (3, 2, 14, 14)),
            ("  \n\t\n", (0, 2, 5, 5)),
            ("naïve café", (2, 1, 10, 12)),
            ("a\u{3000}b", (2, 1, 3, 5)),
            ("one\r\ntwo", (2, 2, 8, 8)),
        ];
        for (text, (words, lines, characters, bytes)) in table {
            assert_eq!(
                counts(text),
                Counts {
                    words,
                    lines,
                    characters,
                    bytes
                },
                "{text:?}"
            );
        }
    }

    #[test]
    fn an_unknown_argument_is_refused_by_name() {
        let error = tools()[0]
            .call(r#"{"text":"a","path":"b"}"#)
            .expect_err("`path` is no argument");
        assert!(error.message().contains("unknown field `path`"), "{error:?}");
    }
}
