//! Conversion between transactions and calls of one method.
//!
//! Recorders of databases write a transaction as one call,
//! `txn([[append,x,1],[r,x,null]]) => [[append,x,1],[r,x,[1]]]`: the argument lists the requested
//! steps, and the return value lists the same steps with the result of each read.
//! [`transactions_of_calls`] turns such calls into bracketed transactions, on which isolation levels
//! are defined. [`calls_of_transactions`] turns transactions into calls of the object
//! `transactions`, whose linearizability is strict serializability.

use rustc_hash::FxHashMap;

use crate::builder::{Details, HistoryBuilder};
use crate::history::{Action, Call, History, Interval, Status, Transaction};
use crate::ids::{KeyId, OpId};
use crate::value::Value;

/// Method names under which recorders call a transaction.
const METHODS: [&str; 2] = ["txn", "transaction"];

/// The reason why calls are not transactions of reads, writes and appends.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{op} is not a transaction: {reason}")]
pub struct NotATransaction {
    /// The operation's reference.
    pub op: String,
    /// The reason.
    pub reason: String,
}

/// Checks whether a history consists only of calls of `txn`, one per transaction.
pub fn is_of_transaction_calls(history: &History) -> bool {
    history.has_calls()
        && history.ops().all(|op| match history.action(op) {
            Action::Call(id) => METHODS.contains(&&*history.call(id).method),
            _ => false,
        })
}

/// Builds the history of bracketed transactions that calls of `txn` represent.
///
/// Every operation of a transaction has the interval of its call. A call that never returned, or
/// whose status is unknown, is an indeterminate transaction. Reads of a committed transaction
/// without a recorded return value are omitted, because they carry no information.
pub fn transactions_of_calls(history: &History) -> Result<History, NotATransaction> {
    let mut builder = HistoryBuilder::new();
    if let Some(name) = history.name() {
        builder.set_name(name);
    }
    let mut keys = KeyNames::default();
    let is_timed = history.ops().any(|op| history.time(op).is_some());
    for session in history.sessions() {
        let same = builder.session(history.session_name(session));
        for op in history.session_ops(session) {
            let fail =
                |reason: String| NotATransaction { op: history.reference(op).to_string(), reason };
            let Action::Call(call) = history.action(op) else {
                return Err(fail("it is not a call".into()));
            };
            let call = history.call(call);
            if !METHODS.contains(&&*call.method) {
                return Err(fail(format!("it is a call of `{}`", call.method)));
            }
            let [asked] = call.args[..] else {
                return Err(fail("`txn` takes one argument, the list of steps".into()));
            };
            let time = history.time(op);
            let is_pending = is_timed && time.is_none_or(|time| time.end.is_none());
            let status = match history.status(op) {
                Status::Ok if is_pending => Status::Unknown,
                status => status,
            };
            let returned =
                call.returns.filter(|_| status == Status::Ok).map(|id| history.value(id));
            let steps = parse_steps(history.value(asked), returned).map_err(fail)?;
            let actions: Vec<Action> = steps
                .into_iter()
                .filter(|step| status != Status::Ok || returned.is_some() || !step.is_read())
                .map(|step| step.action(&mut builder, &mut keys))
                .collect::<Result<_, _>>()
                .map_err(fail)?;
            push_transaction(&mut builder, same, &actions, status, time);
        }
    }
    builder.null_is_not_zero();
    for key in history.keys() {
        let same = builder.key(history.key_name(key));
        // A key that only a final value mentions has the default initial value 0, which was not
        // set.
        let initial = history.value(history.initial_value(key)).clone();
        let is_final = history.finals().iter().any(|&(other, _)| other == key);
        if initial != Value::Int(0) || !is_final {
            let initial = builder.value(initial);
            builder.set_initial(same, initial);
        }
    }
    for &(key, value) in history.finals() {
        let (key, value) = (history.key_name(key), history.value(value).clone());
        let (key, value) = (builder.key(key), builder.value(value));
        builder.set_final(key, value);
    }
    builder
        .finish()
        .map_err(|error| NotATransaction { op: "the history".into(), reason: error.to_string() })
}

/// Adds a transaction to a session; a transaction of a single operation needs no brackets.
fn push_transaction(
    builder: &mut HistoryBuilder,
    session: crate::ids::SessionId,
    actions: &[Action],
    status: Status,
    time: Option<Interval>,
) {
    let mut details = Details { status, time, transaction: None };
    if actions.len() > 1 {
        let open = builder.begin_transaction();
        builder.set_transaction_status(open, status);
        details = Details { status: Status::Ok, time, transaction: Some(open) };
    }
    for &action in actions {
        builder.push_with(session, action, details);
    }
}

