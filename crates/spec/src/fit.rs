//! The built-in objects that fit a history of calls.
//!
//! An object fits if it has every called method, by one of its names and with that number of
//! arguments, and if every argument and every recorded return has the kind of value that the method
//! has. Nothing else is guessed: if several objects fit, the user must choose.

use consistory_history::{Action, Call, History, KeyId, Value};

use crate::catalogue::{catalogue, find};
use crate::specification::{Object, Returns};

/// The built-in objects that a history of calls fits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fit {
    /// Only this object, or only objects that agree on these calls.
    One(String),
    /// Several objects, which may give different verdicts.
    Several(Vec<String>),
    /// No built-in object.
    None,
}

/// Finds the built-in objects that every call of a history fits.
///
/// `register` represents both registers if only methods that they share are called. A store whose
/// unwritten keys were read as `null` is `kv(null)`. If no object fits by itself, one of each kind per
/// key may (`keyed(set)`).
pub fn fitting_object(history: &History) -> Fit {
    let fitting = |name: fn(&str) -> String| -> Vec<String> {
        let names = catalogue().iter().map(|entry| name(entry.name));
        names.filter(|name| find(name).is_ok_and(|object| fits(&*object, history))).collect()
    };
    let mut names = fitting(str::to_owned);
    if names.is_empty() {
        names = fitting(|name| format!("keyed({name})"));
    }
    for (plain, more) in [("register", "cas-register"), ("keyed(register)", "keyed(cas-register)")]
    {
        if names.iter().any(|name| name == plain) {
            names.retain(|name| name != more);
        }
    }
    // If both start from an integer, a counter and a register agree on their common calls.
    let starts_alike = history.key_count() == 1
        && matches!(history.value(history.initial_value(KeyId(0))), Value::Int(_));
    if starts_alike && names.iter().any(|name| name.ends_with("register")) {
        names.retain(|name| name != "counter");
    }
    for name in names.iter_mut().filter(|name| *name == "kv") {
        match unwritten(history) {
            Unwritten::Null => *name = "kv(null)".to_owned(),
            Unwritten::Text => {}
            Unwritten::Both => return Fit::Several(vec!["kv".into(), "kv(null)".into()]),
        }
    }
    match names.len() {
        0 => Fit::None,
        1 => Fit::One(names.remove(0)),
        _ => Fit::Several(names),
    }
}

/// Checks whether every call of a history fits an object, by the kinds of values.
pub fn fits(object: &dyn Object, history: &History) -> bool {
    history.has_calls()
        && history.ops().all(|op| match history.action(op) {
            Action::Call(id) => fits_call(object, history, history.call(id)),
            _ => false,
        })
}

/// Explains why no built-in object fits a history. The reason is a call that no object has, calls
/// that no single object has, or the first call whose values do not fit an object that has all the
/// methods.
pub fn why_none_fits(history: &History) -> String {
    let calls = || {
        history.ops().filter_map(|op| match history.action(op) {
            Action::Call(id) => Some((op, history.call(id))),
            _ => None,
        })
    };
    let has =
        |object: &dyn Object, call: &Call| object.resolve(&call.method, call.args.len()).is_ok();
    let objects: Vec<_> =
        catalogue().iter().filter_map(|entry| Some((entry.name, find(entry.name).ok()?))).collect();
    if let Some((op, call)) =
        calls().find(|(_, call)| !objects.iter().any(|(_, object)| has(&**object, call)))
    {
        let arguments = call.args.len();
        let plural = if arguments == 1 { "" } else { "s" };
        return format!(
            "no built-in object has a method `{}` with {arguments} argument{plural}, as {} calls",
            call.method,
            history.reference(op),
        );
    }
    let misfits: Vec<String> = objects
        .iter()
        .filter(|(_, object)| calls().all(|(_, call)| has(&**object, call)))
        .filter_map(|(name, object)| {
            let (op, _) = calls().find(|(_, call)| !fits_call(&**object, history, call))?;
            Some(format!("not {name}, whose method can't be {}", history.show(op)))
        })
        .collect();
    if misfits.is_empty() {
        let mut methods: Vec<&str> = calls().map(|(_, call)| &*call.method).collect();
        methods.sort_unstable();
        methods.dedup();
        return format!("no built-in object has all the called methods: {}", methods.join(", "));
    }
    format!("no built-in object fits every call: {}", misfits.join("; "))
}

fn fits_call(object: &dyn Object, history: &History, call: &Call) -> bool {
    // An object without a list of methods accepts any.
    let Ok(method) = object.resolve(&call.method, call.args.len()) else { return false };
    let Some(method) = method else { return true };
    let args = method.parameters.iter().zip(&call.args);
    let is_of_kind = |word: &str, value: &Value| match word {
        "delta" | "integer" | "index" | "amount" => matches!(value, Value::Int(_)),
        "count" => matches!(value, Value::Int(0..)),
        "bool" => matches!(value, Value::Bool(_)),
        "elements" | "unordered" => matches!(value, Value::List(_)),
        "steps" => is_steps(value),
        "transfer" => is_transfer(value),
        _ => true,
    };
    let fits_arguments = args.into_iter().all(|(word, &arg)| is_of_kind(word, history.value(arg)));
    let fits_return = match call.returns.map(|id| history.value(id)) {
        None => true,
        Some(value) if method.returns == Returns::Nothing => *value == Value::Null,
        Some(value) => is_of_kind(&method.result, value),
    };
    fits_arguments && fits_return
}

/// Checks whether a value is a list of steps of a transaction.
fn is_steps(value: &Value) -> bool {
    let is_step = |step: &Value| match step {
        Value::List(parts) => {
            matches!(&parts[..], [Value::Str(kind), _, _] if matches!(&**kind, "r" | "w" | "append"))
        }
        _ => false,
    };
    matches!(value, Value::List(steps) if steps.iter().all(is_step))
}

/// Checks whether a value is a map with the fields of a transfer.
fn is_transfer(value: &Value) -> bool {
    let Value::List(pairs) = value else { return false };
    let has = |name: &str| {
        pairs.iter().any(|pair| {
            matches!(pair, Value::List(pair)
                if matches!(&pair[..], [Value::Str(key), _] if **key == *name))
        })
    };
    ["from", "to", "amount"].into_iter().all(has)
}

/// The values that reads of a store returned for unwritten keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unwritten {
    Null,
    Text,
    Both,
}

/// Returns whether the unwritten keys of a store were read as `null` or as the empty text.
fn unwritten(history: &History) -> Unwritten {
    let returned = |wanted: Value| {
        history.ops().any(|op| match history.action(op) {
            Action::Call(id) => {
                let call = history.call(id);
                let is_read = matches!(&*call.method, "get" | "read");
                is_read && call.returns.is_some_and(|id| *history.value(id) == wanted)
            }
            _ => false,
        })
    };
    match (returned(Value::Null), returned(Value::Str("".into()))) {
        (true, true) => Unwritten::Both,
        (true, false) => Unwritten::Null,
        _ => Unwritten::Text,
    }
}
