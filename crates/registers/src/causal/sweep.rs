//! A sweep over all operations in one linear order. It decides CC, and nearly always CCv.
//!
//! The order is a linear extension of `co = (po | wr)+` that is built during the sweep: the
//! sessions take turns, and a read waits until its source has been visited. It is therefore close
//! to the order of the real run. Each session has one clock, which describes the past of its next
//! operation. A write stores a copy of the clock, shared with the session's next writes until the
//! clock changes. A read stores none, because its constraints are handled when it is visited. For a
//! read r of x from w, these constraints concern the writes of x visited so far:
//!
//! ```text
//!      around w        w       between w and r
//!   ───w3────w4────────w─────────w1────w2──────────r
//! ```
//!
//! - *Between*: a write that r knows may itself know w; then it overwrote w (WriteCORead, or
//!   WriteCOInitRead if w is the initial write). Otherwise it must come before w (`cf`), although
//!   it is after w in the order of the sweep. If no read knows a write in between, the history is
//!   CC and the order is an arbitration order, so the history is CCv as well.
//! - *Around*: a write before w that r knows and w does not know must also come before w. The
//!   current order satisfies this, but a corrected order might not, so for CCv the nearest such
//!   writes are listed.
//!
//! [`Swept::arbitration`] sorts the operations again with all listed conflicts. A conflict that was
//! not listed concerns a write that was before w and not near it. The new order is therefore
//! correct unless a write has moved before a write of its key that was not near, which is checked
//! while the order is built. If that happens, as with few variables or an order far from that of
//! the run, all conflicts must be listed, as [`crate::causal::order`] does.
//!
//! # Cost
//! One step per operation and per write in between, and one join of two clocks for each read that
//! adds to its session's past. If many writes are in between, the last write of each session is
//! found by bisection instead, so that a read costs at most about sessions times a logarithm.
//! Memory: one clock for each write after a read that added to the past.

use consistory_history::{KeyId, OpId, SessionId};
use consistory_order::{Awaited, ChainId, take_turns};
use consistory_verdict::{Budget, Stopped};

use crate::registers::Registers;

/// Number of writes before w that count as near.
const NEAR_WRITES: u32 = 6;

/// Number of operations from which turns are longer: in a large history, the next operations of a
/// session have left the cache by its next turn, and are loaded one cache line at a time.
const LONG_TURN_MIN_OPS: usize = 20_000;

/// Operations per turn in a large history.
const LONG_TURN_OPS: u32 = 4;

/// Number of bad reads kept, from which the one with the shortest explanation is chosen.
const MAX_BAD_READS: usize = 4_096;

const NO_ROW: u32 = u32::MAX;
const NO_CONFLICT: u32 = u32::MAX;

/// Conflicts that a sweep lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConflictScope {
    /// The conflicts that contradict the order of the sweep.
    Between,
    /// Also the conflicts between writes that are near each other.
    Around,
}

/// Result of a sweep.
#[derive(Debug)]
pub(crate) struct Swept {
    /// A linear extension of the causal order.
    pub(crate) line: Vec<OpId>,
    /// Some reads of values overwritten in their causal past, by key and read.
    pub(crate) overwritten: Vec<Overwritten>,
    scope: ConflictScope,
    /// Data of each write.
    placed: Vec<Placed>,
    /// The listed conflicts; those that enter the same write form a linked list.
    conflicts: Vec<Conflict>,
    /// Whether the order satisfies all conflicts.
    agrees: bool,
}

/// A read of a write that another write of the key overwrote in the read's causal past.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overwritten {
    pub(crate) read: OpId,
    /// Source of the read, possibly initial.
    pub(crate) source: OpId,
    /// The write in between.
    pub(crate) overwriter: OpId,
}

/// Data of one write.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// Row of the write's clock, or `NO_ROW` before the write has been visited.
    row: u32,
    /// Index among the visited writes of its key.
    slot: u32,
    /// The last conflict that enters the write, or `NO_CONFLICT`.
    conflict: u32,
}

/// A pair of `cf` between concurrent writes.
#[derive(Clone, Copy, Debug)]
struct Conflict {
    from: OpId,
    /// The previous conflict that enters the same write, or `NO_CONFLICT`.
    next: u32,
}

/// Result of the search for an arbitration order.
pub(crate) enum Arbitration {
    /// An order that extends `po | wr | cf`.
    Order(Vec<OpId>),
    /// `po | wr | cf` has a cycle.
    Cyclic,
    /// Unknown: conflicts that were not listed are decisive.
    Open,
}

