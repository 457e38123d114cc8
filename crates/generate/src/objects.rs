//! Random clients on an object that is linearizable, because each call takes effect at one moment.
//!
//! Time goes in steps. In each a random session does the next thing: it calls a method, or its call
//! takes effect, or it returns. So calls overlap as the sessions' steps do, and the order in which
//! they take effect is a linearization. A call may also never return, before it took effect or
//! behind, and its session goes on; then it is pending.
//!
//! No value is inserted or written twice. Planted violations exchange what two calls returned.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::str::FromStr;

use consistory_history::{
    Action, Call, Details, History, HistoryBuilder, Interval, SessionId, Value,
};

use crate::random::{Chooser, Random};

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
}

impl SharedObject {
    /// All of them.
    pub const ALL: [SharedObject; 5] = [
        SharedObject::Register,
        SharedObject::Set,
        SharedObject::Queue,
        SharedObject::Stack,
        SharedObject::PriorityQueue,
    ];

    /// Gives the name that users say.
    pub fn name(self) -> &'static str {
        match self {
            SharedObject::Register => "register",
            SharedObject::Set => "set",
            SharedObject::Queue => "queue",
            SharedObject::Stack => "stack",
            SharedObject::PriorityQueue => "priority-queue",
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

/// Random clients of an object: how many, and what they do.
#[derive(Clone, PartialEq, Debug)]
pub struct ObjectWorkload {
    /// What they call.
    pub object: SharedObject,
    /// How many sessions there are; at least one.
    pub sessions: u32,
    /// How many calls they make together.
    pub operations: u32,
    /// The share of calls that only look or take something out.
    pub read_share: f64,
    /// The share of calls that never return.
    pub pending_share: f64,
    /// How many pairs of calls exchange what they returned.
    pub plants: usize,
    /// How far apart the calls of such a pair are at most, in calls.
    pub distance: u32,
    /// What decides every random choice.
    pub seed: u64,
}

/// A call as it goes on.
struct Running {
    session: SessionId,
    method: &'static str,
    arg: Option<i64>,
    returns: Value,
    start: i64,
    end: Option<i64>,
}

/// What a session does next.
#[derive(Clone, Copy)]
enum Step {
    Call,
    TakeEffect(usize),
    Return(usize),
}

/// Makes a history of an object's calls; linearizable unless violations are planted.
pub fn generate_calls(workload: &ObjectWorkload) -> History {
    let mut random = Random::new(workload.seed, Chooser::Clients);
    let mut builder = HistoryBuilder::new();
    let sessions: Vec<SessionId> =
        (0..workload.sessions.max(1)).map(|i| builder.session(&format!("t{i}"))).collect();
    let mut contents = Contents::new(workload.object);
    let mut steps = vec![Step::Call; sessions.len()];
    let mut calls: Vec<Running> = Vec::with_capacity(workload.operations as usize);
    let mut clock = 0;
    let mut busy = 0;
    while calls.len() < workload.operations as usize || busy > 0 {
        let s = random.below(sessions.len() as u32) as usize;
        steps[s] = match steps[s] {
            Step::Call if calls.len() == workload.operations as usize => continue,
            Step::Call => {
                let is_read = random.unit() < workload.read_share;
                let (method, arg) = contents.choose(is_read, &mut random);
                let returns = Value::Null;
                let session = sessions[s];
                calls.push(Running { session, method, arg, returns, start: clock, end: None });
                busy += 1;
                match random.unit() < workload.pending_share && random.once_in(2) {
                    // It is lost on its way.
                    true => {
                        busy -= 1;
                        Step::Call
                    }
                    false => Step::TakeEffect(calls.len() - 1),
                }
            }
            Step::TakeEffect(call) => {
                let Running { method, arg, .. } = calls[call];
                calls[call].returns = contents.perform(method, arg);
                match random.unit() < workload.pending_share && random.once_in(2) {
                    true => {
                        busy -= 1;
                        Step::Call
                    }
                    false => Step::Return(call),
                }
            }
            Step::Return(call) => {
                calls[call].end = Some(clock);
                busy -= 1;
                Step::Call
            }
        };
        clock += 1;
    }
    plant(&mut calls, workload);
    for call in calls {
        let args = call.arg.map(|arg| builder.int(arg)).into_iter().collect();
        let is_silent = matches!(call.method, "write" | "enqueue" | "push" | "insert");
        let returns = call.end.filter(|_| !is_silent).map(|_| builder.value(call.returns));
        let id = builder.call(Call { method: call.method.into(), args, returns });
        let time = Some(Interval { start: call.start, end: call.end });
        let details = Details { time, ..Details::default() };
        builder.push_with(call.session, Action::Call(id), details);
    }
    builder.finish().expect("there are no transactions, and fewer calls than ids")
}

/// Exchanges what some calls of one method returned, if it differs.
fn plant(calls: &mut [Running], workload: &ObjectWorkload) {
    let mut random = Random::new(workload.seed, Chooser::Planter);
    let mut left = workload.plants;
    // Enough tries to find partners where there are some.
    for _ in 0..1000 * workload.plants {
        if left == 0 || calls.len() < 2 {
            return;
        }
        let first = random.below(calls.len() as u32 - 1) as usize;
        let reach = (calls.len() - 1 - first).min(workload.distance.max(1) as usize);
        let second = first + 1 + random.below(reach as u32) as usize;
        let (a, b) = (&calls[first], &calls[second]);
        let is_same = a.method == b.method
            && a.arg.is_some() == b.arg.is_some()
            && a.end.is_some()
            && b.end.is_some();
        let is_silent = matches!(a.method, "write" | "enqueue" | "push" | "insert");
        if is_same && !is_silent && a.returns != b.returns {
            let returned = std::mem::replace(&mut calls[first].returns, Value::Null);
            calls[first].returns = std::mem::replace(&mut calls[second].returns, returned);
            left -= 1;
        }
    }
}

/// An object, and the values that were used.
enum Contents {
    Register { value: Option<i64>, next: i64 },
    Set { elements: BTreeSet<i64>, removable: Vec<i64>, next: i64 },
    Queue { elements: VecDeque<i64>, next: i64 },
    Stack { elements: Vec<i64>, next: i64 },
    PriorityQueue { elements: BTreeSet<i64>, next: i64 },
}

impl Contents {
    fn new(object: SharedObject) -> Self {
        let next = 1;
        match object {
            SharedObject::Register => Contents::Register { value: None, next },
            SharedObject::Set => {
                Contents::Set { elements: BTreeSet::new(), removable: Vec::new(), next }
            }
            SharedObject::Queue => Contents::Queue { elements: VecDeque::new(), next },
            SharedObject::Stack => Contents::Stack { elements: Vec::new(), next },
            SharedObject::PriorityQueue => {
                Contents::PriorityQueue { elements: BTreeSet::new(), next }
            }
        }
    }

    /// Chooses a call: one that looks or takes out, or one that puts in.
    fn choose(&mut self, is_read: bool, random: &mut Random) -> (&'static str, Option<i64>) {
        let (read, write, next) = match self {
            Contents::Register { next, .. } => ("read", "write", next),
            Contents::Queue { next, .. } => ("dequeue", "enqueue", next),
            Contents::Stack { next, .. } => ("pop", "push", next),
            Contents::PriorityQueue { next, .. } => {
                // Priorities in no order, each once: an odd factor modulo a power of two.
                let priority = (*next).wrapping_mul(0x9e37_79b1) & 0x7fff_ffff;
                if is_read {
                    return ("poll", None);
                }
                *next += 1;
                return ("insert", Some(priority));
            }
            Contents::Set { removable, next, .. } => {
                let known = removable.len() as u32;
                return match (is_read, random.below(4)) {
                    // Now and then what is not there any more, or not yet.
                    (true, 0) => {
                        let back = i64::from(random.below(8));
                        ("contains", Some((*next - back).max(1)))
                    }
                    (true, 1) if known > 0 => {
                        ("contains", Some(removable[random.below(known) as usize]))
                    }
                    (true, _) if known > 0 => {
                        // Each is removed once only.
                        let at = random.below(known) as usize;
                        ("remove", Some(removable.swap_remove(at)))
                    }
                    (true, _) => ("contains", Some(*next)),
                    (false, _) => {
                        *next += 1;
                        ("add", Some(*next - 1))
                    }
                };
            }
        };
        if is_read {
            return (read, None);
        }
        *next += 1;
        (write, Some(*next - 1))
    }

    /// Performs a call.
    fn perform(&mut self, method: &str, arg: Option<i64>) -> Value {
        let found = |value: Option<i64>| value.map_or(Value::Null, Value::Int);
        match (self, arg) {
            (Contents::Register { value, .. }, None) => found(*value),
            (Contents::Register { value, .. }, Some(_)) => {
                *value = arg;
                Value::Null
            }
            (Contents::Queue { elements, .. }, None) => found(elements.pop_front()),
            (Contents::Queue { elements, .. }, Some(value)) => {
                elements.push_back(value);
                Value::Null
            }
            (Contents::Stack { elements, .. }, None) => found(elements.pop()),
            (Contents::Stack { elements, .. }, Some(value)) => {
                elements.push(value);
                Value::Null
            }
            (Contents::PriorityQueue { elements, .. }, None) => found(elements.pop_first()),
            (Contents::PriorityQueue { elements, .. }, Some(value)) => {
                elements.insert(value);
                Value::Null
            }
            (Contents::Set { elements, removable, .. }, value) => {
                let value = value.unwrap_or_default();
                Value::Bool(match method {
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
