//! Transactions as single operations: the history on which a definition about transactions is
//! evaluated.
//!
//! Every operation keeps its id. A read that precedes every write of its key in its own transaction
//! may read from another transaction, so it stays a read. The last write of a key in a transaction
//! stays a write. Every other operation becomes a failed one, which has no effect. A list that was
//! read becomes its last element, which identifies the version; an append becomes a write of its
//! element. A read that no level allows gets a value that was never written.
//!
//! The projection also holds the transaction of every operation, the order of transactions, and the
//! pairs of writes that lists put in order. All of this is computed independently of the decider's
//! evaluator.

use consistory_definition::ClientOrder;
use consistory_history::{
    Action, Details, History, HistoryBuilder, Interval, KeyId, KeyKind, OpId, Status, Value,
    ValueId,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// Ordered pairs of transactions.
type Pairs = FxHashSet<(u32, u32)>;

/// Transaction of the initial writes.
const INITIAL: u32 = 0;

/// A history of transactions, rewritten as a history of single operations.
pub(crate) struct Projection {
    pub(crate) history: History,
    /// Transaction of every operation, initial writes included.
    pub(crate) units: Vec<u32>,
    /// Pairs of transactions that the clients order.
    pub(crate) client_order: FxHashSet<(u32, u32)>,
    /// Pairs of transactions the first of which ended before the second began.
    pub(crate) real_time: FxHashSet<(u32, u32)>,
    /// Pairs of writes that lists put in order.
    pub(crate) listed: Vec<(OpId, OpId)>,
}

/// A recorded transaction.
struct Unit {
    session: u32,
    status: Status,
    time: Option<Interval>,
    ops: Vec<OpId>,
}

/// Value that a read returned, in terms of single operations.
enum Found {
    /// The read is determined by its own transaction.
    Internal,
    /// The value of a write, or the initial one.
    Value(ValueId),
    /// A value that no level allows.
    Bad,
}

impl Projection {
    /// Projects a history to which isolation levels apply.
    pub(crate) fn new(history: &History, order: ClientOrder) -> Projection {
        let mut projector = Projector::new(history);
        let mut found: FxHashMap<OpId, Found> = FxHashMap::default();
        for unit in 1..projector.units.len() {
            if projector.units[unit].status == Status::Ok {
                projector.look_up(unit, &mut found);
            }
        }
        projector.disown_torn_lists(&mut found);
        let units = projector.units_of();
        let (client_order, real_time) = projector.orders(order);
        let listed = projector.listed_pairs();
        Projection { history: projector.rebuild(&found), units, client_order, real_time, listed }
    }
}

struct Projector<'h> {
    history: &'h History,
    /// Transactions, starting with the initial one.
    units: Vec<Unit>,
    /// Values written to a key by a transaction that may count, in program order.
    written: FxHashMap<(u32, KeyId), Vec<(OpId, ValueId)>>,
    /// For each list that was read: its key, the read, and the transactions whose appends it shows.
    lists: Vec<(KeyId, OpId, Vec<u32>)>,
}

fn write_of(history: &History, op: OpId) -> Option<(KeyId, ValueId)> {
    match history.action(op) {
        Action::Write { key, value }
        | Action::Append { key, value }
        | Action::Rmw { key, write: value, .. } => Some((key, value)),
        _ => None,
    }
}

impl<'h> Projector<'h> {
    fn new(history: &'h History) -> Self {
        let initial = Unit { session: u32::MAX, status: Status::Ok, time: None, ops: Vec::new() };
        let mut units = vec![initial];
        let mut written: FxHashMap<(u32, KeyId), Vec<(OpId, ValueId)>> = FxHashMap::default();
        for transaction in history.all_transactions() {
            let ops: Vec<OpId> = transaction
                .ops
                .clone()
                .map(OpId)
                .filter(|&op| history.own_status(op) != Status::Fail)
                .collect();
            let mut status = transaction.status;
            if status == Status::Ok
                && ops.iter().any(|&op| history.own_status(op) == Status::Unknown)
            {
                status = Status::Unknown;
            }
            if status != Status::Fail {
                for &op in &ops {
                    if let Some((key, value)) = write_of(history, op) {
                        written.entry((units.len() as u32, key)).or_default().push((op, value));
                    }
                }
            }
            units.push(Unit {
                session: history.session_of(OpId(transaction.ops.start)).0,
                status,
                time: history.transaction_time(&transaction),
                ops,
            });
        }
        Projector { history, units, written, lists: Vec::new() }
    }

