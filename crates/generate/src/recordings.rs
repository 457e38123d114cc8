//! Recordings in the style of test harnesses: a register and a key-value store under faults.
//!
//! Clients take turns, one step at a time, on a clock that counts steps. A call begins, takes
//! effect on the shared state, and returns; other clients run in between.

use std::collections::BTreeMap;

use consistory_history::{Action, Call, Details, History, HistoryBuilder, Interval, Status, Value};

use crate::random::{Chooser, Random, choices_of};

/// The kind of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recording {
    /// A register with `read`, `write` and `cas` of five values, as Jepsen tests them: a client
    /// whose call is lost continues under a new name.
    CasRegister,
    /// A key-value store with `get`, `put` and `append` of texts.
    KeyValue,
}

/// Options of a recording.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordingWorkload {
    /// Kind of the recording.
    pub recording: Recording,
    /// Number of concurrent clients.
    pub clients: u32,
    /// Number of calls.
    pub calls: u32,
    /// Number of keys of a store.
    pub keys: u32,
    /// Share of calls that never return; half of these take effect.
    pub lost: f64,
    /// Seed of every random choice.
    pub seed: u64,
}

/// A pending call.
struct Running {
    session: u32,
    method: &'static str,
    args: Vec<Value>,
    start: i64,
    end: Option<i64>,
    returns: Option<Value>,
    is_lost: bool,
}

/// The shared state: a map; a register is its key 0.
type Contents = BTreeMap<u32, Value>;

/// Builds a recording.
pub fn record(workload: &RecordingWorkload) -> History {
    let mut random = choices_of(Chooser::Clients, workload.seed);
    let clients = workload.clients.max(1);
    let mut names: Vec<u32> = (0..clients).collect();
    let mut current: Vec<Option<Running>> = (0..clients).map(|_| None).collect();
    let mut done: Vec<Running> = Vec::with_capacity(workload.calls as usize);
    let mut contents = Contents::new();
    let mut begun = 0;
    let mut clock = 0;
    let mut next_name = clients;
    while begun < workload.calls || current.iter().any(Option::is_some) {
        let client = random.below(clients) as usize;
        clock += 1;
        match current[client].take() {
            None if begun == workload.calls => {}
            None => {
                let mut call = begin(workload, begun, client as u32, &mut random);
                call.session = names[client];
                call.start = clock;
                begun += 1;
                current[client] = Some(call);
            }
            Some(mut call) if call.returns.is_none() => {
                if call.is_lost {
                    // Half of the lost calls take effect.
                    if random.once_in(2) {
                        perform(workload, &mut call, &mut contents);
                    }
                    if workload.recording == Recording::CasRegister {
                        names[client] = next_name;
                        next_name += 1;
                    }
                    done.push(call);
                } else {
                    perform(workload, &mut call, &mut contents);
                    current[client] = Some(call);
                }
            }
            Some(mut call) => {
                call.end = Some(clock);
                done.push(call);
            }
        }
    }
    done.sort_by_key(|call| call.start);
    finish(done, next_name)
}

/// Chooses a call.
fn begin(workload: &RecordingWorkload, number: u32, client: u32, random: &mut Random) -> Running {
    let int = |n: u32| Value::Int(i64::from(n));
    let key = random.below(workload.keys.max(1));
    let is_lost = random.unit() < workload.lost;
    let (method, args) = match workload.recording {
        Recording::CasRegister => match random.below(3) {
            0 => ("read", vec![]),
            1 => ("write", vec![int(random.below(5))]),
            _ => ("cas", vec![int(random.below(5)), int(random.below(5))]),
        },
        Recording::KeyValue => {
            let text = |n: u32| Value::Str(format!("x {client} {n} y").into());
            match random.below(10) {
                0..=3 => ("get", vec![int(key)]),
                4 => ("put", vec![int(key), text(number)]),
                _ => ("append", vec![int(key), text(number)]),
            }
        }
    };
    Running { session: 0, method, args, start: 0, end: None, returns: None, is_lost }
}

/// Lets a call take effect.
fn perform(workload: &RecordingWorkload, call: &mut Running, contents: &mut Contents) {
    let key = match call.args.first() {
        Some(&Value::Int(key)) => key as u32,
        _ => 0,
    };
    let or_null = |value: Option<Value>| value.unwrap_or(Value::Null);
    call.returns = Some(match (workload.recording, call.method) {
        (Recording::CasRegister, "read") => or_null(contents.get(&0).cloned()),
        (Recording::CasRegister, "write") => {
            contents.insert(0, call.args[0].clone());
            Value::Null
        }
        (Recording::CasRegister, _) => {
            let is_equal = contents.get(&0) == Some(&call.args[0]);
            if is_equal {
                contents.insert(0, call.args[1].clone());
            }
            Value::Bool(is_equal)
        }
        (Recording::KeyValue, "get") => {
            contents.get(&key).cloned().unwrap_or_else(|| Value::Str("".into()))
        }
        (Recording::KeyValue, "put") => {
            contents.insert(key, call.args[1].clone());
            Value::Null
        }
        (Recording::KeyValue, _) => {
            let old = contents.entry(key).or_insert_with(|| Value::Str("".into()));
            if let (Value::Str(before), Value::Str(more)) = (&*old, &call.args[1]) {
                *old = Value::Str(format!("{before}{more}").into());
            }
            Value::Null
        }
    });
}

fn finish(calls: Vec<Running>, sessions: u32) -> History {
    let mut builder = HistoryBuilder::new();
    let ids: Vec<_> = (0..sessions).map(|i| builder.session(&format!("t{i}"))).collect();
    for call in calls {
        let args = call.args.into_iter().map(|arg| builder.value(arg)).collect();
        let returns = call.returns.filter(|_| call.end.is_some()).map(|r| builder.value(r));
        let id = builder.call(Call { method: call.method.into(), args, returns });
        let time = Some(Interval { start: call.start, end: call.end });
        let status = if call.end.is_some() { Status::Ok } else { Status::Unknown };
        let details = Details { time, status, ..Details::default() };
        builder.push_with(ids[call.session as usize], Action::Call(id), details);
    }
    builder.finish().expect("there are no transactions, and fewer calls than ids")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_have_their_calls_and_the_same_seed_makes_the_same() {
        for recording in [Recording::CasRegister, Recording::KeyValue] {
            let workload =
                RecordingWorkload { recording, clients: 5, calls: 80, keys: 3, lost: 0.2, seed: 7 };
            let history = record(&workload);
            let again = record(&workload);
            assert_eq!(history.len(), 80);
            let shown = |h: &History| h.ops().map(|op| h.show(op).to_string()).collect::<Vec<_>>();
            assert_eq!(shown(&history), shown(&again));
            let lost = history.ops().filter(|&op| history.status(op) == Status::Unknown).count();
            assert!(lost > 0, "{recording:?}");
        }
    }
}
