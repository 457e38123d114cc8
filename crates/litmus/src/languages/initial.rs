//! The initial section: `{ x=1; 0:X1=x; uint64_t y; int a[2]={1,2}; }`.

use std::ops::Range;

use super::{Builder, Type, Wrong, number};
use super::{aarch64, ppc, riscv, x86};
use crate::executions::Language;

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Number(i64),
    /// An address: a location, an offset in bytes and an index of its array.
    Location {
        name: String,
        offset: i64,
        index: i64,
    },
    Array(Vec<Value>),
}

/// One statement.
#[derive(Clone, Debug)]
pub(crate) struct Declaration {
    pub(crate) at: Range<usize>,
    pub(crate) of: Option<Type>,
    /// Thread of a register; `None` for a location.
    pub(crate) thread: Option<usize>,
    pub(crate) name: String,
    /// Number of elements, or the index of an element if there is no type.
    pub(crate) brackets: Option<i64>,
    pub(crate) value: Option<Value>,
}

pub(crate) fn parse(text: &str, range: Range<usize>) -> Result<Vec<Declaration>, Wrong> {
    let mut found = Vec::new();
    let mut start = range.start;
    let mut depth = 0;
    let bytes = text.as_bytes();
    for at in range.start..=range.end {
        let at_end = at == range.end;
        match bytes.get(at) {
            Some(b'{') if !at_end => depth += 1,
            Some(b'}') if !at_end => depth -= 1,
            Some(b';') if depth == 0 => {}
            _ if at_end => {}
            _ => continue,
        }
        if !(at_end || (bytes[at] == b';' && depth == 0)) {
            continue;
        }
        let piece = &text[start..at];
        let trimmed = piece.trim();
        if !trimmed.is_empty() {
            let begin = start + piece.len() - piece.trim_start().len();
            found.push(declaration(trimmed, begin..begin + trimmed.len())?);
        }
        start = at + 1;
    }
    Ok(found)
}

fn declaration(text: &str, at: Range<usize>) -> Result<Declaration, Wrong> {
    let (left, right) = match text.split_once('=') {
        Some((left, right)) => (left.trim(), Some(right.trim())),
        None => (text.trim(), None),
    };
    let value = match right {
        None => None,
        Some(right) => Some(
            value(right)
                .ok_or_else(|| Wrong::new(at.clone(), format!("`{right}` is not a value")))?,
        ),
    };
    // Words before the name form a type.
    let cut = left
        .rfind(|c: char| c.is_whitespace() || c == '*')
        .filter(|&cut| {
            left[cut + 1..].starts_with(|c: char| c.is_alphanumeric() || "_%[&".contains(c))
        })
        .map_or(0, |cut| cut + 1);
    let (mut words, mut name) = (left[..cut].trim(), left[cut..].trim());
    let mut thread = None;
    let mut prefix = None;
    if let Some((before, after)) = left.rsplit_once(':') {
        name = after.trim();
        let before = before.trim();
        let cut = before.rfind(char::is_whitespace).map_or(0, |cut| cut + 1);
        words = before[..cut].trim();
        prefix = Some(before[cut..].trim());
    }
    if let Some(prefix) = prefix {
        let prefix = prefix.trim_start_matches('*');
        let digits = prefix.trim_start_matches(['P', 'p']);
        thread = Some(
            digits
                .parse()
                .map_err(|_| Wrong::new(at.clone(), format!("`{prefix}` is not a thread")))?,
        );
    }
    let is_pointer = words.contains('*') || left.contains('*');
    let of = words
        .split(|c: char| c.is_whitespace() || c == '*')
        .rfind(|word| {
            !word.is_empty() && !matches!(*word, "volatile" | "const" | "_Atomic" | "struct")
        })
        .map(Type::named);
    let of = if is_pointer { Some(Type { bytes: 8, signed: true }) } else { of };
    let mut brackets = None;
    if let Some(inner) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        name = inner.trim();
    }
    if let Some((base, rest)) = name.split_once('[') {
        let inner = rest.trim_end_matches(']').trim();
        brackets = Some(number(inner).unwrap_or(0));
        name = base.trim();
    }
    if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || "_.%$".contains(c)) {
        return Err(Wrong::new(at, format!("`{text}` is not understood here")));
    }
    Ok(Declaration { at, of, thread, name: name.to_owned(), brackets, value })
}

