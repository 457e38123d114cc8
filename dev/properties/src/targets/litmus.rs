//! Litmus tests: any text is read or rejected, and a test is unchanged after writing and reading.

use crate::properties::read_litmus;

/// Checks one input.
pub fn run(data: &[u8]) {
    read_litmus(&String::from_utf8_lossy(data));
}
