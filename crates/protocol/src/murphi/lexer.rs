//! Lexer: from text to tokens.
//!
//! Keywords are case-insensitive, names are not. Comments are `-- ...` to the end of the line and
//! `/* ... */`. A comment that starts with `--@`, or with `-- @` and a word that occurs only in
//! marks, is a mark: its tokens are stored separately, with the position of the token that follows
//! it.

use crate::murphi::syntax::Span;

/// A kind of token; its span identifies its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Token {
    Name,
    Number,
    Text,
    Keyword(Keyword),
    /// A symbol of one character.
    Sign(u8),
    Assign,
    Arrow,
    Guard,
    LessEqual,
    GreaterEqual,
    NotEqual,
    Dots,
    Eof,
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

            /// Returns the text of the keyword.
            pub(crate) fn text(self) -> &'static str {
                match self { $(Keyword::$name => $text),* }
            }
        }
    };
}

keywords! {
    Alias "alias", Array "array", Assert "assert", Begin "begin", By "by", Case "case",
    Choose "choose", Clear "clear", Const "const", Do "do", Else "else", Elsif "elsif", End "end",
    EndAlias "endalias", EndChoose "endchoose", EndExists "endexists", EndFor "endfor",
    EndForall "endforall", EndFunction "endfunction", EndIf "endif",
    EndProcedure "endprocedure", EndRecord "endrecord", EndRule "endrule",
    EndRuleset "endruleset", EndStartstate "endstartstate", EndSwitch "endswitch",
    EndWhile "endwhile", Enum "enum", Error "error", Exists "exists", For "for",
    Forall "forall", Function "function", If "if", Invariant "invariant", IsMember "ismember",
    IsUndefined "isundefined", Multiset "multiset", MultisetAdd "multisetadd",
    MultisetCount "multisetcount", MultisetRemove "multisetremove",
    MultisetRemovePred "multisetremovepred", Of "of", Procedure "procedure", Put "put",
    Record "record", Return "return", Rule "rule", Ruleset "ruleset", Scalarset "scalarset",
    Startstate "startstate", Switch "switch", Then "then", To "to", Type "type",
    Undefine "undefine", Undefined "undefined", Union "union", Var "var", While "while",
}

/// A token and its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) span: Span,
}

/// The tokens of a comment `--@ ...`.
#[derive(Debug)]
pub(crate) struct Comment {
    /// The token that follows it.
    pub(crate) before: usize,
    /// Its tokens, the last of them [`Token::Eof`].
    pub(crate) lexemes: Vec<Lexeme>,
    pub(crate) span: Span,
}

/// The tokens of a text.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    /// The tokens, the last of them [`Token::Eof`].
    pub(crate) lexemes: Vec<Lexeme>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) problems: Vec<(Span, String)>,
}

/// Splits a text into tokens.
pub(crate) fn lex(text: &str) -> Lexed {
    let mut lexed = Lexed::default();
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(b"--") {
            let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
            if let Some(offset) = start_of_mark(&text[at..end]) {
                let mut lexemes = Vec::new();
                let mut inner = at + offset;
                while inner < end {
                    token(&text[..end], &mut inner, &mut lexemes, &mut lexed.problems);
                }
                lexemes.push(Lexeme { token: Token::Eof, span: span(end, end) });
                let before = lexed.lexemes.len();
                lexed.comments.push(Comment { before, lexemes, span: span(at, end) });
            }
            at = end;
        } else if rest.starts_with(b"/*") {
            match text[at + 2..].find("*/") {
                Some(length) => at += length + 4,
                None => {
                    lexed.problems.push((span(at, at + 2), "this comment never ends".into()));
                    at = text.len();
                }
            }
        } else {
            token(text, &mut at, &mut lexed.lexemes, &mut lexed.problems);
        }
    }
    lexed.lexemes.push(Lexeme { token: Token::Eof, span: span(at, at) });
    lexed
}