fn value(text: &str) -> Option<Value> {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        let parts = inner.split(',').filter(|part| !part.trim().is_empty());
        return parts.map(value).collect::<Option<Vec<_>>>().map(Value::Array);
    }
    // The kernel's macro for the initial value of an atomic variable.
    let text =
        match text.strip_prefix("ATOMIC_INIT").or_else(|| text.strip_prefix("ATOMIC_VAR_INIT")) {
            Some(rest) => rest.trim().trim_start_matches('(').trim_end_matches(')'),
            None => text,
        };
    if let Some(number) = number(text) {
        return Some(Value::Number(number));
    }
    let text = text.trim_start_matches('&').trim();
    let (name, offset) = match text.split_once('+') {
        Some((name, offset)) => (name.trim(), number(offset)?),
        None => (text, 0),
    };
    let (name, index) = match name.split_once('[') {
        Some((base, rest)) => (base.trim(), number(rest.trim_end_matches(']'))?),
        None => (name, 0),
    };
    let fits = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || "_.".contains(c));
    fits.then(|| Value::Location { name: name.to_owned(), offset, index })
}

/// Returns the canonical name of a register in the language; `None` if there is no such register.
pub(crate) fn register_name(language: Language, name: &str) -> Option<String> {
    match language {
        Language::X86 | Language::X86_64 => x86::register_name(language, name),
        Language::AArch64 => aarch64::register_name(name),
        Language::RiscV => riscv::register_name(name),
        Language::Ppc => ppc::register_name(name),
        Language::C | Language::LinuxC | Language::Lisa => Some(name.to_owned()),
    }
}

/// Reads the types and values of registers and locations.
pub(crate) fn apply(
    language: Language,
    declarations: Vec<Declaration>,
    builder: &mut Builder,
) -> Result<(), Wrong> {
    // Types come first, because the width of a value is that of its location.
    for declaration in
        declarations.iter().filter(|d| d.thread.is_none() && !d.name.starts_with('%'))
    {
        let at = builder.location(&declaration.name);
        if let Some(of) = declaration.of {
            builder.set_type(at, of);
        }
        if let (Some(count), Some(_)) = (declaration.brackets, declaration.of) {
            let count = match &declaration.value {
                Some(Value::Array(values)) => (count as usize).max(values.len()),
                _ => count as usize,
            };
            builder.code.locations[at].initial = vec![0; count.clamp(1, 4096)];
            builder.code.locations[at].is_array = true;
        }
    }
    for declaration in declarations {
        let Declaration { at: range, of, thread, name, brackets, value } = declaration;
        let resolve = |builder: &mut Builder, value: &Value| match value {
            Value::Number(number) => Some(*number),
            Value::Location { name, offset, index } => {
                let at = builder.location(name);
                let bytes = i64::from(builder.code.locations[at].bytes);
                Some(builder.address(name) + offset + index * bytes)
            }
            Value::Array(_) => None,
        };
        if thread.is_none() && !name.starts_with('%') {
            let at = builder.location(&name);
            let kind = Type {
                bytes: builder.code.locations[at].bytes,
                signed: builder.code.locations[at].signed,
            };
            match value {
                Some(Value::Array(values)) => {
                    for (index, value) in values.iter().enumerate() {
                        let number = resolve(builder, value).unwrap_or(0);
                        let kept = builder.initial_value(kind, number);
                        let location = &mut builder.code.locations[at];
                        location.is_array = true;
                        if location.initial.len() <= index {
                            location.initial.resize(index + 1, 0);
                        }
                        location.initial[index] = kept;
                    }
                }
                Some(value) => {
                    let number = resolve(builder, &value).unwrap_or(0);
                    let kept = builder.initial_value(kind, number);
                    let element = if of.is_none() { brackets.unwrap_or(0) as usize } else { 0 };
                    let location = &mut builder.code.locations[at];
                    if element > 0 || (brackets.is_some() && of.is_none()) {
                        location.is_array = true;
                        if location.initial.len() <= element {
                            location.initial.resize(element + 1, 0);
                        }
                    }
                    location.initial[element] = kept;
                }
                None => {}
            }
            continue;
        }
        let Some(register) = register_name(language, &name) else {
            return Err(Wrong::new(
                range,
                format!("`{name}` is not a register of {}", language.as_str()),
            ));
        };
        let number = match &value {
            Some(value) => resolve(builder, value),
            None => None,
        };
        let threads: Vec<usize> = match thread {
            Some(thread) if thread < builder.code.threads.len() => vec![thread],
            Some(thread) => {
                return Err(Wrong::new(range, format!("there is no thread {thread}")));
            }
            None => (0..builder.code.threads.len()).collect(),
        };
        for thread in threads {
            let index = builder.code.threads[thread].register(&register);
            if let Some(number) = number {
                let kind = of.unwrap_or(Type::INT);
                // An address keeps its width; a number has the width of its type.
                let number = match value {
                    Some(Value::Number(number)) if of.is_some() => {
                        crate::executions::code::truncate(number, kind.bytes, kind.signed)
                    }
                    _ => number,
                };
                builder.code.threads[thread].initial[usize::from(index)] = number;
            }
            if let Some(of) = of {
                builder.types.insert((thread, index), of);
            }
        }
    }
    Ok(())
}
