//! The language of definitions: any text is parsed or rejected, and a parsed definition can be
//! evaluated within a budget.

use crate::properties::read_definition;

/// Checks one input.
pub fn run(data: &[u8]) {
    read_definition(&String::from_utf8_lossy(data));
}
