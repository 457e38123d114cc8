//! Random clients of a linearizable object, in which each call takes effect at one moment.
//!
//! Time advances in steps. In each step a random session acts: it calls a method, or its call takes
//! effect, or its call returns. So calls overlap, and the order in which they take effect is a
//! linearization. A call may also never return, whether or not it took effect; it is then pending,
//! and its session continues.
//!
//! No value is inserted or written twice. A planted violation exchanges the results of two calls.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::str::FromStr;

use consistory_history::{
    Action, Call, Details, History, HistoryBuilder, Interval, SessionId, Value,
};

use crate::random::{Chooser, Random, choices_of};

/// An object that random clients call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SharedObject {
    /// `read`, `write`.
    Register,
    /// `add`, `remove`, `contains`.
    Set,
    /// `enqueue`, `dequeue`.
    Queue,
    /// `push`, `pop`.
    Stack,
    /// `insert`, `poll`, the least first.
    PriorityQueue,
    /// `get`, `put`, on ten keys.
    KeyValue,
    /// `get`, `add`, `increment`, `incrementAndGet`.
    Counter,
    /// `addFirst`, `addLast`, `pollFirst`, `pollLast`.
    Deque,
    /// `tryLock`, `unlock`, `isLocked`; only the holder unlocks it.
    Lock,
}

impl SharedObject {
    /// Every object.
    pub const ALL: [SharedObject; 9] = [
        SharedObject::Register,
        SharedObject::Set,
        SharedObject::Queue,
        SharedObject::Stack,
        SharedObject::PriorityQueue,
        SharedObject::KeyValue,
        SharedObject::Counter,
        SharedObject::Deque,
        SharedObject::Lock,
    ];

    /// Objects whose generated histories are decided in polynomial time.
    pub const DECIDED: [SharedObject; 6] = [
        SharedObject::Register,
        SharedObject::Set,
        SharedObject::Queue,
        SharedObject::Stack,
        SharedObject::PriorityQueue,
        SharedObject::KeyValue,
    ];

    /// Returns the object's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            SharedObject::Register => "register",
            SharedObject::Set => "set",
            SharedObject::Queue => "queue",
            SharedObject::Stack => "stack",
            SharedObject::PriorityQueue => "priority-queue",
            SharedObject::KeyValue => "kv",
            SharedObject::Counter => "counter",
            SharedObject::Deque => "deque",
            SharedObject::Lock => "lock",
        }
    }
}

impl fmt::Display for SharedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no object has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no clients call an object named `{name}`: choose one of {}",
    SharedObject::ALL.map(SharedObject::name).join(", ")
)]
pub struct UnknownObject {
    /// The name.
    pub name: String,
}

impl FromStr for SharedObject {
    type Err = UnknownObject;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = SharedObject::ALL.into_iter().find(|object| object.name() == name);
        found.ok_or_else(|| UnknownObject { name: name.into() })
    }
}

/// Random clients of an object: their number and the mix of their calls.
#[derive(Clone, PartialEq, Debug)]
pub struct ObjectWorkload {
    /// Object that the clients call.
    pub object: SharedObject,
    /// Number of sessions; at least one.
    pub sessions: u32,
    /// Total number of calls.
    pub operations: u32,
    /// Share of calls that only read the object or remove an element.
    pub read_share: f64,
    /// Share of calls that never return.
    pub pending_share: f64,
    /// Number of pairs of calls whose results are exchanged.
    pub plants: usize,
    /// Largest distance between the calls of such a pair, in calls.
    pub distance: u32,
    /// Seed of every random choice.
    pub seed: u64,
}

/// An event of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CallStep {
    /// The call is invoked.
    Invoke {
        /// The method.
        method: &'static str,
        /// The arguments.
        args: Vec<i64>,
    },
    /// The call returns; `None` if it returns nothing.
    Return(Option<Value>),
    /// The call never returns, and its session continues.
    Lost,
}

/// The next step of a session.
#[derive(Clone, Copy)]
enum ClientStep {
    Call,
    TakeEffect(Invoked),
    Return(Returned),
}

/// The result of a call: nothing, `null`, an empty text, a truth value or a number.
#[derive(Clone, Copy)]
enum Returned {
    Nothing,
    Null,
    Empty,
    Bool(bool),
    Int(i64),
}

