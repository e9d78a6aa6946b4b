//! The corpora of `fuzz/`, replayed through the same functions, with neighbours of each entry made by a fixed seed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fief_tests::targets::TARGETS;

use crate::support::root;

/// Neighbours of each entry, at most; `FIEF_SOAK` multiplies both bounds.
const NEIGHBOURS: u64 = 1_000;
/// What the neighbours of one target's entries may take.
const TIME: Duration = Duration::from_secs(3);

fn corpus(target: &str) -> Vec<PathBuf> {
    let directory = root().join("fuzz/corpus").join(target);
    let mut entries: Vec<PathBuf> = std::fs::read_dir(&directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    entries
}

/// xorshift64*: the same neighbours on every machine.
fn random(state: &mut u64) -> usize {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    usize::try_from(state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap()
}

/// The entry with a few of its bytes flipped, taken out, doubled, or replaced by bytes of another.
fn neighbour(entry: &[u8], other: &[u8], state: &mut u64) -> Vec<u8> {
    let mut bytes = entry.to_vec();
    for _ in 0..=random(state) % 4 {
        let at = random(state) % (bytes.len() + 1);
        let length = random(state) % 16;
        let end = (at + length).min(bytes.len());
        match random(state) % 5 {
            0 if at < bytes.len() => bytes[at] ^= 1 << (random(state) % 8),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            3 if !other.is_empty() => {
                let from = random(state) % other.len();
                let to = (from + length).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            _ => bytes.insert(at, random(state).to_le_bytes()[0]),
        }
    }
    bytes
}

fn try_one(name: &str, target: fn(&[u8]), bytes: &[u8]) {
    let came_to = catch_unwind(AssertUnwindSafe(|| target(bytes)));
    assert!(
        came_to.is_ok(),
        "`{name}` panicked at {:?}",
        String::from_utf8_lossy(bytes)
    );
}

fn replay(name: &str) {
    let soak = u32::try_from(crate::hostile::soak()).unwrap();
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).expect("a target");
    let entries: Vec<Vec<u8>> = corpus(name).iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(entries.len() >= 3, "`{name}` has a corpus");
    entries.iter().for_each(|entry| try_one(name, *target, entry));
    let (start, mut state, mut count) = (Instant::now(), 0x1f1e_f000_0000_0002, 0_u64);
    'all: for _ in 0..NEIGHBOURS * u64::from(soak) {
        for (at, entry) in entries.iter().enumerate() {
            let other = &entries[(at + 1 + random(&mut state)) % entries.len()];
            try_one(name, *target, &neighbour(entry, other, &mut state));
            count += 1;
        }
        if start.elapsed() > TIME * soak {
            break 'all;
        }
    }
    eprintln!(
        "{name}: {count} neighbours of {} entries in {:?}",
        entries.len(),
        start.elapsed()
    );
}

macro_rules! replays {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                replay(stringify!($name));
            }
        )*

        #[test]
        fn every_target_is_replayed_and_every_corpus_has_a_target() {
            let tested = [$(stringify!($name)),*];
            let targets: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(targets, tested);
            for entry in std::fs::read_dir(root().join("fuzz/corpus")).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                assert!(targets.contains(&name.as_str()), "`fuzz/corpus/{name}` has no target");
            }
            for name in targets {
                let file = root().join(format!("fuzz/targets/{name}.rs"));
                let source = std::fs::read_to_string(&file).unwrap();
                assert!(source.contains(&format!("fief_tests::targets::{name}(")), "{}", file.display());
            }
        }
    };
}

replays! { manifests front_matter patterns resolution sse component arguments answers }
