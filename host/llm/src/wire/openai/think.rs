//! Thoughts that a server leaves in the text: between `<think>` and `</think>`, at its very beginning.
//!
//! Servers that know a model's template put thoughts into a field of their own; those that do not (LM Studio, older
//! vLLM and Ollama) pass them on as text, from which they would get into reports.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Tells thoughts from text while both come.
#[derive(Debug, Default)]
pub(super) struct Thinking {
    state: State,
    /// What is not decided yet.
    held: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// Nothing but white space, or the beginning of the opening tag, has come.
    #[default]
    Start,
    Thought,
    /// The white space behind the thoughts.
    Gap,
    Text,
}

impl Thinking {
    /// Takes a piece, and appends what is decided to the text or to the thoughts.
    pub(super) fn push(&mut self, piece: &str, text: &mut String, thoughts: &mut String) {
        if self.state == State::Text {
            text.push_str(piece);
            return;
        }
        self.held.push_str(piece);
        if self.state == State::Start {
            let begun = self.held.trim_start();
            if let Some(rest) = begun.strip_prefix(OPEN) {
                self.held = rest.to_owned();
                self.state = State::Thought;
            } else if OPEN.starts_with(begun) {
                return;
            } else {
                self.state = State::Text;
                text.push_str(&std::mem::take(&mut self.held));
                return;
            }
        }
        if self.state == State::Thought {
            match self.held.find(CLOSE) {
                Some(end) => {
                    thoughts.push_str(&self.held[..end]);
                    self.held.drain(..end + CLOSE.len());
                    self.state = State::Gap;
                }
                None => {
                    // The end of what is held may be the beginning of the closing tag.
                    let undecided = (1..CLOSE.len()).rev().find(|length| self.held.ends_with(&CLOSE[..*length]));
                    let decided = self.held.len() - undecided.unwrap_or(0);
                    thoughts.extend(self.held.drain(..decided));
                    return;
                }
            }
        }
        if self.state == State::Gap {
            let rest = self.held.trim_start();
            if !rest.is_empty() {
                text.push_str(rest);
                self.held.clear();
                self.state = State::Text;
            }
        }
    }

    /// Nothing follows.
    pub(super) fn finish(&mut self, text: &mut String, thoughts: &mut String) {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Start | State::Text => text.push_str(&held),
            // Thoughts without an end are thoughts: the answer was cut in them.
            State::Thought => thoughts.push_str(&held),
            State::Gap => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_thoughts_are_told_apart_however_they_are_split() {
        for (whole, expected) in [
            ("plain", ("plain", "")),
            ("", ("", "")),
            (" \n indented", (" \n indented", "")),
            ("<think>hm < 3 </ th</think>\n\nyes", ("yes", "hm < 3 </ th")),
            ("\n<think>\n</think>yes <think>no</think>", ("yes <think>no</think>", "\n")),
            ("say <think>no</think>", ("say <think>no</think>", "")),
            ("<thinking>", ("<thinking>", "")),
            ("<thi", ("<thi", "")),
            ("<think>never ends </thin", ("", "never ends </thin")),
            ("<think>all</think>  ", ("", "all")),
            ("<think>ü🦀</think>é", ("é", "ü🦀")),
        ] {
            for size in 1..=whole.len().max(1) {
                let (mut text, mut thoughts) = (String::new(), String::new());
                let mut thinking = Thinking::default();
                let characters: Vec<char> = whole.chars().collect();
                for piece in characters.chunks(size) {
                    thinking.push(&piece.iter().collect::<String>(), &mut text, &mut thoughts);
                }
                thinking.finish(&mut text, &mut thoughts);
                assert_eq!((text.as_str(), thoughts.as_str()), expected, "{whole} by {size}");
            }
        }
    }
}
