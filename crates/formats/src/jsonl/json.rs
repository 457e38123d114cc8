//! JSON in which every part has a position.
//!
//! A part is stored as a slice of the text, so its position is the offset of the slice in the text.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use consistory_history::Value;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::hist::MAX_NESTING;
use crate::parse::{Fault, beyond_i64};

/// Fields of an object, in order: the name with its quotes, and the value.
pub(crate) struct Object<'a>(pub(crate) Vec<(&'a str, &'a str)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    fields.push((name.get(), value.get()));
                }
                Ok(Object(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Splits a list into its items.
pub(crate) fn list(text: &str) -> Option<Vec<&str>> {
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    Some(items.into_iter().map(RawValue::get).collect())
}

/// Returns the byte range of a part in the text that it is a slice of.
pub(crate) fn offset_in(text: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize).min(text.len());
    start..(start + part.len()).min(text.len())
}

/// Returns a string or an integer as a name; 1 and "1" are the same.
pub(crate) fn text_of(part: &str) -> Option<Cow<'_, str>> {
    let bytes = part.as_bytes();
    match bytes.first()? {
        b'"' if !bytes.contains(&b'\\') => Some(Cow::Borrowed(&part[1..part.len() - 1])),
        b'"' => serde_json::from_str(part).ok().map(Cow::Owned),
        b'-' | b'0'..=b'9' if is_integer(part) => Some(Cow::Borrowed(part)),
        _ => None,
    }
}

/// Parses a value; `span` is the position of `part`.
pub(crate) fn value_of(part: &str, span: Range<usize>) -> Result<Value, Fault> {
    const VALUES: &str = "a value is an integer, a string, a boolean, null or a list of these";
    match part.as_bytes().first() {
        Some(b'"') => {
            let text = text_of(part).ok_or_else(|| Fault::new(span, "malformed string"))?;
            Ok(Value::Str(text.into()))
        }
        Some(b'n') => Ok(Value::Null),
        Some(b't') => Ok(Value::Bool(true)),
        Some(b'f') => Ok(Value::Bool(false)),
        Some(b'[') => {
            if nesting(part) > MAX_NESTING {
                return Err(Fault::new(span, format!("lists nest at most {MAX_NESTING} deep")));
            }
            let items = list(part).ok_or_else(|| Fault::new(span.clone(), "malformed list"))?;
            let place = |item: &str| {
                let inside = offset_in(part, item);
                span.start + inside.start..span.start + inside.end
            };
            items
                .into_iter()
                .map(|item| value_of(item, place(item)))
                .collect::<Result<_, _>>()
                .map(Value::List)
        }
        Some(b'{') => Err(Fault::new(span, "an object can't be a value")
            .hint(format!("{VALUES}; write the object as a string if it is all one value"))),
        _ if !is_integer(part) => Err(Fault::new(span, format!("`{part}` is not an integer"))
            .hint(format!("{VALUES}; write it as a string if it is a value"))),
        _ => part.parse().map(Value::Int).map_err(|_| beyond_i64(span, part)),
    }
}

/// Converts a syntax error of the JSON parser to a fault with its position.
pub(crate) fn syntax_fault(text: &str, error: &serde_json::Error) -> Fault {
    // Both count from 1, the column in bytes; an error at the end of a line has column 0 of the
    // next one.
    let line_start = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum::<usize>();
    let at = (line_start + error.column().saturating_sub(1)).min(text.len());
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
    if error.is_eof() {
        return Fault::new(text.len()..text.len(), "the JSON ends in the middle")
            .hint("is the input cut off?");
    }
    let fault = Fault::new(at..at + 1, format!("malformed JSON: {message}"));
    match message {
        "trailing characters" => fault.hint("nothing may follow, not even a comma"),
        "key must be a string" => fault.hint("names and strings are in double quotes"),
        _ => fault,
    }
}

fn is_integer(part: &str) -> bool {
    let digits = part.strip_prefix('-').unwrap_or(part);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the nesting depth of the brackets of well-formed JSON.
fn nesting(part: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = part.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'\\' => drop(bytes.next()),
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    deepest
}
