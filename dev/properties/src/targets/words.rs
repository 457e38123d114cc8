//! Formats and definitions, with texts made of words, more of which are well-formed.

use crate::bytes::Bytes;
use crate::properties::{read_definition, read_histories};
use crate::words::{DEFINITIONS, FORMATS, text};
use consistory_formats::Format;

/// Checks one input.
pub fn run(data: &[u8]) {
    let mut bytes = Bytes(data);
    let place = bytes.below(FORMATS.len() + 1);
    match FORMATS.get(place) {
        Some(words) => {
            read_histories(text(&mut bytes, words).into_bytes(), Some(Format::ALL[place]));
        }
        None => read_definition(&text(&mut bytes, DEFINITIONS)),
    }
}
