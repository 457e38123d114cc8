//! Tokens of the text notation: names, values, statuses and times.

use std::borrow::Cow;
use std::ops::Range;

use consistory_history::{HistoryBuilder, Interval, KeyId, Status, Value, ValueId};

use crate::parse::{Cursor, Fault, beyond_i64};

/// Largest nesting depth of lists.
pub(crate) const MAX_NESTING: usize = 64;

/// An argument of an operation.
pub(super) struct Arg {
    pub(super) value: Value,
    pub(super) span: Range<usize>,
    /// Whether the argument is a number that is too large for a value and valid only as a key.
    is_too_large: bool,
}

const VALUES: &str =
    "a value is an integer, a word, a quoted text, null, true, false or a list `[1,2]`";

/// Parses an argument.
pub(super) fn argument(cursor: &mut Cursor<'_>) -> Result<Arg, Fault> {
    let start = cursor.at;
    let digits = cursor.take_while(|c| c.is_ascii_digit());
    let is_too_large = digits.len() > 18 && digits.parse::<i64>().is_err();
    if is_too_large && !cursor.rest().starts_with(is_word_char) {
        let value = Value::Str(digits.into());
        return Ok(Arg { value, span: start..cursor.at, is_too_large });
    }
    cursor.at = start;
    Ok(Arg { value: value(cursor, 0)?, span: start..cursor.at, is_too_large: false })
}

/// Parses a value.
pub(super) fn value(cursor: &mut Cursor<'_>, depth: usize) -> Result<Value, Fault> {
    let start = cursor.at;
    match cursor.peek() {
        b'"' => Ok(Value::Str(quoted(cursor)?.into())),
        b'-' | b'0'..=b'9' => integer(cursor).map(Value::Int),
        b'[' if depth == MAX_NESTING => {
            Err(Fault::new(cursor.here(), format!("lists nest at most {MAX_NESTING} deep")))
        }
        b'[' => {
            cursor.at += 1;
            if let Some(items) = quick_integers(cursor) {
                return Ok(Value::List(items));
            }
            let mut items = Vec::new();
            cursor.skip_spaces();
            if cursor.eat("]") {
                return Ok(Value::List(items));
            }
            loop {
                cursor.skip_spaces();
                items.push(value(cursor, depth + 1)?);
                cursor.skip_spaces();
                if cursor.eat("]") {
                    return Ok(Value::List(items));
                }
                if !cursor.eat(",") {
                    let message = format!("expected `,` or `]`, found {}", cursor.found());
                    return Err(Fault::new(cursor.here(), message));
                }
            }
        }
        _ => {
            let found = word(cursor);
            match found {
                "" => {
                    let message = format!("expected a value, found {}", cursor.found());
                    Err(Fault::new(start..cursor.here().end, message).hint(VALUES))
                }
                "null" | "nil" => Ok(Value::Null),
                "true" => Ok(Value::Bool(true)),
                "false" => Ok(Value::Bool(false)),
                _ => Ok(Value::Str(found.into())),
            }
        }
    }
}

/// Parses the rest of a list of integers without spaces, the form of most long lists. On anything
/// else, errors included, the cursor does not move.
fn quick_integers(cursor: &mut Cursor<'_>) -> Option<Vec<Value>> {
    let bytes = cursor.text.as_bytes();
    let mut at = cursor.at;
    if !matches!(bytes.get(at), Some(b'0'..=b'9')) {
        return None;
    }
    let length = bytes[at..].iter().position(|&byte| byte == b']')?;
    let commas = bytes[at..at + length].iter().filter(|&&byte| byte == b',').count();
    let mut items = Vec::with_capacity(commas + 1);
    loop {
        items.push(Value::Int(quick_integer(bytes, &mut at)?));
        at += 1;
        match bytes.get(at - 1) {
            Some(b',') => {}
            Some(b']') => break,
            _ => return None,
        }
    }
    cursor.at = at;
    Some(items)
}

/// Converts an argument to a key.
pub(super) fn key_of(builder: &mut HistoryBuilder, text: &str, arg: &Arg) -> Result<KeyId, Fault> {
    match &arg.value {
        Value::Str(name) => Ok(builder.key(name)),
        Value::Int(0..) | Value::Null | Value::Bool(_) => Ok(builder.key(&text[arg.span.clone()])),
        Value::Int(_) | Value::List(_) => {
            Err(Fault::new(arg.span.clone(), "a key is a word or a number")
                .hint("quote a key of another kind: `\"...\"`"))
        }
    }
}

/// Converts an argument to a value.
pub(super) fn value_of(
    builder: &mut HistoryBuilder,
    text: &str,
    arg: Arg,
) -> Result<ValueId, Fault> {
    if arg.is_too_large {
        return Err(beyond_i64(arg.span.clone(), &text[arg.span]));
    }
    Ok(builder.value(arg.value))
}

/// Parses `name:`.
pub(super) fn session_name<'a>(cursor: &mut Cursor<'a>) -> Result<Cow<'a, str>, Fault> {
    let start = cursor.at;
    let name = if cursor.peek() == b'"' {
        Cow::Owned(quoted(cursor)?)
    } else {
        Cow::Borrowed(cursor.take_while(is_word_char))
    };
    let span = start..cursor.at;
    let is_number = name.bytes().all(|b| b.is_ascii_digit());
    let is_quoted = matches!(name, Cow::Owned(_));
    cursor.skip_spaces();
    if !cursor.eat(":") || (name.is_empty() && !is_quoted) {
        cursor.at = span.end;
        let end = if span.is_empty() { cursor.here().end } else { span.end };
        let fault = Fault::new(start..end, "expected the name of a session and `:`");
        return Err(if cursor.peek() == b'(' {
            fault.hint("a line is a session: `t0: w(x,1) r(y,0)`")
        } else {
            fault.hint(
                "a name that is not a plain word or a number is quoted: `\"my session\": ...`",
            )
        });
    }
    if !is_quoted && !is_number && !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return Err(Fault::new(span, "a session's name is a plain word or a number")
            .hint(format!("quote it: `\"{name}\": ...`")));
    }
    Ok(name)
}

