//! Register histories encoded in few bytes.
//!
//! Two bytes contain the numbers of sessions and keys and the mode of values; every operation takes
//! three bytes: its kind and status, its session and key, the values read and written. Any bytes
//! are a history, and a small change of the bytes is a small change of the history.
//!
//! With *distinct* values each write of a key has a unique number and a read selects one of them,
//! so most reads have a source; otherwise the bytes are the values, and they repeat.

use consistory_history::{
    Action, Details, History, HistoryBuilder, KeyId, OpenTransaction, Status, Value, ValueId,
};

use crate::bytes::Bytes;

/// Kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `r(key,found)`.
    Read,
    /// `w(key,written)`.
    Write,
    /// `rmw(key,found,written)`.
    Rmw,
    /// `f`.
    Fence,
}

const KINDS: [Kind; 4] = [Kind::Read, Kind::Write, Kind::Rmw, Kind::Fence];

/// Most operations took effect.
const STATUSES: [Status; 8] = [
    Status::Ok,
    Status::Fail,
    Status::Unknown,
    Status::Ok,
    Status::Ok,
    Status::Ok,
    Status::Ok,
    Status::Ok,
];

const MAX_SESSIONS: usize = 6;
const MAX_KEYS: usize = 4;
const VALUES: usize = 16;
const KEYS: [&str; MAX_KEYS] = ["x", "y", "z", "u"];

/// A value that is never written if values are distinct.
const THIN_AIR: usize = VALUES - 1;

/// An operation of a planned history.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    kind: Kind,
    status: Status,
    session: usize,
    key: usize,
    found: usize,
    written: usize,
}

/// A planned history.
#[derive(Clone, Debug)]
pub struct Plan {
    sessions: usize,
    keys: usize,
    /// Whether each write of a key has a unique value.
    is_distinct: bool,
    /// Whether the initial value of the first key is 1.
    has_initial: bool,
    /// Whether operations that are failed or indeterminate are in transactions.
    has_transactions: bool,
    /// The operations, sessions interleaved.
    ops: Vec<Planned>,
}

impl Plan {
    /// Decodes a history of at most `most` operations.
    pub fn decode(bytes: &mut Bytes<'_>, most: usize) -> Plan {
        let size = bytes.byte();
        let flags = bytes.byte();
        let mut plan = Plan {
            sessions: 1 + usize::from(size & 15) % MAX_SESSIONS,
            keys: 1 + usize::from(size >> 4) % MAX_KEYS,
            is_distinct: flags & 1 == 0,
            has_initial: flags & 2 != 0,
            has_transactions: flags & 4 != 0,
            ops: Vec::new(),
        };
        while plan.ops.len() < most && !bytes.is_empty() {
            let op = plan.decode_op(bytes);
            plan.ops.push(op);
        }
        plan
    }

    fn decode_op(&self, bytes: &mut Bytes<'_>) -> Planned {
        let (what, place, values) = (bytes.byte(), bytes.byte(), bytes.byte());
        Planned {
            kind: KINDS[usize::from(what & 15) % KINDS.len()],
            status: STATUSES[usize::from(what >> 4) % STATUSES.len()],
            session: usize::from(place & 15) % self.sessions,
            key: usize::from(place >> 4) % self.keys,
            found: usize::from(values >> 4),
            written: usize::from(values & 15),
        }
    }

    /// Encodes a history for [`Plan::decode`], if it is small enough; initial values, transactions
    /// and times are lost.
    pub fn encode(history: &History) -> Option<Vec<u8>> {
        let (sessions, keys) = (history.session_count(), history.key_count());
        if sessions > MAX_SESSIONS || keys > MAX_KEYS || sessions * keys == 0 {
            return None;
        }
        let mut bytes = vec![(sessions - 1 + ((keys - 1) << 4)) as u8, 1];
        for op in history.ops() {
            let value = |id: ValueId| match history.value(id) {
                Value::Int(value @ 0..16) => Some(*value as u8),
                _ => None,
            };
            let (kind, key, found, written) = match history.action(op) {
                Action::Read { key, value: id } => (0, key, value(id)?, 0),
                Action::Write { key, value: id } => (1, key, 0, value(id)?),
                Action::Rmw { key, read, write } => (2, key, value(read)?, value(write)?),
                Action::Fence => (3, KeyId(0), 0, 0),
                Action::Append { .. } | Action::Call(_) => return None,
            };
            let status = STATUSES.iter().position(|&s| s == history.status(op))? as u8;
            let session = history.session_of(op).0 as u8;
            bytes.extend([
                kind + (status << 4),
                session + ((key.0 as u8) << 4),
                (found << 4) + written,
            ]);
        }
        Some(bytes)
    }

    /// Counts the operations.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Returns whether there are no operations.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Truncates the history to its first operations.
    pub fn truncate(&mut self, most: usize) {
        self.ops.truncate(most);
    }

    /// Returns whether values are distinct.
    pub fn is_distinct(&self) -> bool {
        self.is_distinct
    }

    /// Replaces an operation by another of the same session.
    pub fn edit(&mut self, bytes: &mut Bytes<'_>) {
        let Some(last) = self.ops.len().checked_sub(1) else { return };
        let at = bytes.below(last + 1);
        let session = self.ops[at].session;
        self.ops[at] = Planned { session, ..self.decode_op(bytes) };
    }

    /// Builds the history; its sessions are `t0`, `t1` and so on.
    pub fn history(&self) -> History {
        let mut b = HistoryBuilder::new();
        let sessions: Vec<_> = (0..self.sessions).map(|s| b.session(&format!("t{s}"))).collect();
        let keys: Vec<_> = KEYS[..self.keys].iter().map(|name| b.key(name)).collect();
        if self.has_initial {
            let one = b.int(1);
            b.set_initial(keys[0], one);
        }
        let writes = |op: &Planned| matches!(op.kind, Kind::Write | Kind::Rmw);
        let mut totals = vec![0; self.keys];
        for op in self.ops.iter().filter(|op| writes(op)) {
            totals[op.key] += 1;
        }
        let mut counts = vec![0; self.keys];
        let mut open: Vec<Option<(OpenTransaction, Status)>> = vec![None; self.sessions];
        for op in &self.ops {
            counts[op.key] += usize::from(writes(op));
            let (found, written) = match self.is_distinct {
                true if op.found == THIN_AIR => (1000, 10 + counts[op.key]),
                true => match op.found % (totals[op.key] + 1) {
                    0 => (usize::from(self.has_initial && op.key == 0), 10 + counts[op.key]),
                    number => (10 + number, 10 + counts[op.key]),
                },
                false => (op.found, op.written),
            };
            let (key, found, written) = (keys[op.key], b.int(found as i64), b.int(written as i64));
            let action = match op.kind {
                Kind::Read => Action::Read { key, value: found },
                Kind::Write => Action::Write { key, value: written },
                Kind::Rmw => Action::Rmw { key, read: found, write: written },
                Kind::Fence => Action::Fence,
            };
            let mut details = Details { status: op.status, ..Details::default() };
            if self.has_transactions && op.status != Status::Ok {
                // Only aborted transactions may have more than one operation.
                let transaction = match open[op.session] {
                    Some((open, Status::Fail)) if op.status == Status::Fail => open,
                    _ => b.begin_transaction(),
                };
                b.set_transaction_status(transaction, op.status);
                open[op.session] = Some((transaction, op.status));
                details = Details { transaction: Some(transaction), ..Details::default() };
            } else {
                open[op.session] = None;
            }
            b.push_with(sessions[op.session], action, details);
        }
        b.finish().expect("transactions are consecutive in their sessions")
    }
}
