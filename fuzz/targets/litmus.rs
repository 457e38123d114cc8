//! Litmus tests: any text is read or rejected, and a test is unchanged after writing and reading.

#![no_main]

use consistory_fuzz::properties::read_litmus;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| read_litmus(&String::from_utf8_lossy(data)));
