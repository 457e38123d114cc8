//! A history as transactions, derived from its operations alone.

use std::ops::Range;

use consistory_history::{Action, History, KeyId, KeyKind, OpId, Status, Value, ValueId};
use consistory_verdict::{BadRead, Budget};
use rustc_hash::FxHashMap;

use super::TransactionRejection;

/// The initial transaction.
pub(super) const INITIAL: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Committed,
    Aborted,
    Indeterminate,
}

/// One transaction.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) ops: Range<u32>,
    pub(super) fate: Fate,
    pub(super) session: u32,
    /// Start time, and end time if the transaction certainly ended.
    pub(super) time: Option<(i64, Option<i64>)>,
}

/// A write or append.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) unit: u32,
    pub(super) op: OpId,
    pub(super) is_last: bool,
}

/// All writes, by key and value.
#[derive(Debug, Default)]
struct WrittenTable {
    /// Index of the first write of each key; finally, the number of all writes.
    key_starts: Vec<u32>,
    /// The values, sorted within each key, and the writes in the same order.
    values: Vec<ValueId>,
    writes: Vec<Written>,
}

impl WrittenTable {
    fn new(key_count: usize, mut all: Vec<(KeyId, ValueId, Written)>) -> Self {
        all.sort_by_key(|&(key, value, _)| (key, value));
        let mut key_starts = vec![0u32; key_count + 1];
        for (key, _, _) in &all {
            key_starts[key.index() + 1] += 1;
        }
        for key in 0..key_count {
            key_starts[key + 1] += key_starts[key];
        }
        let values = all.iter().map(|&(_, value, _)| value).collect();
        let writes = all.into_iter().map(|(_, _, written)| written).collect();
        WrittenTable { key_starts, values, writes }
    }

    /// Returns the writes of a value to a key.
    fn of(&self, key: KeyId, value: ValueId) -> &[Written] {
        let (start, end) = (self.key_starts[key.index()], self.key_starts[key.index() + 1]);
        let (start, end) = (start as usize, end as usize);
        let values = &self.values[start..end];
        let first = values.partition_point(|&other| other < value);
        let count = values[first..].iter().take_while(|&&other| other == value).count();
        &self.writes[start + first..][..count]
    }

    /// Checks whether a value was written to a key twice.
    fn has_repeated(&self, key: KeyId) -> bool {
        let (start, end) = (self.key_starts[key.index()], self.key_starts[key.index() + 1]);
        self.values[start as usize..end as usize].windows(2).any(|pair| pair[0] == pair[1])
    }
}

/// Possible sources of a read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// The read returns a write of its own transaction.
    Own,
    /// One transaction, perhaps the initial one.
    One(u32),
    /// One of several transactions.
    Any(Vec<u32>),
}

/// The transactions of a history and their writes.
pub(super) struct View<'h> {
    pub(super) history: &'h History,
    pub(super) units: Vec<Unit>,
    /// The unit of each operation.
    pub(super) unit_of: Vec<u32>,
    written: WrittenTable,
    /// Last write of each key by each unit, and the index of each unit's first one.
    last: Vec<(KeyId, OpId)>,
    last_starts: Vec<u32>,
    /// The budget of the whole check.
    budget: Budget,
}

/// Number of steps between two checks of the budget.
const STEPS_PER_CHECK: u32 = 4096;

impl<'h> View<'h> {
    /// Checks the budget once per `STEPS_PER_CHECK` steps.
    pub(super) fn step(&self, step: u32) -> Result<(), TransactionRejection> {
        match step % STEPS_PER_CHECK {
            0 => self.budget.check().map_err(TransactionRejection::Stopped),
            _ => Ok(()),
        }
    }

