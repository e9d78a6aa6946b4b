//! Leaves word for the next call wherever it can, and looks for the word of an earlier one.

use std::sync::atomic::{AtomicU64, Ordering};

use contract::{Answer, Arguments, text};

static COUNTER: AtomicU64 = AtomicU64::new(0);
static mut LARGE: [u8; 1 << 16] = [0; 1 << 16];

pub(crate) fn run(_: &Arguments) -> Answer {
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
    // Memory that is freshly grown is all zeros, unless somebody was here before.
    #[cfg(target_family = "wasm")]
    {
        const PAGES: usize = 16;
        let from = core::arch::wasm32::memory_grow(0, PAGES);
        if from != usize::MAX {
            for page in 0..PAGES {
                let byte = ((from + page) * 65_536 + 4_321) as *mut u8;
                // SAFETY: the page has just been added, and no allocator knows of it.
                if unsafe { byte.replace(0xa5) } != 0 {
                    found.push("grown memory");
                    break;
                }
            }
        }
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
        "found nothing".to_owned()
    } else {
        format!("broke isolation: found {}", found.join(", "))
    })
}
