//! What a guest finds in a memory that was another's: nothing.

#![allow(clippy::unwrap_used)]

use std::ptr::NonNull;

use super::*;

const PAGE: usize = 64 << 10;
const RESERVED: usize = 4 << 30;
const GUARD: usize = 32 << 20;

fn memories(pagemap: Pagemap) -> Memories {
    Memories::new(Arc::new(pagemap), 4)
}

fn real() -> Memories {
    memories(Pagemap::open().expect("this kernel tells of its pages"))
}

/// A memory of so many pages of WebAssembly's.
fn memory(memories: &Memories, pages: usize) -> Box<dyn LinearMemory> {
    let ty = MemoryType::new(u32::try_from(pages).unwrap(), None);
    let memory = memories.new_memory(ty, pages * PAGE, None, Some(RESERVED), GUARD);
    memory.unwrap()
}

#[expect(
    clippy::mut_from_ref,
    reason = "what is behind the pointer is not the memory's own, and one test uses it"
)]
fn bytes(memory: &dyn LinearMemory) -> &mut [u8] {
    // SAFETY: the memory is accessible up to its size and this test's alone.
    unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), memory.byte_size()) }
}

fn is_zero(memory: &dyn LinearMemory) -> bool {
    bytes(memory).iter().all(|byte| *byte == 0)
}

/// What a guest does with a memory.
type Use = fn(&mut Box<dyn LinearMemory>);

/// Uses of a memory of 20 pages, each of which would show.
fn uses() -> Vec<(&'static str, Use)> {
    vec![
        ("one byte", |memory| bytes(&**memory)[5] = 1),
        ("its last byte", |memory| *bytes(&**memory).last_mut().unwrap() = 1),
        ("every other page, more than one scan tells", |memory| {
            bytes(&**memory).iter_mut().step_by(8 << 10).for_each(|byte| *byte = 7);
        }),
        ("all of it, more than is kept", |memory| bytes(&**memory).fill(9)),
        ("what was only read", |memory| assert!(is_zero(&**memory))),
        ("what it grew by", |memory| {
            memory.grow_to(40 * PAGE).unwrap();
            assert!(is_zero(&**memory));
            bytes(&**memory).fill(3);
        }),
        ("growth of nothing", |memory| {
            memory.grow_to(memory.byte_size()).unwrap();
        }),
    ]
}

fn nothing_is_left(memories: &Memories) {
    for (what, with) in uses() {
        let mut first = memory(memories, 20);
        let at = first.as_ptr();
        with(&mut first);
        drop(first);
        let mut second = memory(memories, 20);
        assert_eq!(second.as_ptr(), at, "{what}: the memory was not used again");
        assert_eq!(second.byte_size(), 20 * PAGE, "{what}");
        assert!(is_zero(&*second), "{what} was left");
        second.grow_to(40 * PAGE).unwrap();
        assert!(is_zero(&*second), "{what} was left in what it grows by");
    }
}

#[test]
fn a_memory_that_is_used_again_is_zero_whatever_was_in_it() {
    nothing_is_left(&real());
}

#[test]
fn where_the_scan_fails_the_kernel_takes_all_pages_back() {
    nothing_is_left(&memories(Pagemap::broken()));
}

#[test]
fn another_processs_pagemap_is_not_believed() {
    nothing_is_left(&memories(Pagemap::of_another_process()));
}

#[test]
fn pages_that_the_kernel_moves_are_wiped_too() {
    let compact = || std::fs::write("/proc/sys/vm/compact_memory", "1").is_ok();
    if !compact() {
        eprintln!("skipped: memory cannot be compacted here, that takes root");
        return;
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                compact();
            }
        });
        let memories = real();
        for round in 0..2_000 {
            let memory = memory(&memories, 4);
            assert!(is_zero(&*memory), "round {round}");
            bytes(&*memory).iter_mut().step_by(4 << 10).for_each(|byte| *byte = 1);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn pages_that_were_swapped_out_are_wiped_too() {
    // Reclaim moves anonymous pages to swap; without any it leaves them where they are, and they must be wiped as well.
    let memories = real();
    let first = memory(&memories, 4);
    bytes(&*first).fill(1);
    let part = NonNull::slice_from_raw_parts(NonNull::new(first.as_ptr()).unwrap(), 4 * PAGE);
    // SAFETY: advice that changes no content, on memory of this test.
    let _ = unsafe { rustix::mm::madvise(part.as_ptr().cast(), 4 * PAGE, rustix::mm::Advice::LinuxPageOut) };
    drop(first);
    assert!(is_zero(&*memory(&memories, 4)));
}

#[test]
fn what_a_memory_grew_by_keeps_its_pages_and_counts_them() {
    let memories = real();
    let mut one = memory(&memories, 1);
    one.grow_to(3 * PAGE).unwrap();
    bytes(&*one).fill(1);
    drop(one);
    assert_eq!(memories.0.shelf.kept(), 3 * PAGE);
    // A call that does not grow leaves them where they are, all zero, and they still count.
    drop(memory(&memories, 1));
    assert_eq!(memories.0.shelf.kept(), 3 * PAGE);
    let mut again = memory(&memories, 1);
    again.grow_to(3 * PAGE).unwrap();
    assert!(is_zero(&*again));
}

#[test]
fn only_what_the_memory_has_can_be_touched() {
    let memories = real();
    let mut one = memory(&memories, 1);
    one.grow_to(3 * PAGE).unwrap();
    drop(one);
    let again = memory(&memories, 1);
    // The maps of this process around it: guard, one page of WebAssembly's, guard.
    let at = again.as_ptr() as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let around: Vec<(usize, usize, &str)> = maps
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let (start, end) = words.next()?.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some((number(start)?, number(end)?, words.next()?))
        })
        .filter(|(start, end, _)| *end > at - GUARD && *start < at + RESERVED + GUARD)
        .collect();
    let accessible: Vec<_> = around
        .iter()
        .filter(|(.., rights)| !rights.starts_with("---"))
        .collect();
    assert_eq!(accessible.len(), 1, "{around:x?}");
    assert_eq!((accessible[0].0, accessible[0].1), (at, at + PAGE));
    assert!(around.first().unwrap().0 <= at - GUARD && around.last().unwrap().1 >= at + RESERVED + GUARD);
    let covered: usize = around.iter().map(|(start, end, _)| end - start).sum();
    assert!(covered >= GUARD + RESERVED + GUARD, "there is a hole: {around:x?}");
}

