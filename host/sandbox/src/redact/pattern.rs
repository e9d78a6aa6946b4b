//! The forms in which a secret is looked for, and the automaton that finds them all at once.

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::noncontiguous::NFA;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// The shortest piece of Base64 that is looked for: a shorter one turns up by chance.
const MIN_CORE: usize = 6;

/// All forms of all secrets.
///
/// The automaton is walked by hand, since a match has to be found across chunks and through escapes.
pub(super) struct Patterns {
    nfa: NFA,
    start: StateID,
    /// For each state, how many of the last bytes may still become a match: the length of the prefix that the state
    /// stands for. Indexed by state, whose numbers are dense in this kind of automaton.
    depths: Vec<u32>,
}

impl Patterns {
    /// Nothing if no secret is left to look for.
    pub(super) fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut forms: Vec<Vec<u8>> = secrets.flat_map(forms).collect();
        forms.sort_unstable();
        forms.dedup();
        if forms.is_empty() {
            return None;
        }
        let nfa = NFA::builder()
            .ascii_case_insensitive(true)
            .prefilter(false)
            .build(&forms)
            .expect("the forms of all secrets are far below the automaton's 2^31 states");
        let start = nfa
            .start_state(Anchored::No)
            .expect("this kind of automaton always has an unanchored start");
        let mut depths = vec![0];
        for form in &forms {
            let mut state = start;
            for (depth, &byte) in (1..).zip(form) {
                state = nfa.next_state(Anchored::No, state, byte);
                if depths.len() <= state.as_usize() {
                    depths.resize(state.as_usize() + 1, 0);
                }
                depths[state.as_usize()] = depth;
            }
        }
        Some(Self { nfa, start, depths })
    }

    pub(super) fn start(&self) -> StateID {
        self.start
    }

    pub(super) fn next(&self, state: StateID, byte: u8) -> StateID {
        self.nfa.next_state(Anchored::No, state, byte)
    }

    /// How many of the last bytes may still become, or already are, a match.
    pub(super) fn depth(&self, state: StateID) -> usize {
        self.depths
            .get(state.as_usize())
            .map_or(0, |&depth| usize::try_from(depth).unwrap_or(usize::MAX))
    }

    /// The length of the longest match that ends here.
    pub(super) fn matched(&self, state: StateID) -> Option<usize> {
        if !self.nfa.is_match(state) {
            return None;
        }
        (0..self.nfa.match_len(state))
            .map(|index| self.nfa.pattern_len(self.nfa.match_pattern(state, index)))
            .max()
    }
}

/// The forms of one secret. Line ends are taken out of all of them, as they are out of what is searched.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let plain: Vec<u8> = secret.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    if plain.is_empty() {
        return Vec::new();
    }
    let mut forms = Vec::new();
    for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        for offset in 0..3 {
            let core = base64_core(secret.as_bytes(), offset, &engine);
            if core.len() >= MIN_CORE {
                forms.push(core);
            }
        }
    }
    if secret.len() >= MIN_CORE / 2 {
        forms.push(hex::encode(secret).into_bytes());
    }
    if plain.contains(&b' ') {
        // As forms in URLs write a space.
        forms.push(
            plain
                .iter()
                .map(|&byte| if byte == b' ' { b'+' } else { byte })
                .collect(),
        );
    }
    forms.push(plain);
    forms
}

/// The characters of Base64 that are the same whatever stands around the secret, if `offset` bytes (modulo 3) stand
/// before it. At either end up to four bits of it share a character with a neighbour and are left.
fn base64_core(secret: &[u8], offset: usize, engine: &impl Engine) -> Vec<u8> {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(secret);
    let encoded = engine.encode(&padded).into_bytes();
    let first = (offset * 8).div_ceil(6);
    let last = padded.len() * 8 / 6;
    encoded.get(first..last).map(<[u8]>::to_vec).unwrap_or_default()
}