/// A step of a transaction.
struct MicroOperation<'a> {
    kind: StepKind,
    key: &'a Value,
    value: &'a Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StepKind {
    Read,
    Write,
    Append,
}

impl MicroOperation<'_> {
    fn is_read(&self) -> bool {
        self.kind == StepKind::Read
    }

    fn action(&self, builder: &mut HistoryBuilder, keys: &mut KeyNames) -> Result<Action, String> {
        let key = keys.find(self.key, builder)?;
        let value = builder.value_copy(self.value);
        Ok(match self.kind {
            StepKind::Read => Action::Read { key, value },
            StepKind::Write => Action::Write { key, value },
            StepKind::Append => Action::Append { key, value },
        })
    }
}

/// Reads the steps of a transaction; the results of its reads are taken from `returned`, if
/// present.
fn parse_steps<'a>(
    asked: &'a Value,
    returned: Option<&'a Value>,
) -> Result<Vec<MicroOperation<'a>>, String> {
    let list = |value: &'a Value| match value {
        Value::List(items) => Ok(items),
        other => Err(format!("expected a list of steps, found {other}")),
    };
    let asked = list(asked)?;
    let found = match returned {
        Some(returned) => list(returned)?,
        None => asked,
    };
    if asked.len() != found.len() {
        return Err(format!("{} steps were asked for, and {} returned", asked.len(), found.len()));
    }
    asked.iter().zip(found).map(|(asked, found)| step(asked, found)).collect()
}

fn step<'a>(asked: &'a Value, found: &'a Value) -> Result<MicroOperation<'a>, String> {
    let parts = |value: &'a Value| match value {
        Value::List(parts) => match &parts[..] {
            [Value::Str(kind), key, value] => Ok((&**kind, key, value)),
            _ => Err(format!(
                "a step is [r,key,null], [w,key,value] or [append,key,value], not {value}"
            )),
        },
        _ => Err(format!("a step is a list, not {value}")),
    };
    let (kind, key, value) = parts(asked)?;
    let (found_kind, found_key, found_value) = parts(found)?;
    if (kind, key) != (found_kind, found_key) {
        return Err(format!("{asked} was asked for, and {found} returned"));
    }
    let (kind, value) = match kind {
        "r" | "read" => (StepKind::Read, found_value),
        "w" | "write" => (StepKind::Write, value),
        "append" => (StepKind::Append, value),
        other => return Err(format!("unknown step `{other}`; steps are r, w and append")),
    };
    if kind != StepKind::Read && value != found_value {
        return Err(format!("{asked} was asked for, and {found} returned"));
    }
    Ok(MicroOperation { kind, key, value })
}

/// Values that name keys. A key's name is a text, so the key `1` and the key `"1"` would be the
/// same; a history that has both is refused.
#[derive(Default)]
struct KeyNames(FxHashMap<KeyId, Value>);

impl KeyNames {
    fn find(&mut self, value: &Value, builder: &mut HistoryBuilder) -> Result<KeyId, String> {
        let name = match value {
            Value::Str(name) => name.to_string(),
            other => other.to_string(),
        };
        let key = builder.key(&name);
        let known = self.0.entry(key).or_insert_with(|| value.clone());
        if known != value {
            return Err(format!("the key {known} has another type elsewhere: {value:?}"));
        }
        Ok(key)
    }
}

/// Builds the history of calls of `txn` that represents the transactions of a history, one call per
/// transaction in the same order. Returns `None` if some operation is not a read, a write or an
/// append, or if a committed transaction contains an indeterminate write.
///
/// A read-modify-write becomes a read and a write. The call's interval is the transaction's. Keys
/// become texts. The resulting history has the initial values of the keys, with which the object
/// must start.
pub fn calls_of_transactions(history: &History) -> Option<History> {
    let mut builder = HistoryBuilder::new();
    if let Some(name) = history.name() {
        builder.set_name(name);
    }
    for session in history.sessions() {
        builder.session(history.session_name(session));
    }
    for key in history.keys() {
        let same = builder.key(history.key_name(key));
        let initial = builder.value(history.value(history.initial_value(key)).clone());
        builder.set_initial(same, initial);
    }
    for transaction in history.all_transactions() {
        let session = history.session_of(OpId(transaction.ops.start));
        let (asked, found) = steps_of(history, &transaction)?;
        let asked = builder.value(Value::List(asked));
        let returns = (transaction.status == Status::Ok).then(|| builder.value(Value::List(found)));
        let call = builder.call(Call { method: "txn".into(), args: vec![asked], returns });
        let time = history.transaction_time(&transaction);
        let details = Details { status: transaction.status, time, transaction: None };
        builder.push_with(session, Action::Call(call), details);
    }
    builder.finish().ok()
}

