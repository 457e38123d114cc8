//! Initial values of an object that are stated by a history.
//!
//! `init: x=5` in a history of calls names a key and its value. A register or counter has one value,
//! so one key is its value; a store, transactions and a bank have keys of their own. Any other object
//! starts empty, and initial values are refused rather than ignored.

use std::collections::BTreeMap;
use std::sync::Arc;

use consistory_history::{History, Value};

use crate::ready::{Bank, CasRegister, Counter, KeyValue, Register, StartedKeyValue, Transactions};
use crate::specification::Object;

/// The reason why an object cannot start with a history's initial values.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StartError {
    /// The object has no initial values.
    #[error("the history states an initial value of {key}, but `{object}` has no initial value")]
    NoValues {
        /// The object.
        object: String,
        /// A key that the history gives.
        key: String,
    },
    /// The object has one value, and the history states several.
    #[error("the history states initial values of {keys} keys, but `{object}` has only one value")]
    SeveralValues {
        /// The object.
        object: String,
        /// Number of keys in the history.
        keys: usize,
    },
    /// The value is not of the object's kind.
    #[error("`{object}` cannot start with {value}, the initial value of {key}")]
    Kind {
        /// The object.
        object: String,
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// Both the object's name and the history state an initial value.
    #[error("the initial value is stated twice: by `{object}`, and by the history for {key}")]
    Twice {
        /// The object, with its parameter.
        object: String,
        /// A key that the history gives.
        key: String,
    },
    /// No initial value is stated, and there is no default.
    #[error("no initial value is stated for `{object}`")]
    Unknown {
        /// The object.
        object: String,
    },
}

/// Returns a built-in object with a history's initial values, or the same object if the history
/// states none.
///
/// `name` is the object's name with its parameter. A history of reads and writes states the initial
/// values of all its keys, a history of calls those of its `init:` lines.
pub fn started(
    name: &str,
    object: &Arc<dyn Object>,
    history: &History,
) -> Result<Arc<dyn Object>, StartError> {
    let (kind, parameter) = match name.split_once('(') {
        Some((kind, _)) => (kind.trim(), true),
        None => (name.trim(), false),
    };
    let given: Vec<(&str, &Value)> = history
        .keys()
        .map(|key| (history.key_name(key), history.value(history.initial_value(key))))
        .collect();
    let owned = || name.to_owned();
    let Some(&(first, value)) = given.first() else {
        return match kind {
            "bank" if !parameter => Err(StartError::Unknown { object: owned() }),
            _ => Ok(Arc::clone(object)),
        };
    };
    if parameter && kind != "keyed" {
        // Keys that are read and written start with 0 by default.
        let said = given.iter().find(|(_, v)| history.has_calls() || **v != Value::Int(0));
        return match said {
            Some((key, _)) => Err(StartError::Twice { object: owned(), key: (*key).to_owned() }),
            None => Ok(Arc::clone(object)),
        };
    }
    let wrong_kind = |key: &str, value: &Value| StartError::Kind {
        object: owned(),
        key: key.to_owned(),
        value: value.to_string(),
    };
    let has_one = || match given.len() {
        1 => Ok(value.clone()),
        keys => Err(StartError::SeveralValues { object: owned(), keys }),
    };
    Ok(match kind {
        "register" => Arc::new(Register { initial: has_one()? }),
        "cas-register" => Arc::new(CasRegister::new(has_one()?)),
        "counter" => match has_one()? {
            Value::Int(initial) => Arc::new(Counter { initial }),
            other => return Err(wrong_kind(first, &other)),
        },
        "kv" => {
            let of_registers = !history.has_calls();
            if of_registers && given.iter().all(|(_, other)| *other == value) {
                return Ok(Arc::new(KeyValue { initial: value.clone() }));
            }
            let starts = given.iter().flat_map(|&(key, value)| by_name(key, value, of_registers));
            let store = KeyValue { initial: Value::Str("".into()) };
            Arc::new(StartedKeyValue { store, starts: starts.collect() })
        }
        "transactions" => {
            let starts = given.iter().flat_map(|&(key, value)| by_name(key, value, false));
            Arc::new(Transactions { initial: starts.collect() })
        }
        "bank" => {
            let mut initial = BTreeMap::new();
            for &(account, balance) in &given {
                let &Value::Int(amount) = balance else {
                    return Err(wrong_kind(account, balance));
                };
                let account = match account.parse() {
                    Ok(number) => Value::Int(number),
                    Err(_) => Value::Str(account.into()),
                };
                initial.insert(account, amount);
            }
            Arc::new(Bank { initial })
        }
        _ => return Err(StartError::NoValues { object: owned(), key: first.to_owned() }),
    })
}

/// Returns the values that a key with this name may have in calls: the text and, if it is a number,
/// the number. So `init: 1=5` applies to the key that calls write as `1` and as `"1"`.
fn by_name(key: &str, value: &Value, is_text: bool) -> Vec<(Value, Value)> {
    let mut found = vec![(Value::Str(key.into()), value.clone())];
    if let Ok(number) = key.parse::<i64>()
        && !is_text
        && number.to_string() == key
    {
        found.push((Value::Int(number), value.clone()));
    }
    found
}