impl Returned {
    fn value(self) -> Option<Value> {
        match self {
            Returned::Nothing => None,
            Returned::Null => Some(Value::Null),
            Returned::Empty => Some(Value::Str("".into())),
            Returned::Bool(truth) => Some(Value::Bool(truth)),
            Returned::Int(number) => Some(Value::Int(number)),
        }
    }

    fn found(value: Option<i64>) -> Self {
        value.map_or(Returned::Null, Returned::Int)
    }
}

/// A method and its arguments, at most two.
#[derive(Clone, Copy)]
struct Invoked {
    method: &'static str,
    args: [Option<i64>; 2],
}

/// Returns the events one by one, each with the number of its session.
///
/// Memory does not grow with the number of calls, unless violations are planted.
pub fn stream_calls(workload: &ObjectWorkload) -> impl Iterator<Item = (u32, CallStep)> + use<> {
    let mut clients = Clients::new(workload);
    let mut seen = std::iter::from_fn(move || clients.next())
        .filter_map(|(_, session, step)| Some(session).zip(step));
    let planted = (workload.plants > 0).then(|| plant_steps(seen.by_ref().collect(), workload));
    planted.into_iter().flatten().chain(seen)
}

/// Plants violations in a sequence of events.
fn plant_steps(mut steps: Vec<(u32, CallStep)>, workload: &ObjectWorkload) -> Vec<(u32, CallStep)> {
    let mut calls: Vec<Called> = Vec::new();
    let mut returns: Vec<usize> = Vec::new();
    let mut last = vec![0; workload.sessions.max(1) as usize];
    for (at, (session, step)) in steps.iter().enumerate() {
        match step {
            CallStep::Invoke { method, .. } => {
                last[*session as usize] = calls.len();
                calls.push(Called { method, returns: None, has_returned: false });
                returns.push(at);
            }
            CallStep::Return(returned) => {
                let call = last[*session as usize];
                (calls[call].returns, calls[call].has_returned) = (returned.clone(), true);
                returns[call] = at;
            }
            CallStep::Lost => {}
        }
    }
    plant(&mut calls, workload);
    for (call, at) in calls.into_iter().zip(returns) {
        if call.has_returned {
            steps[at].1 = CallStep::Return(call.returns);
        }
    }
    steps
}

/// The sessions and the object that they call.
struct Clients {
    random: Random,
    contents: Contents,
    steps: Vec<ClientStep>,
    /// The session whose call is lost as soon as it is invoked.
    lost: Option<u32>,
    pending_share: f64,
    read_share: f64,
    left: u32,
    busy: u32,
    clock: i64,
}

impl Clients {
    fn new(workload: &ObjectWorkload) -> Self {
        Clients {
            random: choices_of(Chooser::Clients, workload.seed),
            contents: Contents::new(workload.object),
            steps: vec![ClientStep::Call; workload.sessions.max(1) as usize],
            lost: None,
            pending_share: workload.pending_share,
            read_share: workload.read_share,
            left: workload.operations,
            busy: 0,
            clock: 0,
        }
    }

    fn is_lost(&mut self) -> bool {
        self.random.unit() < self.pending_share && self.random.once_in(2)
    }

    /// Lets a random session take its next step; returns the time, the session and the visible
    /// event.
    fn next(&mut self) -> Option<(i64, u32, Option<CallStep>)> {
        if let Some(session) = self.lost.take() {
            return Some((self.clock - 1, session, Some(CallStep::Lost)));
        }
        if self.left == 0 && self.busy == 0 {
            return None;
        }
        let s = loop {
            let s = self.random.below(self.steps.len() as u32);
            if self.left > 0 || !matches!(self.steps[s as usize], ClientStep::Call) {
                break s;
            }
        };
        let mut seen = None;
        self.steps[s as usize] = match self.steps[s as usize] {
            ClientStep::Call => {
                let is_read = self.random.unit() < self.read_share;
                let invoked = self.contents.choose(s, is_read, &mut self.random);
                let Invoked { method, args } = invoked;
                let args = args.into_iter().flatten().collect();
                seen = Some(CallStep::Invoke { method, args });
                self.left -= 1;
                match self.is_lost() {
                    // The call is lost before it takes effect.
                    true => {
                        self.lost = Some(s);
                        ClientStep::Call
                    }
                    false => {
                        self.busy += 1;
                        ClientStep::TakeEffect(invoked)
                    }
                }
            }
            ClientStep::TakeEffect(invoked) => {
                let returned = self.contents.perform(invoked);
                match self.is_lost() {
                    true => {
                        seen = Some(CallStep::Lost);
                        self.busy -= 1;
                        ClientStep::Call
                    }
                    false => ClientStep::Return(returned),
                }
            }
            ClientStep::Return(returned) => {
                seen = Some(CallStep::Return(returned.value()));
                self.busy -= 1;
                ClientStep::Call
            }
        };
        self.clock += 1;
        Some((self.clock - 1, s, seen))
    }
}

