//! Calls that end badly leave nothing behind: no memory, map, place of the pool, thread, open file or task. Measured in
//! a process of its own, where nothing else runs.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::json;

use super::server::Server;
use super::stage::{Notes, Stage, context, ms, sandbox, soak};

/// Rounds of calls; a round is [`AT_ONCE`] of each kind. With `FIEF_SOAK=25` they are ten thousand calls, more than
/// the pool has places, so that a place that is lost is missed.
const ROUNDS: u64 = 6;
/// Calls of each kind at once.
const AT_ONCE: usize = 8;
/// What the process may have grown by, in bytes, for what allocators keep.
const SLACK: u64 = 24 << 20;

/// One way to end badly: a tool, and when whoever asked stops waiting for it.
struct Kind {
    stage: Stage,
    tool: &'static str,
    arguments: serde_json::Value,
    cancelled: Option<Duration>,
}

async fn kinds(server: &Server, directory: &std::path::Path) -> Vec<Kind> {
    let tricks = Stage::new("tricks").await;
    let short = |change: fn(&mut fief_core::grant::Limits)| tricks.clone().limits(change);
    let with = |stage: Stage, tool| Kind {
        stage,
        tool,
        arguments: json!({}),
        cancelled: None,
    };
    let endless = Stage::new("egress").await.http(&server.origin(), true);
    let files = tricks
        .clone()
        .files(directory, "/work", fief_core::grant::FileMode::Read, &[]);
    vec![
        with(tricks.clone(), "run_into_unreachable"),
        with(tricks.clone(), "exit_one"),
        with(short(|limits| limits.cpu = ms(2)), "spin"),
        with(short(|limits| limits.wall = ms(5)), "sleep_forever"),
        with(short(|limits| limits.wall = ms(5)), "poll_for_ever"),
        with(short(|limits| limits.memory = 8 << 20), "grow_memory"),
        with(short(|limits| limits.handles = 50), "hold_handles"),
        with(files, "many_entries"),
        Kind {
            cancelled: Some(ms(5)),
            ..with(tricks.clone(), "spin")
        },
        Kind {
            cancelled: Some(ms(5)),
            ..with(tricks, "poll_for_ever")
        },
        Kind {
            cancelled: Some(ms(30)),
            arguments: json!({ "authority": server.authority() }),
            ..with(endless, "endless_response")
        },
    ]
}

async fn round(kinds: &[Kind]) {
    let calls = kinds.iter().flat_map(|kind| std::iter::repeat_n(kind, AT_ONCE));
    let calls = calls.map(|kind| async move {
        let linked = sandbox().link(&kind.stage.plugin, &kind.stage.grant).await.unwrap();
        let notes = Arc::<Notes>::default();
        let call = linked.call(
            kind.stage.invocation(kind.tool, kind.arguments.clone()),
            context(&notes),
        );
        match kind.cancelled {
            Some(after) => assert!(tokio::time::timeout(after, call).await.is_err(), "{} ended", kind.tool),
            None => drop(call.await),
        }
    });
    join_all(calls).await;
}

/// What the process holds, as the kernel and the runtime count it.
#[derive(Clone, Copy, Debug)]
struct Held {
    resident: u64,
    threads: u64,
    files: usize,
    maps: usize,
    tasks: usize,
}

impl Held {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let number = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
        };
        Self {
            resident: number("VmRSS:") << 10,
            threads: number("Threads:"),
            files: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            maps: std::fs::read_to_string("/proc/self/maps").unwrap().lines().count(),
            tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
        }
    }

    /// Whether this is no more than what was held before; a map may be split by what an allocator returned.
    fn within(&self, before: &Self) -> bool {
        self.resident <= before.resident + SLACK
            && self.threads <= before.threads
            && self.files <= before.files
            && self.maps <= before.maps + 200
            && self.tasks <= before.tasks
    }
}

#[test]
fn calls_that_end_badly_leave_nothing_behind() {
    if !std::path::Path::new("/proc/self/status").exists() {
        return crate::support::skip(
            "calls_that_end_badly_leave_nothing_behind",
            "this system has no `/proc`",
        );
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile::leaks::measured", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "is run by `calls_that_end_badly_leave_nothing_behind`, in a process of its own"]
async fn measured() {
    let server = Server::start("example.com").await;
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "x").unwrap();
    let kinds = kinds(&server, directory.path()).await;
    // What is made once and kept: threads, compiled code, the first places of the pool.
    for _ in 0..2 {
        round(&kinds).await;
    }
    tokio::time::sleep(ms(500)).await;
    let before = Held::now();
    for _ in 0..ROUNDS * soak() {
        round(&kinds).await;
    }
    // A task that was told to stop does so when it is next run, and a thread for blocking work ends after ten idle seconds.
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        let after = Held::now();
        if after.within(&before) {
            eprintln!("before: {before:?}\nafter:  {after:?}");
            break;
        }
        assert!(Instant::now() < patience, "\nbefore: {before:?}\nafter:  {after:?}");
        tokio::time::sleep(ms(100)).await;
    }
}
