//! A store of texts by key, as the key-value logs of fault-injection tests have it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use consistory_history::Value;

use crate::signatures::signatures;
use crate::specification::{CallRef, Goal, Method, Specification};

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        read get(key) -> value as read
        put(key, value) as write, set
        append(key, text)
        delete(key) as remove
        cas(key, expected, new) -> bool
        ",
    )
});

/// A key-value store; a key that was never written holds `initial`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyValue {
    /// What an unwritten key holds.
    pub initial: Value,
}

impl Specification for KeyValue {
    /// Holds only what differs from `initial`, so that equal contents are equal states.
    type State = BTreeMap<Value, Value>;

    fn initial(&self) -> Self::State {
        BTreeMap::new()
    }

    fn invoke(&self, store: &mut Self::State, method: &str, args: &[Value]) -> Option<Value> {
        let current =
            |store: &Self::State, key: &Value| store.get(key).unwrap_or(&self.initial).clone();
        let mut set = |key: &Value, value: Value| {
            if value == self.initial {
                store.remove(key);
            } else {
                store.insert(key.clone(), value);
            }
        };
        match (method, args) {
            ("get", [key]) => return Some(current(store, key)),
            ("put", [key, value]) => set(key, value.clone()),
            ("append", [key, value]) => {
                let appended = match (store.get(key).unwrap_or(&self.initial), value) {
                    (Value::Str(old), Value::Str(new)) => Value::Str(format!("{old}{new}").into()),
                    (Value::Null, Value::Str(new)) => Value::Str(new.clone()),
                    (Value::List(old), new) => {
                        let mut list = old.clone();
                        list.push(new.clone());
                        Value::List(list)
                    }
                    (Value::Null, new) => Value::List(vec![new.clone()]),
                    _ => return None,
                };
                if appended == self.initial {
                    store.remove(key);
                } else {
                    store.insert(key.clone(), appended);
                }
            }
            ("delete", [key]) => set(key, self.initial.clone()),
            ("cas", [key, expected, new]) => {
                let is_equal = current(store, key) == *expected;
                if is_equal {
                    if *new == self.initial {
                        store.remove(key);
                    } else {
                        store.insert(key.clone(), new.clone());
                    }
                }
                return Some(Value::Bool(is_equal));
            }
            _ => return None,
        }
        Some(Value::Null)
    }

    fn is_read_only(&self, method: &str, returns: Option<&Value>) -> bool {
        method == "get" || (method == "cas" && returns == Some(&Value::Bool(false)))
    }

    fn looks_ahead(&self) -> bool {
        true
    }

    fn can_reach(&self, store: &Self::State, goal: &Goal<'_>, by: &[CallRef<'_>]) -> bool {
        let ("get", [key], Value::Str(wanted)) = (goal.method, goal.args, goal.returns) else {
            return true;
        };
        let Value::Str(current) = store.get(key).unwrap_or(&self.initial) else { return true };
        let mut texts = Vec::new();
        for &(method, args) in by.iter().filter(|(_, args)| args.first() == Some(key)) {
            match (method, args) {
                ("append", [_, Value::Str(text)]) => texts.push(&**text),
                ("get", _) => {}
                _ => return true,
            }
        }
        // Only appends are left: what is there stays, and one of them comes next.
        match wanted.strip_prefix(&**current) {
            Some("") => true,
            Some(rest) => texts.iter().any(|text| rest.starts_with(*text)),
            None => false,
        }
    }

    fn methods(&self) -> &[Method] {
        &METHODS
    }

    fn part(&self, _method: &str, args: &[Value]) -> Option<Value> {
        args.first().cloned()
    }
}