/// Builds the calls of `txn` that a history represents, in a normal form: keys are texts, and reads
/// return the initial value where `null` was recorded for it.
///
/// For a history of transactions, the calls are its [`calls_of_transactions`]. A history of calls
/// keeps its calls, one by one. In both cases the result has the initial values of all keys.
pub fn transaction_calls(history: &History) -> Result<History, NotATransaction> {
    if !history.has_calls() {
        return calls_of_transactions(history).ok_or_else(|| NotATransaction {
            op: "the history".into(),
            reason: "it holds operations that are not reads, writes or appends".into(),
        });
    }
    let transactions = transactions_of_calls(history)?;
    let mut builder = HistoryBuilder::new();
    if let Some(name) = history.name() {
        builder.set_name(name);
    }
    for session in history.sessions() {
        builder.session(history.session_name(session));
    }
    for key in transactions.keys() {
        let same = builder.key(transactions.key_name(key));
        let initial = transactions.value(transactions.initial_value(key)).clone();
        let initial = builder.value(initial);
        builder.set_initial(same, initial);
    }
    for &(key, value) in history.finals() {
        let (key, value) = (history.key_name(key), history.value(value).clone());
        let (key, value) = (builder.key(key), builder.value(value));
        builder.set_final(key, value);
    }
    for op in history.ops() {
        let Action::Call(call) = history.action(op) else { continue };
        let call = history.call(call);
        let mut plain = |id, fill_in: bool| {
            let value = plain_steps(history.value(id), &transactions, fill_in);
            builder.value(value)
        };
        let args = call.args.iter().map(|&arg| plain(arg, false)).collect();
        let returns = call.returns.map(|id| plain(id, true));
        let call = builder.call(Call { method: "txn".into(), args, returns });
        let (status, time) = (history.own_status(op), history.time(op));
        let details = Details { status, time, transaction: None };
        builder.push_with(history.session_of(op), Action::Call(call), details);
    }
    builder
        .finish()
        .map_err(|error| NotATransaction { op: "the history".into(), reason: error.to_string() })
}

/// Writes the keys of steps as texts, and replaces `null` in reads by the initial value if
/// `fill_in`.
fn plain_steps(steps: &Value, transactions: &History, fill_in: bool) -> Value {
    let Value::List(steps) = steps else { return steps.clone() };
    let plain = |step: &Value| {
        let Value::List(parts) = step else { return step.clone() };
        let [Value::Str(kind), key, value] = &parts[..] else { return step.clone() };
        let name: Box<str> = match key {
            Value::Str(name) => name.clone(),
            other => other.to_string().into(),
        };
        let (kind, is_read) = match &**kind {
            "r" | "read" => ("r", true),
            "w" | "write" => ("w", false),
            other => (other, false),
        };
        let initial = transactions
            .find_key(&name)
            .map(|key| transactions.value(transactions.initial_value(key)).clone());
        let value = match (value, initial) {
            (Value::Null, Some(initial)) if is_read && fill_in => initial,
            (value, _) => value.clone(),
        };
        Value::List(vec![Value::Str(kind.into()), Value::Str(name), value])
    };
    Value::List(steps.iter().map(plain).collect())
}

