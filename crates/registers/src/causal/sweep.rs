//! A sweep along a line of all operations: what decides CC, and nearly always CCv.
//!
//! The line is a linear extension of `co = (po | wr)+`, made while it is swept: the sessions take
//! turns, and a read waits until the write that it reads from was taken. So it is near to the order
//! of the run. Each session has one clock, of what is in the past of its next operation. A write gets
//! a copy of it, shared with the session's next writes until the clock changes; a read gets none,
//! because all that it has to say is said when it is taken. For a read r of x from w that is about
//! the writes of x in the line so far:
//!
//! ```text
//!      around w        w       between w and r
//!   ───w3────w4────────w─────────w1────w2──────────r
//! ```
//!
//! - *Between*: a write that r knows either knows w itself, then it overwrote w (WriteCORead, or
//!   WriteCOInitRead if w is the initial write), or it must come before w, `cf`, though the line has
//!   it after. If no read knows any write in between, the history is CC and the line is an
//!   arbitration order, so that it is CCv as well.
//! - *Around*: a write before w that r knows and w does not must come before w too. The line has
//!   it so, but a line in which the others are put right might not. CCv has the nearest ones listed.
//!
//! [`Swept::arbitration`] lines the operations up anew with all of these conflicts. Any that was not
//! listed is with a write that stood before w and was not near. So all is well if no write has moved
//! before one of its key that was not near before it, which is watched while the line is made. Where
//! one has, as with few variables or in a line that is far from the run's order, all conflicts have
//! to be listed, as [`crate::causal::order`] does.
//!
//! # Cost
//! A step for each operation and each write in between, and for each read that learns something a
//! maximum of two clocks. Where much stands in between, the sessions' last writes are looked at
//! instead, each found by bisection, so that a read costs at most about sessions times a logarithm.
//! Memory: a clock for each write after a read that learned something.

use consistory_history::{KeyId, OpId, SessionId};
use consistory_order::{Awaited, take_turns};
use consistory_verdict::{Budget, Stopped};

use crate::registers::Registers;

/// How many writes before w count as near.
const NEAR_WRITES: u32 = 6;

/// From how many operations on a turn is longer: what a session does next is not in the cache any
/// more when its turn comes, and comes by the cache line.
const LONG_TURN_MIN_OPS: usize = 20_000;

/// How many operations a session takes in one turn then.
const LONG_TURN_OPS: u32 = 4;

/// How many bad reads are kept, to choose the one with the shortest explanation.
const MAX_BAD_READS: usize = 4_096;

const NO_ROW: u32 = u32::MAX;
const NO_CONFLICT: u32 = u32::MAX;

/// Which conflicts are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// Those that the line does not agree with.
    Between,
    /// Those, and those between writes that are near to each other.
    Around,
}

/// What a sweep found.
#[derive(Debug)]
pub(crate) struct Swept {
    /// A linear extension of the causal order.
    pub(crate) line: Vec<u32>,
    /// Reads of what was overwritten in their causal past, some of them, by key and read.
    pub(crate) overwritten: Vec<Overwritten>,
    look: Look,
    /// For each write what the sweep found.
    placed: Vec<Placed>,
    /// The conflicts that are listed, those that enter a write as a linked list.
    conflicts: Vec<Conflict>,
    /// Whether the line agrees with all conflicts.
    agrees: bool,
}

/// A read of a write that another write of the key overwrote in the read's causal past.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overwritten {
    pub(crate) read: u32,
    /// The write that it reads from, possibly initial.
    pub(crate) source: OpId,
    /// The write that came between.
    pub(crate) overwriter: u32,
}

/// What the sweep knows of a write.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// Its clock, or `NO_ROW` as long as it was not taken.
    row: u32,
    /// Where it stands among the writes of its key.
    slot: u32,
    /// The last conflict found that enters it, or `NO_CONFLICT`.
    conflict: u32,
}

/// A pair of `cf` between concurrent writes.
#[derive(Clone, Copy, Debug)]
struct Conflict {
    from: u32,
    /// The one found before it that enters the same write, or `NO_CONFLICT`.
    next: u32,
}

/// An arbitration order, as far as it was looked for.
pub(crate) enum Arbitration {
    /// `po | wr | cf` is extended by this order.
    Order(Vec<u32>),
    /// It has a cycle.
    Cyclic,
    /// Conflicts that were not listed decide.
    Open,
}

/// Sweeps along a line; there is none if `po | wr` is cyclic.
pub(crate) fn sweep(
    registers: &Registers<'_>,
    look: Look,
    budget: &Budget,
) -> Result<Option<Swept>, Stopped> {
    budget.check()?;
    let history = registers.history;
    let longest = history.sessions().map(|session| history.session_ops(session).len()).max();
    let swept = match longest.unwrap_or(0) <= usize::from(u16::MAX) {
        true => Sweep::<u16>::run(registers, look, budget)?,
        false => Sweep::<u32>::run(registers, look, budget)?,
    };
    budget.check()?;
    Ok(swept)
}