    /// Builds the view, or returns `None` if a value is appended twice to a list.
    pub(super) fn new(history: &'h History, budget: Budget) -> Option<Self> {
        let mut view = View {
            budget,
            history,
            units: Vec::new(),
            unit_of: Vec::with_capacity(history.len()),
            written: WrittenTable::default(),
            last: Vec::new(),
            last_starts: vec![0],
        };
        let mut all = Vec::with_capacity(history.len() / 2);
        let mut seen = vec![u32::MAX; history.key_count()];
        for transaction in history.all_transactions() {
            let unit = view.units.len() as u32;
            let ops = || transaction.ops.clone().map(OpId);
            let counted = || ops().filter(|&op| history.own_status(op) != Status::Fail);
            let is_open = counted().any(|op| history.own_status(op) == Status::Unknown);
            let fate = match transaction.status {
                Status::Fail => Fate::Aborted,
                Status::Ok if !is_open => Fate::Committed,
                _ => Fate::Indeterminate,
            };
            let time = history.transaction_time(&transaction);
            let certain_end = |_: &i64| fate == Fate::Committed;
            let time = time.map(|time| (time.start, time.end.filter(certain_end)));
            let first = view.last.len();
            for op in counted().rev() {
                let Some((key, value)) = written_by(history, op) else { continue };
                let is_last = std::mem::replace(&mut seen[key.index()], unit) != unit;
                if is_last {
                    view.last.push((key, op));
                }
                all.push((key, value, Written { unit, op, is_last }));
            }
            view.last[first..].sort_unstable();
            view.last_starts.push(view.last.len() as u32);
            view.unit_of.extend(ops().map(|_| unit));
            let session = history.session_of(OpId(transaction.ops.start)).0;
            view.units.push(Unit { ops: transaction.ops, fate, session, time });
        }
        view.written = WrittenTable::new(history.key_count(), all);
        let mut lists = history.keys().filter(|&key| history.key_kind(key) == KeyKind::List);
        if lists.any(|key| view.written.has_repeated(key)) {
            return None;
        }
        Some(view)
    }

    /// Returns the transaction with a given first operation.
    pub(super) fn unit(&self, first: OpId) -> Option<u32> {
        let unit = *self.unit_of.get(first.index())?;
        (self.units[unit as usize].ops.start == first.0).then_some(unit)
    }

    pub(super) fn first_op(&self, unit: u32) -> OpId {
        OpId(self.units[unit as usize].ops.start)
    }

    /// Returns the keys that a unit writes, sorted, each with its last write.
    pub(super) fn last_writes(&self, unit: u32) -> &[(KeyId, OpId)] {
        let unit = unit as usize;
        &self.last[self.last_starts[unit] as usize..self.last_starts[unit + 1] as usize]
    }

    /// Returns the index of a unit's last write of a key among all last writes.
    pub(super) fn last_write(&self, unit: u32, key: KeyId) -> Option<usize> {
        let found = self.last_writes(unit).binary_search_by_key(&key, |&(key, _)| key);
        found.ok().map(|at| self.last_starts[unit as usize] as usize + at)
    }

    pub(super) fn last_write_count(&self) -> usize {
        self.last.len()
    }

    /// Iterates over the reads of a committed unit, each with the unit's writes before it.
    pub(super) fn reads(
        &self,
        unit: u32,
        mut visit: impl FnMut(OpId, KeyId, Result<Source, BadRead>),
    ) {
        let Unit { ops, fate, .. } = &self.units[unit as usize];
        if *fate != Fate::Committed {
            return;
        }
        let mut own: Own = Own::default();
        for op in ops.clone().map(OpId) {
            if self.history.own_status(op) == Status::Fail {
                continue;
            }
            if let Action::Read { key, value } | Action::Rmw { key, read: value, .. } =
                self.history.action(op)
            {
                visit(op, key, self.source(unit, key, value, own.of(key)));
            }
            if let Some((key, value)) = written_by(self.history, op) {
                own.push(key, value);
            }
        }
    }

