//! Converts the fields of an event to a call.
//!
//! | `:f` | arguments | return value |
//! | --- | --- | --- |
//! | `:cas` | the two values of the pair | `true` |
//! | `:txn` | the list of steps | the list of steps that `:ok` has |
//! | `:read`, `:get`, `:dequeue`, `:pop` and the like | the `:key`, if there is one | the `:value` of `:ok` |
//! | any other | the `:key`, and the `:value` unless it is nil | the `:value` of `:ok`, unless it is nil or that of `:invoke` |
//!
//! A value on the invocation of a method without arguments, such as `:read`, is ignored: some
//! recorders put the expected value there, or a value left over from an earlier event. The
//! exception is a pair `[key nil]`, which names the key that is read.

use consistory_history::Value;

/// A call built from events.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct CallShape {
    pub(crate) method: String,
    pub(crate) args: Vec<Value>,
    pub(crate) returns: Option<Value>,
}

/// Methods that return a value and take none.
const TAKE_NOTHING: [&str; 10] =
    ["read", "dequeue", "deq", "pop", "poll", "peek", "size", "remove-min", "delete-min", "drain"];

/// Methods that return a value, and whose own value is a key if they have no `:key`.
const TAKE_KEY: [&str; 2] = ["get", "take"];

/// Checks whether an operation of this name is a transaction.
pub(crate) fn is_transaction(f: &str) -> bool {
    matches!(f, "txn" | "transaction")
}

/// Checks whether a value is a list of steps of a transaction.
pub(crate) fn is_steps(value: &Value) -> bool {
    let is_step = |step: &Value| match step {
        Value::List(parts) => matches!(
            &parts[..],
            [Value::Str(kind), _, _] if matches!(&**kind, "r" | "w" | "append" | "read" | "write")
        ),
        _ => false,
    };
    matches!(value, Value::List(steps) if steps.iter().all(is_step))
}

/// Builds the call of an operation; `completed` is the value of its `:ok`.
pub(crate) fn of_event(
    f: String,
    key: Option<Value>,
    invoked: Value,
    completed: Option<Value>,
) -> CallShape {
    let takes_nothing = TAKE_NOTHING.contains(&&*f);
    let takes_key = TAKE_KEY.contains(&&*f);
    let is_read = takes_nothing || takes_key;
    let is_keyed = key.is_some();
    let names_key = matches!(&invoked, Value::List(pair) if matches!(pair[..], [_, Value::Null]));
    let mut args: Vec<Value> = key.into_iter().collect();
    match &invoked {
        Value::Null => {}
        _ if takes_nothing && !names_key => {}
        _ if is_read && is_keyed => {}
        Value::List(pair) if f == "cas" && pair.len() == 2 => args.extend(pair.iter().cloned()),
        value => args.push(value.clone()),
    }
    let returns = match completed {
        None => None,
        // Jepsen's `cas` fails if it compared unequal. The log of an older version has a return
        // value.
        Some(Value::Bool(truth)) if f == "cas" => Some(Value::Bool(truth)),
        Some(_) if f == "cas" => Some(Value::Bool(true)),
        Some(value) if is_read || is_transaction(&f) => Some(value),
        Some(value) if value == Value::Null || value == invoked => None,
        Some(value) => Some(value),
    };
    CallShape { method: f, args, returns }
}
