//! Transactions over many keys, each one call.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use consistory_history::Value;

use crate::footprint::Heap;
use crate::signatures::signatures;
use crate::specification::{Method, Specification};

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        txn(steps) -> steps as transaction
        ",
    )
});

/// A store on which a call performs several steps atomically.
///
/// The argument lists the steps: `[r,key,null]` reads, `[w,key,value]` writes, `[append,key,value]`
/// appends to the key's list. The call returns the same list with each `null` of a read replaced by
/// the value found; a key that was never written and has no initial value holds `null`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Transactions {
    /// Initial values of keys.
    pub initial: BTreeMap<Value, Value>,
}

impl Specification for Transactions {
    type State = BTreeMap<Value, Value>;

    fn show(&self, state: &BTreeMap<Value, Value>) -> Option<String> {
        super::shown::map(state)
    }

    fn initial(&self) -> Self::State {
        self.initial.clone()
    }

    fn invoke(&self, store: &mut Self::State, method: &str, args: &[Value]) -> Option<Value> {
        let ("txn", [Value::List(steps)]) = (method, args) else { return None };
        let perform = |step: &Value| {
            let Value::List(parts) = step else { return None };
            let [Value::Str(kind), key, value] = parts.as_slice() else { return None };
            let shown = match &**kind {
                "r" => store.get(key).cloned().unwrap_or(Value::Null),
                "w" => {
                    match value {
                        Value::Null => store.remove(key),
                        value => store.insert(key.clone(), value.clone()),
                    };
                    value.clone()
                }
                "append" => {
                    let list = store.entry(key.clone()).or_insert(Value::List(Vec::new()));
                    let Value::List(list) = list else { return None };
                    list.push(value.clone());
                    value.clone()
                }
                _ => return None,
            };
            Some(Value::List(vec![parts[0].clone(), key.clone(), shown]))
        };
        steps.iter().map(perform).collect::<Option<Vec<_>>>().map(Value::List)
    }

    fn footprint(&self, state: &Self::State) -> usize {
        Heap::footprint(state)
    }

    fn methods(&self) -> &[Method] {
        &METHODS
    }

    fn part(&self, _method: &str, args: &[Value]) -> Option<Value> {
        let [Value::List(steps)] = args else { return None };
        let key = |step: &Value| match step {
            Value::List(parts) => parts.get(1).cloned(),
            _ => None,
        };
        let first = key(steps.first()?)?;
        steps.iter().all(|step| key(step).as_ref() == Some(&first)).then_some(first)
    }
}
