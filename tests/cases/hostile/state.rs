//! What a guest learns of the host, and what one call leaves for the next: nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use fief_core::tool::OutcomeKind::{Ok, Trap};
use serde_json::json;

use super::stage::{Notes, Stage, context, ms, pagemap_scan, sandbox, soak};

/// Calls that each look for what an earlier one wrote; about ten seconds in a development build on two cores. With
/// `FIEF_SOAK=250` it is a million.
const CALLS: u64 = 4_000;

async fn tricks() -> Stage {
    Stage::new("tricks").await
}

pub async fn host_secrets() {
    tricks()
        .await
        .call("host_secrets", json!({}))
        .await
        .is(Ok, &["0 variables, 0 arguments, 0 directories, directory None"]);
}

pub async fn read_stdin() {
    let stage = tricks().await.limits(|limits| limits.wall = ms(5_000));
    stage.call("read_stdin", json!({})).await.is(Ok, &["Ok(0)"]);
}

pub async fn start_thread() {
    tricks().await.call("start_thread", json!({})).await.held();
}

pub async fn forge_handle() {
    for number in [0, 1, 2, 100, 0x7fff_ffff, u32::MAX] {
        let report = tricks().await.call("forge_handle", json!({ "number": number })).await;
        report.is(Trap, &["`tricks.forge_handle`"]);
    }
}

/// Pages of memory that a call grows: a call that takes little comes after one that took much, and before another.
const PAGES: [u64; 8] = [16, 1, 64, 16, 4, 16, 32, 2];
/// What every 64th takes.
const MANY_PAGES: u64 = 512;

pub async fn remember() {
    let stage = tricks().await;
    let linked = sandbox().link(&stage.plugin, &stage.grant).await.unwrap();
    let calls = CALLS * soak();
    let compaction = Compaction::start();
    // Several at once, so that each place of the pool serves many, in another order each time.
    let workers = (0..4).map(|_| {
        let (stage, linked) = (stage.clone(), linked.clone());
        tokio::spawn(async move {
            let mut handle = None;
            for call in 0..calls / 4 {
                let pages = if call % 64 == 63 {
                    MANY_PAGES
                } else {
                    PAGES[(call % 8) as usize]
                };
                let notes = Arc::<Notes>::default();
                let outcome = linked
                    .call(stage.invocation("remember", json!({ "pages": pages })), context(&notes))
                    .await;
                let text = outcome.text();
                assert!(text.starts_with("found nothing, "), "{text}");
                // What the host keeps for a call is numbered as in the call before.
                assert_eq!(handle.get_or_insert_with(|| text.clone()), &text);
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    eprintln!("{calls} calls, memory compacted {} times", compaction.stop());
}

/// Has the kernel move pages about while the calls run, where this process may ask for it: what a pool takes for empty,
/// because it is not where it was, must be empty all the same.
struct Compaction {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Compaction {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut times = 0;
            // With `pagemap_scan` just this is what is not promised.
            while !pagemap_scan()
                && !stopped.load(Ordering::Relaxed)
                && std::fs::write("/proc/sys/vm/compact_memory", "1").is_ok()
            {
                times += 1;
                std::thread::sleep(ms(100));
            }
            times
        });
        Self { stop, thread }
    }

    fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}