/// Parses a plain word, which may be empty.
pub(super) fn word<'a>(cursor: &mut Cursor<'a>) -> &'a str {
    let starts = cursor.rest().starts_with(|c: char| c.is_alphabetic() || c == '_');
    if starts { cursor.take_while(is_word_char) } else { "" }
}

pub(super) fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '$')
}

#[inline]
pub(super) fn is_word_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/' | b'$')
}

/// Parses an integer of at most 18 digits, which can't overflow.
#[inline]
pub(super) fn quick_integer(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let is_negative = bytes.get(*at) == Some(&b'-');
    *at += usize::from(is_negative);
    let start = *at;
    let mut value = 0;
    while let Some(digit @ b'0'..=b'9') = bytes.get(*at) {
        if *at - start == 18 {
            return None;
        }
        value = 10 * value + i64::from(digit - b'0');
        *at += 1;
    }
    (*at > start).then_some(if is_negative { -value } else { value })
}

/// Parses an integer that is not followed by another character of a word.
fn integer(cursor: &mut Cursor<'_>) -> Result<i64, Fault> {
    let start = cursor.at;
    cursor.eat("-");
    let digits = cursor.take_while(|c| c.is_ascii_digit());
    let is_integer = !digits.is_empty();
    let tail = cursor.take_while(is_word_char);
    let text = &cursor.text[start..cursor.at];
    if !is_integer || !tail.is_empty() {
        let fault = Fault::new(start..cursor.at, format!("`{text}` is not an integer"));
        return Err(fault.hint(format!("quote it if it is a text: `\"{text}\"`")));
    }
    text.parse().map_err(|_| beyond_i64(start..cursor.at, text))
}

/// Parses a quoted text.
pub(super) fn quoted(cursor: &mut Cursor<'_>) -> Result<String, Fault> {
    let start = cursor.at;
    let Some(end) = text_end(cursor.text, start) else {
        return Err(Fault::new(start..start + 1, "this text is not closed")
            .hint("close it with `\"`; a quote inside is `\\\"`"));
    };
    cursor.at = end;
    let text = &cursor.text[start..cursor.at];
    serde_json::from_str(text).map_err(|_| {
        Fault::new(
            start..cursor.at,
            "this text contains an escape or a control character that JSON does not have",
        )
        .hint("escapes are \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u0000")
    })
}

/// Finds the end of the quoted text that starts at a byte.
pub(super) fn text_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Parses `!` or `?`.
pub(super) fn status(cursor: &mut Cursor<'_>) -> Option<Status> {
    let mut ahead = *cursor;
    ahead.skip_spaces();
    let status = match ahead.peek() {
        b'!' => Status::Fail,
        b'?' => Status::Unknown,
        _ => return None,
    };
    cursor.at = ahead.at + 1;
    Some(status)
}

/// Parses a status and a time, in either order.
pub(super) fn suffixes(cursor: &mut Cursor<'_>) -> Result<(Status, Option<Interval>), Fault> {
    let (mut found_status, mut time) = (None, None);
    loop {
        let mut ahead = *cursor;
        ahead.skip_spaces();
        let start = ahead.at;
        if let Some(status) = status(cursor) {
            if found_status.replace(status).is_some() {
                return Err(Fault::new(start..start + 1, "a second status").hint(
                    "an operation has one status: `!` if it failed, `?` if that is unknown",
                ));
            }
        } else if ahead.eat("@") {
            ahead.skip_spaces();
            let interval = interval(&mut ahead)?;
            if time.replace(interval).is_some() {
                return Err(Fault::new(start..ahead.at, "a second time"));
            }
            *cursor = ahead;
        } else {
            return Ok((found_status.unwrap_or_default(), time));
        }
    }
}

/// Parses `3..9` or `3..`.
fn interval(cursor: &mut Cursor<'_>) -> Result<Interval, Fault> {
    let from = cursor.at;
    let start = cursor.integer()?;
    if !cursor.eat("..") {
        let message = format!("expected `..`, found {}", cursor.found());
        return Err(Fault::new(cursor.here(), message)
            .hint("a time is `@3..9`, or `@3..` if the operation never returned"));
    }
    let end = match cursor.peek() {
        b'-' | b'0'..=b'9' => Some(cursor.integer()?),
        _ => None,
    };
    match end {
        Some(end) if end < start => Err(Fault::new(
            from..cursor.at,
            format!("it ends at {end}, before it starts at {start}"),
        )
        .hint("a time is `@start..end`")),
        _ => Ok(Interval { start, end }),
    }
}

/// Checks that the rest of a line is empty or a comment.
pub(super) fn nothing_more(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    cursor.skip_spaces();
    match cursor.peek() {
        b'#' => Ok(()),
        _ if cursor.is_done() => Ok(()),
        _ => Err(Fault::new(cursor.at..cursor.text.len(), "unexpected text after the name")),
    }
}
