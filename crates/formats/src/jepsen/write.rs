//! Writes a history as events, in EDN or JSON.
//!
//! Calls become pairs of events in the order of their times. Transactions become operations `:txn`
//! whose steps are `[:r key value]`, `[:w key value]` and `[:append key value]`, as Elle reads them;
//! a history of transactions without times becomes completions only. Every event has an `:index`,
//! and a `:time` if the history has times. Processes are numbers, because Jepsen assumes that any
//! other process is not a client.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::io;

use consistory_history::{
    Action, Call, History, KeyId, KeyKind, OpId, Status, Value, calls_of_transactions,
    is_of_transaction_calls, is_plain_word, transactions_of_calls, write_quoted,
};

use super::shape::{self, CallShape};
use crate::edn::write_value;
use crate::events::{Event, EventKind, take_apart};
use crate::numbers::Numbers;

/// Notation of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Notation {
    Edn,
    Json,
}

/// Reason why a history cannot be written.
pub(crate) struct Obstacle {
    /// Feature that the format cannot express.
    pub(crate) what: String,
    /// Reference of the operation or key with this feature.
    pub(crate) reference: String,
}

impl Obstacle {
    fn at(history: &History, op: OpId, what: impl Into<String>) -> Self {
        Obstacle { what: what.into(), reference: history.reference(op).to_string() }
    }
}

/// A history in the form in which it is written: calls, and their events in order.
struct Script<'h> {
    calls: Cow<'h, History>,
    /// Whether the calls stand for transactions.
    is_of_transactions: bool,
    events: Vec<Event>,
    has_times: bool,
}

/// Checks whether a history can be written; returns the first obstacle if not.
pub(crate) fn can_write(history: &History) -> Result<(), Obstacle> {
    script(history).map(|_| ())
}

/// Builds the events of a history.
fn script(history: &History) -> Result<Script<'_>, Obstacle> {
    if !history.has_calls() {
        return transaction_script(history);
    }
    // Calls of `txn` are read back as transactions, so they are written as such.
    if is_of_transaction_calls(history) && history.ops().all(|op| has_steps(history, op)) {
        let transactions = transactions_of_calls(history)
            .map_err(|error| Obstacle { what: error.reason, reference: error.op })?;
        return transaction_script(&transactions);
    }
    let events = take_apart(history).map_err(|(op, what)| Obstacle::at(history, op, what))?;
    if let Some(op) = history.ops().find(|&op| shape_of(history, op).is_none()) {
        return Err(Obstacle::at(history, op, format!("`{}`", history.show(op))));
    }
    let calls = Cow::Borrowed(history);
    Ok(Script { calls, is_of_transactions: false, events, has_times: true })
}

fn has_steps(history: &History, op: OpId) -> bool {
    let Action::Call(call) = history.action(op) else { return false };
    matches!(history.call(call).args[..], [steps] if shape::is_steps(history.value(steps)))
}

/// Builds the events of a history of transactions.
fn transaction_script<'h>(history: &History) -> Result<Script<'h>, Obstacle> {
    for op in history.ops() {
        if let Action::Rmw { .. } | Action::Fence | Action::Call(_) = history.action(op) {
            return Err(Obstacle::at(history, op, format!("`{}`", history.show(op))));
        }
    }
    nil_is_the_initial_value(history)?;
    let calls = calls_of_transactions(history).ok_or_else(|| Obstacle {
        what: "an operation whose status is not its transaction's".into(),
        reference: String::new(),
    })?;
    let has_times = calls.ops().any(|op| calls.time(op).is_some());
    let events = if has_times {
        take_apart(&calls).map_err(|(op, what)| {
            let transaction = history.all_transactions().nth(op.index());
            let first = transaction.map_or(OpId(0), |transaction| OpId(transaction.ops.start));
            Obstacle::at(history, first, what)
        })?
    } else {
        calls.ops().map(|op| Event { op, kind: EventKind::Completed }).collect()
    };
    Ok(Script { calls: Cow::Owned(calls), is_of_transactions: true, events, has_times })
}