impl Swept {
    /// Orders all operations so that `po`, `wr` and `cf` go forward.
    pub(crate) fn arbitration(&self, registers: &Registers<'_>) -> Arbitration {
        if self.agrees {
            return Arbitration::Order(self.line.clone());
        }
        let mut fronts = match self.look {
            Look::Between => Fronts::new(registers, 0),
            Look::Around => Fronts::new(registers, NEAR_WRITES),
        };
        let mut line = Vec::with_capacity(registers.history.len());
        let mut is_taken = vec![false; registers.history.len()];
        let mut kept = true;
        let all = take_all(registers, |_, op| {
            let source = registers.source[op as usize].get().map(|source| source.0);
            let mut before = source.into_iter().chain(self.conflicts_of(op));
            if let Some(awaited) = before.find(|&op| is_taken.get(op as usize) == Some(&false)) {
                return Err(awaited);
            }
            if let Some(key) = registers.written_key(op) {
                kept &= fronts.take(key, self.placed[op as usize].slot);
            }
            is_taken[op as usize] = true;
            line.push(op);
            Ok(())
        });
        match (all, kept) {
            (false, _) => Arbitration::Cyclic,
            (true, false) => Arbitration::Open,
            (true, true) => Arbitration::Order(line),
        }
    }

    /// Returns the writes that conflicts want before a write.
    fn conflicts_of(&self, write: u32) -> impl Iterator<Item = u32> {
        let get = |at: u32| self.conflicts.get(at as usize).copied();
        let last = get(self.placed[write as usize].conflict);
        std::iter::successors(last, move |conflict| get(conflict.next)).map(|found| found.from)
    }

    fn list(&mut self, from: u32, to: u32) {
        let next = &mut self.placed[to as usize].conflict;
        let conflict = Conflict { from, next: *next };
        *next = self.conflicts.len() as u32;
        self.conflicts.push(conflict);
    }
}

/// Of each key, how far a new line has taken its writes, by their slots in the old one.
struct Fronts {
    near: u32,
    /// For each key the first slot that is not taken, and a bit for each from there on that is.
    fronts: Vec<(u32, u32)>,
}

impl Fronts {
    fn new(registers: &Registers<'_>, near: u32) -> Self {
        let starts = registers.starts();
        Fronts { near, fronts: starts.iter().map(|&start| (start, 0)).collect() }
    }

    /// Takes a write; says whether those that were not near before it are taken already.
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

/// The state of a sweep; `T` is as narrow as the counts in clocks allow.
struct Sweep<'r, T> {
    registers: &'r Registers<'r>,
    /// How many entries a clock has: one a session, rounded up to what is joined at once.
    width: usize,
    /// The sessions' clocks: how many operations of each session are in the past. The entry of the
    /// own session means nothing.
    clocks: Vec<T>,
    /// The clocks of writes.
    rows: Vec<T>,
    /// Which of these is each session's clock, unless it has changed.
    row_of: Vec<u32>,
    writes: Lists,
    swept: Swept,
}

/// A clock has a multiple of so many entries, so that they are joined by whole registers.
const CLOCK_LANES: usize = 16;

/// A count of operations of one session.
trait Count: Copy + Ord + Default + Into<u32> {
    /// Builds a count that is known to fit.
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

/// The writes of each key that were taken, in the order of the line.
struct Lists {
    /// Where each key's writes start, and after the last where they end.
    starts: Vec<u32>,
    /// After what was taken of each key.
    ends: Vec<u32>,
    writes: Vec<At>,
}

/// An operation by its session and its place there.
#[derive(Clone, Copy, Debug)]
struct At {
    session: u32,
    place: u32,
}

impl<'r, T: Count> Sweep<'r, T> {
    fn run(
        registers: &'r Registers<'r>,
        look: Look,
        budget: &Budget,
    ) -> Result<Option<Swept>, Stopped> {
        let mut sweep = Self::new(registers, look);
        budget.reserve(sweep.most_rows() * (sweep.width * size_of::<T>()) as u64)?;
        if !take_all(registers, |at, op| sweep.take(at, op)) {
            return Ok(None);
        }
        let mut swept = sweep.swept;
        let by_key = |bad: &Overwritten| (registers.read_key(bad.read), bad.read);
        swept.overwritten.sort_by_key(by_key);
        Ok(Some(swept))
    }

