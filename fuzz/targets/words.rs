//! Formats and definitions, with texts made of words, more of which are well-formed.

#![no_main]

use consistory_formats::Format;
use consistory_fuzz::bytes::Bytes;
use consistory_fuzz::properties::{read_definition, read_histories};
use consistory_fuzz::words::{DEFINITIONS, FORMATS, text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes(data);
    let place = bytes.below(FORMATS.len() + 1);
    match FORMATS.get(place) {
        Some(words) => {
            read_histories(text(&mut bytes, words).into_bytes(), Some(Format::ALL[place]));
        }
        None => read_definition(&text(&mut bytes, DEFINITIONS)),
    }
});
