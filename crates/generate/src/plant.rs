//! Planting violations: some reads return the value of another write.
//!
//! The method is that of Zennou's thesis (2021, section 4.2.5), in which half of the histories are
//! meant to violate sequential consistency: the write-read relation is changed at random. For some
//! randomly chosen reads, the returned value becomes that of a randomly chosen write of the
//! execution, within a bounded distance of the read. The thesis leaves two things open, which are
//! settled here:
//! - The write is to the same variable and has a different value than the read returned, so that
//!   something really changes, and no value appears that was never written. The write may come
//!   after the read, even in the same session.
//! - Distance is measured in execution order as far as the history shows it: by start times, if all
//!   operations have one; otherwise round-robin, the first operations of all sessions, then the
//!   second ones, and so on. A write is within distance d of a read if it is at most d positions
//!   before or after it. Initial writes have no position and are not chosen.
//!
//! A change need not be a violation, because the model may allow the other write as well. The share
//! of changes that are violations depends on the model and on the distance; with a small distance
//! they are hard to find.
//!
//! Cost: sorting, `n log n`, and `log² n` per changed read.

use std::cmp::Reverse;
use std::ops::Range;

use consistory_history::{
    Action, Details, History, HistoryBuilder, KeyId, OpId, OpenTransaction, Status, TxnId, ValueId,
};

use crate::random::{Chooser, choices_of};

/// Options of planted violations.
#[derive(Clone, PartialEq, Debug)]
pub struct PlantOptions {
    /// Number of reads that change; one by default.
    pub plants: Plants,
    /// Largest distance of the other write, in operations; 100 by default.
    pub distance: u32,
    /// Seed of every random choice; 0 by default.
    pub seed: u64,
}

/// The number of reads to change, among those with another write within the distance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Plants {
    /// This many, or all if there are fewer.
    Count(usize),
    /// Each with this probability.
    Probability(f64),
}

impl Default for PlantOptions {
    fn default() -> Self {
        Self { plants: Plants::Count(1), distance: 100, seed: 0 }
    }
}

/// Makes some reads, including those of read-modify-writes, return the value of another write.
///
/// Everything else stays the same, including all ids.
pub fn plant(history: &History, options: &PlantOptions) -> History {
    let mut random = choices_of(Chooser::Planter, options.seed);
    let writes = Writes::new(history, options.distance);
    let mut reads: Vec<OpId> =
        history.ops().filter(|&op| writes.others(history, op).is_some()).collect();
    match options.plants {
        Plants::Count(count) => {
            let count = count.min(reads.len());
            for chosen in 0..count {
                let other = chosen + random.below((reads.len() - chosen) as u32) as usize;
                reads.swap(chosen, other);
            }
            reads.truncate(count);
        }
        Plants::Probability(probability) => reads.retain(|_| random.unit() < probability),
    }
    let mut changes: Vec<(OpId, ValueId)> = reads
        .into_iter()
        .filter_map(|op| {
            let others = writes.others(history, op)?;
            Some((op, others.value(random.below(others.count))))
        })
        .collect();
    // The last change belongs to the first operation, which is rebuilt first.
    changes.sort_unstable_by_key(|&(op, _)| Reverse(op));
    rebuild(history, changes)
}

/// The writes of a history, indexed by position and by value.
struct Writes {
    distance: u32,
    /// Position of each operation in execution order.
    places: Vec<u32>,
    /// Key, position and value of each write, sorted.
    by_place: Vec<(KeyId, u32, ValueId)>,
    /// Key, value and index into `by_place` of each write, sorted.
    by_value: Vec<(KeyId, ValueId, u32)>,
}

/// The writes that a read may choose: a range, without two values.
struct Others<'a> {
    writes: &'a Writes,
    key: KeyId,
    /// Indices into `by_place`.
    range: Range<u32>,
    /// The value that the read returned, and the value that its operation writes itself.
    excluded: [Option<ValueId>; 2],
    /// Number of writes to choose from, at least one.
    count: u32,
}