/// Sweeps over all operations. Returns nothing if `po | wr` is cyclic.
pub(crate) fn sweep(
    registers: &Registers<'_>,
    scope: ConflictScope,
    budget: &Budget,
) -> Result<Option<Swept>, Stopped> {
    budget.check()?;
    let history = registers.history;
    let longest = history.sessions().map(|session| history.session_ops(session).len()).max();
    let swept = match longest.unwrap_or(0) <= usize::from(u16::MAX) {
        true => Sweep::<u16>::run(registers, scope, budget)?,
        false => Sweep::<u32>::run(registers, scope, budget)?,
    };
    budget.check()?;
    Ok(swept)
}

impl Swept {
    /// Finds an order of all operations that extends `po`, `wr` and `cf`.
    pub(crate) fn arbitration(
        &self,
        registers: &Registers<'_>,
        budget: &Budget,
    ) -> Result<Arbitration, Stopped> {
        if self.agrees {
            return Ok(Arbitration::Order(self.line.clone()));
        }
        let mut fronts = match self.scope {
            ConflictScope::Between => Fronts::new(registers, 0),
            ConflictScope::Around => Fronts::new(registers, NEAR_WRITES),
        };
        let mut line = Vec::with_capacity(registers.history.len());
        let mut is_taken = vec![false; registers.history.len()];
        let mut kept = true;
        let all = take_all_within(registers, budget, |_, op| {
            let source = registers.source[op.index()].get();
            let mut before = source.into_iter().chain(self.conflicts_of(op));
            if let Some(awaited) = before.find(|&op| is_taken.get(op.index()) == Some(&false)) {
                return Err(awaited);
            }
            if let Some(key) = registers.written_key(op) {
                kept &= fronts.take(key, self.placed[op.index()].slot);
            }
            is_taken[op.index()] = true;
            line.push(op);
            Ok(())
        })?;
        Ok(match (all, kept) {
            (false, _) => Arbitration::Cyclic,
            (true, false) => Arbitration::Open,
            (true, true) => Arbitration::Order(line),
        })
    }

    /// Returns the writes that conflicts put before a write.
    fn conflicts_of(&self, write: OpId) -> impl Iterator<Item = OpId> {
        let get = |at: u32| self.conflicts.get(at as usize).copied();
        let last = get(self.placed[write.index()].conflict);
        std::iter::successors(last, move |conflict| get(conflict.next)).map(|found| found.from)
    }

    fn list(&mut self, from: OpId, to: OpId) {
        let next = &mut self.placed[to.index()].conflict;
        let conflict = Conflict { from, next: *next };
        *next = self.conflicts.len() as u32;
        self.conflicts.push(conflict);
    }
}

/// Slots of the old order, per key, whose writes are already in the new order.
struct Fronts {
    near: u32,
    /// First unused slot of each key, with one bit per later slot.
    fronts: Vec<(u32, u32)>,
}

impl Fronts {
    fn new(registers: &Registers<'_>, near: u32) -> Self {
        let starts = registers.starts();
        Fronts { near, fronts: starts.iter().map(|&start| (start, 0)).collect() }
    }

    /// Adds a write. Returns whether all writes of its key that were not near before it have been
    /// added.
    #[inline]
    fn take(&mut self, key: KeyId, slot: u32) -> bool {
        let (first, taken) = &mut self.fronts[key.index()];
        let ahead = slot - *first;
        if ahead > self.near {
            return false;
        }
        *taken |= 1 << ahead;
        let passed = taken.trailing_ones();
        *first += passed;
        *taken >>= passed;
        true
    }
}

/// State of a sweep; `T` is as narrow as the counts in clocks allow.
struct Sweep<'r, T> {
    registers: &'r Registers<'r>,
    /// Entries per clock: one per session, rounded up to the width of a join.
    width: usize,
    /// Clocks of the sessions: the number of operations of each session in the past. The entry of
    /// the session itself has no meaning.
    clocks: Vec<T>,
    /// Clocks of the writes.
    rows: Vec<T>,
    /// Row holding the session's current clock, or `NO_ROW` if it is stale.
    row_of: Vec<u32>,
    writes: Lists,
    swept: Swept,
}

/// The number of entries of a clock is a multiple of this, so that clocks are joined by whole
/// vector registers.
const CLOCK_LANES: usize = 16;

/// A count of operations of one session.
trait Count: Copy + Ord + Default + Into<u32> {
    /// Converts a count that is known to fit.
    fn new(count: u32) -> Self;
}

impl Count for u16 {
    fn new(count: u32) -> Self {
        debug_assert!(count <= u32::from(u16::MAX));
        count as u16
    }
}

impl Count for u32 {
    fn new(count: u32) -> Self {
        count
    }
}

/// The visited writes of each key, in the order of the sweep.
struct Lists {
    /// Index of each key's first write, followed by the end of the last key's writes.
    starts: Vec<u32>,
    /// Index after the last visited write of each key.
    ends: Vec<u32>,
    writes: Vec<At>,
}

/// An operation, as its session and its position there.
#[derive(Clone, Copy, Debug)]
struct At {
    session: u32,
    place: u32,
}

