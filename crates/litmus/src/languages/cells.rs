//! Instructions as text: a mnemonic and operands.

/// An instruction, split into its parts.
#[derive(Clone, Debug)]
pub(crate) struct Cell<'t> {
    pub(crate) mnemonic: &'t str,
    /// Operands, separated by commas outside brackets.
    pub(crate) operands: Vec<&'t str>,
}

pub(crate) fn split(text: &str) -> Cell<'_> {
    let text = text.trim();
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (mnemonic, rest) = text.split_at(end);
    Cell { mnemonic, operands: operands(rest) }
}

pub(crate) fn operands(text: &str) -> Vec<&str> {
    let text = text.trim();
    if text.is_empty() {
        return Vec::new();
    }
    let (mut found, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(text[start..].trim());
    found
}