impl Writes {
    fn new(history: &History, distance: u32) -> Self {
        let timed = history.ops().all(|op| history.time(op).is_some());
        let mut order: Vec<OpId> = history.ops().collect();
        order.sort_by_key(|&op| {
            let start = history.time(op).filter(|_| timed).map(|time| time.start);
            (start, history.index_in_session(op), history.session_of(op))
        });
        let mut places = vec![0; history.len()];
        for (place, op) in order.into_iter().enumerate() {
            places[op.index()] = place as u32;
        }
        let write = |op: OpId| {
            let (key, value) = history.writes(op).filter(|_| history.is_certain(op))?;
            Some((key, places[op.index()], value))
        };
        let mut by_place: Vec<_> = history.ops().filter_map(write).collect();
        by_place.sort_unstable();
        let indexed = by_place.iter().zip(0..);
        let mut by_value: Vec<_> = indexed.map(|(&(key, _, value), i)| (key, value, i)).collect();
        by_value.sort_unstable();
        Self { distance, places, by_place, by_value }
    }

    /// Returns the other writes whose value `op` could have returned; `None` if it does not read or
    /// there are none.
    fn others(&self, history: &History, op: OpId) -> Option<Others<'_>> {
        let (key, found) = history.reads(op)?;
        let own = history.writes(op).map(|(_, value)| value).filter(|&own| own != found);
        let place = self.places[op.index()];
        let (first, last) =
            (place.saturating_sub(self.distance), place.saturating_add(self.distance));
        let start = self.by_place.partition_point(|&(k, p, _)| (k, p) < (key, first)) as u32;
        let end = self.by_place.partition_point(|&(k, p, _)| (k, p) <= (key, last)) as u32;
        let mut others =
            Others { writes: self, key, range: start..end, excluded: [Some(found), own], count: 0 };
        others.count = others.before(end);
        (others.count > 0).then_some(others)
    }
}

impl Others<'_> {
    /// Counts the candidates before the write at `index` of the range.
    fn before(&self, index: u32) -> u32 {
        let by_value = &self.writes.by_value;
        let rank =
            |value, index| by_value.partition_point(|&w| w < (self.key, value, index)) as u32;
        let excluded = self.excluded.iter().flatten();
        let excluded = excluded.map(|&value| rank(value, index) - rank(value, self.range.start));
        index - self.range.start - excluded.sum::<u32>()
    }

    /// Returns the value of the candidate with a given number, counted from 0.
    fn value(&self, number: u32) -> ValueId {
        // The last index with at most `number` candidates before it is that of the candidate, since
        // from the next index on the candidate itself is counted.
        let Range { start: mut low, end: mut high } = self.range;
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.before(middle) <= number { low = middle } else { high = middle }
        }
        self.writes.by_place[low as usize].2
    }
}

