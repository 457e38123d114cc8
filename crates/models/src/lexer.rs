//! Splits a text into tokens.
//!
//! Names are words of ASCII letters, digits, `_`, `.` and, between two of these, `-`, as in
//! `po-loc`. Comments are `// ...` and `(* ... *)`, the latter nested. A line comment that starts
//! with `@` is metadata: `// @id sc`.

use std::ops::Range;

use consistory_diagnostic::{Cursor, Escapes, Nesting};

use crate::problem::Problem;

/// A kind of token; its text is given by its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    Name,
    String,
    Keyword(Keyword),
    /// A mark of one character, including `_` and `0`.
    Mark(char),
    /// `^-1`, also written `-1` after `^`.
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

/// A token and its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) range: Range<usize>,
    /// Whether the token is the first on its line.
    pub(crate) starts_line: bool,
}

/// A metadata line: the positions of its key and value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Metadata {
    pub(crate) key: Range<usize>,
    pub(crate) value: Range<usize>,
}

/// The tokens, metadata and strings of a text.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    pub(crate) lexemes: Vec<Lexeme>,
    pub(crate) metadata: Vec<Metadata>,
    pub(crate) problems: Vec<(Range<usize>, Problem)>,
}

/// Splits a text into tokens; the last is [`Token::End`].
pub(crate) fn lex(text: &str) -> Lexed {
    let mut lexed = Lexed::default();
    let mut cursor = Cursor::new(text);
    let mut starts_line = true;
    while let Some(next) = cursor.peek_char() {
        let start = cursor.at;
        let token = match next {
            '\n' => {
                starts_line = true;
                cursor.bump();
                continue;
            }
            c if c.is_ascii_whitespace() => {
                cursor.bump();
                continue;
            }
            '/' if cursor.eat("//") => {
                cursor.take_line();
                lexed.metadata.extend(metadata(text, start + 2..cursor.at));
                continue;
            }
            '(' if cursor.rest().starts_with("(*") => {
                if !cursor.take_comment("(*", "*)", Nesting::Nested) {
                    lexed.problems.push((start..start + 2, Problem::UnterminatedComment));
                }
                continue;
            }
            '"' => {
                if !cursor.take_string(Escapes::None) {
                    lexed.problems.push((start..cursor.at, Problem::UnterminatedString));
                }
                Token::String
            }
            c if c.is_ascii_alphabetic() => {
                take_word(&mut cursor);
                match Keyword::find(cursor.since(start)) {
                    Some(keyword) => Token::Keyword(keyword),
                    None => Token::Name,
                }
            }
            '^' if cursor.eat("^-1") => Token::Inverse,
            // cat also writes closures as `^+`, `^*` and `^?`.
            '^' if cursor.eat_any(&["^+", "^*", "^?"]).is_some() => {
                Token::Mark(text.as_bytes()[cursor.at - 1] as char)
            }
            mark if MARKS.contains(mark) => {
                cursor.bump();
                Token::Mark(mark)
            }
            found => {
                cursor.bump();
                lexed.problems.push((start..cursor.at, Problem::UnexpectedCharacter { found }));
                continue;
            }
        };
        lexed.lexemes.push(Lexeme { token, range: start..cursor.at, starts_line });
        starts_line = false;
    }
    let end = text.len();
    lexed.lexemes.push(Lexeme { token: Token::End, range: end..end, starts_line: true });
    lexed
}

/// Marks of one character.
const MARKS: &str = "|\\&;*+?~()[],=_0";

/// Reads a word; a `-` belongs to it if a word character follows.
fn take_word(cursor: &mut Cursor<'_>) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    loop {
        cursor.take_while(is_word);
        if !(cursor.peek() == b'-' && cursor.rest()[1..].starts_with(is_word)) {
            return;
        }
        cursor.at += 1;
    }
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
