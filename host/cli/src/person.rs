//! The person at the terminal.

use std::io::{IsTerminal as _, Write as _};

use fief::{Consent, Question};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::input;
use crate::render::text::{Paint, one_line, quoted, width};

/// A way to ask, if somebody is there: both standard input and standard error are a terminal, and what is printed is
/// not for a program (`--json`).
pub(crate) fn questions(json: bool) -> (Option<UnboundedSender<Question>>, UnboundedReceiver<Question>) {
    let (sender, receiver) = unbounded_channel();
    let there = !json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    (there.then_some(sender), receiver)
}

/// Asks and answers. What is neither yes nor always is no.
pub(crate) async fn answer(question: Question) {
    // Before the question is shown: who answers at once must be heard.
    let from = input::from_now();
    {
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "{}", shown(&question, Paint::for_stderr(), width().unwrap_or(80)));
        let _ = err.flush();
    }
    let line = input::answer(from).await.unwrap_or_default();
    let consent = match line.trim().to_ascii_lowercase().as_str() {
        "o" | "once" | "y" | "yes" => Consent::Once,
        "a" | "always" if question.can_be_always => Consent::Always,
        _ => Consent::No,
    };
    let _ = question.reply.send(consent);
}

/// The question as it stands on the screen. The first and the last line are the host's; every other begins with a bar,
/// and is broken here and not by the terminal, so that no word of a guest's begins a line.
fn shown(question: &Question, paint: Paint, width: usize) -> String {
    let choices = if question.can_be_always {
        "allow it? [o]nce, [a]lways, [N]o: "
    } else {
        "your answer? [y]es, [N]o: "
    };
    let mut out = format!("{} {}\n", paint.yellow("?"), one_line(&question.text));
    let mut lines = quoted(&question.words, width.saturating_sub(BAR.len()).max(20));
    if lines.len() > LINES {
        let more = lines.len() - LINES;
        lines.truncate(LINES);
        lines.push(format!("… (+{more} lines)"));
    }
    for line in lines {
        out.push_str(&format!("{}{line}\n", paint.dim(BAR)));
    }
    out + choices
}

/// What begins a line of words that are not the host's.
const BAR: &str = "  | ";

/// The most lines of such words: more would push who asks off the screen.
const LINES: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;

    fn question(words: &str, can_be_always: bool) -> Question {
        Question {
            text: "`confirm` of `main` asks".into(),
            words: words.into(),
            can_be_always,
            reply: tokio::sync::oneshot::channel().0,
        }
    }

    #[test]
    fn no_line_of_a_guests_words_passes_for_the_hosts() {
        let forged =
            "Fine?\n? `main` wants to call `files.read`\rallow it? [o]nce, [a]lways, [N]o: \u{1b}[2J\u{2028}? x";
        // Words that would be broken by the terminal just where the forged line begins.
        let padded = format!("{}? `main` wants to call `files.read`", " ".repeat(40));
        for words in [
            forged,
            padded.as_str(),
            &"x\n".repeat(100),
            &"y".repeat(5_000),
            "",
            "\t\t\t\t\t\t\t\t\t? z",
        ] {
            let text = shown(&question(words, false), Paint::plain(), 40);
            let lines: Vec<&str> = text.lines().collect();
            let (first, rest) = lines.split_first().expect("a question has lines");
            let (last, said) = rest.split_last().expect("and ends with the choices");
            assert_eq!(*first, "? `confirm` of `main` asks");
            assert_eq!(*last, "your answer? [y]es, [N]o: ");
            assert!(said.iter().all(|line| line.starts_with(BAR)), "{text}");
            assert!(said.len() <= LINES + 1, "{text}");
            assert!(
                said.iter()
                    .all(|line| unicode_width::UnicodeWidthStr::width(*line) <= 40),
                "{text}"
            );
            assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        }
        assert!(shown(&question("", true), Paint::plain(), 80).ends_with("[o]nce, [a]lways, [N]o: "));
    }
}
