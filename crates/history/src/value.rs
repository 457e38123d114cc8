//! Values and the table that interns them.

use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault};

use rustc_hash::{FxHashMap, FxHasher};

use crate::escape::is_unruly;
use crate::ids::ValueId;

/// A value that is written, read, passed or returned.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Value {
    /// The absence of a value; in a register it denotes the key's initial value.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A text.
    Str(Box<str>),
    /// A sequence.
    List(Vec<Value>),
}

impl fmt::Display for Value {
    /// Writes the value in text notation; a text that is not a plain word is quoted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(i) => write!(f, "{i}"),
            Value::Str(s) => write_word(s, f),
            Value::List(values) => {
                f.write_str("[")?;
                for (i, value) in values.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{value}")?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Checks whether `text` needs no quotes where the text notation expects a value.
pub fn is_plain_word(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '$'))
        && !matches!(text, "null" | "nil" | "true" | "false")
}

fn write_word(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if is_plain_word(text) { f.write_str(text) } else { write_quoted(text, f) }
}

/// Writes `text` in double quotes, escaped as in JSON; characters that a terminal would not show
/// are escaped too.
pub fn write_quoted(text: &str, f: &mut impl fmt::Write) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if is_unruly(c) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    write!(f, "\\u{unit:04x}")?;
                }
            }
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// The values of a history, each stored once.
///
/// Small non-negative integers, which nearly every recorder writes, are found by index instead of
/// by hash.
#[derive(Clone, Debug, Default)]
pub struct Values {
    table: Vec<Value>,
    /// `small[i]` is the id of `Int(i)` plus one, or 0 if it is not interned.
    small: Vec<u32>,
    /// The other integers.
    far: FxHashMap<i64, ValueId>,
    /// Latest value with each hash, except integers. Only the table stores the values, since lists
    /// can be long.
    others: FxHashMap<u64, ValueId>,
    /// For each value, the previous value with the same hash.
    same_hash: FxHashMap<ValueId, ValueId>,
    /// Number of values that are lists.
    lists: u32,
}

impl Values {
    /// Interns a value.
    pub fn intern(&mut self, value: Value) -> ValueId {
        if let Value::Int(i) = value {
            return self.intern_int(i);
        }
        let hash = hash_of(&value);
        self.find_other(&value, hash).unwrap_or_else(|| self.push_other(value, hash))
    }

    /// Interns a value, which is cloned only if it is new.
    pub fn intern_copy(&mut self, value: &Value) -> ValueId {
        if let Value::Int(i) = *value {
            return self.intern_int(i);
        }
        let hash = hash_of(value);
        self.find_other(value, hash).unwrap_or_else(|| self.push_other(value.clone(), hash))
    }

    fn find_other(&self, value: &Value, hash: u64) -> Option<ValueId> {
        let mut found = self.others.get(&hash).copied();
        while let Some(id) = found {
            if self.get(id) == value {
                return found;
            }
            found = self.same_hash.get(&id).copied();
        }
        None
    }

    fn push_other(&mut self, value: Value, hash: u64) -> ValueId {
        self.lists += u32::from(matches!(value, Value::List(_)));
        let id = self.push(value);
        if let Some(earlier) = self.others.insert(hash, id) {
            self.same_hash.insert(id, earlier);
        }
        id
    }

    /// Checks whether any value is a list.
    pub fn has_lists(&self) -> bool {
        self.lists > 0
    }

    /// Interns an integer.
    pub fn intern_int(&mut self, i: i64) -> ValueId {
        // The index may grow only in proportion to the table, so that one huge value does not
        // enlarge it.
        let bound = 4 * self.table.len() + 1024;
        let Some(at) = usize::try_from(i).ok().filter(|&at| at < bound.max(self.small.len()))
        else {
            return self.intern_far_int(i);
        };
        if at >= self.small.len() {
            let size = (at + 1).max(2 * self.small.len());
            self.small.resize(size, 0);
            // Integers that were interned by hash because the index was too short are moved into
            // it.
            for (i, id) in &self.far {
                if let Ok(at) = usize::try_from(*i)
                    && at < size
                {
                    self.small[at] = id.0 + 1;
                }
            }
        }
        if self.small[at] == 0 {
            let id = self.push(Value::Int(i));
            self.small[at] = id.0 + 1;
        }
        ValueId(self.small[at] - 1)
    }

    /// Finds the id of a value, if the value is interned.
    pub fn find(&self, value: &Value) -> Option<ValueId> {
        let Value::Int(i) = value else { return self.find_other(value, hash_of(value)) };
        match usize::try_from(*i).ok().and_then(|at| self.small.get(at)) {
            Some(&entry) if entry != 0 => Some(ValueId(entry - 1)),
            _ => self.far.get(i).copied(),
        }
    }

    /// Returns the value with an id.
    pub fn get(&self, id: ValueId) -> &Value {
        &self.table[id.index()]
    }

    /// Counts the distinct values.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Checks whether nothing is interned.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    fn intern_far_int(&mut self, i: i64) -> ValueId {
        if let Some(&id) = self.far.get(&i) {
            return id;
        }
        let id = self.push(Value::Int(i));
        self.far.insert(i, id);
        id
    }

    fn push(&mut self, value: Value) -> ValueId {
        let id = ValueId::new(self.table.len());
        self.table.push(value);
        id
    }
}

fn hash_of(value: &Value) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_one_id_however_it_was_found() {
        let mut values = Values::default();
        let far = values.intern_int(5_000);
        let ids: Vec<ValueId> = (0..6_000).map(|i| values.intern_int(i)).collect();
        assert_eq!(
            ids[5_000], far,
            "an integer interned by hash keeps its id when the index grows"
        );
        for (i, &id) in ids.iter().enumerate() {
            assert_eq!(values.find(&Value::Int(i as i64)), Some(id));
            assert_eq!(values.get(id), &Value::Int(i as i64));
        }
        let negative = values.intern_int(-1);
        assert_eq!(values.intern(Value::Int(-1)), negative);
        let text = values.intern(Value::Str("a".into()));
        assert_eq!(values.intern(Value::Str("a".into())), text);
        assert_eq!(values.len(), 6_002);
        assert_eq!(values.find(&Value::Null), None);
    }

    #[test]
    fn values_with_the_same_hash_are_told_apart() {
        let mut values = Values::default();
        let text = |i: u32| Value::Str(i.to_string().into());
        let ids: Vec<ValueId> = (0..3).map(|i| values.push_other(text(i), 7)).collect();
        for i in 0..3 {
            assert_eq!(values.find_other(&text(i), 7), Some(ids[i as usize]));
        }
        assert_eq!(values.find_other(&text(3), 7), None);
        let list = Value::List(vec![Value::Int(1), text(1)]);
        let id = values.intern_copy(&list);
        assert_eq!((values.intern(list.clone()), values.find(&list)), (id, Some(id)));
        assert!(values.has_lists());
    }

    #[test]
    fn one_huge_integer_does_not_grow_the_index() {
        let mut values = Values::default();
        values.intern_int(i64::MAX);
        values.intern_int(1 << 40);
        assert!(values.small.len() < 10_000);
    }
}