/// Returns the steps of a transaction as requested and as returned.
fn steps_of(history: &History, transaction: &Transaction) -> Option<(Vec<Value>, Vec<Value>)> {
    let (mut asked, mut found) = (Vec::new(), Vec::new());
    let is_committed = transaction.status == Status::Ok;
    let mut add = |kind: &str, key: KeyId, value: &Value, is_read: bool| {
        let key = Value::Str(history.key_name(key).into());
        let step = |value: Value| Value::List(vec![Value::Str(kind.into()), key.clone(), value]);
        asked.push(step(if is_read { Value::Null } else { value.clone() }));
        found.push(step(value.clone()));
    };
    for op in transaction.ops.clone().map(OpId) {
        match history.action(op) {
            // A committed transaction may contain operations that failed, and reads without a
            // result.
            _ if is_committed && history.own_status(op) == Status::Fail => {}
            Action::Read { .. } if is_committed && history.own_status(op) != Status::Ok => {}
            _ if is_committed && history.own_status(op) != Status::Ok => return None,
            Action::Read { key, value } => add("r", key, history.value(value), true),
            Action::Write { key, value } => add("w", key, history.value(value), false),
            Action::Rmw { key, read, write } => {
                add("r", key, history.value(read), true);
                add("w", key, history.value(write), false);
            }
            Action::Append { key, value } => add("append", key, history.value(value), false),
            Action::Fence | Action::Call(_) => return None,
        }
    }
    Some((asked, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Str(text.into())
    }

    fn step(kind: &str, key: Value, value: Value) -> Value {
        Value::List(vec![text(kind), key, value])
    }

    fn list(items: &[i64]) -> Value {
        Value::List(items.iter().map(|&i| Value::Int(i)).collect())
    }

    /// Builds a history of one session whose calls have these steps, return values and statuses.
    fn calls(calls: Vec<(Vec<Value>, Option<Vec<Value>>, Status)>) -> History {
        let mut b = HistoryBuilder::new();
        let s = b.session("s");
        for (i, (asked, found, status)) in calls.into_iter().enumerate() {
            let args = vec![b.value(Value::List(asked))];
            let returns = found.map(|found| b.value(Value::List(found)));
            let call = b.call(Call { method: "txn".into(), args, returns });
            let start = 10 * i as i64;
            let time = Some(Interval { start, end: Some(start + 5) });
            b.push_with(s, Action::Call(call), Details { status, time, transaction: None });
        }
        b.finish().unwrap()
    }

    fn shown(history: &History) -> Vec<String> {
        let line = |t: Transaction| {
            let ops: Vec<String> =
                t.ops.clone().map(|op| history.show(OpId(op)).to_string()).collect();
            format!("{} {:?}", ops.join(" "), t.status)
        };
        history.all_transactions().map(line).collect()
    }

    #[test]
    fn calls_become_transactions_and_calls_again() {
        let (x, y) = (text("x"), Value::Int(7));
        let history = calls(vec![
            (
                vec![step("append", x.clone(), Value::Int(1)), step("r", x.clone(), Value::Null)],
                Some(vec![
                    step("append", x.clone(), Value::Int(1)),
                    step("r", x.clone(), list(&[1])),
                ]),
                Status::Ok,
            ),
            (vec![step("w", y.clone(), Value::Int(3))], None, Status::Unknown),
            (
                vec![step("r", y.clone(), Value::Null), step("r", x.clone(), Value::Null)],
                Some(vec![step("r", y.clone(), Value::Null), step("r", x, list(&[]))]),
                Status::Ok,
            ),
        ]);
        assert!(is_of_transaction_calls(&history));
        let transactions = transactions_of_calls(&history).unwrap();
        let expected = ["append(x,1) r(x,[1]) Ok", "w(7,3) Unknown", "r(7,0) r(x,[]) Ok"];
        assert_eq!(shown(&transactions), expected);
        let back = calls_of_transactions(&transactions).unwrap();
        let again = transactions_of_calls(&back).unwrap();
        assert_eq!(shown(&again), expected);
        let seven = again.find_key("7").unwrap();
        assert_eq!(again.value(again.initial_value(seven)), &Value::Int(0));
        assert_eq!(again.time(OpId(3)), Some(Interval { start: 20, end: Some(25) }));
    }

    #[test]
    fn an_empty_list_and_null_are_the_same_in_calls_too() {
        let x = text("x");
        let read = |value: Value| {
            (
                vec![step("r", x.clone(), Value::Null)],
                Some(vec![step("r", x.clone(), value)]),
                Status::Ok,
            )
        };
        let history = calls(vec![read(Value::Null), read(list(&[])), (vec![], None, Status::Ok)]);
        let plain = transaction_calls(&history).unwrap();
        assert_eq!(plain.len(), 3, "every call stays");
        let shown: Vec<String> = plain.ops().map(|op| plain.show(op).to_string()).collect();
        assert_eq!(shown[0], "txn([[r,x,null]]) => [[r,x,[]]]");
        assert_eq!(shown[0], shown[1]);
    }

    #[test]
    fn what_was_returned_must_be_what_was_asked_for() {
        let x = text("x");
        for (asked, found) in [
            (step("w", x.clone(), Value::Int(1)), step("w", x.clone(), Value::Int(2))),
            (step("r", x.clone(), Value::Null), step("r", text("y"), Value::Int(2))),
            (step("cas", x.clone(), Value::Null), step("cas", x.clone(), Value::Null)),
        ] {
            let history = calls(vec![(vec![asked], Some(vec![found]), Status::Ok)]);
            assert_eq!(transactions_of_calls(&history).unwrap_err().op, "s:0");
        }
    }
}
