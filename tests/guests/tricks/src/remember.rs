//! Leaves word for the next call wherever it can, and looks for the word of an earlier one.

use std::sync::atomic::{AtomicU64, Ordering};

use contract::{Answer, Arguments, text};
use wasip2::clocks::monotonic_clock;

static COUNTER: AtomicU64 = AtomicU64::new(0);
static mut LARGE: [u8; 1 << 16] = [0; 1 << 16];

/// What is left where no honest program looks.
const WORD: u64 = 0x5ec1_2e75_0ddb_a115;

/// Whether an earlier call's word stands on the stack below: a call of a function puts its variables there unread.
#[inline(never)]
fn stack(bytes: usize) -> bool {
    let here = 0_u64;
    let top = std::ptr::from_ref(&here) as usize & !7;
    let mut found = false;
    // The stack lies below all else, and ends at 0.
    let last = top.saturating_sub(1_024);
    for at in (last.saturating_sub(bytes).max(1_024)..last).step_by(512) {
        let word = at as *mut u64;
        // SAFETY: a component has one thread, which uses nothing below its stack pointer.
        found |= unsafe { word.read_volatile() } == WORD;
        // SAFETY: as above.
        unsafe { word.write_volatile(WORD) };
    }
    found
}

/// Whether memory that is freshly grown is anything but zero: somebody was here before.
#[cfg(target_family = "wasm")]
fn grown(pages: usize) -> bool {
    let from = core::arch::wasm32::memory_grow(0, pages);
    if from == usize::MAX {
        return false;
    }
    let mut found = false;
    for page in 0..pages {
        // Every page of the host's in the first one, one in each of the rest.
        let (first, last) = if page == 0 { (0, 16) } else { (page % 16, page % 16 + 1) };
        for part in first..last {
            let word = ((from + page) * 65_536 + part * 4_096 + 320) as *mut u64;
            // SAFETY: the page has just been added, and no allocator knows of it.
            found |= unsafe { word.replace(WORD) } != 0;
        }
    }
    found
}

#[cfg(not(target_family = "wasm"))]
fn grown(_: usize) -> bool {
    false
}

/// The number of the first thing that the host keeps for this call, which is never given back: were what an earlier
/// call held still there, it would be another.
fn handle() -> u32 {
    let held = monotonic_clock::subscribe_duration(1);
    let number = held.handle();
    std::mem::forget(held);
    number
}

pub(crate) fn run(arguments: &Arguments) -> Answer {
    let mut found = Vec::new();
    if COUNTER.swap(0x5ec1_2e75, Ordering::Relaxed) != 0 {
        found.push("a static");
    }
    let large = &raw mut LARGE;
    for at in (0..1 << 16).step_by(512) {
        // SAFETY: a component has one thread, and nothing else refers to it.
        let seen = unsafe {
            let byte = &mut (*large)[at];
            std::mem::replace(byte, 0xa5)
        };
        if seen != 0 {
            found.push("static memory");
            break;
        }
    }
    let pages = usize::try_from(arguments.number("pages")).unwrap_or(16);
    // All of the stack is a hundred times what a call uses of it, and costs as much.
    if stack(if pages > 100 { 1 << 20 } else { 32 << 10 }) {
        found.push("the stack");
    }
    if grown(pages) {
        found.push("grown memory");
    }
    for path in ["/tmp/word", "word", "/word", "/dev/shm/word"] {
        if std::fs::read(path).is_ok() || std::fs::write(path, "word").is_ok() {
            found.push(path);
        }
    }
    if std::env::var_os("WORD").is_some() {
        found.push("the environment");
    }
    // SAFETY: a component has one thread.
    unsafe { std::env::set_var("WORD", "word") };
    text(if found.is_empty() {
        format!("found nothing, {}", handle())
    } else {
        format!("broke isolation: found {}", found.join(", "))
    })
}
