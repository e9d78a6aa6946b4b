//! What a misspelt name was probably meant to be.

/// Longer names are nobody's slip of the finger, and comparing them costs the product of both lengths.
const LONGEST: usize = 96;

/// The one of `choices` that `name` was probably meant to be, if any is near enough.
///
/// Names are compared without regard to case, `-` and `_`. Near is a third of the longer name in insertions,
/// deletions, substitutions and swaps; failing that, one name that is a whole part of the other (`read` of
/// `files.read`). Of several that are as near the first wins.
///
/// ```
/// assert_eq!(fief_core::nearest("max_turn", ["name", "max_turns"]), Some("max_turns"));
/// assert_eq!(fief_core::nearest("colour", ["name", "max_turns"]), None);
/// ```
#[must_use]
pub fn nearest<'a>(name: &str, choices: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = fold(name);
    if wanted.is_empty() || name.len() > LONGEST {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for choice in choices {
        if let Some(distance) = distance(&wanted, &fold(choice))
            && best.is_none_or(|(least, _)| distance < least)
        {
            best = Some((distance, choice));
        }
    }
    best.map(|(_, choice)| choice)
}

/// How far `choice` is, absent if it is too far. A part counts as farther than any misspelling.
fn distance(wanted: &str, choice: &str) -> Option<usize> {
    if choice.is_empty() || choice.len() > LONGEST {
        return None;
    }
    let longer = wanted.chars().count().max(choice.chars().count());
    let edits = strsim::damerau_levenshtein(wanted, choice);
    if edits == 0 || (edits <= (longer / 3).max(1) && edits < longer) {
        return Some(edits);
    }
    let part = |whole: &str, part: &str| part.len() >= 3 && whole.split('.').any(|piece| piece == part);
    let holds = wanted.len() >= 4 && choice.len() >= 4 && (wanted.contains(choice) || choice.contains(wanted));
    (part(choice, wanted) || part(wanted, choice) || holds).then_some(LONGEST + longer - wanted.len().min(choice.len()))
}

fn fold(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}

/// The hint for an unknown `name`: the nearest of `choices`, else all of them, else that there is none.
///
/// `what` is their plural: `tools`, `archetypes`, `keys`.
#[must_use]
pub fn suggestion<'a>(name: &str, what: &str, choices: impl IntoIterator<Item = &'a str> + Clone) -> String {
    /// More than these fill a screen without helping.
    const SHOWN: usize = 40;
    if let Some(near) = nearest(name, choices.clone()) {
        return format!("did you mean `{near}`?");
    }
    let mut all = choices.into_iter();
    let shown: Vec<String> = all.by_ref().take(SHOWN).map(|choice| format!("`{choice}`")).collect();
    match (shown.is_empty(), all.count()) {
        (true, _) => format!("there are no {what}"),
        (false, 0) => format!("the {what} are {}", shown.join(", ")),
        (false, rest) => format!("the {what} are {} and {rest} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let choices = [
            "tools",
            "max_turns",
            "description",
            "files.read",
            "files.grep",
            "web.fetch",
        ];
        for (name, expected) in [
            ("tool", Some("tools")),
            ("max-turn", Some("max_turns")),
            ("maxTurns", Some("max_turns")),
            ("desciption", Some("description")),
            ("files.raed", Some("files.read")),
            ("Read", Some("files.read")),
            ("fetch", Some("web.fetch")),
            ("colour", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(name, choices), expected, "{name}");
        }
        assert_eq!(nearest(&"a".repeat(1_000_000), choices), None);
    }

    #[test]
    fn lists_the_choices_where_none_is_near() {
        assert_eq!(suggestion("tool", "keys", ["tools"]), "did you mean `tools`?");
        assert_eq!(
            suggestion("x", "keys", ["tools", "name"]),
            "the keys are `tools`, `name`"
        );
        assert_eq!(suggestion("x", "keys", []), "there are no keys");
        let many: Vec<String> = (0..50).map(|n| format!("tool-number-{n}")).collect();
        assert!(suggestion("x", "tools", many.iter().map(String::as_str)).ends_with("and 10 more"));
    }
}