/// Builds a history of an object's calls; it is linearizable unless violations are planted.
pub fn generate_calls(workload: &ObjectWorkload) -> History {
    let mut clients = Clients::new(workload);
    let mut builder = HistoryBuilder::new();
    let sessions: Vec<SessionId> =
        (0..workload.sessions.max(1)).map(|i| builder.session(&format!("t{i}"))).collect();
    let mut calls: Vec<Called> = Vec::with_capacity(workload.operations as usize);
    let mut made: Vec<(SessionId, Vec<i64>, Interval)> = Vec::with_capacity(calls.capacity());
    // The last call of each session.
    let mut last = vec![0; sessions.len()];
    while let Some((now, s, step)) = clients.next() {
        let s = s as usize;
        match step {
            Some(CallStep::Invoke { method, args }) => {
                last[s] = calls.len();
                calls.push(Called { method, returns: None, has_returned: false });
                made.push((sessions[s], args, Interval { start: now, end: None }));
            }
            Some(CallStep::Return(returns)) => {
                let call = last[s];
                (calls[call].returns, calls[call].has_returned) = (returns, true);
                made[call].2.end = Some(now);
            }
            Some(CallStep::Lost) | None => {}
        }
    }
    plant(&mut calls, workload);
    for (call, (session, args, time)) in calls.into_iter().zip(made) {
        let args = args.into_iter().map(|arg| builder.int(arg)).collect();
        let returns = call.returns.map(|value| builder.value(value));
        let id = builder.call(Call { method: call.method.into(), args, returns });
        let details = Details { time: Some(time), ..Details::default() };
        builder.push_with(session, Action::Call(id), details);
    }
    builder.finish().expect("there are no transactions, and fewer calls than ids")
}

/// The kinds of results that a planted violation may exchange.
struct Called {
    method: &'static str,
    returns: Option<Value>,
    has_returned: bool,
}

/// Exchanges the results of some pairs of calls of one method, if they differ.
fn plant(calls: &mut [Called], workload: &ObjectWorkload) {
    let mut random = choices_of(Chooser::Planter, workload.seed);
    let mut left = workload.plants;
    // Enough tries to find partners if there are any.
    for _ in 0..1000 * workload.plants {
        if left == 0 || calls.len() < 2 {
            return;
        }
        let first = random.below(calls.len() as u32 - 1) as usize;
        let reach = (calls.len() - 1 - first).min(workload.distance.max(1) as usize);
        let second = first + 1 + random.below(reach as u32) as usize;
        let (a, b) = (&calls[first], &calls[second]);
        let is_same = a.method == b.method && a.has_returned && b.has_returned;
        if is_same && a.returns != b.returns {
            let returned = calls[first].returns.take();
            calls[first].returns = std::mem::replace(&mut calls[second].returns, returned);
            left -= 1;
        }
    }
}

/// Number of keys of a store.
const KEYS: u32 = 10;

/// An object and the values used so far.
enum Contents {
    Register { value: Option<i64>, next: i64 },
    KeyValue { values: [Option<i64>; KEYS as usize], next: i64 },
    Counter { value: i64 },
    Set { elements: BTreeSet<i64>, removable: Vec<i64>, next: i64 },
    Queue { elements: VecDeque<i64>, next: i64 },
    Stack { elements: Vec<i64>, next: i64 },
    Deque { elements: VecDeque<i64>, next: i64 },
    PriorityQueue { elements: BTreeSet<i64>, next: i64 },
    Lock { holder: Option<i64> },
}

