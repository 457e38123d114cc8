//! From text to tokens.
//!
//! Names are words of ASCII letters, digits, `_`, `.` and, between two of these, `-`, as in
//! `po-loc`. Comments are `// ...` and `(* ... *)`, the latter nested. A line comment that starts
//! with `@` is metadata: `// @id sc`.

use std::ops::Range;

use crate::diagnostic::Problem;

/// A kind of token; text is found by its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    Name,
    String,
    Keyword(Keyword),
    /// A mark of one character, among them `_` and `0`.
    Mark(char),
    /// `^-1`, also written `-1` behind `^`.
    Inverse,
    End,
}

macro_rules! keywords {
    ($($name:ident $text:literal),* $(,)?) => {
        /// A word that cannot be a name.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Keyword { $($name),* }

        impl Keyword {
            fn find(word: &str) -> Option<Self> {
                match word { $($text => Some(Keyword::$name),)* _ => None }
            }
        }
    };
}

keywords! {
    Let "let", Rec "rec", And "and", In "in", Acyclic "acyclic", Irreflexive "irreflexive",
    Empty "empty", As "as", Include "include", With "with", From "from", Forall "forall",
    Union "union", Do "do", End "end",
}

/// A token and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) range: Range<usize>,
    /// Whether it is the first on its line.
    pub(crate) starts_line: bool,
}

/// A metadata line: where its key and its value stand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Metadata {
    pub(crate) key: Range<usize>,
    pub(crate) value: Range<usize>,
}

/// What a text consists of.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    pub(crate) lexemes: Vec<Lexeme>,
    pub(crate) metadata: Vec<Metadata>,
    pub(crate) problems: Vec<(Range<usize>, Problem)>,
}

/// Splits a text into tokens; the last is [`Token::End`].
pub(crate) fn lex(text: &str) -> Lexed {
    let bytes = text.as_bytes();
    let mut lexed = Lexed::default();
    let mut at = 0;
    let mut starts_line = true;
    while at < bytes.len() {
        let start = at;
        let token = match bytes[at] {
            b'\n' => {
                starts_line = true;
                at += 1;
                continue;
            }
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = text[at..].find('\n').map_or(text.len(), |length| at + length);
                lexed.metadata.extend(metadata(text, start + 2..at));
                continue;
            }
            b'(' if bytes.get(at + 1) == Some(&b'*') => {
                match comment_end(bytes, at) {
                    Some(end) => at = end,
                    None => {
                        lexed.problems.push((start..start + 2, Problem::UnterminatedComment));
                        at = bytes.len();
                    }
                }
                continue;
            }
            b'"' => {
                let rest = &text[at + 1..];
                match rest.find(['"', '\n']) {
                    Some(length) if rest.as_bytes()[length] == b'"' => at += length + 2,
                    other => {
                        at = other.map_or(text.len(), |length| at + 1 + length);
                        lexed.problems.push((start..at, Problem::UnterminatedString));
                    }
                }
                Token::String
            }
            byte if byte.is_ascii_alphabetic() => {
                at = word_end(bytes, at);
                match Keyword::find(&text[start..at]) {
                    Some(keyword) => Token::Keyword(keyword),
                    None => Token::Name,
                }
            }
            b'^' if bytes[at + 1..].starts_with(b"-1") => {
                at += 3;
                Token::Inverse
            }
            // cat also writes closures as `^+`, `^*` and `^?`.
            b'^' if matches!(bytes.get(at + 1), Some(b'+' | b'*' | b'?')) => {
                at += 2;
                Token::Mark(bytes[at - 1] as char)
            }
            byte @ (b'|' | b'\\' | b'&' | b';' | b'*' | b'+' | b'?' | b'~' | b'(' | b')' | b'['
            | b']' | b',' | b'=' | b'_' | b'0') => {
                at += 1;
                Token::Mark(byte as char)
            }
            _ => {
                let found = text[at..].chars().next().unwrap_or_default();
                at += found.len_utf8();
                lexed.problems.push((start..at, Problem::UnexpectedCharacter { found }));
                continue;
            }
        };
        lexed.lexemes.push(Lexeme { token, range: start..at, starts_line });
        starts_line = false;
    }
    let end = text.len();
    lexed.lexemes.push(Lexeme { token: Token::End, range: end..end, starts_line: true });
    lexed
}

fn word_end(bytes: &[u8], mut at: usize) -> usize {
    let is_word = |at: usize| {
        bytes.get(at).is_some_and(|&b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'))
    };
    while is_word(at) || (bytes.get(at) == Some(&b'-') && is_word(at + 1)) {
        at += 1;
    }
    at
}

fn comment_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = start;
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"(*" => {
                depth += 1;
                at += 2;
            }
            b"*)" => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
    None
}

/// Reads ` @key value` in a line comment.
fn metadata(text: &str, comment: Range<usize>) -> Option<Metadata> {
    let line = text[comment.clone()].trim_end();
    let key_at = comment.start + (line.len() - line.trim_start().len());
    let rest = line.trim_start().strip_prefix('@')?;
    let key = key_at + 1..key_at + 1 + rest.find(char::is_whitespace).unwrap_or(rest.len());
    let value = text[key.end..comment.start + line.len()].trim_start();
    let end = comment.start + line.len();
    Some(Metadata { value: end - value.len()..end, key })
}