    /// Finds the source of one read, if it is a read of a committed transaction.
    pub(super) fn source_of(&self, read: OpId) -> Option<(KeyId, Result<Source, BadRead>)> {
        let unit = *self.unit_of.get(read.index())?;
        let mut found = None;
        self.reads(unit, |op, key, source| {
            if op == read {
                found = Some((key, source));
            }
        });
        found
    }

    fn source(
        &self,
        unit: u32,
        key: KeyId,
        value: ValueId,
        own: &[ValueId],
    ) -> Result<Source, BadRead> {
        if self.history.key_kind(key) == KeyKind::List {
            return self.list_source(unit, key, value, own);
        }
        if let Some(&last) = own.last() {
            return if last == value { Ok(Source::Own) } else { Err(BadRead::Internal) };
        }
        let writers = self.writers(key, value);
        let is_good = |written: &Written| {
            let fate = self.units[written.unit as usize].fate;
            written.unit != unit && written.is_last && fate != Fate::Aborted
        };
        let is_initial = self.history.initial_value(key) == value;
        if let [written] = writers
            && !is_initial
            && is_good(written)
        {
            return Ok(Source::One(written.unit));
        }
        let mut candidates = Vec::new();
        if is_initial {
            candidates.push(INITIAL);
        }
        let good = writers.iter().filter(|written| is_good(written));
        candidates.extend(good.map(|written| written.unit));
        match candidates[..] {
            [] => Err(self.bad(unit, writers)),
            [one] => Ok(Source::One(one)),
            _ => Ok(Source::Any(candidates)),
        }
    }

    /// Returns the reason why none of the writers can be read from.
    fn bad(&self, unit: u32, writers: &[Written]) -> BadRead {
        let others = || writers.iter().filter(|written| written.unit != unit);
        if others().any(|w| self.units[w.unit as usize].fate == Fate::Aborted) {
            BadRead::Aborted
        } else if others().next().is_some() {
            BadRead::Intermediate
        } else if !writers.is_empty() {
            BadRead::Future
        } else {
            BadRead::ThinAir
        }
    }

    fn list_source(
        &self,
        unit: u32,
        key: KeyId,
        value: ValueId,
        own: &[ValueId],
    ) -> Result<Source, BadRead> {
        let external = self.external(value, own)?;
        for element in self.after_initial(key, external) {
            self.appender(key, element).ok_or(BadRead::ThinAir).and_then(|written| {
                match self.units[written.unit as usize].fate {
                    _ if written.unit == unit => Err(BadRead::Future),
                    Fate::Aborted => Err(BadRead::Aborted),
                    _ => Ok(()),
                }
            })?;
        }
        if !self.starts_with_initial(key, external) {
            let initial = self.initial(key);
            let is_cut = external.len() < initial.len() && *external == initial[..external.len()];
            return Err(if is_cut { BadRead::Intermediate } else { BadRead::IncompatibleOrder });
        }
        match self.after_initial(key, external).last() {
            None => Ok(Source::One(INITIAL)),
            Some(element) => match self.appender(key, element) {
                Some(written) if written.is_last => Ok(Source::One(written.unit)),
                _ => Err(BadRead::Intermediate),
            },
        }
    }

