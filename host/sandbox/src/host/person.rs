//! `fief:plugin/person`: a yes-or-no question to whoever watches.

use fief_core::event::CapabilityKind;

use crate::bindings::person;
use crate::instance::Guest;

/// The longest question, in bytes: what fits a terminal's screen.
const QUESTION: usize = 2_000;

impl person::Host for Guest {
    async fn confirm(&mut self, question: String) -> wasmtime::Result<bool> {
        let Some(asked) = &self.person else {
            self.audit
                .refused(CapabilityKind::Person, &question, "nobody can be asked here");
            return Ok(false);
        };
        if question.len() > QUESTION {
            let rule = format!("a question is at most {QUESTION} bytes");
            self.audit.refused(CapabilityKind::Person, &question, &rule);
            return Ok(false);
        }
        self.audit.allowed(CapabilityKind::Person, &question, "grant `person`");
        // People think for longer than a call may take, so that the clock stands still meanwhile.
        let paused = self.clock.pause();
        let answer = asked.confirm(question).await;
        drop(paused);
        Ok(answer)
    }
}
