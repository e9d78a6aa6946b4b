//! The audit of one call: each use of a capability, allowed or refused, with what decided.
//!
//! Only the host writes it: a guest's own log lines are notes of another kind, and nothing here is linked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fief_core::event::{CallNote, CapabilityKind};
use fief_core::port::CallSink;

/// Refusals told one by one; a guest that goes on trying is not to flood the event stream.
const TOLD_REFUSALS: u64 = 256;
/// The longest target that is told, in bytes.
const TARGET: usize = 1_024;

/// Collects the uses of one call. A refused use is reported at once; allowed ones once a kind and rule, with their
/// number, when the call ends and this is dropped.
pub(crate) struct Audit {
    sink: Arc<dyn CallSink>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    allowed: Vec<Allowed>,
    refusals: u64,
}

struct Allowed {
    kind: CapabilityKind,
    rule: String,
    /// The first of them.
    target: String,
    count: u64,
}

impl Audit {
    pub(crate) fn new(sink: Arc<dyn CallSink>) -> Self {
        Self {
            sink,
            state: Mutex::default(),
        }
    }

    /// Takes note of a use that `rule` allows.
    pub(crate) fn allowed(&self, kind: CapabilityKind, target: &str, rule: &str) {
        let mut state = self.state();
        match state
            .allowed
            .iter_mut()
            .find(|use_| use_.kind == kind && use_.rule == rule)
        {
            Some(use_) => use_.count += 1,
            None => state.allowed.push(Allowed {
                kind,
                rule: rule.into(),
                target: shortened(target),
                count: 1,
            }),
        }
    }

    /// Reports a use that `rule` refuses.
    pub(crate) fn refused(&self, kind: CapabilityKind, target: &str, rule: &str) {
        let refusals = {
            let mut state = self.state();
            state.refusals += 1;
            state.refusals
        };
        if refusals <= TOLD_REFUSALS {
            self.sink.note(CallNote::Capability {
                kind,
                target: shortened(target),
                allowed: false,
                rule: rule.into(),
                count: None,
            });
        } else if refusals == TOLD_REFUSALS + 1 {
            self.sink.note(CallNote::Log {
                level: "warn",
                message: format!("more than {TOLD_REFUSALS} uses were refused; the rest is not told one by one"),
            });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for Allowed {
            kind,
            rule,
            target,
            count,
        } in std::mem::take(&mut state.allowed)
        {
            self.sink.note(CallNote::Capability {
                kind,
                target,
                allowed: true,
                rule,
                count: Some(count),
            });
        }
    }
}

fn shortened(target: &str) -> String {
    if target.len() <= TARGET {
        return target.into();
    }
    format!("{}…", &target[..target.floor_char_boundary(TARGET)])
}
