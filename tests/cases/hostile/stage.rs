//! A guest under a grant, called and held to account.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use fief_core::event::{CallNote, CapabilityKind};
use fief_core::grant::{DirGrant, FileMode, Grant, Limits, OriginGrant, SecretGrant};
use fief_core::id::ToolRef;
use fief_core::port::{CallContext, CallSink};
use fief_core::tool::{Invocation, Outcome, OutcomeKind, PluginInfo};
use fief_sandbox::{Options, Sandbox};
use serde_json::{Value, json};

use crate::support::guests;

/// The name and the value of the one secret that the host has.
pub const SECRET: (&str, &str) = ("HARBOUR_TOKEN", "s3cr3t-of+the/harbour?42");

/// Set where the guests run with `[sandbox] pagemap_scan = true`, which is not isolated under memory pressure.
pub const PAGEMAP_SCAN: &str = "FIEF_PAGEMAP_SCAN";

/// Whether they do.
pub fn pagemap_scan() -> bool {
    std::env::var_os(PAGEMAP_SCAN).is_some_and(|value| value == "1")
}

/// One for all tests: each reserves address space for thousands of calls.
pub fn sandbox() -> &'static Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| {
        let secrets = BTreeMap::from([(SECRET.0.to_owned(), SECRET.1.into())]);
        let options = Options {
            store: Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile-store"),
            secrets: Arc::new(secrets),
            pagemap_scan: pagemap_scan(),
        };
        Sandbox::new(options).unwrap()
    })
}

/// A component as a plugin, looked at once.
pub async fn plugin(name: &str) -> Arc<PluginInfo> {
    static FOUND: Mutex<Option<HashMap<String, Arc<PluginInfo>>>> = Mutex::new(None);
    let known = FOUND.lock().unwrap().get_or_insert_default().get(name).cloned();
    if let Some(known) = known {
        return known;
    }
    let path = guests::component(name);
    let file = path.file_stem().unwrap().to_str().unwrap().replace('_', "-");
    // A copy, so that its name is a plugin's and no other file lies beside it.
    let copy = scratch().join(format!("{file}.wasm"));
    std::fs::copy(&path, &copy).unwrap();
    let found = Arc::new(sandbox().inspect(&copy).await.unwrap());
    let mut all = FOUND.lock().unwrap();
    all.get_or_insert_default().insert(name.to_owned(), Arc::clone(&found));
    found
}

/// An empty directory that lasts as long as the build directory does.
pub fn scratch() -> PathBuf {
    let below = Path::new(env!("CARGO_TARGET_TMPDIR"));
    tempfile::Builder::new()
        .prefix("guest")
        .tempdir_in(below)
        .unwrap()
        .keep()
}

/// A guest and what it is granted.
#[derive(Clone)]
pub struct Stage {
    pub plugin: Arc<PluginInfo>,
    pub grant: Grant,
}

impl Stage {
    /// A component that is granted nothing.
    pub async fn new(component: &str) -> Self {
        Self {
            plugin: plugin(component).await,
            grant: Grant::default(),
        }
    }

    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.grant.limits);
        self
    }

    pub fn files(mut self, host: &Path, guest: &str, mode: FileMode, protected: &[&str]) -> Self {
        let host = host.canonicalize().unwrap();
        self.grant.files.push(DirGrant {
            protected: protected.iter().map(|path| host.join(path)).collect(),
            host,
            guest: guest.into(),
            mode,
            rule: format!("test grants `{guest}`").into(),
        });
        self
    }

    /// An origin; `private` says whether it may be on no open network.
    pub fn http(mut self, origin: &str, private: bool) -> Self {
        self.grant.http.push(OriginGrant {
            pattern: origin.parse().unwrap(),
            private,
            metadata: false,
            rule: format!("test grants `{origin}`").into(),
        });
        self
    }

    /// The secret, for an origin.
    pub fn secret(mut self, origin: &str) -> Self {
        self.grant.secrets.push(SecretGrant {
            name: SECRET.0.into(),
            origin: origin.parse().unwrap(),
            header: "authorization".into(),
            format: "Bearer {}".into(),
            rule: format!("test grants the secret for `{origin}`").into(),
        });
        self
    }

    /// One call.
    pub async fn call(&self, tool: &str, arguments: Value) -> Report {
        let linked = sandbox().link(&self.plugin, &self.grant).await.unwrap();
        let notes = Arc::new(Notes::default());
        let outcome = linked.call(self.invocation(tool, arguments), context(&notes)).await;
        Report {
            outcome,
            notes: notes.take(),
        }
    }

    /// One call while another guest's is in flight, which must not notice.
    pub async fn call_beside_another(&self, tool: &str, arguments: Value) -> Report {
        let neighbour = Self::new("tricks").await;
        let neighbour = neighbour.call("sleep_forever", json!({ "ms": 400 }));
        let (report, neighbour) = tokio::join!(self.call(tool, arguments), neighbour);
        neighbour.is(OutcomeKind::Ok, &["slept"]);
        report
    }

    pub fn invocation(&self, tool: &str, arguments: Value) -> Invocation {
        Invocation {
            call: "call_1".into(),
            tool: ToolRef {
                plugin: self.plugin.name.clone(),
                tool: tool.parse().unwrap(),
            },
            arguments: arguments.into(),
        }
    }
}