    /// Returns the transaction of every operation.
    fn units_of(&self) -> Vec<u32> {
        let mut units = vec![INITIAL; self.history.len() + self.history.key_count()];
        for (unit, transaction) in self.history.all_transactions().enumerate() {
            for op in transaction.ops {
                units[op as usize] = unit as u32 + 1;
            }
        }
        units
    }

    /// Classifies the value that each read of a committed transaction returned.
    fn look_up(&mut self, unit: usize, found: &mut FxHashMap<OpId, Found>) {
        let ops = self.units[unit].ops.clone();
        for (i, &op) in ops.iter().enumerate() {
            let (key, value) = match self.history.action(op) {
                Action::Read { key, value } | Action::Rmw { key, read: value, .. } => (key, value),
                _ => continue,
            };
            let own: Vec<ValueId> = ops[..i]
                .iter()
                .filter_map(|&op| write_of(self.history, op))
                .filter(|write| write.0 == key)
                .map(|write| write.1)
                .collect();
            let result = if self.history.key_kind(key) == KeyKind::List {
                self.list(unit as u32, op, key, value, &own)
            } else {
                match own.last() {
                    Some(&last) if last == value => Found::Internal,
                    Some(_) => Found::Bad,
                    None if self.is_offered(unit as u32, key, value) => Found::Value(value),
                    None => Found::Bad,
                }
            };
            found.insert(op, result);
        }
    }

    /// Checks whether a value is the initial one of a register or the last one that another
    /// transaction wrote to it.
    fn is_offered(&self, unit: u32, key: KeyId, value: ValueId) -> bool {
        self.history.initial_value(key) == value
            || self.written.iter().any(|(&(writer, of), writes)| {
                writer != unit && of == key && writes.last().is_some_and(|last| last.1 == value)
            })
    }

    /// Splits a list into the appends of whole earlier transactions and the reader's own appends.
    fn list(&mut self, unit: u32, op: OpId, key: KeyId, value: ValueId, own: &[ValueId]) -> Found {
        let history = self.history;
        let initial_value = history.initial_value(key);
        let (Value::List(list), Value::List(initial)) =
            (history.value(value), history.value(initial_value))
        else {
            return Found::Bad;
        };
        let own: Vec<&Value> = own.iter().map(|&id| history.value(id)).collect();
        let Some(others) = list.len().checked_sub(own.len()) else { return Found::Bad };
        let is_own = list[others..].iter().zip(&own).all(|(seen, own)| seen == *own);
        let Some(mut rest) = list[..others].strip_prefix(&initial[..]).filter(|_| is_own) else {
            return Found::Bad;
        };
        let (mut shown, mut last) = (vec![INITIAL], initial_value);
        while let Some(first) = rest.first() {
            let id = history.values().find(first);
            let next = self.written.iter().find(|((writer, of), writes)| {
                *writer != unit && *of == key && writes.first().map(|write| write.1) == id
            });
            let Some((&(writer, _), writes)) = next else { return Found::Bad };
            let is_whole = rest.len() >= writes.len()
                && writes.iter().zip(rest).all(|(write, seen)| history.value(write.1) == seen);
            if !is_whole || shown.contains(&writer) {
                return Found::Bad;
            }
            rest = &rest[writes.len()..];
            last = writes[writes.len() - 1].1;
            shown.push(writer);
        }
        self.lists.push((key, op, shown));
        Found::Value(last)
    }

    /// Marks all reads of a key as bad if the lists that they returned are not prefixes of one
    /// another.
    fn disown_torn_lists(&mut self, found: &mut FxHashMap<OpId, Found>) {
        let agree = |a: &[u32], b: &[u32]| a.iter().zip(b).all(|(x, y)| x == y);
        for (key, _, shown) in &self.lists {
            let of_key = self.lists.iter().filter(|list| list.0 == *key);
            if of_key.clone().any(|other| !agree(shown, &other.2)) {
                for (_, read, _) in of_key {
                    found.insert(*read, Found::Bad);
                }
            }
        }
    }