impl<'r, T: Count> Sweep<'r, T> {
    fn run(
        registers: &'r Registers<'r>,
        scope: ConflictScope,
        budget: &Budget,
    ) -> Result<Option<Swept>, Stopped> {
        let mut sweep = Self::new(registers, scope);
        budget.reserve(sweep.most_rows() * (sweep.width * size_of::<T>()) as u64)?;
        if !take_all_within(registers, budget, |at, op| sweep.take(at, op))? {
            return Ok(None);
        }
        let mut swept = sweep.swept;
        let by_key = |bad: &Overwritten| (registers.read_key(bad.read), bad.read);
        swept.overwritten.sort_by_key(by_key);
        Ok(Some(swept))
    }

    fn new(registers: &'r Registers<'r>, scope: ConflictScope) -> Self {
        let history = registers.history;
        let width = history.session_count().next_multiple_of(CLOCK_LANES);
        let nowhere = Placed { row: NO_ROW, slot: 0, conflict: NO_CONFLICT };
        let swept = Swept {
            line: Vec::with_capacity(history.len()),
            overwritten: Vec::new(),
            scope,
            placed: vec![nowhere; history.len()],
            conflicts: Vec::new(),
            agrees: true,
        };
        Sweep {
            registers,
            width,
            clocks: vec![T::default(); width * history.session_count()],
            rows: vec![T::default(); width],
            row_of: vec![0; history.session_count()],
            writes: Lists::new(registers),
            swept,
        }
    }

    /// Returns an upper bound of the number of rows.
    fn most_rows(&self) -> u64 {
        let reads = self.registers.source.iter().filter(|source| source.get().is_some()).count();
        reads.min(self.writes.writes.len()) as u64 + 1
    }

    /// Visits an operation, or returns the write that must be visited first.
    #[inline]
    fn take(&mut self, at: At, op: OpId) -> Result<(), OpId> {
        if let Some(source) = self.registers.source[op.index()].get() {
            self.read(at, op, source)?;
        }
        if let Some(key) = self.registers.written_key(op) {
            self.write(at, op, key);
        }
        self.swept.line.push(op);
        Ok(())
    }

    fn write(&mut self, at: At, op: OpId, key: KeyId) {
        let row = &mut self.row_of[at.session as usize];
        if *row == NO_ROW {
            *row = (self.rows.len() / self.width) as u32;
            let clock = &self.clocks[at.session as usize * self.width..][..self.width];
            self.rows.extend_from_slice(clock);
        }
        let slot = self.writes.push(key, at);
        self.swept.placed[op.index()] = Placed { row: *row, slot, conflict: NO_CONFLICT };
    }

    fn read(&mut self, at: At, op: OpId, source: OpId) -> Result<(), OpId> {
        let key = self.registers.read_key(op);
        let start = match self.swept.placed.get(source.index()) {
            Some(&Placed { row: NO_ROW, .. }) => return Err(source),
            Some(&Placed { row, slot, .. }) => {
                // The write comes from the clock and not from the list, so that both memory loads
                // run in parallel.
                let write = self.at(source);
                self.join_past(at.session, write, row);
                if self.swept.scope == ConflictScope::Around {
                    self.list_near_conflicts(at.session, key, slot, row);
                }
                slot + 1
            }
            None => self.writes.starts[key.index()],
        };
        let between = start as usize..self.writes.ends[key.index()] as usize;
        if between.len() > 4 * self.row_of.len() {
            self.check_last_writes(at, op, source, key, start);
            return Ok(());
        }
        for slot in between {
            let write = self.writes.writes[slot];
            if self.knows(at.session, write) {
                self.record_conflict(op, source, write);
            }
        }
        Ok(())
    }

    /// Joins a write and its clock into the past of a session.
    #[inline]
    fn join_past(&mut self, session: u32, write: At, row: u32) {
        if self.knows(session, write) {
            return;
        }
        let clock = &mut self.clocks[session as usize * self.width..][..self.width];
        let row = &self.rows[row as usize * self.width..][..self.width];
        for (known, more) in clock.iter_mut().zip(row) {
            *known = (*known).max(*more);
        }
        clock[write.session as usize] = T::new(write.place + 1);
        self.row_of[session as usize] = NO_ROW;
    }

    /// Returns whether a write is in a session's past.
    #[inline]
    fn knows(&self, session: u32, write: At) -> bool {
        write.session == session || write.is_in(&self.clocks[session as usize * self.width..])
    }

    /// Returns the clock of a write, with any padding.
    #[inline]
    fn row(&self, row: u32) -> &[T] {
        &self.rows[row as usize * self.width..]
    }

