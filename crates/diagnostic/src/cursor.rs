//! A position in a text that moves forward, the basis of hand-written lexers.

use std::ops::Range;

use crate::diagnostic::Fault;

/// A text and a position in it, always between two characters.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    /// The whole text.
    pub text: &'a str,
    /// Byte offset of the next character.
    pub at: usize,
}

impl<'a> Cursor<'a> {
    /// Returns a cursor at the start of a text.
    pub fn new(text: &'a str) -> Self {
        Cursor { text, at: 0 }
    }

    /// Returns the next byte, or 0 at the end.
    #[inline]
    pub fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    /// Returns the next character.
    #[inline]
    pub fn peek_char(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Returns the text from the position on.
    #[inline]
    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Returns the text from an earlier position up to this one.
    pub fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    /// Returns whether the end of the text is reached.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.at == self.text.len()
    }

    /// Skips blanks within a line.
    #[inline]
    pub fn skip_spaces(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    /// Takes the next character.
    #[inline]
    pub fn bump(&mut self) -> Option<char> {
        let next = self.peek_char()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Takes a token if it is next; returns whether it was taken.
    #[inline]
    pub fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Takes the first of several tokens that is next; returns it.
    pub fn eat_any<'t>(&mut self, tokens: &[&'t str]) -> Option<&'t str> {
        tokens.iter().copied().find(|token| self.eat(token))
    }

    /// Takes a token after blanks, or returns a fault if it is missing.
    pub fn expect(&mut self, token: &str) -> Result<(), Fault> {
        self.skip_spaces();
        if self.eat(token) {
            return Ok(());
        }
        Err(Fault::new(self.here(), format!("expected `{token}`, found {}", self.found())))
    }

    /// Takes characters as long as they satisfy a predicate, and returns them.
    pub fn take_while(&mut self, mut accept: impl FnMut(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Takes the rest of the line, without its line break.
    pub fn take_line(&mut self) -> &'a str {
        self.take_while(|c| c != '\n')
    }

    /// Takes a string literal that starts at the position, including both quotes.
    ///
    /// Returns whether it is closed; if not, the rest of the line was taken. With
    /// [`Escapes::Backslash`], a backslash takes the next character with it.
    pub fn take_string(&mut self, escapes: Escapes) -> bool {
        self.at += 1;
        loop {
            match self.peek_char() {
                None | Some('\n') => return false,
                Some('\\') if escapes == Escapes::Backslash => {
                    self.at += 1;
                    if self.peek_char().is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                }
                Some(c) => {
                    self.at += c.len_utf8();
                    if c == '"' {
                        return true;
                    }
                }
            }
        }
    }

    /// Takes a comment that starts at the position, including its closing mark.
    ///
    /// Returns whether it is closed; if not, the rest of the text was taken. With
    /// [`Nesting::Nested`], an opening mark inside needs a closing mark of its own.
    pub fn take_comment(&mut self, open: &str, close: &str, nesting: Nesting) -> bool {
        let mut depth = 0usize;
        while !self.is_done() {
            if (depth == 0 || nesting == Nesting::Nested) && self.eat(open) {
                depth += 1;
            } else if self.eat(close) {
                depth -= 1;
                if depth == 0 {
                    return true;
                }
            } else {
                self.bump();
            }
        }
        false
    }

    /// Takes an integer after blanks.
    pub fn integer(&mut self) -> Result<i64, Fault> {
        self.skip_spaces();
        let start = self.at;
        self.eat("-");
        let digits = self.take_while(|c| c.is_ascii_digit());
        if digits.is_empty() {
            self.at = start;
            let message = format!("expected an integer, found {}", self.found());
            return Err(Fault::new(self.here(), message));
        }
        let text = self.since(start);
        text.parse().map_err(|_| beyond_i64(start..self.at, text))
    }

    /// Takes a number that serves as a name, after blanks; `what` describes the named thing.
    pub fn number(&mut self, what: &str) -> Result<&'a str, Fault> {
        self.skip_spaces();
        let digits = self.take_while(|c| c.is_ascii_digit());
        if digits.is_empty() {
            let message = format!("expected {what}, a number, found {}", self.found());
            return Err(Fault::new(self.here(), message));
        }
        Ok(digits)
    }

    /// Returns the span of the next character.
    pub fn here(&self) -> Range<usize> {
        self.at..self.at + self.peek_char().map_or(0, char::len_utf8)
    }

    /// Describes the next character, for a message.
    pub fn found(&self) -> String {
        match self.peek_char() {
            Some(c) => format!("`{c}`"),
            None => "the end of the line".into(),
        }
    }
}

/// Returns the fault for an integer that does not fit into 64 bits.
pub fn beyond_i64(span: Range<usize>, text: &str) -> Fault {
    let shown = if text.len() > 40 { format!("{}...", &text[..30]) } else { text.into() };
    Fault::new(span, format!("`{shown}` is beyond the 64-bit integers"))
        .hint("integers go from -9223372036854775808 to 9223372036854775807")
}

/// Whether a string literal has escapes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Escapes {
    /// A backslash is an ordinary character.
    None,
    /// A backslash escapes the next character.
    Backslash,
}

/// Whether comments nest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Nesting {
    /// The first closing mark closes the comment.
    Flat,
    /// Each opening mark needs a closing mark.
    Nested,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_at_their_quote_or_at_the_line() {
        for (text, escapes, closed, taken) in [
            (r#""ab" c"#, Escapes::None, true, 4),
            (r#""a\" c"#, Escapes::None, true, 4),
            (r#""a\"b" c"#, Escapes::Backslash, true, 6),
            ("\"é\nb\"", Escapes::None, false, 3),
            ("\"a\\\nb\"", Escapes::Backslash, false, 3),
            ("\"", Escapes::None, false, 1),
        ] {
            let mut cursor = Cursor::new(text);
            assert_eq!((cursor.take_string(escapes), cursor.at), (closed, taken), "{text}");
        }
    }

    #[test]
    fn comments_nest_if_they_are_told_to() {
        for (text, nesting, closed, taken) in [
            ("(* a (* b *) c *) d", Nesting::Nested, true, 17),
            ("(* a (* b *) c *) d", Nesting::Flat, true, 12),
            ("(*) é", Nesting::Nested, false, 6),
            ("(**)x", Nesting::Flat, true, 4),
        ] {
            let mut cursor = Cursor::new(text);
            let found = (cursor.take_comment("(*", "*)", nesting), cursor.at);
            assert_eq!(found, (closed, taken), "{text}");
        }
    }

    #[test]
    fn tokens_are_taken_whole_or_not_at_all() {
        let mut cursor = Cursor::new("<=é =");
        assert_eq!(cursor.eat_any(&["==", "<=", "<"]), Some("<="));
        assert!(!cursor.eat("e"));
        assert_eq!((cursor.here(), cursor.found()), (2..4, "`é`".to_owned()));
        assert_eq!(cursor.take_while(|c| c != '='), "é ");
        assert!(cursor.expect("==").is_err());
        assert!(cursor.expect("=").is_ok());
        assert!(cursor.is_done() && cursor.peek() == 0 && cursor.bump().is_none());
    }
}
