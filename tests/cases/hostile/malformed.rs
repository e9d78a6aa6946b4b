//! Components that are cut, flipped and extended, made from real ones by a fixed seed: each is refused with a reason or
//! is still a plugin, and none brings down the host or keeps it waiting.

use std::time::{Duration, Instant};

use fief_sandbox::{LoadError, Options, Sandbox};

use super::stage::soak;
use crate::support::guests;

/// Cases for each real component, at most.
const CASES: u64 = 150;
/// What all of them may take; a slow machine tries fewer.
const TIME: Duration = Duration::from_secs(15);
/// What one of them may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// xorshift64*: the same cases on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end.max(1) as u64)).unwrap()
    }
}

fn mutate(real: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = real.to_vec();
    let at = random.below(bytes.len());
    let length = random.below(64);
    match random.below(7) {
        0 => bytes.truncate(at),
        1 => bytes[at] ^= 1 << random.below(8),
        2 => (0..8).for_each(|_| {
            let at = random.below(real.len());
            bytes[at] = random.next().to_le_bytes()[0];
        }),
        3 => bytes.extend((0..length * 16).map(|_| random.next().to_le_bytes()[0])),
        4 => drop(bytes.drain(at..(at + length).min(real.len()))),
        5 => {
            let from = random.below(real.len() - 64);
            bytes.splice(at..at, real[from..from + length].iter().copied());
        }
        // Numbers in WebAssembly are LEB128: a long one, where a size or an index may stand.
        _ => {
            let end = (at + 5).min(bytes.len());
            bytes[at..end].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0x0f][..end - at]);
        }
    }
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_component_is_refused_or_still_one() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        store: directory.path().join("store"),
        ..Options::default()
    };
    let sandbox = Sandbox::new(options).unwrap();
    let (start, mut tried, mut refused) = (Instant::now(), 0, 0);
    let mut random = Random(0x1f1e_f000_0000_0001);
    let real =
        ["examples/sockets", "examples/toolbox", "listing"].map(|name| std::fs::read(guests::component(name)).unwrap());
    let path = directory.path().join("malformed.wasm");
    'cases: for _ in 0..CASES * soak() {
        for real in &real {
            std::fs::write(&path, mutate(real, &mut random)).unwrap();
            let looked = tokio::time::timeout(PATIENCE, sandbox.inspect(&path)).await;
            tried += 1;
            match looked.expect("looking at a component ends") {
                Ok(_) => {}
                Err(LoadError::Host { why, .. }) => panic!("the host itself failed at case {tried}: {why}"),
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    refused += 1;
                }
            }
            if start.elapsed() > TIME * u32::try_from(soak()).unwrap_or(u32::MAX) {
                break 'cases;
            }
        }
    }
    assert!(tried >= 20 && refused * 2 > tried, "{refused} of {tried} were refused");
}
