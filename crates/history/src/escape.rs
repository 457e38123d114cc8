//! Escaping of names and texts of inputs, so that a terminal shows exactly their characters.
//!
//! A name may contain a line break that forges a line of output, a control sequence that changes
//! earlier output, or a mark that changes the direction of writing. Code that shows a name of an
//! input to people passes it through [`escaped`].

use std::borrow::Cow;

/// Checks whether a character has an effect in a terminal other than being visible: control
/// characters of both sets, line and paragraph separators, marks that change the direction of
/// writing, and invisible characters.
pub fn is_unruly(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{00AD}'
                | '\u{061C}'
                | '\u{200B}'..='\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}'
                | '\u{FEFF}'
                | '\u{FFF9}'..='\u{FFFB}'
                | '\u{FFFE}'
                | '\u{FFFF}'
                | '\u{E0000}'..='\u{E007F}'
        )
}

/// Returns a text in which every unruly character is escaped, as `\n` or `\u{202e}`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unruly) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_unruly(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_stays_and_what_acts_is_escaped() {
        assert_eq!(escaped("größe 数 \\ 1"), "größe 数 \\ 1");
        assert_eq!(escaped("a\nb\u{1b}[31m\u{9b}\u{202e}\t"), r"a\nb\u{1b}[31m\u{9b}\u{202e}\t");
        assert!(!escaped("\u{85}\u{2028}\u{200b}\u{e0041}").contains(is_unruly));
    }
}
