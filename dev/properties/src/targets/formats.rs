//! Formats: every parser terminates on any bytes, and histories are unchanged after writing and
//! reading in every format that can express them.

use crate::properties::read_histories;
use consistory_formats::Format;

/// Checks one input.
pub fn run(data: &[u8]) {
    let Some((&choice, bytes)) = data.split_first() else { return };
    // A small compressed input may contain a very long one.
    let is_compressed = bytes.starts_with(b"\x1f\x8b")
        || matches!(bytes.get(1..4), Some(b"\xb5\x2f\xfd" | b"\x2a\x4d\x18"));
    if is_compressed {
        return;
    }
    // A character from `0` on is an index into the list of formats; after the last one, the format
    // is recognised.
    let place = usize::from(choice.wrapping_sub(b'0')) % (Format::ALL.len() + 1);
    read_histories(bytes.to_vec(), Format::ALL.get(place).copied());
}