/// What became of a call.
#[derive(Debug)]
pub struct Report {
    pub outcome: Outcome,
    pub notes: Vec<CallNote>,
}

impl Report {
    /// Fails unless the call ended like this and its text says all of that.
    #[track_caller]
    pub fn is(self, kind: OutcomeKind, says: &[&str]) -> Self {
        let text = self.outcome.text();
        let shown: String = text.chars().take(2_000).collect();
        assert_eq!(self.outcome.kind, kind, "{shown}\n{:?}", self.outcome.detail);
        for says in says {
            assert!(text.contains(says), "`{says}` is not in: {shown}");
        }
        self
    }

    /// Fails unless everything that the guest tried came to nothing.
    #[track_caller]
    pub fn held(self) -> Self {
        let report = self.is(OutcomeKind::Ok, &[]);
        let text = report.outcome.text();
        assert!(!text.is_empty(), "nothing was tried");
        for line in text.lines() {
            assert!(line.starts_with("held "), "{line}\n\nall of it:\n{text}");
        }
        report
    }

    /// Uses of a capability that were refused: target and rule.
    pub fn refused(&self, of: CapabilityKind) -> Vec<(String, String)> {
        self.uses(of, false)
    }

    /// Those that were allowed.
    pub fn allowed(&self, of: CapabilityKind) -> Vec<(String, String)> {
        self.uses(of, true)
    }

    fn uses(&self, of: CapabilityKind, which: bool) -> Vec<(String, String)> {
        let uses = self.notes.iter().filter_map(|note| match note {
            CallNote::Capability {
                kind,
                target,
                allowed,
                rule,
                ..
            } if *kind == of && *allowed == which => Some((target.clone(), rule.clone())),
            _ => None,
        });
        uses.collect()
    }

    /// Fails unless so many uses or more were refused by a rule that says this.
    #[track_caller]
    pub fn refuses(self, of: CapabilityKind, least: usize, rule: &str) -> Self {
        let refused = self.refused(of);
        let count = refused.iter().filter(|(_, by)| by.contains(rule)).count();
        assert!(
            count >= least,
            "{count} refusals say `{rule}`: {refused:#?}\n{}",
            self.outcome.text()
        );
        self
    }
}

/// Keeps the notes of a call.
#[derive(Default)]
pub struct Notes(Mutex<Vec<CallNote>>);

impl Notes {
    pub fn take(&self) -> Vec<CallNote> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl CallSink for Notes {
    fn note(&self, note: CallNote) {
        self.0.lock().unwrap().push(note);
    }
}

pub fn context(notes: &Arc<Notes>) -> CallContext {
    CallContext {
        sink: Arc::clone(notes) as Arc<dyn CallSink>,
        toolbox: None,
        person: None,
    }
}

/// How many times as many calls as the tests make by default: `FIEF_SOAK`.
pub fn soak() -> u64 {
    let times = std::env::var("FIEF_SOAK").ok().map(|times| {
        times
            .parse()
            .unwrap_or_else(|_| panic!("FIEF_SOAK is `{times}`; it is a number"))
    });
    times.unwrap_or(1)
}

pub fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