    /// Returns the part of a list that was read from other transactions.
    fn external(&self, value: ValueId, own: &[ValueId]) -> Result<&'h [Value], BadRead> {
        let Value::List(all) = self.history.value(value) else { return Err(BadRead::ThinAir) };
        let length = all.len().checked_sub(own.len()).ok_or(BadRead::Internal)?;
        let ends_with_own =
            all[length..].iter().zip(own).all(|(a, &b)| *a == *self.history.value(b));
        if ends_with_own { Ok(&all[..length]) } else { Err(BadRead::Internal) }
    }

    /// Returns the external part of the list that a read of a committed transaction returned.
    pub(super) fn external_list(&self, read: OpId) -> Option<(KeyId, &'h [Value])> {
        let unit = *self.unit_of.get(read.index())?;
        let Unit { ops, fate, .. } = &self.units[unit as usize];
        let Action::Read { key, value } = self.history.action(read) else { return None };
        let is_list = self.history.key_kind(key) == KeyKind::List;
        if !is_list || *fate != Fate::Committed || self.history.own_status(read) == Status::Fail {
            return None;
        }
        let before = (ops.start..read.0).map(OpId);
        let own: Vec<ValueId> = before
            .filter(|&op| self.history.own_status(op) != Status::Fail)
            .filter_map(|op| written_by(self.history, op))
            .filter_map(|(written, value)| (written == key).then_some(value))
            .collect();
        Some((key, self.external(value, &own).ok()?))
    }

    pub(super) fn initial(&self, key: KeyId) -> &'h [Value] {
        match self.history.value(self.history.initial_value(key)) {
            Value::List(elements) => elements,
            _ => &[],
        }
    }

    fn starts_with_initial(&self, key: KeyId, list: &[Value]) -> bool {
        list.starts_with(self.initial(key))
    }

    fn after_initial<'v>(&self, key: KeyId, list: &'v [Value]) -> impl Iterator<Item = &'v Value> {
        let initial = self.initial(key);
        let places = list.iter().enumerate();
        places.filter(move |(i, element)| initial.get(*i) != Some(element)).map(|(_, e)| e)
    }

    /// Finds the transaction that appended an element to a list.
    pub(super) fn appender(&self, key: KeyId, element: &Value) -> Option<Written> {
        let value = self.history.values().find(element)?;
        self.writers(key, value).first().copied()
    }

    /// Checks whether a list consists of the appends of whole transactions, contiguous, in program
    /// order and each once; the list must not end inside the appends of a transaction.
    pub(super) fn is_well_formed(&self, key: KeyId, list: &[Value]) -> bool {
        let Some(rest) = list.strip_prefix(self.initial(key)) else { return false };
        let appends: Option<Vec<Written>> =
            rest.iter().map(|element| self.appender(key, element)).collect();
        let Some(appends) = appends else { return false };
        let mut at = 0;
        let mut seen = rustc_hash::FxHashSet::default();
        while at < appends.len() {
            let unit = appends[at].unit;
            if !seen.insert(unit) {
                return false;
            }
            let ops = self.units[unit as usize].ops.clone().map(OpId);
            let all = ops.filter(|&op| {
                let is_append =
                    matches!(self.history.action(op), Action::Append { key: k, .. } if k == key);
                is_append && self.history.own_status(op) != Status::Fail
            });
            for op in all {
                if appends.get(at).is_none_or(|append| append.op != op) {
                    return false;
                }
                at += 1;
            }
        }
        true
    }

    fn writers(&self, key: KeyId, value: ValueId) -> &[Written] {
        self.written.of(key, value)
    }
}

/// Values that a transaction has written so far, by key.
#[derive(Default)]
struct Own {
    few: Vec<(KeyId, Vec<ValueId>)>,
    many: FxHashMap<KeyId, Vec<ValueId>>,
}

impl Own {
    fn of(&self, key: KeyId) -> &[ValueId] {
        let few = self.few.iter().find(|(k, _)| *k == key).map(|(_, values)| values);
        few.or_else(|| self.many.get(&key)).map_or(&[], |values| values)
    }

    fn push(&mut self, key: KeyId, value: ValueId) {
        if let Some((_, values)) = self.few.iter_mut().find(|(k, _)| *k == key) {
            values.push(value);
        } else if self.few.len() < 8 && !self.many.contains_key(&key) {
            self.few.push((key, vec![value]));
        } else {
            self.many.entry(key).or_default().push(value);
        }
    }
}

fn written_by(history: &History, op: OpId) -> Option<(KeyId, ValueId)> {
    match history.action(op) {
        Action::Write { key, value }
        | Action::Rmw { key, write: value, .. }
        | Action::Append { key, value } => Some((key, value)),
        Action::Read { .. } | Action::Fence | Action::Call(_) => None,
    }
}
