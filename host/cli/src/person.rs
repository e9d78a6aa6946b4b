//! The person at the terminal.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use fief::{Consent, Question};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::render::text::{Paint, sanitise};

/// A way to ask, if somebody is there: both standard input and standard error are a terminal.
pub(crate) fn questions() -> (Option<UnboundedSender<Question>>, UnboundedReceiver<Question>) {
    let (sender, receiver) = unbounded_channel();
    let there = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    (there.then_some(sender), receiver)
}

/// Asks and answers. What is neither yes nor always is no.
pub(crate) async fn answer(question: Question) {
    let paint = Paint::for_stderr();
    let choices = if question.can_be_always {
        "[o]nce, [a]lways, [N]o"
    } else {
        "[y]es, [N]o"
    };
    {
        let mut err = std::io::stderr().lock();
        let _ = write!(err, "{} {}\n{choices}: ", paint.yellow("?"), sanitise(&question.text));
        let _ = err.flush();
    }
    let line = tokio::task::spawn_blocking(read_line)
        .await
        .ok()
        .flatten()
        .unwrap_or_default();
    let consent = match line.trim().to_ascii_lowercase().as_str() {
        "o" | "once" | "y" | "yes" => Consent::Once,
        "a" | "always" if question.can_be_always => Consent::Always,
        _ => Consent::No,
    };
    let _ = question.reply.send(consent);
}

/// One line of standard input; none at its end.
pub(crate) fn read_line() -> Option<String> {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line),
    }
}
