//! Transactions of registers and lists.

use super::{Program, Workload};
use crate::request::{Action, Change, Key, Request};

/// Transactions of a session after which the keys advance by one window.
const TRANSACTIONS_PER_WINDOW: u32 = 30;

/// Chooses one of the keys in use; keys are replaced window by window.
fn live_key(program: &mut Program, keys: u32) -> Key {
    let window = program.requests / TRANSACTIONS_PER_WINDOW;
    Key(window * keys + program.random.below(keys))
}

/// Two to four reads and writes of registers per transaction.
pub(super) struct RwRegister {
    pub(super) keys: u32,
}

impl Workload for RwRegister {
    fn next(&self, program: &mut Program) -> Request {
        let steps = program.random.between(2, 4);
        let mut transaction: Vec<Action> = Vec::new();
        for _ in 0..steps {
            let key = live_key(program, self.keys);
            if transaction.iter().any(|step| step.key() == key && !step.is_read()) {
                continue;
            }
            transaction.push(match program.random.percent(50) {
                true => Action::Write(key, program.fresh()),
                false => Action::Read(key),
            });
        }
        Request::Transaction(transaction)
    }
}

/// Two to four reads of lists and appends to them per transaction.
pub(super) struct ListAppend {
    pub(super) keys: u32,
}

impl Workload for ListAppend {
    fn next(&self, program: &mut Program) -> Request {
        let steps = program.random.between(2, 4);
        let step = |program: &mut Program| {
            let key = live_key(program, self.keys);
            match program.random.percent(50) {
                true => Action::Append(key, program.fresh()),
                false => Action::ReadList(key),
            }
        };
        Request::Transaction((0..steps).map(|_| step(program)).collect())
    }
}

/// Reads a register and then overwrites it, in one transaction.
pub(super) struct ReadModifyWrite {
    pub(super) keys: u32,
}

impl Workload for ReadModifyWrite {
    fn next(&self, program: &mut Program) -> Request {
        let key = live_key(program, self.keys);
        match program.random.percent(20) {
            true => Request::Transaction(vec![Action::Read(key)]),
            false => Request::Transaction(vec![Action::Update(key, Change::Put(program.fresh()))]),
        }
    }
}

/// Transfers between two accounts, and reads of all accounts.
pub(super) struct Bank {
    pub(super) accounts: u32,
}

impl Workload for Bank {
    fn next(&self, program: &mut Program) -> Request {
        if program.random.percent(40) {
            return Request::Transaction(
                (0..self.accounts).map(|k| Action::Read(Key(k))).collect(),
            );
        }
        let from = program.random.below(self.accounts);
        let to = (from + 1 + program.random.below(self.accounts - 1)) % self.accounts;
        let amount = program.random.between(1, 5) as i64;
        let mut change = |amount| Change::Transfer { amount, tag: program.fresh() };
        let (take, give) = (change(-amount), change(amount));
        Request::Transaction(vec![Action::Update(Key(from), take), Action::Update(Key(to), give)])
    }
}

/// Number of keys that are read together.
const GROUP: u32 = 3;

/// Number of requests that a session makes on one group.
const REQUESTS_PER_GROUP: u32 = 6;

/// Each key is written once; readers read a group of keys at a time.
///
/// Two reads that see two writes in opposite orders are a long fork: allowed by parallel snapshot
/// isolation, forbidden by snapshot isolation.
pub(super) struct LongFork;

impl Workload for LongFork {
    fn next(&self, program: &mut Program) -> Request {
        let group = program.requests / REQUESTS_PER_GROUP;
        let first = group * GROUP;
        // Each of the first sessions writes one of the keys, halfway through its requests on the
        // group.
        let writes_now = program.requests % REQUESTS_PER_GROUP == REQUESTS_PER_GROUP / 2;
        if writes_now && program.session < GROUP {
            let key = Key(first + program.session);
            return Request::Transaction(vec![Action::Write(key, program.fresh())]);
        }
        Request::Transaction((first..first + GROUP).map(|key| Action::Read(Key(key))).collect())
    }
}
