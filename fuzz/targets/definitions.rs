//! Lets libFuzzer look for an input on which the property `definitions` does not hold.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| consistory_properties::targets::definitions::run(data));
