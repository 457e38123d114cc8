//! Splits a line into its fields.
//!
//! [`scan_flat`] handles the usual line, an object of known fields whose values are integers, plain
//! strings or literals, in one pass and without allocating. [`scan_any`] handles every line and
//! reports errors.

use super::json::{Object, offset_in, syntax_fault, text_of};
use crate::parse::{Fault, Line, Sink, nearest};

/// A field of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    History,
    Session,
    Op,
    Key,
    Value,
    Read,
    Call,
    Args,
    Returns,
    Start,
    End,
    Txn,
    Status,
    Init,
    Final,
    Type,
}

/// Names of the fields, in the order of [`Field`].
pub(crate) const NAMES: [&str; 16] = [
    "history", "session", "op", "key", "value", "read", "call", "args", "returns", "start", "end",
    "txn", "status", "init", "final", "type",
];

/// Fields of a line, each as the JSON text of its value.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fields<'a>([Option<&'a str>; NAMES.len()]);

impl<'a> Fields<'a> {
    #[inline]
    pub(crate) fn get(&self, field: Field) -> Option<&'a str> {
        self.0[field as usize]
    }

    /// Iterates over the names and values of the fields that are present.
    pub(crate) fn present(&self) -> impl Iterator<Item = (&'static str, &'a str)> + use<'a> {
        NAMES.into_iter().zip(self.0).filter_map(|(name, value)| Some((name, value?)))
    }
}

/// Splits a line of the usual form into its fields; `None` for any other line.
pub(crate) fn scan_flat(text: &str) -> Option<Fields<'_>> {
    let bytes = text.as_bytes();
    let mut fields = Fields::default();
    let mut at = skip(bytes, 0);
    if bytes.get(at) != Some(&b'{') {
        return None;
    }
    at += 1;
    loop {
        at = skip(bytes, at);
        let end = string_end(bytes, at)?;
        let field = field_of(&bytes[at + 1..end - 1])?;
        at = skip(bytes, end);
        if bytes.get(at) != Some(&b':') {
            return None;
        }
        at = skip(bytes, at + 1);
        let end = match bytes.get(at)? {
            b'"' => string_end(bytes, at)?,
            b'-' | b'0'..=b'9' => integer_end(bytes, at)?,
            b'n' | b't' | b'f' => {
                let rest = &bytes[at..];
                let literal =
                    [&b"null"[..], b"true", b"false"].into_iter().find(|l| rest.starts_with(l));
                at + literal?.len()
            }
            _ => return None,
        };
        let slot = &mut fields.0[field as usize];
        if slot.is_some() {
            return None;
        }
        *slot = Some(&text[at..end]);
        at = skip(bytes, end);
        match bytes.get(at)? {
            b',' => at += 1,
            b'}' => break,
            _ => return None,
        }
    }
    (skip(bytes, at + 1) == bytes.len()).then_some(fields)
}

/// Splits any line into its fields, and reports errors.
///
/// Valid fields are returned even if others are invalid.
pub(crate) fn scan_any<'a>(line: Line<'a>, sink: &mut Sink) -> Option<Fields<'a>> {
    let text = line.text;
    let trimmed = text.trim();
    if !trimmed.starts_with('{') {
        let fault = Fault::new(offset_in(text, trimmed), "expected a JSON object")
            .hint("each line is one object: {\"session\":\"t0\",\"op\":\"write\",\"key\":\"x\",\"value\":1}");
        sink.report(line, fault);
        return None;
    }
    let object: Object<'a> = match serde_json::from_str(text) {
        Ok(object) => object,
        Err(error) => {
            sink.report(line, syntax_fault(text, &error));
            return None;
        }
    };
    let mut fields = Fields::default();
    for (name, value) in object.0 {
        let span = offset_in(text, name);
        let name = text_of(name).unwrap_or_default();
        let Some(field) = field_of(name.as_bytes()) else {
            let known = NAMES.join(", ");
            let hint = match nearest(&name, NAMES) {
                Some(meant) => format!("did you mean \"{meant}\"? The fields are {known}"),
                None => format!("the fields are {known}"),
            };
            sink.report(line, Fault::new(span, format!("unknown field \"{name}\"")).hint(hint));
            continue;
        };
        if fields.0[field as usize].replace(value).is_some() {
            sink.report(line, Fault::new(span, format!("a second field \"{name}\"")));
        }
    }
    Some(fields)
}

#[inline]
fn field_of(name: &[u8]) -> Option<Field> {
    Some(match name {
        b"history" => Field::History,
        b"session" => Field::Session,
        b"op" => Field::Op,
        b"key" => Field::Key,
        b"value" => Field::Value,
        b"read" => Field::Read,
        b"call" => Field::Call,
        b"args" => Field::Args,
        b"returns" => Field::Returns,
        b"start" => Field::Start,
        b"end" => Field::End,
        b"txn" => Field::Txn,
        b"status" => Field::Status,
        b"init" => Field::Init,
        b"final" => Field::Final,
        b"type" => Field::Type,
        _ => return None,
    })
}

#[inline]
fn skip(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Returns the end of the string that starts at `at`, if it has no escapes.
#[inline]
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let mut end = at + 1;
    loop {
        match bytes.get(end)? {
            b'"' => return Some(end + 1),
            b'\\' | 0..0x20 => return None,
            _ => end += 1,
        }
    }
}

#[inline]
fn integer_end(bytes: &[u8], at: usize) -> Option<usize> {
    let start = at + usize::from(bytes[at] == b'-');
    let mut end = start;
    while let Some(b'0'..=b'9') = bytes.get(end) {
        end += 1;
    }
    let has_leading_zero = bytes.get(start) == Some(&b'0') && end - start > 1;
    let goes_on = matches!(bytes.get(end), Some(b'.' | b'e' | b'E'));
    (end > start && !has_leading_zero && !goes_on).then_some(end)
}
