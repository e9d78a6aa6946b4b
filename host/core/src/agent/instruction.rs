//! The system prompt's template: a text with a closed set of variables.
//!
//! Archetypes come with repositories, a stranger's too, so that the language is no larger than it must be: variables,
//! `if` on one of them, and `raw`. There is nothing to loop with, nothing that grows, and nothing to call.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, context};

/// The variables that a template may use.
pub const VARIABLES: [&str; 5] = ["date", "working_directory", "parent_task", "archetype", "session"];

/// What the variables stand for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Variables {
    /// Today, such as `2026-12-01`.
    pub date: String,
    /// Where the run started, as guests see it.
    pub working_directory: String,
    /// The task of the agent that starts this one; empty for main.
    pub parent_task: String,
    /// The archetype's name, or `dynamic`.
    pub archetype: String,
    /// The session, such as `explore_1`.
    pub session: String,
}

/// Why a template is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line} of the instruction: {why}")]
pub struct BadTemplate {
    /// From 1, within the instruction.
    pub line: usize,
    /// What is wrong and what would be right.
    pub why: String,
}

/// Checks a template where it is loaded.
///
/// # Errors
/// [`BadTemplate`] for an unknown variable, and for whatever else the language does not have.
pub fn check(template: &str) -> Result<(), BadTemplate> {
    scan(template)?;
    render_checked(template, &Variables::default()).map(drop)
}

/// The system prompt.
///
/// # Errors
/// [`BadTemplate`], as [`check`].
pub fn render(template: &str, variables: &Variables) -> Result<String, BadTemplate> {
    scan(template)?;
    render_checked(template, variables)
}

/// A template that renders to exactly `text`: what a model writes as an instruction is text, not a template.
#[must_use]
pub fn literal(text: &str) -> String {
    let mut template = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = next_tag(rest) {
        let (before, tag) = rest.split_at(at);
        let (tag, after) = tag.split_at(2);
        template.push_str(before);
        template.push_str("{% raw %}");
        template.push_str(tag);
        template.push_str("{% endraw %}");
        rest = after;
    }
    template.push_str(rest);
    template
}

fn next_tag(text: &str) -> Option<usize> {
    ["{{", "{%", "{#"].iter().filter_map(|tag| text.find(tag)).min()
}

fn render_checked(template: &str, variables: &Variables) -> Result<String, BadTemplate> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_syntax(
        SyntaxConfig::builder()
            .keep_trailing_newline(true)
            .build()
            .expect("the default delimiters"),
    );
    let Variables {
        date,
        working_directory,
        parent_task,
        archetype,
        session,
    } = variables;
    environment
        .render_str(
            template,
            context! { date, working_directory, parent_task, archetype, session },
        )
        .map_err(|error| BadTemplate {
            line: error.line().unwrap_or(1),
            why: error.detail().unwrap_or("it does not parse").to_owned(),
        })
}

/// Walks over all tags and refuses those outside the language.
fn scan(template: &str) -> Result<(), BadTemplate> {
    let mut at = 0;
    while let Some(offset) = next_tag(&template[at..]) {
        let start = at + offset;
        let bad = |why: String| BadTemplate {
            line: template[..start].matches('\n').count() + 1,
            why,
        };
        let (open, close) = match &template[start..start + 2] {
            "{{" => ("{{", "}}"),
            "{%" => ("{%", "%}"),
            _ => ("{#", "#}"),
        };
        let body = &template[start + 2..];
        let end = body
            .find(close)
            .ok_or_else(|| bad(format!("`{open}` has no `{close}`: {HINT}")))?;
        let inner = body[..end].trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace());
        at = start + 2 + end + 2;
        match open {
            "{{" => variable(inner).map_err(bad)?,
            "{%" if inner == "raw" => {
                at = after_raw(template, at).ok_or_else(|| bad("`raw` has no `endraw`".into()))?;
            }
            "{%" => statement(inner).map_err(bad)?,
            _ => {}
        }
    }
    Ok(())
}

const HINT: &str = "write literal braces as `{% raw %}{{{% endraw %}`";

fn variable(name: &str) -> Result<(), String> {
    if VARIABLES.contains(&name) {
        return Ok(());
    }
    let shown: String = name.chars().take(40).collect();
    Err(format!(
        "`{shown}` is not a variable: they are `{}`\n{HINT}",
        VARIABLES.join("`, `")
    ))
}

fn statement(inner: &str) -> Result<(), String> {
    let words: Vec<&str> = inner.split_whitespace().collect();
    match words.as_slice() {
        ["else" | "endif"] => Ok(()),
        ["if" | "elif", name] | ["if" | "elif", "not", name] => variable(name),
        _ => {
            let shown: String = inner.chars().take(40).collect();
            Err(format!(
                "`{{% {shown} %}}` is not allowed: there are `if`, `if not`, `elif`, `else`, `endif`, `raw` and `endraw`"
            ))
        }
    }
}

/// Where the text goes on after the `endraw` that ends a `raw` at `from`.
fn after_raw(template: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let start = at + template[at..].find("{%")?;
        let body = &template[start + 2..];
        let word = body.trim_start_matches(['-', '+']).trim_start();
        if let Some(rest) = word.strip_prefix("endraw") {
            let rest = rest.trim_start().trim_start_matches(['-', '+']);
            if let Some(rest) = rest.strip_prefix("%}") {
                return Some(template.len() - rest.len());
            }
        }
        at = start + 2;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn variables() -> Variables {
        Variables {
            date: "2026-12-01".into(),
            working_directory: "/work".into(),
            parent_task: "find {{ it }}".into(),
            archetype: "explore".into(),
            session: "explore_1".into(),
        }
    }

    #[test]
    fn variables_are_filled_in_and_never_read_as_templates() {
        let text = render(
            "{# why #}Today {{ date }} in {{working_directory}}.{% if parent_task %} For: {{ parent_task }}{% else %}-{% endif %}\n",
            &variables(),
        );
        assert_eq!(text.unwrap(), "Today 2026-12-01 in /work. For: find {{ it }}\n");
    }

    #[test]
    fn what_the_language_lacks_is_an_error_with_its_line() {
        for (template, line, why) in [
            ("a\n{{ dat }}", 2, "`dat` is not a variable"),
            ("{{ date | upper }}", 1, "is not a variable"),
            ("{{ date * 1000000000 }}", 1, "is not a variable"),
            ("{% for a in b %}{% endfor %}", 1, "is not allowed"),
            ("{% set a = date ~ date %}", 1, "is not allowed"),
            ("{% include 'x' %}", 1, "is not allowed"),
            ("\n\n{{ date", 3, "has no `}}`"),
            ("{% raw %} {{ x }}", 1, "no `endraw`"),
            ("{% if secret %}{% endif %}", 1, "`secret` is not a variable"),
            ("{% if date %}", 1, ""),
        ] {
            let error = check(template).unwrap_err();
            assert_eq!(error.line, line, "{template}");
            assert!(error.why.contains(why), "{template}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_literal_renders_to_itself(text in "([{}%#a\n -]|raw|endraw|date){0,30}") {
            proptest::prop_assert_eq!(render(&literal(&text), &variables()).unwrap(), text);
        }

        #[test]
        fn no_template_panics(text in "([{}%#a\n -]|raw|endraw|if|date|é){0,30}") {
            let _ = render(&text, &variables());
        }
    }
}
