//! Programs that run on a protocol: all values that their loads can return.
//!
//! Each thread is a list of loads and stores, and runs on the processor with the same number. The
//! product of the program and the protocol is explored: a rule that is marked as a load or a store
//! fires only if it is the next access of its processor's thread, and rules without marks fire
//! freely. Together with the protocol's state, the search keeps the store whose value each storage
//! location holds. The effects of tracked rules determine this store ([`crate::tracking`]), so the
//! protocol's own data type may have any number of values.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash};

use consistory_verdict::{Budget, Stopped};
use rustc_hash::{FxBuildHasher, FxHashMap};
use thiserror::Error;

use crate::machine::stepper::{Fired, Serialization, Stepper};
use crate::system::{Fault, System};
use crate::tracking::{Effect, Operation, Source};

/// An access of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ClientAccess {
    /// A load of a block, by its number.
    Load(u32),
    /// A store to a block.
    Store(u32),
}

/// The value that a load returned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Loaded {
    /// A value of the start state.
    Initial,
    /// The store that is this access of this thread.
    Store {
        /// The thread.
        thread: u32,
        /// Index of the access in the thread.
        access: u32,
    },
}

/// Reasons why the answers of a program are not known.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ClientError {
    /// There are fewer processors or blocks than the program needs.
    #[error("the program has {found} {what}, but the protocol has {limit}")]
    TooFew {
        /// The kind that is too few: processors or blocks.
        what: &'static str,
        /// The number that the program needs.
        found: usize,
        /// The number that the protocol has.
        limit: usize,
    },
    /// The system was built without tracking.
    #[error("the protocol does not track its data")]
    NotTracked,
    /// A rule failed.
    #[error("a rule of the protocol fails at {}", .0.position)]
    Fault(Box<Fault>),
    /// A load reads data that is undefined.
    #[error("a load reads undefined data in the rule {0}")]
    Undefined(String),
    /// The budget ran out.
    #[error("{0}")]
    Stopped(Stopped),
}

impl From<Stopped> for ClientError {
    fn from(stopped: Stopped) -> Self {
        ClientError::Stopped(stopped)
    }
}

/// A map from every combination of loaded values, in the order of threads and accesses, to the
/// rules of a shortest run that produces it.
pub type ClientAnswers = BTreeMap<Vec<Loaded>, Vec<String>>;

/// Represents the absence of a value of the program.
const NOTHING: u8 = u8::MAX;
/// Represents the value of the start state; store number `n` is represented by `n + 1`.
const INITIAL: u8 = 0;

/// A state of the product of program and protocol.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Joint {
    slots: Box<[i32]>,
    /// The store whose value each location holds, then the position of each thread, then the value
    /// that each load returned.
    clients: Box<[u8]>,
}

/// Finds every combination of values that the loads of a program can return.
pub fn client_answers(
    system: &System,
    threads: &[Vec<ClientAccess>],
    budget: &Budget,
) -> Result<ClientAnswers, ClientError> {
    let shape = system.shape().ok_or(ClientError::NotTracked)?;
    let accesses = threads.iter().flatten();
    let blocks = accesses
        .clone()
        .map(|access| match access {
            ClientAccess::Load(block) | ClientAccess::Store(block) => *block as usize + 1,
        })
        .max()
        .unwrap_or(0);
    let limits = [
        ("threads", threads.len(), shape.procs as usize),
        ("locations", blocks, shape.blocks as usize),
    ];
    for (what, found, limit) in limits {
        if found > limit {
            return Err(ClientError::TooFew { what, found, limit });
        }
    }
    let product = Product::new(threads, shape.locations as usize);
    product.explore(system, budget)
}

struct Product<'p> {
    threads: &'p [Vec<ClientAccess>],
    locations: usize,
    /// Number of each access of each thread among all loads or all stores.
    numbers: Vec<Vec<u8>>,
    /// Stores by number.
    stores: Vec<Loaded>,
    loads: usize,
}

impl<'p> Product<'p> {
    fn new(threads: &'p [Vec<ClientAccess>], locations: usize) -> Self {
        let (mut stores, mut loads) = (Vec::new(), 0);
        let mut numbers = Vec::new();
        for (thread, accesses) in threads.iter().enumerate() {
            let mut own = Vec::new();
            for (access, what) in accesses.iter().enumerate() {
                match what {
                    ClientAccess::Load(_) => {
                        own.push(loads as u8);
                        loads += 1;
                    }
                    ClientAccess::Store(_) => {
                        own.push(stores.len() as u8);
                        stores.push(Loaded::Store { thread: thread as u32, access: access as u32 });
                    }
                }
            }
            numbers.push(own);
        }
        Product { threads, locations, numbers, stores, loads }
    }