impl Contents {
    fn new(object: SharedObject) -> Self {
        let next = 1;
        match object {
            SharedObject::Register => Contents::Register { value: None, next },
            SharedObject::KeyValue => Contents::KeyValue { values: [None; KEYS as usize], next },
            SharedObject::Counter => Contents::Counter { value: 0 },
            SharedObject::Set => {
                Contents::Set { elements: BTreeSet::new(), removable: Vec::new(), next }
            }
            SharedObject::Queue => Contents::Queue { elements: VecDeque::new(), next },
            SharedObject::Stack => Contents::Stack { elements: Vec::new(), next },
            SharedObject::Deque => Contents::Deque { elements: VecDeque::new(), next },
            SharedObject::PriorityQueue => {
                Contents::PriorityQueue { elements: BTreeSet::new(), next }
            }
            SharedObject::Lock => Contents::Lock { holder: None },
        }
    }

    /// Chooses a session's call: one that reads or removes, or one that inserts.
    fn choose(&mut self, session: u32, is_read: bool, random: &mut Random) -> Invoked {
        let (method, args) = self.choose_call(i64::from(session), is_read, random);
        Invoked { method, args }
    }

    fn choose_call(
        &mut self,
        session: i64,
        is_read: bool,
        random: &mut Random,
    ) -> (&'static str, [Option<i64>; 2]) {
        let none = [None; 2];
        let one = |arg: i64| [Some(arg), None];
        let fresh = |next: &mut i64| {
            *next += 1;
            *next - 1
        };
        match self {
            Contents::Register { .. } if is_read => ("read", none),
            Contents::Register { next, .. } => ("write", one(fresh(next))),
            Contents::KeyValue { next, .. } => {
                let key = i64::from(random.below(KEYS));
                match is_read {
                    true => ("get", one(key)),
                    false => ("put", [Some(key), Some(fresh(next))]),
                }
            }
            Contents::Counter { .. } if is_read => ("get", none),
            Contents::Counter { .. } => match random.below(4) {
                0 => ("add", one(i64::from(random.below(3)) - 2)),
                1 => ("incrementAndGet", none),
                _ => ("increment", none),
            },
            Contents::Queue { .. } if is_read => ("dequeue", none),
            Contents::Queue { next, .. } => ("enqueue", one(fresh(next))),
            Contents::Stack { .. } if is_read => ("pop", none),
            Contents::Stack { next, .. } => ("push", one(fresh(next))),
            Contents::Deque { next, .. } => match (is_read, random.once_in(2)) {
                (true, true) => ("pollFirst", none),
                (true, false) => ("pollLast", none),
                (false, true) => ("addFirst", one(fresh(next))),
                (false, false) => ("addLast", one(fresh(next))),
            },
            Contents::PriorityQueue { .. } if is_read => ("poll", none),
            Contents::PriorityQueue { next, .. } => {
                // Distinct priorities in an irregular order: multiplication by an odd factor modulo
                // a power of two.
                ("insert", one(fresh(next).wrapping_mul(0x9e37_79b1) & 0x7fff_ffff))
            }
            Contents::Lock { .. } if is_read && random.once_in(2) => ("isLocked", none),
            // The session that holds the lock may unlock it, even if its `tryLock` never returned.
            Contents::Lock { holder } if *holder == Some(session) => ("unlock", one(session)),
            Contents::Lock { .. } => ("tryLock", one(session)),
            Contents::Set { removable, next, .. } => {
                let known = removable.len() as u32;
                match (is_read, random.below(4)) {
                    // Occasionally a value that was already removed or is not inserted yet.
                    (true, 0) => {
                        let back = i64::from(random.below(8));
                        ("contains", one((*next - back).max(1)))
                    }
                    (true, 1) if known > 0 => {
                        ("contains", one(removable[random.below(known) as usize]))
                    }
                    (true, _) if known > 0 => {
                        // Each value is removed only once.
                        let at = random.below(known) as usize;
                        ("remove", one(removable.swap_remove(at)))
                    }
                    (true, _) => ("contains", one(*next)),
                    (false, _) => ("add", one(fresh(next))),
                }
            }
        }
    }

