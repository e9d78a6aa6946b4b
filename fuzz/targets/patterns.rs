#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fief_tests::targets::patterns(bytes));