    fn explore(&self, system: &System, budget: &Budget) -> Result<ClientAnswers, ClientError> {
        let mut stepper = Stepper::new(system, Serialization::Inferred, budget.clone());
        let mut states: Vec<Joint> = Vec::new();
        // Predecessor of each state, and the rule that led from it.
        let mut reached: Vec<(u32, u32)> = Vec::new();
        let mut known: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        let mut add = |state: Joint, from: (u32, u32), states: &mut Vec<Joint>| {
            let hash = FxBuildHasher.hash_one(&state);
            let places = known.entry(hash).or_default();
            if !places.iter().any(|&at| states[at as usize] == state) {
                places.push(states.len() as u32);
                states.push(state);
                reached.push(from);
            }
        };
        for start in 0..system.lowered.starts.len() {
            match stepper.start(start) {
                Fired::Fault(site) => return Err(ClientError::Fault(Box::new(system.fault(site)))),
                Fired::Disabled => {}
                Fired::Done => {
                    let width = self.locations + self.threads.len() + self.loads;
                    let mut clients = vec![0; width].into_boxed_slice();
                    for (at, source) in stepper.effect.sources.iter().enumerate() {
                        let is_initial = matches!(source, Source::Initial { .. });
                        clients[at] = if is_initial { INITIAL } else { NOTHING };
                    }
                    clients[self.locations + self.threads.len()..].fill(NOTHING);
                    let state = Joint { slots: stepper.slots().into(), clients };
                    add(state, (u32::MAX, start as u32), &mut states);
                }
            }
        }
        let mut ends: BTreeMap<Vec<Loaded>, u32> = BTreeMap::new();
        let mut at = 0;
        while at < states.len() {
            budget.check()?;
            if self.is_done(&states[at]) {
                ends.entry(self.answers(&states[at])).or_insert(at as u32);
                at += 1;
                continue;
            }
            let before = states[at].clone();
            stepper.load_slots(&before.slots);
            let mut first = 0;
            // Rules of a later priority fire only if no rule of an earlier priority does.
            for &end in &system.lowered.priority_ends {
                let mut fires = false;
                for rule in first..end {
                    match stepper.fire(rule) {
                        Fired::Disabled => {}
                        Fired::Fault(site) => {
                            return Err(ClientError::Fault(Box::new(system.fault(site))));
                        }
                        Fired::Done => {
                            let followed = self.follow(&before.clients, &stepper.effect);
                            let followed = followed
                                .map_err(|_| ClientError::Undefined(system.rule_name(rule)))?;
                            if let Some(clients) = followed {
                                fires = true;
                                let state = Joint { slots: stepper.slots().into(), clients };
                                add(state, (at as u32, rule as u32), &mut states);
                            }
                        }
                    }
                    stepper.reset();
                }
                first = end;
                if fires {
                    break;
                }
            }
            at += 1;
        }
        let run = |end: u32| {
            let (mut rules, mut at) = (Vec::new(), end);
            loop {
                let (from, rule) = reached[at as usize];
                if from == u32::MAX {
                    break;
                }
                rules.push(system.rule_name(rule as usize));
                at = from;
            }
            rules.reverse();
            rules
        };
        Ok(ends.into_iter().map(|(answers, end)| (answers, run(end))).collect())
    }

    fn is_done(&self, state: &Joint) -> bool {
        let progress = &state.clients[self.locations..];
        self.threads.iter().zip(progress).all(|(thread, &at)| usize::from(at) == thread.len())
    }

    fn answers(&self, state: &Joint) -> Vec<Loaded> {
        let read = &state.clients[self.locations + self.threads.len()..];
        let loaded = |&value: &u8| match value {
            INITIAL => Loaded::Initial,
            store => self.stores[usize::from(store) - 1],
        };
        read.iter().map(loaded).collect()
    }

    /// Returns the program's state after the effect of a rule, or `None` if the effect is not the
    /// program's next step.
    fn follow(&self, before: &[u8], effect: &Effect) -> Result<Option<Box<[u8]>>, UndefinedRead> {
        let mut after: Box<[u8]> = before.into();
        // Value of each store among the operations.
        let mut stored = vec![NOTHING; effect.operations.len()];
        for (number, operation) in effect.operations.iter().enumerate() {
            let (proc, wanted) = match *operation {
                Operation::Load { proc, block, .. } => (proc as usize, ClientAccess::Load(block)),
                Operation::Store { proc, block } => (proc as usize, ClientAccess::Store(block)),
                Operation::Serialize { .. } => continue,
            };
            let Some(thread) = self.threads.get(proc) else { return Ok(None) };
            let progress = &mut after[self.locations + proc];
            let access = usize::from(*progress);
            if thread.get(access) != Some(&wanted) {
                return Ok(None);
            }
            *progress += 1;
            let place = usize::from(self.numbers[proc][access]);
            match *operation {
                Operation::Load { from, .. } => {
                    let value = match from {
                        Source::Location(location) => before[location as usize],
                        Source::Store(store) => stored[store as usize],
                        Source::Initial { .. } => INITIAL,
                        Source::Nothing => NOTHING,
                    };
                    if value == NOTHING {
                        return Err(UndefinedRead);
                    }
                    after[self.locations + self.threads.len() + place] = value;
                }
                _ => stored[number] = place as u8 + 1,
            }
        }
        for (location, source) in effect.sources.iter().enumerate() {
            after[location] = match *source {
                Source::Location(from) => before[from as usize],
                Source::Store(store) => stored[store as usize],
                Source::Initial { .. } => INITIAL,
                Source::Nothing => NOTHING,
            };
        }
        Ok(Some(after))
    }
}

/// A load of data that is undefined.
struct UndefinedRead;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    const STORE_BUFFERING: [[ClientAccess; 2]; 2] = [
        [ClientAccess::Store(0), ClientAccess::Load(1)],
        [ClientAccess::Store(1), ClientAccess::Load(0)],
    ];

    fn both_read_initial(file: &str) -> bool {
        let path = format!("{}/../../corpus/protocols/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let system = Model::parse(file, &text).unwrap().tracked().unwrap();
        let threads = STORE_BUFFERING.map(Vec::from);
        let answers = client_answers(&system, &threads, &Budget::unlimited()).unwrap();
        answers.contains_key(&vec![Loaded::Initial, Loaded::Initial])
    }

    #[test]
    fn store_buffers_show_store_buffering_and_a_serial_memory_does_not() {
        assert!(both_read_initial("store-buffers.m"));
        assert!(!both_read_initial("store-buffers-drained.m"));
        assert!(!both_read_initial("serial.m"));
        assert!(!both_read_initial("msi.m"));
    }
}
