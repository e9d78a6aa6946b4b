//! Asking the person who watches. Where nobody watches, the answer is no.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use fief_core::id::SessionId;
use fief_core::port::{BoxFuture, Person};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// What a person is asked. Dropping it unanswered is a no.
#[derive(Debug)]
pub struct Question {
    /// Who asks for what, on one line, in the host's own words.
    pub text: String,
    /// What a guest or a model says to it, such as the arguments of a call. To be shown so that no line of it passes
    /// for one of the host's, and without what a terminal would obey.
    pub words: String,
    /// Whether `Always` is one of the answers.
    pub can_be_always: bool,
    /// Takes the answer.
    pub reply: oneshot::Sender<Consent>,
}

/// What a person answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Consent {
    /// This once.
    Once,
    /// For the rest of the run.
    Always,
    /// No.
    No,
}

/// The way to the person, one for a run.
#[derive(Debug, Default)]
pub struct Asker {
    questions: Option<mpsc::UnboundedSender<Question>>,
    always: Mutex<BTreeSet<String>>,
    /// One question at a time: a person reads one.
    turn: tokio::sync::Mutex<()>,
}

impl Asker {
    /// A way to whoever reads `questions`; without it nobody is there.
    #[must_use]
    pub fn new(questions: Option<mpsc::UnboundedSender<Question>>) -> Arc<Self> {
        Arc::new(Self {
            questions,
            ..Self::default()
        })
    }

    /// Asks whether `session` may call `tool` with `arguments`, unless it was allowed for the whole run before.
    pub(crate) async fn consent(&self, session: &SessionId, tool: &str, arguments: &Value) -> bool {
        let _turn = self.turn.lock().await;
        if self.lock().contains(tool) {
            return true;
        }
        let text = format!("`{session}` wants to call `{tool}`");
        match self.ask(text, shown(arguments), true).await {
            Consent::Once => true,
            Consent::Always => {
                self.lock().insert(tool.to_owned());
                true
            }
            Consent::No => false,
        }
    }

    async fn ask(&self, text: String, words: String, can_be_always: bool) -> Consent {
        let Some(questions) = &self.questions else {
            return Consent::No;
        };
        let (reply, answer) = oneshot::channel();
        if questions
            .send(Question {
                text,
                words,
                can_be_always,
                reply,
            })
            .is_err()
        {
            return Consent::No;
        }
        answer.await.unwrap_or(Consent::No)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.always.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The person as one plugin of one session reaches them.
pub(crate) struct Visitor {
    pub(crate) asker: Arc<Asker>,
    pub(crate) from: String,
}

impl Person for Visitor {
    fn confirm(&self, question: String) -> BoxFuture<'static, bool> {
        let asker = self.asker.clone();
        let text = format!("{} asks", self.from);
        Box::pin(async move {
            let _turn = asker.turn.lock().await;
            asker.ask(text, question, false).await != Consent::No
        })
    }
}

/// Arguments that a question shows, and characters of each: what fits a screen, so that who asks stays in sight.
const ARGUMENTS: usize = 16;
const CHARACTERS: usize = 400;

/// Arguments for a person: each on a line of its own, as JSON writes it, so that no value holds a line's end; long ones
/// cut, with how much is missing.
fn shown(arguments: &Value) -> String {
    let Value::Object(arguments) = arguments else {
        return cut(&arguments.to_string());
    };
    let mut lines: Vec<String> = arguments
        .iter()
        .take(ARGUMENTS)
        .map(|(name, value)| {
            let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
            let name = if plain {
                name.clone()
            } else {
                Value::from(name.as_str()).to_string()
            };
            format!("{}: {}", cut(&name), cut(&value.to_string()))
        })
        .collect();
    if arguments.len() > ARGUMENTS {
        lines.push(format!("… (+{} arguments)", arguments.len() - ARGUMENTS));
    }
    lines.join("\n")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(CHARACTERS) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… (+{} characters)", &text[..at], text[at..].chars().count()),
    }
}

/// Whether policy's `ask` names this tool, as `PLUGIN.TOOL` or `PLUGIN.*`.
pub(crate) fn is_asked_for(patterns: &[String], tool: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix(".*") {
        Some(plugin) => tool.split_once('.').is_some_and(|(of, _)| of == plugin),
        None => pattern == tool || pattern == "*",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn patterns_name_a_tool_or_a_whole_plugin() {
        let patterns = ["files.write".to_owned(), "web.*".to_owned()];
        for (tool, asked) in [
            ("files.write", true),
            ("files.read", false),
            ("web.fetch", true),
            ("webby.fetch", false),
            ("web", false),
        ] {
            assert_eq!(is_asked_for(&patterns, tool), asked, "{tool}");
        }
    }

    #[tokio::test]
    async fn nobody_there_is_no() {
        let nobody = Asker::new(None);
        assert!(!nobody.consent(&SessionId::main(), "files.write", &json!({})).await);
        let (sender, receiver) = mpsc::unbounded_channel();
        drop(receiver);
        assert!(
            !Asker::new(Some(sender))
                .consent(&SessionId::main(), "files.write", &json!({}))
                .await
        );
    }

    #[tokio::test]
    async fn always_is_for_that_tool_and_once_for_that_call() {
        let (sender, mut questions) = mpsc::unbounded_channel();
        let asker = Asker::new(Some(sender));
        let person = tokio::spawn(async move {
            let mut asked = Vec::new();
            for answer in [Some(Consent::Once), Some(Consent::Always), None] {
                let Some(question) = questions.recv().await else {
                    break;
                };
                let Question { text, words, reply, .. } = question;
                asked.push(format!("{text}\n{words}"));
                if let Some(answer) = answer {
                    let _ = reply.send(answer);
                }
            }
            asked
        });
        let main = SessionId::main();
        for (tool, allowed) in [
            ("files.write", true),
            ("files.write", true),
            ("files.write", true),
            ("files.edit", false),
        ] {
            assert_eq!(
                asker.consent(&main, tool, &json!({ "path": "a" })).await,
                allowed,
                "{tool}"
            );
        }
        let asked = person.await.expect("the person does not panic");
        assert_eq!(asked.len(), 3, "the third call was allowed for good: {asked:?}");
        assert_eq!(asked[0], "`main` wants to call `files.write`\npath: \"a\"");
    }

    #[test]
    fn arguments_are_shown_a_line_each_and_no_longer_than_a_screen() {
        assert_eq!(shown(&json!({})), "");
        assert_eq!(
            shown(&json!({ "a": "x\ny", "b\nallow": [1, null] })),
            "a: \"x\\ny\"\n\"b\\nallow\": [1,null]"
        );
        let long = shown(&json!({ "content": "é".repeat(1_000) }));
        assert!(long.ends_with("é… (+602 characters)"), "{long}");
        let many: serde_json::Map<String, Value> = (0..40).map(|i| (format!("k{i}"), json!(i))).collect();
        let many = shown(&Value::Object(many));
        assert_eq!(many.lines().count(), 17);
        assert!(many.ends_with("… (+24 arguments)"), "{many}");
    }
}