/// Checks that nil can stand for every key's initial value and for nothing else: keys have default
/// initial values, and no operation writes them.
fn nil_is_the_initial_value(history: &History) -> Result<(), Obstacle> {
    let fail = |key: KeyId, what: String| {
        Err(Obstacle { what, reference: history.reference(history.initial_write(key)).to_string() })
    };
    let mut holds_zero = vec![false; history.key_count()];
    for op in history.ops() {
        match history.action(op) {
            Action::Write { key, value } if value == history.initial_value(key) => {
                return fail(key, format!("a write of the initial value {}", history.value(value)));
            }
            Action::Read { key, value } | Action::Write { key, value } => {
                holds_zero[key.index()] |= *history.value(value) == Value::Int(0);
            }
            _ => {}
        }
    }
    for key in history.keys() {
        let fits = match (history.value(history.initial_value(key)), history.key_kind(key)) {
            (Value::List(items), KeyKind::List) => items.is_empty(),
            (Value::Int(0), KeyKind::Register) => true,
            // For such a key, 0 is a value like any other.
            (Value::Null, KeyKind::Register) => holds_zero[key.index()],
            _ => false,
        };
        if !fits {
            let initial = history.value(history.initial_value(key));
            return fail(key, format!("the initial value {initial}"));
        }
    }
    Ok(())
}

/// Fields of an operation's events: the key, and the values of both events.
struct Fields {
    key: Option<Value>,
    invoked: Value,
    completed: Value,
}

/// Returns the fields with which a call is read back unchanged, if there are any.
fn shape_of(history: &History, op: OpId) -> Option<Fields> {
    let Action::Call(call) = history.action(op) else { return None };
    let Call { method, args, returns } = history.call(call);
    let value = |id| history.value(id).clone();
    let args: Vec<Value> = args.iter().map(|&id| value(id)).collect();
    let is_plain = !method.is_empty()
        && method.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/'));
    if !is_plain {
        return None;
    }
    let returned = returns.map(value);
    // Jepsen's tools interpret every `:ok` of a `cas` as a successful comparison.
    if &**method == "cas" && returned == Some(Value::Bool(false)) {
        return None;
    }
    let (key, invoked) = match (&**method, &args[..]) {
        (_, []) => (None, Value::Null),
        ("cas", [_, _]) => (None, Value::List(args.clone())),
        ("cas", [key, rest @ ..]) if rest.len() == 2 => {
            (Some(key.clone()), Value::List(rest.to_vec()))
        }
        ("read" | "get" | "take", [key]) => (Some(key.clone()), Value::Null),
        (_, [value]) => (None, value.clone()),
        (_, [key, value]) => (Some(key.clone()), value.clone()),
        _ => return None,
    };
    let completed = match &returned {
        Some(Value::Bool(true)) if &**method == "cas" => invoked.clone(),
        Some(value) => value.clone(),
        None => invoked.clone(),
    };
    let has_end = history.status(op) == Status::Ok && history.time(op)?.end.is_some();
    let completion = has_end.then(|| completed.clone());
    let read = shape::of_event(method.to_string(), key.clone(), invoked.clone(), completion);
    let expected =
        CallShape { method: method.to_string(), args, returns: returned.filter(|_| has_end) };
    (read == expected).then_some(Fields { key, invoked, completed })
}

