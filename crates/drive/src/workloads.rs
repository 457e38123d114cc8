//! Workloads: the requests of each session, and the models that judge them.
//!
//! A workload defines a program for each session. Its requests depend only on the seed, the
//! session's number and the number of requests so far. Values are never written twice, and keys are
//! replaced before their lists grow long.

mod objects;
mod registers;
mod transactions;

use consistory_random::Random;

use crate::request::Request;

/// The requests of every session.
pub trait Workload: Send + Sync {
    /// Returns a session's next request.
    fn next(&self, program: &mut Program) -> Request;

    /// Returns the requests that every node receives after the last fault.
    fn last(&self) -> Vec<Request> {
        Vec::new()
    }
}

/// The state of a session's program.
#[derive(Clone, Debug)]
pub struct Program {
    /// The session, counted from 0.
    pub session: u32,
    /// The number of sessions.
    pub sessions: u32,
    /// The number of requests so far.
    pub requests: u32,
    /// The session's random choices.
    pub random: Random,
    values: i64,
}

impl Program {
    /// Starts the program of a session.
    pub fn new(seed: u64, session: u32, sessions: u32) -> Self {
        let random = Random::new(seed, u64::from(session));
        Program { session, sessions, requests: 0, random, values: 0 }
    }

    /// Returns a value that no session has written.
    pub fn fresh(&mut self) -> i64 {
        self.values += 1;
        (self.values - 1) * i64::from(self.sessions) + i64::from(self.session) + 1
    }
}

/// The family of models that judges a workload's histories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// The models of registers.
    Registers,
    /// The models of transactions.
    Transactions,
    /// The models of an object.
    Object(&'static str),
}

/// The available workloads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WorkloadKind {
    /// Reads and writes of registers.
    Register,
    /// Transactions that read and write registers.
    RwRegister,
    /// Transactions that read lists and append to them.
    ListAppend,
    /// Transactions that read a register and then overwrite it.
    ReadModifyWrite,
    /// Elements are added to a set; at the end, every node is asked for its elements.
    Set,
    /// Reads, writes and compare-and-set.
    CasRegister,
    /// Elements are added to a queue and removed from it.
    Queue,
    /// Money moves between accounts, and all accounts are read.
    Bank,
    /// Keys are written once each, and groups of them are read.
    LongFork,
}

impl WorkloadKind {
    /// All workloads with their names and descriptions.
    pub const ALL: [(WorkloadKind, &'static str, &'static str); 9] = [
        (
            WorkloadKind::Register,
            "register",
            "reads and writes of registers: stale and lost writes",
        ),
        (
            WorkloadKind::RwRegister,
            "rw-register",
            "transactions of registers: skews and lost updates",
        ),
        (
            WorkloadKind::ListAppend,
            "list-append",
            "transactions that append to lists: all anomalies",
        ),
        (WorkloadKind::ReadModifyWrite, "rmw", "a transaction reads, then writes: lost updates"),
        (WorkloadKind::Set, "set", "elements added, read on every node in the end: lost commits"),
        (WorkloadKind::CasRegister, "cas-register", "compare-and-set with reads and writes"),
        (WorkloadKind::Queue, "queue", "a queue: elements lost, doubled or out of order"),
        (WorkloadKind::Bank, "bank", "transfers between accounts: snapshots that do not add up"),
        (WorkloadKind::LongFork, "long-fork", "groups of keys read at once: two orders of writes"),
    ];

    /// Finds a workload by its name.
    pub fn named(name: &str) -> Option<WorkloadKind> {
        let name = match name {
            "registers" => "register",
            "read-modify-write" => "rmw",
            "append" => "list-append",
            "cas" => "cas-register",
            other => other,
        };
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(kind, ..)| *kind)
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).expect("all workloads are listed").1
    }

    /// Returns the family of models that judges it.
    pub fn family(self) -> Family {
        match self {
            WorkloadKind::Register => Family::Registers,
            WorkloadKind::RwRegister
            | WorkloadKind::ListAppend
            | WorkloadKind::ReadModifyWrite
            | WorkloadKind::Bank
            | WorkloadKind::LongFork => Family::Transactions,
            WorkloadKind::Set => Family::Object("set"),
            WorkloadKind::CasRegister => Family::Object("map"),
            WorkloadKind::Queue => Family::Object("queue"),
        }
    }

    /// Builds the workload, with about `keys` keys in use at a time.
    pub fn build(self, keys: u32) -> Box<dyn Workload> {
        let keys = keys.max(1);
        match self {
            WorkloadKind::Register => Box::new(registers::Registers { keys }),
            WorkloadKind::RwRegister => Box::new(transactions::RwRegister { keys }),
            WorkloadKind::ListAppend => Box::new(transactions::ListAppend { keys }),
            WorkloadKind::ReadModifyWrite => Box::new(transactions::ReadModifyWrite { keys }),
            WorkloadKind::Bank => Box::new(transactions::Bank { accounts: keys.max(2) }),
            WorkloadKind::LongFork => Box::new(transactions::LongFork),
            WorkloadKind::Set => Box::new(objects::SetOfElements),
            WorkloadKind::CasRegister => Box::new(objects::CasRegister { keys }),
            WorkloadKind::Queue => Box::new(objects::Queue),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::request::{Action, Change};

    #[test]
    fn programs_depend_on_the_seed_and_write_every_value_once() {
        for (kind, name, _) in WorkloadKind::ALL {
            assert_eq!(WorkloadKind::named(name), Some(kind));
            let workload = kind.build(3);
            let run = |seed, session| {
                let mut program = Program::new(seed, session, 4);
                let mut requests = Vec::new();
                for _ in 0..300 {
                    requests.push(workload.next(&mut program));
                    program.requests += 1;
                }
                requests
            };
            assert_eq!(run(1, 0), run(1, 0), "{name}");
            if kind != WorkloadKind::Set && kind != WorkloadKind::LongFork {
                assert_ne!(run(1, 0), run(2, 0), "{name}");
            }
            let mut written = BTreeSet::new();
            for session in 0..4 {
                for request in run(1, session) {
                    let values: Vec<i64> = match &request {
                        Request::Add(value) | Request::Enqueue(value) => vec![*value],
                        // Compare-and-set repeats values on purpose.
                        _ if kind == WorkloadKind::CasRegister => Vec::new(),
                        request => (request.steps().iter())
                            .filter_map(|step| match step {
                                Action::Write(_, value) | Action::Append(_, value) => Some(*value),
                                Action::Update(_, Change::Put(value)) => Some(*value),
                                Action::Update(_, Change::Transfer { tag, .. }) => Some(*tag),
                                Action::Read(_) | Action::ReadList(_) => None,
                            })
                            .collect(),
                    };
                    for value in values {
                        assert!(written.insert(value), "{name} writes {value} twice");
                    }
                }
            }
        }
    }
}