    /// Performs a call.
    fn perform(&mut self, invoked: Invoked) -> Returned {
        let Invoked { method, args: [first, second] } = invoked;
        match (self, first) {
            (Contents::Register { value, .. }, None) => Returned::found(*value),
            (Contents::Register { value, .. }, Some(_)) => {
                *value = first;
                Returned::Nothing
            }
            (Contents::KeyValue { values, .. }, key) => {
                let value = &mut values[key.unwrap_or_default() as usize];
                if second.is_none() {
                    return value.map_or(Returned::Empty, Returned::Int);
                }
                *value = second;
                Returned::Nothing
            }
            (Contents::Counter { value }, delta) => {
                *value += delta.unwrap_or(i64::from(method != "get"));
                match method {
                    "get" | "incrementAndGet" => Returned::Int(*value),
                    _ => Returned::Nothing,
                }
            }
            (Contents::Queue { elements, .. }, None) => Returned::found(elements.pop_front()),
            (Contents::Queue { elements, .. }, Some(value)) => {
                elements.push_back(value);
                Returned::Nothing
            }
            (Contents::Stack { elements, .. }, None) => Returned::found(elements.pop()),
            (Contents::Stack { elements, .. }, Some(value)) => {
                elements.push(value);
                Returned::Nothing
            }
            (Contents::Deque { elements, .. }, None) => Returned::found(match method {
                "pollFirst" => elements.pop_front(),
                _ => elements.pop_back(),
            }),
            (Contents::Deque { elements, .. }, Some(value)) => {
                match method {
                    "addFirst" => elements.push_front(value),
                    _ => elements.push_back(value),
                }
                Returned::Nothing
            }
            (Contents::PriorityQueue { elements, .. }, None) => {
                Returned::found(elements.pop_first())
            }
            (Contents::PriorityQueue { elements, .. }, Some(value)) => {
                elements.insert(value);
                Returned::Nothing
            }
            (Contents::Lock { holder }, _) => match method {
                "isLocked" => Returned::Bool(holder.is_some()),
                "tryLock" => {
                    let is_free = holder.is_none();
                    *holder = if is_free { first } else { *holder };
                    Returned::Bool(is_free)
                }
                _ => {
                    *holder = None;
                    Returned::Nothing
                }
            },
            (Contents::Set { elements, removable, .. }, value) => {
                let value = value.unwrap_or_default();
                Returned::Bool(match method {
                    "add" => {
                        removable.push(value);
                        elements.insert(value)
                    }
                    "remove" => elements.remove(&value),
                    _ => elements.contains(&value),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists the visible events of a history in time order: its calls and returns.
    fn steps(history: &History) -> Vec<(u32, CallStep)> {
        let mut steps: Vec<(i64, u32, CallStep)> = Vec::new();
        for op in history.ops() {
            let Action::Call(call) = history.action(op) else { panic!("a history of calls") };
            let Call { method, args, returns } = history.call(call);
            let args = args.iter().map(|&arg| match history.value(arg) {
                Value::Int(arg) => *arg,
                other => panic!("{other}"),
            });
            let session = history.session_of(op).index() as u32;
            let time = history.time(op).unwrap();
            let methods = ["read", "write", "get", "put", "add", "increment", "incrementAndGet"]
                .into_iter()
                .chain(["contains", "remove", "enqueue", "dequeue", "push", "pop", "insert"])
                .chain(["poll", "addFirst", "addLast", "pollFirst", "pollLast"])
                .chain(["tryLock", "unlock", "isLocked"]);
            let method = methods.into_iter().find(|name| *name == &**method).unwrap();
            let args = args.collect();
            steps.push((time.start, session, CallStep::Invoke { method, args }));
            let returns = returns.map(|value| history.value(value).clone());
            steps.extend(time.end.map(|end| (end, session, CallStep::Return(returns))));
        }
        steps.sort_by_key(|&(time, _, _)| time);
        steps.into_iter().map(|(_, session, step)| (session, step)).collect()
    }

    #[test]
    fn a_stream_and_a_history_are_the_same_calls() {
        for object in SharedObject::ALL {
            for plants in [0, 2] {
                let workload = ObjectWorkload {
                    object,
                    sessions: 3,
                    operations: 200,
                    read_share: 0.5,
                    pending_share: 0.1,
                    plants,
                    distance: 20,
                    seed: 5,
                };
                let streamed: Vec<(u32, CallStep)> = stream_calls(&workload).collect();
                let lost = |step: &&(u32, CallStep)| step.1 == CallStep::Lost;
                assert!(streamed.iter().filter(lost).count() > 0, "{object}");
                let seen: Vec<(u32, CallStep)> =
                    streamed.into_iter().filter(|step| !lost(&step)).collect();
                assert_eq!(seen, steps(&generate_calls(&workload)), "{object}, {plants}");
            }
        }
    }
}