/// Writes a history for which [`can_write`] holds.
pub(crate) fn write(
    history: &History,
    notation: Notation,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let Ok(Script { calls, is_of_transactions, events, has_times }) = script(history) else {
        return Err(io::Error::other("it was checked that the history can be written"));
    };
    let history = &*calls;
    let processes = Numbers::of_sessions(history);
    let mut line = String::new();
    if notation == Notation::Json {
        out.write_all(b"[")?;
    }
    // Jepsen's bank workload reads a map of balances, and the value of a transfer is a map.
    let is_bank = history.ops().any(|op| method_of(history, op) == Some("transfer"));
    let last = events.len();
    for (index, &Event { op, kind }) in events.iter().enumerate() {
        let Action::Call(call) = history.action(op) else { continue };
        let (fields, method) = if is_of_transactions {
            (transaction_fields(history, op), "txn")
        } else {
            let Some(fields) = shape_of(history, op) else { continue };
            (fields, &*history.call(call).method)
        };
        let (kind, value) = match (kind, history.status(op)) {
            (EventKind::Invoked, _) => ("invoke", &fields.invoked),
            (EventKind::Abandoned, _) => ("info", &fields.invoked),
            (EventKind::Completed, Status::Fail) => ("fail", &fields.invoked),
            (EventKind::Completed, Status::Unknown) => ("info", &fields.invoked),
            (EventKind::Completed, Status::Ok) => ("ok", &fields.completed),
        };
        let time = match (history.time(op).filter(|_| has_times), kind) {
            (Some(time), "ok" | "fail") => time.end.or(Some(time.start)),
            (Some(time), _) => Some(time.start),
            (None, _) => None,
        };
        let process = processes.get(history.session_of(op).index());
        let is_map = is_bank && matches!(method, "transfer" | "read");
        let key = fields.key.as_ref();
        let line_of = Parts { process, kind, method, key, value, is_map, index, time };
        line.clear();
        match notation {
            Notation::Edn => line_of.write_edn(&mut line),
            Notation::Json => line_of.write_json(&mut line, index + 1 == last),
        }
        .map_err(io::Error::other)?;
        out.write_all(line.as_bytes())?;
    }
    if events.is_empty() && notation == Notation::Json {
        out.write_all(b"]\n")?;
    }
    Ok(())
}

/// Returns the values of the events of a transaction.
fn transaction_fields(history: &History, op: OpId) -> Fields {
    let Action::Call(call) = history.action(op) else {
        unreachable!("transactions were made calls")
    };
    let call = history.call(call);
    let steps = |id: Option<&consistory_history::ValueId>| match id.map(|&id| history.value(id)) {
        Some(Value::List(steps)) => {
            Value::List(steps.iter().map(|s| nil_step(history, s)).collect())
        }
        _ => Value::Null,
    };
    let invoked = steps(call.args.first());
    let completed = match &call.returns {
        Some(returns) => steps(Some(returns)),
        None => invoked.clone(),
    };
    Fields { key: None, invoked, completed }
}

/// Replaces a register's initial value by nil in a read.
fn nil_step(history: &History, step: &Value) -> Value {
    let Value::List(parts) = step else { return step.clone() };
    let [Value::Str(kind), Value::Str(key), value] = &parts[..] else { return step.clone() };
    let initial = history.find_key(key).map(|key| history.value(history.initial_value(key)));
    let is_initial = &**kind == "r" && initial == Some(value) && !matches!(value, Value::List(_));
    let value = if is_initial { Value::Null } else { value.clone() };
    let key = match key.parse::<i64>() {
        Ok(number) if number.to_string() == **key => Value::Int(number),
        _ => Value::Str(key.clone()),
    };
    Value::List(vec![Value::Str(kind.clone()), key, value])
}

/// The fields of an event.
struct Parts<'a> {
    process: u64,
    kind: &'a str,
    method: &'a str,
    key: Option<&'a Value>,
    value: &'a Value,
    /// Whether a list of pairs stands for a map.
    is_map: bool,
    index: usize,
    time: Option<i64>,
}

