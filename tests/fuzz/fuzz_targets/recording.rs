#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| delayline_tests::fuzz::recording(bytes));