    fn new(registers: &'r Registers<'r>, look: Look) -> Self {
        let history = registers.history;
        let width = history.session_count().next_multiple_of(CLOCK_LANES);
        let nowhere = Placed { row: NO_ROW, slot: 0, conflict: NO_CONFLICT };
        let swept = Swept {
            line: Vec::with_capacity(history.len()),
            overwritten: Vec::new(),
            look,
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

    /// Returns a bound of how many rows there can be.
    fn most_rows(&self) -> u64 {
        let reads = self.registers.source.iter().filter(|source| source.get().is_some()).count();
        reads.min(self.writes.writes.len()) as u64 + 1
    }

    /// Takes an operation, or gives the write that has to be taken first.
    #[inline]
    fn take(&mut self, at: At, op: u32) -> Result<(), u32> {
        if let Some(source) = self.registers.source[op as usize].get() {
            self.read(at, op, source)?;
        }
        if let Some(key) = self.registers.written_key(op) {
            self.write(at, op, key);
        }
        self.swept.line.push(op);
        Ok(())
    }

    fn write(&mut self, at: At, op: u32, key: KeyId) {
        let row = &mut self.row_of[at.session as usize];
        if *row == NO_ROW {
            *row = (self.rows.len() / self.width) as u32;
            let clock = &self.clocks[at.session as usize * self.width..][..self.width];
            self.rows.extend_from_slice(clock);
        }
        let slot = self.writes.push(key, at);
        self.swept.placed[op as usize] = Placed { row: *row, slot, conflict: NO_CONFLICT };
    }

    fn read(&mut self, at: At, op: u32, source: OpId) -> Result<(), u32> {
        let key = self.registers.read_key(op);
        let start = match self.swept.placed.get(source.index()) {
            Some(&Placed { row: NO_ROW, .. }) => return Err(source.0),
            Some(&Placed { row, slot, .. }) => {
                // Not from the list: this way both loads from memory go on at once.
                let write = self.at(source);
                self.learn(at.session, write, row);
                if self.swept.look == Look::Around {
                    self.look_around(at.session, key, slot, row);
                }
                slot + 1
            }
            None => self.writes.starts[key.index()],
        };
        let between = start as usize..self.writes.ends[key.index()] as usize;
        if between.len() > 4 * self.row_of.len() {
            self.look_at_last(at, op, source, key, start);
            return Ok(());
        }
        for slot in between {
            let write = self.writes.writes[slot];
            if self.knows(at.session, write) {
                self.say(op, source, write);
            }
        }
        Ok(())
    }

    /// Brings a write and what its row says into a session's past.
    #[inline]
    fn learn(&mut self, session: u32, write: At, row: u32) {
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

    /// Returns the clock of a write, perhaps followed by more.
    #[inline]
    fn row(&self, row: u32) -> &[T] {
        &self.rows[row as usize * self.width..]
    }

    /// Lists the conflicts with the writes that are nearest before a source, which stands at `slot`.
    fn look_around(&mut self, session: u32, key: KeyId, slot: u32, row: u32) {
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

    /// Looks at the last write of each session that a read knows and that stands at `start` or
    /// after it.
    fn look_at_last(&mut self, at: At, read: u32, source: OpId, key: KeyId, start: u32) {
        let registers = self.registers;
        for &segment in registers.segments(key) {
            let clock = &self.clocks[at.session as usize * self.width..];
            let known = match segment.chain == at.session {
                true => at.place,
                false => clock[segment.chain as usize].into(),
            };
            let places = registers.places(segment);
            let passed = places.partition_point(|&place| place < known);
            let Some(&place) = places[..passed].last() else { continue };
            let last = At { session: segment.chain, place };
            if self.swept.placed[self.op(last) as usize].slot >= start {
                self.say(read, source, last);
            }
        }
    }

    /// Says what follows from a write that a read knows and that stands between its source and it.
    fn say(&mut self, read: u32, source: OpId, write: At) {
        let op = self.op(write);
        let overwrote = self.registers.history.is_initial(source) || {
            let source = self.at(source);
            source.session == write.session
                || source.is_in(self.row(self.swept.placed[op as usize].row))
        };
        if !overwrote {
            self.swept.agrees = false;
            self.swept.list(op, source.0);
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
    fn op(&self, at: At) -> u32 {
        self.registers.history.op_at(SessionId(at.session), at.place).0
    }
}

impl At {
    /// Returns whether a clock of another session knows the operation.
    #[inline]
    fn is_in<T: Count>(self, clock: &[T]) -> bool {
        clock[self.session as usize] > T::new(self.place)
    }
}

impl Lists {
    /// Makes room for the writes of each key.
    fn new(registers: &Registers<'_>) -> Self {
        let starts = registers.starts().to_vec();
        let nothing = At { session: 0, place: 0 };
        let writes = vec![nothing; starts[starts.len() - 1] as usize];
        Lists { ends: starts.clone(), starts, writes }
    }

    /// Adds a write and gives its slot.
    #[inline]
    fn push(&mut self, key: KeyId, write: At) -> u32 {
        let end = &mut self.ends[key.index()];
        let slot = *end;
        self.writes[slot as usize] = write;
        *end += 1;
        slot
    }
}

/// Lets the sessions take turns; `take` takes an operation or gives one that has to be taken first.
fn take_all(registers: &Registers<'_>, mut take: impl FnMut(At, u32) -> Result<(), u32>) -> bool {
    let history = registers.history;
    let turn = if history.len() < LONG_TURN_MIN_OPS { 1 } else { LONG_TURN_OPS };
    let starts: Vec<u32> = history.sessions().map(|session| history.op_at(session, 0).0).collect();
    let lengths: Vec<u32> =
        history.sessions().map(|session| history.session_ops(session).len() as u32).collect();
    take_turns(&lengths, turn, |session, place, _| {
        let op = starts[session as usize] + place;
        take(At { session, place }, op).map_err(|op| Awaited {
            chain: history.session_of(OpId(op)).0,
            place: history.index_in_session(OpId(op)),
        })
    })
}