#[test]
fn a_growth_that_fails_half_way_leaves_nothing_that_another_call_could_read() {
    let memories = real();
    let mut one = memory(&memories, 1);
    // A file that may only be read, from the fourth page on: the kernel allows what lies before it, and then fails.
    let mut file = tempfile::NamedTempFile::new().unwrap();
    io::Write::write_all(&mut file, &[0; 4096]).unwrap();
    let file = std::fs::File::open(file.path()).unwrap();
    // SAFETY: it takes the place of addresses of this test's memory, which nobody uses.
    unsafe {
        let at = one.as_ptr().add(4 * PAGE).cast();
        let flags = rustix::mm::MapFlags::SHARED | rustix::mm::MapFlags::FIXED;
        rustix::mm::mmap(at, 4096, rustix::mm::ProtFlags::empty(), flags, &file, 0).unwrap();
    }
    assert!(one.grow_to(8 * PAGE).is_err());
    assert_eq!(one.byte_size(), PAGE);
    let at = one.as_ptr() as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let accessible = |start: &usize| {
        let line = maps.lines().find(|line| {
            let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
            let number = |text| usize::from_str_radix(text, 16).unwrap();
            (number(from)..number(to)).contains(start)
        });
        !line.unwrap().contains(" ---")
    };
    let beyond: Vec<usize> = (1..8).map(|page| at + page * PAGE).filter(accessible).collect();
    assert!(beyond.is_empty(), "{beyond:x?} can be touched beyond {at:x}");
    drop(one);
    assert_eq!(memories.0.shelf.count(), 0, "the slot is used again");
}

#[test]
fn one_large_call_does_not_slow_down_all_small_ones_after_it() {
    let memories = real();
    let mut kept = Vec::new();
    for call in 0..2 * SELDOM {
        let memory = memory(&memories, 20);
        bytes(&*memory)[0] = 1;
        if call == 0 {
            bytes(&*memory)[..MEMORY_KEPT - (64 << 10)].fill(1);
        }
        drop(memory);
        kept.push(memories.0.shelf.kept());
    }
    let changes: Vec<_> = kept.windows(2).filter(|pair| pair[0] != pair[1]).collect();
    assert!(changes.len() <= 2 && kept[0] >= MEMORY_KEPT - (64 << 10), "{kept:?}");
    assert!(kept.last().unwrap() <= &SELDOM_KEPT, "{kept:?}");
}

#[test]
fn what_waits_makes_room_for_a_memory_that_cannot_be_had_otherwise() {
    let memories = real();
    drop((1..=3).map(|pages| memory(&memories, pages)).collect::<Vec<_>>());
    assert_eq!(memories.0.shelf.count(), 3);
    // No machine has so many addresses.
    let ty = MemoryType::new(1, None);
    let error = memories.new_memory(ty, PAGE, None, Some(1 << 52), GUARD).err().unwrap();
    assert!(error.starts_with("cannot map a memory: "), "{error}");
    assert_eq!(memories.0.shelf.count(), 0);
}

#[test]
fn sizes_that_nobody_asks_for_any_more_make_room() {
    let memories = real();
    drop((1..=4).map(|pages| memory(&memories, pages)).collect::<Vec<_>>());
    assert_eq!(memories.0.shelf.count(), 4);
    drop((0..4).map(|_| memory(&memories, 9)).collect::<Vec<_>>());
    assert_eq!(memories.0.shelf.count(), 4);
    let again: Vec<_> = (0..4).map(|_| memory(&memories, 9)).collect();
    assert_eq!(
        memories.0.shelf.count(),
        0,
        "all four were of the size that is asked for"
    );
    drop(again);
}

#[test]
fn a_memory_that_the_engine_does_not_allow_is_refused() {
    let memories = real();
    let wide = MemoryType::new64(1, None);
    let narrow = MemoryType::new(1, None);
    for (ty, minimum, reserved) in [
        (wide, PAGE, Some(RESERVED)),
        (narrow.clone(), PAGE, None),
        (narrow.clone(), PAGE, Some(PAGE - 4096)),
        (narrow, PAGE + 1, Some(RESERVED)),
    ] {
        assert!(memories.new_memory(ty, minimum, None, reserved, GUARD).is_err());
    }
    let mut one = memory(&memories, 1);
    assert!(one.grow_to(RESERVED + PAGE).is_err() && one.grow_to(0).is_err());
    assert_eq!(one.byte_size(), PAGE);
}
