//! The calls and returns of operations as a sequence, with the open operations at each return.
//!
//! ```text
//! t0: ├── a ──┤   ├─ c ─┤          calls and returns:  a( b( )a c( )c )b
//! t1:    ├──────── b ───────┤      open at )a: a b     open at )c: c b     open at )b: b
//! ```
//!
//! Calls precede returns with the same time: operations that meet overlap. Operations of one
//! session that meet are ordered nevertheless, and so are those of a history without times; such an
//! operation lists the ones that it comes `after`.

use crate::calls::CallIndex;
use crate::task::Task;

/// Returns of some operations in order, with the operations open at each return.
pub(crate) struct Timeline {
    /// Operations that returned, by return.
    pub(crate) returns: Vec<CallIndex>,
    /// Index in `open` of each return's first operation, followed by the length of `open`.
    starts: Vec<u32>,
    /// Completed operations that are open at each return, in the order of their own returns.
    open: Vec<CallIndex>,
    /// Pending operations that may change the state, by call.
    pub(crate) pending: Vec<CallIndex>,
    /// Number of pending operations called before each return.
    pub(crate) pending_at: Vec<u32>,
    /// Slot of each operation (by position): a small number that no other operation has while it is
    /// open. Pending operations have the first slots, in order, and keep them.
    pub(crate) slot: Vec<u32>,
    /// Number of slots.
    pub(crate) slots: usize,
    /// Rank of each operation (by position) among the returns; `u32::MAX` if it is pending.
    pub(crate) rank: Vec<u32>,
    /// Operations that precede each operation (by position) in session order but not in time.
    after: Vec<Vec<CallIndex>>,
    /// Whether `after` lists any operation.
    pub(crate) has_after: bool,
}

/// Bytes per operation of the tables of a timeline.
const BYTES_PER_OPERATION: usize = 64;

impl Timeline {
    /// Arranges the operations of a task.
    ///
    /// Pending operations that change no state are left out, because they affect no other
    /// operation.
    pub(crate) fn new(task: &Task<'_>) -> Self {
        let calls = task.calls();
        let places: Vec<CallIndex> = calls.places().collect();
        let places = &*places;
        let history = calls.history();
        let mut returns: Vec<CallIndex> =
            places.iter().copied().filter(|&place| !task.is_pending(place)).collect();
        let pending: Vec<CallIndex> = places
            .iter()
            .copied()
            .filter(|&place| task.is_pending(place) && !task.is_pure(place))
            .collect();
        if calls.is_timed() {
            returns.sort_by_key(|&place| (calls.get(place).end, place));
        } else {
            // Without times, any order by index in session extends the sessions' orders.
            returns.sort_by_key(|&p| (history.index_in_session(calls.get(p).id), p));
        }
        let mut rank = vec![u32::MAX; calls.len()];
        for (i, &place) in returns.iter().enumerate() {
            rank[place.index()] = i as u32;
        }
        let mut timeline = Timeline {
            returns,
            starts: vec![0],
            open: Vec::new(),
            pending,
            pending_at: Vec::new(),
            slot: vec![u32::MAX; calls.len()],
            slots: 0,
            rank,
            after: Vec::new(),
            has_after: false,
        };
        timeline.sweep(task, places);
        timeline.find_after(task, places);
        timeline
    }

    /// Estimates the size of a task's timeline in bytes.
    pub(crate) fn bytes(task: &Task<'_>) -> u64 {
        let calls = task.calls();
        let completed = || calls.operations().iter().filter(|op| !op.is_pending);
        let mut ends: Vec<i64> = completed().map(|op| op.end).collect();
        ends.sort_unstable();
        // Every operation is open at the returns between its start and its end.
        let mut open = 0;
        let mut starts = completed().map(|op| op.start).peekable();
        let mut called = 0;
        for (returned, &end) in ends.iter().enumerate() {
            while starts.next_if(|&start| start <= end).is_some() {
                called += 1;
            }
            open += called - returned;
        }
        // The list of open operations grows by doubling, as do other tables.
        (3 * open * size_of::<CallIndex>() + calls.len() * BYTES_PER_OPERATION) as u64
    }

    /// Returns the completed operations open at a return, the returning one first.
    pub(crate) fn open(&self, at: usize) -> &[CallIndex] {
        &self.open[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    /// Returns the operations that are before an operation by session order but not by time.
    pub(crate) fn after(&self, place: CallIndex) -> &[CallIndex] {
        if self.has_after { &self.after[place.index()] } else { &[] }
    }

    /// Processes the returns in order, and records the open operations and free slots.
    fn sweep(&mut self, task: &Task<'_>, places: &[CallIndex]) {
        let calls = task.calls();
        for (i, &place) in self.pending.iter().enumerate() {
            self.slot[place.index()] = i as u32;
        }
        let mut slots = self.pending.len();
        let mut free: Vec<u32> = Vec::new();
        let mut open: Vec<CallIndex> = Vec::new();
        let mut called = 0;
        let mut pending = 0;
        for i in 0..self.returns.len() {
            let returning = self.returns[i];
            let end = calls.get(returning).end;
            while called < places.len() && calls.get(places[called]).start <= end {
                let place = places[called];
                called += 1;
                if self.rank[place.index()] == u32::MAX {
                    continue;
                }
                self.slot[place.index()] = free.pop().unwrap_or_else(|| {
                    slots += 1;
                    slots as u32 - 1
                });
                let rank = &self.rank;
                let at = open.partition_point(|p| rank[p.index()] < rank[place.index()]);
                open.insert(at, place);
            }
            while self.pending.get(pending).is_some_and(|&p| calls.get(p).start <= end) {
                pending += 1;
            }
            self.open.extend(&open);
            self.starts.push(self.open.len() as u32);
            self.pending_at.push(pending as u32);
            debug_assert_eq!(open[0], returning);
            free.push(self.slot[returning.index()]);
            open.remove(0);
        }
        self.slots = slots;
    }

    fn find_after(&mut self, task: &Task<'_>, places: &[CallIndex]) {
        let calls = task.calls();
        // Last completed operations of each session: those with the latest end or, without times,
        // the one listed last.
        let mut last: Vec<Vec<CallIndex>> = vec![Vec::new(); calls.history().session_count()];
        let mut after: Vec<Vec<CallIndex>> = vec![Vec::new(); calls.len()];
        for &place in places {
            let op = calls.get(place);
            let before = &mut last[op.session.index()];
            let meets = |p: &&CallIndex| !calls.is_timed() || calls.get(**p).end == op.start;
            after[place.index()] = before.iter().filter(meets).copied().collect();
            self.has_after |= !after[place.index()].is_empty();
            if op.is_pending {
                continue;
            }
            if calls.is_timed() {
                before.retain(|&p| calls.get(p).end >= op.start);
            } else {
                before.clear();
            }
            before.push(place);
        }
        self.after = if self.has_after { after } else { Vec::new() };
    }
}