/// Returns the position in a comment at which the text of a mark begins, or `None` if the comment
/// is not a mark.
fn start_of_mark(comment: &str) -> Option<usize> {
    const WORDS: [&str; 4] = ["data", "load", "store", "serialize"];
    let rest = comment.strip_prefix("--")?;
    if rest.starts_with('@') {
        return Some(3);
    }
    let after = rest.trim_start().strip_prefix('@')?;
    let text = after.trim_start();
    let word: &str = text.split(|c: char| !c.is_ascii_alphabetic()).next()?;
    let is_mark = WORDS.iter().any(|known| known.eq_ignore_ascii_case(word));
    is_mark.then(|| comment.len() - after.len())
}

/// Reads one token, or skips a space.
fn token(text: &str, at: &mut usize, out: &mut Vec<Lexeme>, problems: &mut Vec<(Span, String)>) {
    let bytes = text.as_bytes();
    let start = *at;
    let follows = |text: &[u8]| bytes[start..].starts_with(text);
    let (length, token) = match bytes[start] {
        byte if byte.is_ascii_whitespace() => {
            *at += 1;
            return;
        }
        byte if byte.is_ascii_alphabetic() || byte == b'_' => {
            let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
            let length = bytes[start..].iter().take_while(|b| is_word(b)).count();
            let word = &text[start..start + length];
            let keyword = if length <= "multisetremovepred".len() {
                Keyword::find(&word.to_ascii_lowercase())
            } else {
                None
            };
            (length, keyword.map_or(Token::Name, Token::Keyword))
        }
        byte if byte.is_ascii_digit() => {
            // The parser reports text that is not a number, such as `0x` or `12ab`.
            let length = bytes[start..].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
            (length, Token::Number)
        }
        b'"' => {
            let rest = &text[start + 1..];
            let mut length = rest.len() + 1;
            let mut escaped = false;
            let mut is_closed = false;
            for (i, byte) in rest.bytes().enumerate() {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' => escaped = true,
                    b'"' => {
                        is_closed = true;
                        length = i + 2;
                        break;
                    }
                    b'\n' => {
                        length = i + 1;
                        break;
                    }
                    _ => {}
                }
            }
            if !is_closed {
                problems.push((span(start, start + length), "this string never ends".into()));
            }
            (length, Token::Text)
        }
        _ if follows(b"==>") => (3, Token::Guard),
        _ if follows(b":=") => (2, Token::Assign),
        _ if follows(b"->") => (2, Token::Arrow),
        _ if follows(b"<=") => (2, Token::LessEqual),
        _ if follows(b">=") => (2, Token::GreaterEqual),
        _ if follows(b"!=") => (2, Token::NotEqual),
        _ if follows(b"..") => (2, Token::Dots),
        // Symbols of C, which other tools accept too.
        _ if follows(b"==") => (2, Token::Sign(b'=')),
        _ if follows(b"&&") => (2, Token::Sign(b'&')),
        _ if follows(b"||") => (2, Token::Sign(b'|')),
        byte @ (b'<' | b'>' | b'=' | b'!' | b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|'
        | b'?' | b':' | b';' | b',' | b'.' | b'(' | b')' | b'[' | b']' | b'{' | b'}') => {
            (1, Token::Sign(byte))
        }
        _ => {
            let found = text[start..].chars().next().unwrap_or_default();
            *at += found.len_utf8();
            problems.push((span(start, *at), format!("unexpected character `{found}`")));
            return;
        }
    };
    *at += length;
    out.push(Lexeme { token, span: span(start, *at) });
}

/// Parses a number: decimal, hexadecimal after `0x`, or octal after a `0`, as Rumur does.
///
/// Returns a message if the text is not a number or the number is too large.
pub(crate) fn number(digits: &str) -> Result<i32, String> {
    let lower = digits.to_ascii_lowercase();
    let (text, radix, what) = match lower.strip_prefix("0x") {
        Some(text) => (text, 16, "a hexadecimal number"),
        None if lower.len() > 1 && lower.starts_with('0') => {
            (&lower[1..], 8, "an octal number, although it starts with 0")
        }
        None => (&lower[..], 10, "a number"),
    };
    if text.is_empty() || !text.chars().all(|c| c.is_digit(radix)) {
        return Err(format!("`{digits}` is not {what}"));
    }
    i32::from_str_radix(text, radix).map_err(|_| "this number is too large".to_owned())
}

fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, end: end as u32 }
}
