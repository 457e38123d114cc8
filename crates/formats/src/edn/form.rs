//! Forms, their positions, and their values.

use std::fmt;
use std::sync::Arc;

use consistory_history::Value;

use crate::hist::MAX_NESTING;
use crate::parse::{Fault, beyond_i64};

/// Start of a form: a line, and the bytes of it that are marked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A form and its position.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) kind: Kind,
    pub(crate) place: Place,
}

/// Kind and content of a form.
#[derive(Debug)]
pub(crate) enum Kind {
    Nil,
    Bool(bool),
    Int(i64),
    /// A number that is not a 64-bit integer: a fraction, a ratio, a larger integer.
    Number(Box<str>),
    /// A text or a character.
    Text(Box<str>),
    Keyword(Arc<str>),
    Symbol(Arc<str>),
    /// A list, vector or set.
    Sequence(Vec<Form>),
    /// Keys and values alternately.
    Map(Vec<Form>),
}

impl Form {
    /// Returns the name that a keyword, symbol, text or integer stands for.
    pub(crate) fn name(&self) -> Option<String> {
        match &self.kind {
            Kind::Keyword(name) | Kind::Symbol(name) => Some(name.to_string()),
            Kind::Text(name) => Some(name.to_string()),
            Kind::Int(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Returns the value of a form, or an error with its position: keywords and fractions become
    /// texts, a map becomes the list of its pairs.
    pub(crate) fn value(&self) -> Result<Value, (Place, Fault)> {
        self.value_at(0)
    }

    fn value_at(&self, depth: usize) -> Result<Value, (Place, Fault)> {
        let span = self.place.start..self.place.end;
        if depth > MAX_NESTING {
            let message = format!("values nest at most {MAX_NESTING} deep");
            return Err((self.place, Fault::new(span, message)));
        }
        let list = |items: &[Form], depth: usize| {
            items.iter().map(|item| item.value_at(depth)).collect::<Result<_, _>>().map(Value::List)
        };
        Ok(match &self.kind {
            Kind::Nil => Value::Null,
            Kind::Bool(truth) => Value::Bool(*truth),
            Kind::Int(number) => Value::Int(*number),
            Kind::Number(text) if text.trim_end_matches('N').parse::<f64>().is_ok_and(is_whole) => {
                return Err((self.place, beyond_i64(span, text)));
            }
            Kind::Number(text) | Kind::Text(text) => Value::Str(text.clone()),
            Kind::Keyword(name) | Kind::Symbol(name) => Value::Str((**name).into()),
            Kind::Sequence(items) => list(items, depth + 1)?,
            Kind::Map(items) => {
                let pairs = items.chunks(2).map(|pair| list(pair, depth + 2));
                Value::List(pairs.collect::<Result<_, _>>()?)
            }
        })
    }
}

/// Checks whether a number that is not a 64-bit integer is a larger integer.
fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() >= 9.0e18
}

/// Writes a value so that it is read back unchanged: a text that could be a keyword is written as a
/// keyword only if the caller requests this.
pub(crate) fn write_value(value: &Value, out: &mut dyn fmt::Write) -> fmt::Result {
    match value {
        Value::Null => out.write_str("nil"),
        Value::Bool(truth) => write!(out, "{truth}"),
        Value::Int(number) => write!(out, "{number}"),
        Value::Str(text) => {
            out.write_char('"')?;
            for c in text.chars() {
                match c {
                    '"' => out.write_str("\\\"")?,
                    '\\' => out.write_str("\\\\")?,
                    '\n' => out.write_str("\\n")?,
                    '\r' => out.write_str("\\r")?,
                    '\t' => out.write_str("\\t")?,
                    c if (c as u32) < 0x20 => write!(out, "\\u{:04x}", c as u32)?,
                    c => out.write_char(c)?,
                }
            }
            out.write_char('"')
        }
        Value::List(items) => {
            out.write_char('[')?;
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.write_char(' ')?;
                }
                write_value(item, out)?;
            }
            out.write_char(']')
        }
    }
}
