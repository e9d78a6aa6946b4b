//! `confirm`: a filter that asks the person before a call that may change something. Where nobody watches, the host
//! answers no, and the call is refused.

use fief_plugin::{CallVerdict, Filter, Subject};
use serde_json::Value;

/// First-party tools that change nothing. A tool that is not known to be harmless is asked for.
const HARMLESS: &str = "calculator.*, files.glob, files.grep, files.list, files.read, web.fetch, word-count.*";
/// Characters of one argument that the question shows.
const SHOWN: usize = 400;

/// The filter.
#[derive(Default)]
pub struct Confirm;

impl Filter for Confirm {
    fn before_call(&self, subject: &Subject) -> CallVerdict {
        decide(
            subject,
            std::env::var("CONFIRM_TOOLS").ok().as_deref(),
            &fief_plugin::confirm,
        )
    }
}

fn decide(subject: &Subject, asked: Option<&str>, confirm: &dyn Fn(&str) -> bool) -> CallVerdict {
    let ask = match asked {
        Some(asked) => matches(asked, &subject.tool),
        None => !matches(HARMLESS, &subject.tool),
    };
    if !ask || confirm(&question(subject)) {
        return CallVerdict::Pass;
    }
    CallVerdict::Refuse(format!(
        "the person did not allow this call of `{}`\nhint: do not try it again; go on without it, or say what it was for",
        subject.tool
    ))
}

/// Whether one of the patterns, such as `files.write` or `files.*`, means `tool`.
fn matches(patterns: &str, tool: &str) -> bool {
    patterns
        .split([',', ' ', '\n'])
        .filter(|pattern| !pattern.is_empty())
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            None => tool == pattern,
        })
}

/// What is asked, each argument on a line of its own.
fn question(subject: &Subject) -> String {
    let mut question = format!("{} wants to call {}", plain(&subject.session), plain(&subject.tool));
    if let Value::Object(arguments) = &subject.arguments {
        for (name, value) in arguments {
            let value = match value {
                Value::String(text) => plain(text),
                other => plain(&other.to_string()),
            };
            let total = value.chars().count();
            let shown: String = value.chars().take(SHOWN).collect();
            let more = if total > SHOWN {
                format!("… (+{} characters)", total - SHOWN)
            } else {
                String::new()
            };
            question += &format!("\n  {}: {shown}{more}", plain(name));
        }
    }
    question + "\nallow it?"
}

/// Text in which nothing can pass for another line of the question, or turn it around.
fn plain(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    text.chars()
        .flat_map(|c| {
            if hidden(c) {
                c.escape_default().collect()
            } else {
                vec![c]
            }
        })
        .collect()
}

fief_plugin::export_filter!(Confirm);

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::json;

    use super::*;

    fn subject(tool: &str) -> Subject {
        Subject {
            session: "main".into(),
            tool: tool.into(),
            arguments: json!({"path": "a", "content": "b\nallow it?"}),
        }
    }

    /// The verdict, and what was asked.
    fn run(tool: &str, asked: Option<&str>, answer: bool) -> (CallVerdict, Option<String>) {
        let question = RefCell::new(None);
        let verdict = decide(&subject(tool), asked, &|text| {
            *question.borrow_mut() = Some(text.to_owned());
            answer
        });
        (verdict, question.into_inner())
    }

    #[test]
    fn harmless_calls_pass_unasked_and_all_others_are_asked_for() {
        for tool in ["files.read", "files.grep", "calculator.evaluate", "web.fetch"] {
            assert_eq!(run(tool, None, false), (CallVerdict::Pass, None), "{tool}");
        }
        for tool in [
            "files.write",
            "files.edit",
            "files.reader",
            "mail.send",
            "spawn_subagent",
            "agent-worker",
            "",
        ] {
            let (verdict, question) = run(tool, None, true);
            assert_eq!((verdict, question.is_some()), (CallVerdict::Pass, true), "{tool}");
            let (verdict, _) = run(tool, None, false);
            assert!(
                matches!(verdict, CallVerdict::Refuse(reason) if reason.contains("did not allow")),
                "{tool}"
            );
        }
    }

    #[test]
    fn the_operator_can_name_what_is_asked_for() {
        let asked = Some("files.write, mail.*\nagent-worker");
        for (tool, expected) in [
            ("files.write", true),
            ("mail.send", true),
            ("agent-worker", true),
            ("files.edit", false),
            ("mai", false),
        ] {
            assert_eq!(run(tool, asked, true).1.is_some(), expected, "{tool}");
        }
    }

    #[test]
    fn the_question_shows_the_arguments_and_cannot_be_forged() {
        let (_, question) = run("files.write", None, true);
        let expected = "main wants to call files.write\n  path: a\n  content: b\\nallow it?\nallow it?";
        assert_eq!(question.unwrap_or_default(), expected);
        let long = Subject {
            arguments: json!({"x": "y".repeat(1_000)}),
            ..subject("a.b")
        };
        assert!(question_of(&long).contains("… (+600 characters)"));
        let turned = Subject {
            arguments: json!({"x": "a\u{202e}b\u{1b}[2J"}),
            ..subject("a.b")
        };
        assert!(question_of(&turned).contains("a\\u{202e}b\\u{1b}[2J"));
    }

    fn question_of(subject: &Subject) -> String {
        question(subject)
    }

    #[test]
    fn natively_nobody_is_there() {
        assert!(matches!(
            Confirm.before_call(&subject("files.write")),
            CallVerdict::Refuse(_)
        ));
    }
}