impl Parts<'_> {
    fn write_edn(&self, line: &mut String) -> fmt::Result {
        let Parts { process, kind, method, key, value, is_map, index, time } = *self;
        write!(line, "{{:process {process}, :type :{kind}, :f :{method}")?;
        if let Some(key) = key {
            line.push_str(", :key ");
            write_value(key, line)?;
        }
        line.push_str(", :value ");
        match value {
            Value::List(steps) if shape::is_transaction(method) && shape::is_steps(value) => {
                write_edn_steps(steps, line)?;
            }
            Value::List(pairs) if is_map && is_map_of(pairs) => write_edn_map(pairs, line)?,
            value => write_value(value, line)?,
        }
        write!(line, ", :index {index}")?;
        if let Some(time) = time {
            write!(line, ", :time {time}")?;
        }
        line.push_str("}\n");
        Ok(())
    }

    fn write_json(&self, line: &mut String, is_last: bool) -> fmt::Result {
        let Parts { process, kind, method, key, value, index, time, .. } = *self;
        let start = if index > 0 { " " } else { "" };
        write!(line, "{start}{{\"process\":{process},\"type\":\"{kind}\",\"f\":")?;
        write_quoted(method, line)?;
        if let Some(key) = key {
            line.push_str(",\"key\":");
            write_json_value(key, line)?;
        }
        line.push_str(",\"value\":");
        write_json_value(value, line)?;
        write!(line, ",\"index\":{index}")?;
        if let Some(time) = time {
            write!(line, ",\"time\":{time}")?;
        }
        line.push_str(if is_last { "}]\n" } else { "},\n" });
        Ok(())
    }
}

/// Returns the method that an operation calls, if it is a call.
fn method_of(history: &History, op: OpId) -> Option<&str> {
    match history.action(op) {
        Action::Call(call) => Some(&*history.call(call).method),
        _ => None,
    }
}

/// Checks whether values are pairs with different keys.
fn is_map_of(pairs: &[Value]) -> bool {
    let key = |pair: &'_ Value| match pair {
        Value::List(pair) if pair.len() == 2 => Some(pair[0].clone()),
        _ => None,
    };
    let keys: Option<BTreeSet<Value>> = pairs.iter().map(key).collect();
    keys.is_some_and(|keys| keys.len() == pairs.len())
}

/// Writes pairs as a map, with keywords as keys where texts can be keywords.
fn write_edn_map(pairs: &[Value], line: &mut String) -> fmt::Result {
    line.push('{');
    for (i, pair) in pairs.iter().enumerate() {
        let Value::List(pair) = pair else { continue };
        line.push_str(if i > 0 { ", " } else { "" });
        match &pair[0] {
            Value::Str(name) if is_keyword(name) => write!(line, ":{name}")?,
            key => write_value(key, line)?,
        }
        line.push(' ');
        write_value(&pair[1], line)?;
    }
    line.push('}');
    Ok(())
}

/// Writes steps with keywords, as Elle expects them.
fn write_edn_steps(steps: &[Value], line: &mut String) -> fmt::Result {
    line.push('[');
    for (i, step) in steps.iter().enumerate() {
        let Value::List(parts) = step else { continue };
        let [Value::Str(kind), key, value] = &parts[..] else { continue };
        write!(line, "{}[:{kind} ", if i > 0 { " " } else { "" })?;
        match key {
            Value::Str(name) if is_keyword(name) => write!(line, ":{name}")?,
            key => write_value(key, line)?,
        }
        line.push(' ');
        write_value(value, line)?;
        line.push(']');
    }
    line.push(']');
    Ok(())
}

/// Checks whether a name can be written as a keyword.
fn is_keyword(name: &str) -> bool {
    is_plain_word(name) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn write_json_value(value: &Value, line: &mut String) -> fmt::Result {
    match value {
        Value::Null => line.write_str("null"),
        Value::Bool(truth) => write!(line, "{truth}"),
        Value::Int(number) => write!(line, "{number}"),
        Value::Str(text) => write_quoted(text, line),
        Value::List(items) => {
            line.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    line.push(',');
                }
                write_json_value(item, line)?;
            }
            line.push(']');
            Ok(())
        }
    }
}
