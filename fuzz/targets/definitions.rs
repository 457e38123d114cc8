//! The language of definitions: any text is parsed or rejected, and a parsed definition can be
//! evaluated within a budget.

#![no_main]

use consistory_fuzz::properties::read_definition;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| read_definition(&String::from_utf8_lossy(data)));