    /// Lists the conflicts with the writes nearest before a source, whose slot is `slot`.
    fn list_near_conflicts(&mut self, session: u32, key: KeyId, slot: u32, row: u32) {
        let source = self.writes.writes[slot as usize];
        let first = slot.saturating_sub(NEAR_WRITES).max(self.writes.starts[key.index()]);
        for slot in first..slot {
            let write = self.writes.writes[slot as usize];
            let known_to_source = write.session == source.session || write.is_in(self.row(row));
            if !known_to_source && self.knows(session, write) {
                self.swept.list(self.op(write), self.op(source));
            }
        }
    }

    /// Checks the last write of each session that a read knows and whose slot is at least `start`.
    fn check_last_writes(&mut self, at: At, read: OpId, source: OpId, key: KeyId, start: u32) {
        let registers = self.registers;
        for &segment in registers.segments(key) {
            let clock = &self.clocks[at.session as usize * self.width..];
            let known = match segment.chain.0 == at.session {
                true => at.place,
                false => clock[segment.chain.index()].into(),
            };
            let places = registers.places(segment);
            let passed = places.partition_point(|&place| place < known);
            let Some(&place) = places[..passed].last() else { continue };
            let last = At { session: segment.chain.0, place };
            if self.swept.placed[self.op(last).index()].slot >= start {
                self.record_conflict(read, source, last);
            }
        }
    }

    /// Records the conflict or bad read caused by a write that a read knows and that is between its
    /// source and the read.
    fn record_conflict(&mut self, read: OpId, source: OpId, write: At) {
        let op = self.op(write);
        let overwrote = self.registers.history.is_initial(source) || {
            let source = self.at(source);
            source.session == write.session
                || source.is_in(self.row(self.swept.placed[op.index()].row))
        };
        if !overwrote {
            self.swept.agrees = false;
            self.swept.list(op, source);
        } else if self.swept.overwritten.len() < MAX_BAD_READS {
            self.swept.overwritten.push(Overwritten { read, source, overwriter: op });
        }
    }

    #[inline]
    fn at(&self, op: OpId) -> At {
        let history = self.registers.history;
        At { session: history.session_of(op).0, place: history.index_in_session(op) }
    }

    #[inline]
    fn op(&self, at: At) -> OpId {
        self.registers.history.op_at(SessionId(at.session), at.place)
    }
}

impl At {
    /// Checks whether a clock of another session contains the operation.
    #[inline]
    fn is_in<T: Count>(self, clock: &[T]) -> bool {
        clock[self.session as usize] > T::new(self.place)
    }
}

impl Lists {
    /// Allocates the table of writes by key.
    fn new(registers: &Registers<'_>) -> Self {
        let starts = registers.starts().to_vec();
        let nothing = At { session: 0, place: 0 };
        let writes = vec![nothing; starts[starts.len() - 1] as usize];
        Lists { ends: starts.clone(), starts, writes }
    }

    /// Adds a write and returns its slot.
    #[inline]
    fn push(&mut self, key: KeyId, write: At) -> u32 {
        let end = &mut self.ends[key.index()];
        let slot = *end;
        self.writes[slot as usize] = write;
        *end += 1;
        slot
    }
}

/// Operations visited between two checks of the budget.
const OPS_PER_CHECK: u32 = 1 << 15;

/// Visits all operations as [`take_all`] does, within a budget.
fn take_all_within(
    registers: &Registers<'_>,
    budget: &Budget,
    mut take: impl FnMut(At, OpId) -> Result<(), OpId>,
) -> Result<bool, Stopped> {
    let (mut visited, mut stopped) = (0_u32, None);
    let all = take_all(registers, |at, op| {
        visited = visited.wrapping_add(1);
        if visited.is_multiple_of(OPS_PER_CHECK) || stopped.is_some() {
            stopped = stopped.take().or_else(|| budget.check().err());
            if stopped.is_some() {
                // A session that waits for its own operation takes no further turn.
                return Err(op);
            }
        }
        take(at, op)
    });
    stopped.map_or(Ok(all), Err)
}

/// Visits all operations, session by session in turns; `take` visits one operation, or returns one
/// that must be visited first.
fn take_all(registers: &Registers<'_>, mut take: impl FnMut(At, OpId) -> Result<(), OpId>) -> bool {
    let history = registers.history;
    let turn = if history.len() < LONG_TURN_MIN_OPS { 1 } else { LONG_TURN_OPS };
    let starts: Vec<u32> = history.sessions().map(|session| history.op_at(session, 0).0).collect();
    let lengths: Vec<u32> =
        history.sessions().map(|session| history.session_ops(session).len() as u32).collect();
    take_turns(&lengths, turn, |session, place, _| {
        let op = OpId(starts[session.index()] + place);
        take(At { session: session.0, place }, op).map_err(|op| Awaited {
            chain: ChainId(history.session_of(op).0),
            place: history.index_in_session(op),
        })
    })
}
