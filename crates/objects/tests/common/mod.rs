//! Shared code of the tests: small histories of calls, random or given call by call.
#![allow(dead_code, reason = "each test uses a part of it")]

use consistory_history::{
    Action, Call, Details, History, HistoryBuilder, Interval, OpId, Status, Value,
};
use consistory_spec::Object;

/// A portable random number generator (splitmix64).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// A call to be recorded.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) session: usize,
    pub(crate) method: String,
    pub(crate) args: Vec<Value>,
    /// Return value; `None` if it was not recorded.
    pub(crate) returns: Option<Value>,
    /// Start and end; `None` in a history without times.
    pub(crate) time: Option<Interval>,
    pub(crate) status: Status,
}

pub(crate) fn history(calls: &[Recorded]) -> History {
    let mut b = HistoryBuilder::new();
    let sessions = calls.iter().map(|c| c.session + 1).max().unwrap_or(0);
    let ids: Vec<_> = (0..sessions).map(|s| b.session(&format!("t{s}"))).collect();
    for call in calls {
        let args = call.args.iter().map(|arg| b.value(arg.clone())).collect();
        let returns = call.returns.clone().map(|value| b.value(value));
        let id = b.call(Call { method: call.method.as_str().into(), args, returns });
        let details = Details { status: call.status, time: call.time, transaction: None };
        b.push_with(ids[call.session], Action::Call(id), details);
    }
    b.finish().unwrap()
}

/// Formats a history for the message of a failing test.
pub(crate) fn shown(history: &History) -> String {
    let op = |op: OpId| {
        let time = history.time(op).map_or(String::new(), |t| {
            format!(" @{}..{}", t.start, t.end.map_or(String::new(), |end| end.to_string()))
        });
        format!("{} {}{time} {:?}", history.reference(op), history.show(op), history.status(op))
    };
    history.ops().map(op).collect::<Vec<_>>().join("\n")
}

/// Returns the calls that occur in random histories of an object.
pub(crate) fn alphabet(object: &str) -> Vec<(&'static str, Vec<Value>)> {
    let int = Value::Int;
    let text = |s: &str| Value::Str(s.into());
    let step = |kind, key: i64, value: Value| Value::List(vec![text(kind), int(key), value]);
    match object {
        "register" => vec![("write", vec![int(1)]), ("write", vec![int(2)]), ("read", vec![])],
        "cas-register" => vec![
            ("write", vec![int(1)]),
            ("read", vec![]),
            ("cas", vec![int(1), int(2)]),
            ("cas", vec![Value::Null, int(1)]),
        ],
        "counter" => vec![("increment", vec![]), ("getAndAdd", vec![int(1)]), ("get", vec![])],
        "map" => vec![
            ("put", vec![int(1), int(1)]),
            ("put", vec![int(2), int(1)]),
            ("put", vec![int(1), int(2)]),
            ("get", vec![int(1)]),
            ("remove", vec![int(1)]),
            ("containsValue", vec![int(1)]),
            ("size", vec![]),
            ("keySet", vec![]),
        ],
        "keyed map" => vec![
            ("put", vec![int(1), int(1)]),
            ("put", vec![int(2), int(1)]),
            ("put", vec![int(1), int(2)]),
            ("get", vec![int(1)]),
            ("get", vec![int(2)]),
            ("remove", vec![int(1)]),
        ],
        "kv" => vec![
            ("append", vec![int(1), text("a")]),
            ("append", vec![int(1), text("b")]),
            ("append", vec![int(2), text("ab")]),
            ("put", vec![int(1), text("a")]),
            ("get", vec![int(1)]),
            ("get", vec![int(1)]),
            ("get", vec![int(2)]),
        ],
        "set" => vec![
            ("add", vec![int(1)]),
            ("add", vec![int(2)]),
            ("remove", vec![int(1)]),
            ("contains", vec![int(2)]),
            ("size", vec![]),
        ],
        "list" => vec![
            ("add", vec![int(1)]),
            ("addIfAbsent", vec![int(2)]),
            ("set", vec![int(0), int(3)]),
            ("removeAt", vec![int(0)]),
            ("indexOf", vec![int(2)]),
            ("toArray", vec![]),
        ],
        "queue" => vec![
            ("enqueue", vec![int(1)]),
            ("enqueue", vec![int(2)]),
            ("dequeue", vec![]),
            ("peek", vec![]),
        ],
        "stack" => vec![("push", vec![int(1)]), ("push", vec![int(2)]), ("pop", vec![])],
        "deque" => vec![
            ("addFirst", vec![int(1)]),
            ("addLast", vec![int(2)]),
            ("pollFirst", vec![]),
            ("pollLast", vec![]),
        ],
        "priority-queue" => {
            vec![("insert", vec![int(1)]), ("insert", vec![int(2)]), ("poll", vec![])]
        }
        "lock" => vec![("lock", vec![]), ("unlock", vec![]), ("tryLock", vec![])],
        "log" => vec![("append", vec![int(1)]), ("readAll", vec![]), ("size", vec![])],
        "transactions" => vec![
            ("txn", vec![Value::List(vec![step("w", 1, int(1)), step("w", 2, int(1))])]),
            ("txn", vec![Value::List(vec![step("r", 1, Value::Null), step("r", 2, Value::Null)])]),
            ("txn", vec![Value::List(vec![step("r", 1, Value::Null), step("w", 1, int(2))])]),
        ],
        other => panic!("no alphabet for {other}"),
    }
}

