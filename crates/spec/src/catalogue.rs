//! The catalogue of built-in objects.

use std::sync::Arc;

use consistory_history::Value;

use crate::ready::{
    Bank, CasRegister, Counter, Deque, KeyValue, Keyed, List, Lock, Log, Map, PriorityOrder,
    PriorityQueue, Queue, Register, Set, Stack, Transactions,
};
use crate::specification::Object;

/// A built-in object.
pub struct Entry {
    /// Name of the object.
    pub name: &'static str,
    /// Meaning of the parameter, if there is one.
    pub parameter: Option<&'static str>,
    /// Description in one line.
    pub about: &'static str,
    make: fn(Option<&str>) -> Option<Arc<dyn Object>>,
}

/// Error for a text that does not name a built-in object.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ObjectError {
    /// There is no object of that name.
    #[error("there is no object `{name}`; there is {}, and one of them per key: keyed(set)", names().join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// The object does not accept the parameter.
    #[error("`{parameter}` is not a parameter of `{name}`{}", takes(.expected))]
    Parameter {
        /// The object.
        name: String,
        /// The parameter.
        parameter: String,
        /// The parameters that it accepts.
        expected: Option<&'static str>,
    },
}

fn names() -> Vec<&'static str> {
    CATALOGUE.iter().map(|entry| entry.name).collect()
}

fn takes(what: &Option<&'static str>) -> String {
    match what {
        Some(what) => format!(", which takes {what}"),
        None => ", which takes none".to_owned(),
    }
}

static CATALOGUE: [Entry; 15] = [
    Entry {
        name: "register",
        parameter: Some("its initial value, null by default"),
        about: "a cell that is read and written",
        make: |p| Some(Arc::new(Register { initial: value(p.unwrap_or("null"))? })),
    },
    Entry {
        name: "cas-register",
        parameter: Some("its initial value, null by default"),
        about: "a register with compare-and-set",
        make: |p| Some(Arc::new(CasRegister::new(value(p.unwrap_or("null"))?))),
    },
    Entry {
        name: "counter",
        parameter: Some("its initial value, 0 by default"),
        about: "an integer that is added to",
        make: |p| Some(Arc::new(Counter { initial: p.unwrap_or("0").parse().ok()? })),
    },
    Entry {
        name: "map",
        parameter: None,
        about: "a sorted map",
        make: |p| p.is_none().then(|| Arc::new(Map) as _),
    },
    Entry {
        name: "kv",
        parameter: Some("what an unwritten key holds, the empty text by default"),
        about: "a key-value store with append",
        make: |p| Some(Arc::new(KeyValue { initial: value(p.unwrap_or("\"\""))? })),
    },
    Entry {
        name: "set",
        parameter: None,
        about: "a sorted set",
        make: |p| p.is_none().then(|| Arc::new(Set) as _),
    },
    Entry {
        name: "list",
        parameter: None,
        about: "elements by index",
        make: |p| p.is_none().then(|| Arc::new(List) as _),
    },
    Entry {
        name: "queue",
        parameter: Some("its capacity, unbounded by default"),
        about: "first in, first out",
        make: |p| Some(Arc::new(Queue { capacity: capacity(p)? })),
    },
    Entry {
        name: "stack",
        parameter: Some("its capacity, unbounded by default"),
        about: "last in, first out",
        make: |p| Some(Arc::new(Stack { capacity: capacity(p)? })),
    },
    Entry {
        name: "deque",
        parameter: Some("its capacity, unbounded by default"),
        about: "a queue open at both ends",
        make: |p| Some(Arc::new(Deque { capacity: capacity(p)? })),
    },
    Entry {
        name: "priority-queue",
        parameter: Some("`min` (the default) or `max`: which element comes out first"),
        about: "the least element comes out first",
        make: |p| {
            let order = match p {
                None | Some("min") => PriorityOrder::LeastFirst,
                Some("max") => PriorityOrder::GreatestFirst,
                Some(_) => return None,
            };
            Some(Arc::new(PriorityQueue { order }))
        },
    },
    Entry {
        name: "lock",
        parameter: None,
        about: "mutual exclusion",
        make: |p| p.is_none().then(|| Arc::new(Lock) as _),
    },
    Entry {
        name: "log",
        parameter: None,
        about: "entries are appended and read",
        make: |p| p.is_none().then(|| Arc::new(Log) as _),
    },
    Entry {
        name: "transactions",
        parameter: None,
        about: "a call reads and writes several keys at once",
        make: |p| p.is_none().then(|| Arc::new(Transactions::default()) as _),
    },
    Entry {
        name: "bank",
        parameter: Some("the balances, `0=10 1=20`, or `8*10` for eight accounts with 10 each"),
        about: "transfers between accounts, and reads of all balances",
        make: |p| match p {
            Some(balances) => Some(Arc::new(Bank::parse(balances)?)),
            None => Some(Arc::new(Bank::default())),
        },
    },
];

/// Lists the built-in objects.
pub fn catalogue() -> &'static [Entry] {
    &CATALOGUE
}

/// Finds a built-in object by its name, with an optional parameter in parentheses, such as
/// `register(0)`; `keyed(set)` has one set per key.
pub fn find(text: &str) -> Result<Arc<dyn Object>, ObjectError> {
    let (name, parameter) = match text.strip_suffix(')').and_then(|t| t.split_once('(')) {
        Some((name, parameter)) => (name.trim(), Some(parameter.trim())),
        None => (text.trim(), None),
    };
    if name == KEYED {
        return keyed(parameter.unwrap_or_default());
    }
    let entry = CATALOGUE
        .iter()
        .find(|entry| entry.name == name)
        .ok_or_else(|| ObjectError::Unknown { name: name.to_owned() })?;
    (entry.make)(parameter).ok_or_else(|| ObjectError::Parameter {
        name: name.to_owned(),
        parameter: parameter.unwrap_or_default().to_owned(),
        expected: entry.parameter,
    })
}

/// Name of the objects that have one object per key.
const KEYED: &str = "keyed";

/// Finds an object per key; `object` names what each key has, which must start by itself.
fn keyed(object: &str) -> Result<Arc<dyn Object>, ObjectError> {
    let name = object.split('(').next().unwrap_or_default().trim();
    match object {
        "" | "bank" => {}
        _ if matches!(name, KEYED | "transactions") => {}
        _ => return Ok(Arc::new(Keyed::new(find(object)?))),
    }
    Err(ObjectError::Parameter {
        name: KEYED.to_owned(),
        parameter: object.to_owned(),
        expected: Some("an object, as in `keyed(set)`"),
    })
}

fn capacity(parameter: Option<&str>) -> Option<Option<usize>> {
    parameter.map(|text| text.parse().ok()).map_or(Some(None), |capacity| capacity.map(Some))
}

/// Parses a value in the text notation, without lists.
fn value(text: &str) -> Option<Value> {
    Some(match text {
        "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ if text.parse::<i64>().is_ok() => Value::Int(text.parse().ok()?),
        _ => Value::Str(text.trim_matches('"').into()),
    })
}