/// Copies a history, replacing the results of some reads; the changes are sorted, last first.
fn rebuild(history: &History, mut changes: Vec<(OpId, ValueId)>) -> History {
    let mut builder = HistoryBuilder::new();
    if let Some(name) = history.name() {
        builder.set_name(name);
    }
    // If values and keys are interned in the same order, they keep their ids.
    for value in 0..history.values().len() {
        builder.value(history.value(ValueId::new(value)).clone());
    }
    for session in history.sessions() {
        builder.session(history.session_name(session));
    }
    for key in history.keys() {
        builder.key(history.key_name(key));
        builder.set_initial(key, history.initial_value(key));
    }
    for &(key, value) in history.finals() {
        builder.set_final(key, value);
    }
    let mut transactions: Vec<OpenTransaction> = Vec::new();
    for (_, transaction) in history.transactions() {
        let open = builder.begin_transaction();
        builder.set_transaction_status(open, transaction.status);
        transactions.push(open);
    }
    for op in history.ops() {
        let mut action = history.action(op);
        match &mut action {
            Action::Read { value: found, .. } | Action::Rmw { read: found, .. } => {
                if let Some((_, value)) = changes.pop_if(|&mut (changed, _)| changed == op) {
                    *found = value;
                }
            }
            Action::Call(id) => *id = builder.call(history.call(*id).clone()),
            Action::Write { .. } | Action::Append { .. } | Action::Fence => {}
        }
        let status: Status = history.own_status(op);
        let transaction = history.transaction_of(op).map(|id: TxnId| transactions[id.index()]);
        let details = Details { status, time: history.time(op), transaction };
        builder.push_with(history.session_of(op), action, details);
    }
    builder.finish().expect("the operations and transactions are those of a history")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Memory, Workload, generate};
    use consistory_history::{Interval, Value};

    fn history(seed: u64) -> History {
        let workload = Workload { operations: 300, rmw_share: 0.1, seed, ..Workload::default() };
        generate(&workload, Memory::Sc)
    }

    /// Lists the reads that differ, after checking that nothing else does.
    fn changes(before: &History, after: &History) -> Vec<OpId> {
        assert_eq!(before.len(), after.len());
        let mut changed = Vec::new();
        for op in before.ops() {
            assert_eq!(before.reference(op).to_string(), after.reference(op).to_string());
            assert_eq!(before.writes(op), after.writes(op));
            match (before.action(op), after.action(op)) {
                (b, a) if b == a => {}
                (Action::Read { key, .. }, Action::Read { key: same, .. })
                | (Action::Rmw { key, .. }, Action::Rmw { key: same, .. }) => {
                    assert_eq!(key, same);
                    changed.push(op);
                }
                (b, a) => panic!("{b:?} became {a:?}"),
            }
        }
        changed
    }

    /// Returns the position of an operation if the four sessions take turns.
    fn place(history: &History, op: OpId) -> u32 {
        history.index_in_session(op) * 4 + history.session_of(op).0
    }

    #[test]
    fn planting_changes_as_many_reads_as_asked_to_values_of_near_writes() {
        for seed in 0..50 {
            let before = history(seed);
            for (count, distance) in [(0, 50), (1, 50), (5, 20), (17, 300)] {
                let options = PlantOptions { plants: Plants::Count(count), distance, seed };
                let after = plant(&before, &options);
                let changed = changes(&before, &after);
                assert_eq!(changed.len(), count);
                for read in changed {
                    let wanted = after.reads(read);
                    let write = after
                        .ops()
                        .find(|&op| op != read && after.writes(op) == wanted)
                        .expect("another operation wrote the value");
                    let (read, write) = (place(&after, read), place(&after, write));
                    assert!(read.abs_diff(write) <= distance, "{read} {write}");
                }
            }
        }
    }

    #[test]
    fn planting_changes_what_it_can_when_asked_for_more() {
        // t0: w(x,1) r(x,1) r(x,0) and t1: w(y,1) r(y,1) w(x,2), in turns: each read of x is 2 or 3
        // positions from another write of x, but y has no other write.
        let mut b = HistoryBuilder::new();
        let (t0, t1) = (b.session("t0"), b.session("t1"));
        let (x, y) = (b.key("x"), b.key("y"));
        let [zero, one, two] = [0, 1, 2].map(|i| b.int(i));
        for action in [
            Action::Write { key: x, value: one },
            Action::Read { key: x, value: one },
            Action::Read { key: x, value: zero },
        ] {
            b.push(t0, action);
        }
        for action in [
            Action::Write { key: y, value: one },
            Action::Read { key: y, value: one },
            Action::Write { key: x, value: two },
        ] {
            b.push(t1, action);
        }
        let before = b.finish().unwrap();
        let planted = |distance| {
            let plants = Plants::Count(100);
            let after = plant(&before, &PlantOptions { plants, distance, seed: 0 });
            let changed = changes(&before, &after);
            changed.iter().map(|&op| format!("{}", after.show(op))).collect::<Vec<_>>()
        };
        assert_eq!(planted(0), [""; 0]);
        // Only w(x,2) is next to r(x,0); it is 3 positions from r(x,1).
        assert_eq!(planted(1), ["r(x,2)"]);
        assert_eq!(planted(2), ["r(x,2)"]);
        assert_eq!(planted(3), ["r(x,2)", "r(x,2)"]);
    }

    #[test]
    fn distance_counts_both_ways() {
        let mut b = HistoryBuilder::new();
        let session = b.session("t0");
        let [x, y] = ["x", "y"].map(|name| b.key(name));
        let [zero, one] = [0, 1].map(|i| b.int(i));
        for action in [
            Action::Write { key: x, value: one },
            Action::Read { key: y, value: zero },
            Action::Fence,
            Action::Read { key: x, value: zero },
            Action::Write { key: y, value: one },
        ] {
            b.push(session, action);
        }
        let before = b.finish().unwrap();
        let planted = |distance| {
            let options = PlantOptions { plants: Plants::Probability(1.0), distance, seed: 0 };
            changes(&before, &plant(&before, &options))
        };
        assert_eq!(planted(2), []);
        assert_eq!(planted(3), [OpId(1), OpId(3)]);
    }

    #[test]
    fn each_near_write_is_chosen_alike() {
        // Sixteen writes of one variable, three of them of the value that the read returned: each
        // of the other thirteen should be chosen.
        let mut b = HistoryBuilder::new();
        let session = b.session("t0");
        let key = b.key("x");
        for value in [1, 2, 3, 1, 4, 5, 6, 7, 8, 9, 10, 1, 11, 12, 13, 14] {
            let value = b.int(value);
            b.push(session, Action::Write { key, value });
        }
        let one = b.int(1);
        b.push(session, Action::Rmw { key, read: one, write: one });
        let before = b.finish().unwrap();
        let mut counts = [0; 15];
        for seed in 0..1300 {
            let after = plant(&before, &PlantOptions { seed, ..PlantOptions::default() });
            let (_, found) = after.reads(OpId(16)).unwrap();
            let Value::Int(found) = *after.value(found) else { panic!("a written value") };
            counts[found as usize] += 1;
        }
        assert_eq!(counts[..2], [0, 0]);
        assert!(counts[2..].iter().all(|count| (65..140).contains(count)), "{counts:?}");
    }

    #[test]
    fn each_read_changes_with_the_probability() {
        let before = history(3);
        let count = |probability| {
            let plants = Plants::Probability(probability);
            let options = PlantOptions { plants, ..PlantOptions::default() };
            changes(&before, &plant(&before, &options)).len()
        };
        let all = count(1.0);
        assert_eq!(count(0.0), 0);
        assert!(all > 150, "{all}");
        assert!((all / 2).abs_diff(count(0.5)) < 30, "{}", count(0.5));
    }

    #[test]
    fn recorded_times_decide_the_distance_and_survive() {
        // Round-robin, the two operations are neighbours; by time they are 2 positions apart.
        let mut b = HistoryBuilder::new();
        let (t0, t1) = (b.session("t0"), b.session("t1"));
        let key = b.key("x");
        b.set_name("timed");
        let transaction = Some(b.begin_transaction());
        let [zero, five] = [0, 5].map(|i| b.int(i));
        let at = |start| Some(Interval { start, end: Some(start + 1) });
        b.set_final(key, five);
        for (session, action, time, transaction) in [
            (t0, Action::Read { key, value: zero }, at(1), None),
            (t0, Action::Fence, at(2), transaction),
            (t1, Action::Write { key, value: five }, at(3), None),
        ] {
            let details = Details { time, transaction, ..Details::default() };
            b.push_with(session, action, details);
        }
        let before = b.finish().unwrap();
        let planted = |distance| plant(&before, &PlantOptions { distance, ..Default::default() });
        assert_eq!(changes(&before, &planted(1)), []);
        let after = planted(2);
        assert_eq!(changes(&before, &after), [OpId(0)]);
        assert_eq!(after.time(OpId(2)), before.time(OpId(2)));
        assert_eq!(after.name(), Some("timed"));
        assert_eq!(after.finals(), before.finals());
        assert_eq!(after.transaction_of(OpId(1)), Some(TxnId(0)));
    }
}