/// Parameters of a random history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) operations: usize,
    pub(crate) sessions: usize,
    pub(crate) is_timed: bool,
    /// One in this number of operations is pending; 0 for none.
    pub(crate) pending: usize,
    /// One in this number of returns is that of another call; 0 for none.
    pub(crate) wrong: usize,
}

/// Builds a random history: each call takes effect at some time in its interval, on an object of
/// which each session may see only a random part.
pub(crate) fn random(
    object: &dyn Object,
    name: &str,
    shape: Shape,
    chance: &mut Chance,
) -> Vec<Recorded> {
    let alphabet = alphabet(name);
    let mut clocks = vec![0i64; shape.sessions];
    let mut calls: Vec<(i64, Recorded)> = Vec::new();
    for _ in 0..shape.operations {
        let session = chance.below(shape.sessions);
        let (method, args) = chance.pick(&alphabet).clone();
        // Few different times, so that some operations meet.
        let start = clocks[session] + chance.below(3) as i64;
        let end = start + chance.below(4) as i64;
        clocks[session] = end;
        let point = start + chance.below((end - start + 1) as usize) as i64;
        let is_pending = shape.pending > 0 && chance.one_in(shape.pending);
        let time = Interval { start, end: (!is_pending).then_some(end) };
        let status = if is_pending { Status::Unknown } else { Status::Ok };
        calls.push((
            point,
            Recorded {
                session,
                method: method.into(),
                args,
                returns: None,
                time: shape.is_timed.then_some(time),
                status,
            },
        ));
    }
    let mut order: Vec<usize> = (0..calls.len()).collect();
    order.sort_by_key(|&i| (calls[i].0, i));
    let mut effects: Vec<usize> = Vec::new();
    for &i in &order {
        let mut state = object.initial();
        let mut is_possible = true;
        for &j in &effects {
            // Occasionally an effect is missed.
            if !chance.one_in(6) {
                let call = &calls[j].1;
                is_possible &= object.invoke(&mut state, &call.method, &call.args).is_some();
            }
        }
        let call = &mut calls[i].1;
        let returned =
            if is_possible { object.invoke(&mut state, &call.method, &call.args) } else { None };
        if call.status == Status::Ok {
            call.returns = Some(returned.unwrap_or(Value::Null));
        }
        effects.push(i);
    }
    for i in 0..calls.len() {
        if shape.wrong > 0 && chance.one_in(shape.wrong) {
            let other = calls[chance.below(calls.len())].1.returns.clone();
            if calls[i].1.status == Status::Ok {
                calls[i].1.returns = other;
            }
        }
    }
    calls.into_iter().map(|(_, call)| call).collect()
}
