//! Tokens of cat.

use consistory_diagnostic::{Cursor, Escapes, Nesting};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token<'a> {
    /// A name or a keyword.
    Word(&'a str),
    /// `'name`
    Tag(&'a str),
    /// A string, without its quotes.
    Text(&'a str),
    /// An operator or a bracket.
    Sign(&'static str),
    /// A character that is not part of the language.
    Other(char),
    End,
}

/// Signs, longer ones before their prefixes.
const SIGNS: [&str; 22] = [
    "^-1", "->", "++", "||", "&&", "|", ";", "\\", "&", "*", "+", "?", "~", "(", ")", "[", "]",
    "{", "}", "=", ",", ":",
];

/// Splits a text into tokens with their byte offsets; an `Err` is the offset of an unclosed comment
/// or string.
pub(crate) fn tokens(text: &str) -> Result<Vec<(usize, Token<'_>)>, (usize, &'static str)> {
    let mut cursor = Cursor::new(text);
    let mut found = Vec::new();
    loop {
        cursor.take_while(char::is_whitespace);
        let start = cursor.at;
        if cursor.is_done() {
            found.push((start, Token::End));
            return Ok(found);
        }
        let rest = cursor.rest();
        if rest.starts_with("(*") {
            if !cursor.take_comment("(*", "*)", Nesting::Nested) {
                return Err((start, "this comment is never closed"));
            }
            continue;
        }
        if rest.starts_with("//") || rest.starts_with('#') {
            cursor.take_line();
            continue;
        }
        if rest.starts_with('"') {
            if !cursor.take_string(Escapes::None) {
                return Err((start, "this string is not closed on its line"));
            }
            found.push((start, Token::Text(&text[start + 1..cursor.at - 1])));
            continue;
        }
        if rest.starts_with('\'') {
            cursor.bump();
            let name = cursor.take_while(is_word);
            found.push((start, Token::Tag(name)));
            continue;
        }
        let first = cursor.peek_char().unwrap_or(' ');
        if first.is_ascii_alphabetic() || first == '_' || first.is_ascii_digit() {
            cursor.take_while(is_word);
            // `x->e` is a name and an arrow.
            if cursor.peek() == b'>' && cursor.since(start).ends_with('-') {
                cursor.at -= 1;
            }
            // A name may end with a quote.
            if cursor.peek() == b'\'' {
                cursor.bump();
            }
            found.push((start, Token::Word(cursor.since(start))));
            continue;
        }
        match cursor.eat_any(&SIGNS) {
            Some(sign) => found.push((start, Token::Sign(sign))),
            None => {
                cursor.bump();
                found.push((start, Token::Other(first)));
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')
}
