//! Histories of objects whose clients take turns, one step at a time: a call begins, takes effect
//! on the object, or returns; between two steps others run. So about half of the clients have a
//! pending call.

use consistory_history::{Action, Call, Details, History, HistoryBuilder, Interval, Value};
use consistory_spec::Object;

/// Parameters of a history.
#[derive(Clone, Debug)]
pub struct Turns {
    /// Number of clients.
    pub clients: usize,
    /// Number of calls.
    pub calls: usize,
    /// Number of values; with fewer values, repetitions are more frequent.
    pub values: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// Whether a return in the second half is replaced by that of an earlier call.
    pub is_wrong: bool,
}

/// A portable random number generator (splitmix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

struct Running {
    client: usize,
    method: &'static str,
    args: Vec<Value>,
    start: i64,
    end: i64,
    returns: Option<Value>,
}

/// Builds a history of an object: `takes` are methods without arguments that return a value, and
/// `gives` are methods that take a value.
pub fn in_turns(
    object: &dyn Object,
    takes: &[&'static str],
    gives: &[&'static str],
    turns: &Turns,
) -> History {
    let mut chance = Chance(turns.seed);
    let mut running: Vec<Option<Running>> = (0..turns.clients).map(|_| None).collect();
    let mut done: Vec<Running> = Vec::new();
    let mut state = object.initial();
    let (mut begun, mut clock) = (0, 0);
    while begun < turns.calls || running.iter().any(Option::is_some) {
        let client = chance.below(turns.clients);
        clock += 1;
        match running[client].take() {
            None if begun == turns.calls => {}
            None => {
                let is_take = chance.below(2) == 0;
                let methods = if is_take { takes } else { gives };
                let method = methods[chance.below(methods.len())];
                let value = Value::Int(chance.below(turns.values) as i64);
                let args = if is_take { vec![] } else { vec![value] };
                begun += 1;
                let (start, end, returns) = (clock, 0, None);
                running[client] = Some(Running { client, method, args, start, end, returns });
            }
            Some(mut call) if call.end == 0 => {
                call.returns = object.invoke(&mut state, call.method, &call.args);
                call.end = clock;
                running[client] = Some(call);
            }
            Some(mut call) => {
                call.end = clock;
                done.push(call);
            }
        }
    }
    done.sort_by_key(|call| call.start);
    if turns.is_wrong {
        let read: Vec<usize> =
            (0..done.len()).filter(|&i| takes.contains(&done[i].method)).collect();
        let earlier = done[read[read.len() / 4]].returns.clone();
        done[read[read.len() / 2]].returns = earlier;
    }
    let mut builder = HistoryBuilder::new();
    for call in done {
        let session = builder.session(&format!("t{}", call.client));
        let args = call.args.into_iter().map(|arg| builder.value(arg)).collect();
        let returns = call.returns.map(|value| builder.value(value));
        let id = builder.call(Call { method: call.method.into(), args, returns });
        let time = Some(Interval { start: call.start, end: Some(call.end) });
        builder.push_with(session, Action::Call(id), Details { time, ..Details::default() });
    }
    builder.finish().expect("few enough operations")
}