    /// Returns the last write of a key by a transaction.
    fn last_write(&self, unit: u32, key: KeyId) -> Option<OpId> {
        if unit == INITIAL {
            return Some(self.history.initial_write(key));
        }
        self.written.get(&(unit, key)).and_then(|writes| writes.last()).map(|write| write.0)
    }

    /// Returns the pairs of writes that lists put in order: consecutive writes of a list, and its
    /// last write before every write that the list does not contain.
    fn listed_pairs(&self) -> Vec<(OpId, OpId)> {
        let mut pairs = FxHashSet::default();
        for (key, _, shown) in &self.lists {
            let writes: Vec<OpId> =
                shown.iter().filter_map(|&unit| self.last_write(unit, *key)).collect();
            pairs.extend(writes.windows(2).map(|pair| (pair[0], pair[1])));
            let later =
                self.written.iter().filter(|((unit, of), _)| of == key && !shown.contains(unit));
            for (_, writes_after) in later {
                pairs.insert((writes[writes.len() - 1], writes_after[writes_after.len() - 1].0));
            }
        }
        pairs.into_iter().collect()
    }

    /// Returns the pairs of transactions that the clients order, and the pairs that real time
    /// orders.
    fn orders(&self, order: ClientOrder) -> (Pairs, Pairs) {
        let (mut client_order, mut real_time) = (FxHashSet::default(), FxHashSet::default());
        for (b, second) in self.units.iter().enumerate().skip(1) {
            client_order.insert((INITIAL, b as u32));
            for (a, first) in self.units.iter().enumerate().skip(1).filter(|&(a, _)| a != b) {
                let pair = (a as u32, b as u32);
                let end = first.time.and_then(|time| time.end);
                let is_over = first.status == Status::Ok
                    && end.zip(second.time).is_some_and(|(end, time)| end < time.start);
                if is_over {
                    real_time.insert(pair);
                }
                let is_earlier = a < b && first.session == second.session;
                let is_ordered = match order {
                    ClientOrder::None => false,
                    ClientOrder::Session => is_earlier,
                    ClientOrder::Realtime => is_earlier || is_over,
                };
                if is_ordered {
                    client_order.insert(pair);
                }
            }
        }
        (client_order, real_time)
    }

    /// Builds the history of single operations.
    fn rebuild(&self, found: &FxHashMap<OpId, Found>) -> History {
        let history = self.history;
        let mut b = HistoryBuilder::new();
        // Because values are interned in the same order, everything keeps its id.
        for value in 0..history.values().len() {
            b.value(history.value(ValueId::new(value)).clone());
        }
        for session in history.sessions() {
            b.session(history.session_name(session));
        }
        for key in history.keys() {
            b.key(history.key_name(key));
            b.set_initial(key, history.initial_value(key));
        }
        // A value that does not occur in the history, so it was never written.
        let nobodys = (0..)
            .map(|n| Value::Str(format!("nobody's {n}").into()))
            .find(|value| history.values().find(value).is_none())
            .expect("some text is not a value");
        let nobodys = b.value(nobodys);
        let shown: FxHashSet<u32> = self.lists.iter().flat_map(|list| &list.2).copied().collect();
        let units = self.units_of();
        for op in history.ops() {
            let unit = units[op.index()];
            let status = match self.units[unit as usize].status {
                Status::Unknown if shown.contains(&unit) => Status::Ok,
                status => status,
            };
            let read = match found.get(&op) {
                Some(Found::Value(value)) => Some(*value),
                Some(Found::Bad) => Some(nobodys),
                Some(Found::Internal) | None => None,
            };
            let write = write_of(history, op)
                .filter(|&(key, _)| self.last_write(unit, key) == Some(op))
                .map(|(_, value)| value);
            let key = history.key_of(op);
            let fence = history.action(op) == Action::Fence && status == Status::Ok;
            let action = match (key, read, write) {
                (Some(key), Some(read), Some(write)) => Some(Action::Rmw { key, read, write }),
                (Some(key), Some(value), None) => Some(Action::Read { key, value }),
                (Some(key), None, Some(value)) => Some(Action::Write { key, value }),
                _ => fence.then_some(Action::Fence),
            };
            let status = if action.is_some() { status } else { Status::Fail };
            let details = Details { status, ..Details::default() };
            b.push_with(history.session_of(op), action.unwrap_or(Action::Fence), details);
        }
        b.finish().expect("single operations of registers are a history")
    }
}
