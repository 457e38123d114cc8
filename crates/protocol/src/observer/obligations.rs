//! Observer and checker at once: only what a cycle can still be closed by.
//!
//! A new node gets edges from what came before it, and those close no cycle. A cycle is closed only
//! by an edge into an *older* node, and only two kinds of older nodes ever get one:
//! - The successor k of a store whose value is still held somewhere although k has overwritten it:
//!   a load of the stale value is forced to come before k.
//! - A store that waits to be serialized: the last store of its block, and the loads of that one,
//!   will come before it.
//!
//! Call these the obligations. The sources of edges are few as well: the last operation of each
//! processor, the last store of each block and the loads of its value, and the stores whose stale
//! or pending values are held. So it is enough to know which obligation reaches which source: one
//! bit row for each obligation, closed under transitivity, over the columns
//!
//! | column | what an obligation reaches |
//! | --- | --- |
//! | `last(p)` | the last operation of processor p |
//! | `tail(b)` | the last store of block b |
//! | `front(b)` | that store or a load of its value; before there is a store, a load of the initial value |
//! | `own(c)` | the stale or pending store c |
//! | `readers(c)` | a load of the pending store c |
//!
//! A new node's column is the union of the columns of its sources. An edge from a node to an
//! obligation k closes a cycle if k reaches the node, and otherwise gives everything that k reaches
//! to all that reach the node. While no stale and no pending value is held there are no rows, and
//! nothing is kept but that.
//!
//! Stale and pending stores are *classes*: the locations that hold the value of the same store are
//! of one class. The initial value of a block is as that of a store that came before everything. If
//! it is not known which block's initial value a location holds, it stands for that of any: each
//! block that has a store then has a row for its first store.

use crate::observer::few::Few;
use crate::tracking::{Effect, Operation, Source};

/// How many stale and pending stores there can be at once.
pub(super) const MAX_CLASSES: usize = 40;
/// How many blocks there can be: a row has two columns for each.
const MAX_BLOCKS: usize = (u128::BITS as usize - 2 * MAX_CLASSES) / 2;

/// What a location holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Contents {
    #[default]
    Nothing,
    /// The initial value of any block.
    Initial,
    /// The value of the last store of this block; its initial value if it has none.
    Current(u8),
    /// The value of a stale or pending store.
    Class(u8),
}

/// A stale or pending store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Class {
    pub(super) block: u8,
    /// Whether it is pending.
    pub(super) pending: bool,
}

/// Why a run is rejected; [`Failure`](super::Failure) says more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    LoadsNothing,
    OtherBlock,
    SerializesNothing,
    LostStore,
    Cycle,
    NoOrder,
    TooManyClasses,
}

/// The columns of a row, and which of them is where.
///
/// A row is at most 128 bits: the numbers of processors and blocks are bounded by the constructor
/// of [`Witness`](super::Witness).
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    pub(super) procs: u8,
    pub(super) blocks: u8,
}

type Row = u128;

impl Columns {
    pub(super) fn last(self, proc: u8) -> u32 {
        u32::from(proc)
    }

    pub(super) fn tail(self, block: u8) -> u32 {
        u32::from(self.procs + block)
    }

    pub(super) fn front(self, block: u8) -> u32 {
        u32::from(self.procs + self.blocks + block)
    }

    pub(super) fn own(self, class: u8) -> u32 {
        u32::from(self.procs) + 2 * u32::from(self.blocks) + 2 * u32::from(class)
    }

    pub(super) fn readers(self, class: u8) -> u32 {
        self.own(class) + 1
    }

    /// Counts the columns when there are so many classes.
    pub(super) fn count(self, classes: usize) -> usize {
        usize::from(self.procs) + 2 * usize::from(self.blocks) + 2 * classes
    }
}

/// Which locations hold what, and which obligation reaches which source.
#[derive(Clone, Debug)]
pub(super) struct Obligations {
    pub(super) columns: Columns,
    pub(super) serializes: bool,
    pub(super) contents: Vec<Contents>,
    pub(super) classes: Few<Option<Class>, MAX_CLASSES>,
    /// What each class's obligation reaches: the successor of a stale store, a pending store itself.
    pub(super) rows: Few<Row, MAX_CLASSES>,
    /// Whether each block has a store in its order, while an initial value of any block is held.
    pub(super) stored: Few<bool, MAX_BLOCKS>,
    /// What each block's first store reaches, while an initial value of any block is held; else 0.
    pub(super) first_rows: Few<Row, MAX_BLOCKS>,
}

/// Names a row.
#[derive(Clone, Copy)]
enum At {
    Class(usize),
    First(usize),
}

/// Which obligations reach a node.
#[derive(Clone, Copy, Default)]
struct Reached {
    by_class: u64,
    by_first: u64,
}

impl Reached {
    fn has(self, at: At) -> bool {
        match at {
            At::Class(c) => self.by_class >> c & 1 == 1,
            At::First(b) => self.by_first >> b & 1 == 1,
        }
    }

    fn or(self, other: Reached) -> Reached {
        Reached {
            by_class: self.by_class | other.by_class,
            by_first: self.by_first | other.by_first,
        }
    }
}

impl Obligations {
    /// Makes the situation before a start state.
    pub(super) fn new(columns: Columns, locations: usize, serializes: bool) -> Self {
        let blocks = usize::from(columns.blocks);
        Obligations {
            columns,
            serializes,
            contents: vec![Contents::Nothing; locations],
            classes: Few::new(),
            rows: Few::new(),
            stored: Few::filled(blocks),
            first_rows: Few::filled(blocks),
        }
    }

    /// Says which block's initial value a location holds.
    pub(super) fn set_initial(&mut self, location: usize, block: u8) {
        if self.contents[location] == Contents::Initial {
            self.contents[location] = Contents::Current(block);
        }
    }

    /// Goes on by what a rule or a start state did.
    pub(super) fn step(&mut self, effect: &Effect) -> Result<(), Fault> {
        // What each operation stored; a store turns stale there as it does in the locations.
        let mut performed: Vec<Contents> = Vec::new();
        for &operation in &effect.operations {
            let done = match operation {
                Operation::Load { proc, block, from } => {
                    let from = self.resolve(from, &performed);
                    self.load(proc as u8, block as u8, from)?;
                    Contents::Nothing
                }
                Operation::Store { proc, block } => {
                    self.store(proc as u8, block as u8, &mut performed)?
                }
                Operation::Serialize { block, from } => {
                    let from = self.resolve(from, &performed);
                    self.serialize(block as u8, from, &mut performed)?;
                    Contents::Nothing
                }
            };
            performed.push(done);
        }
        let after = effect.sources.iter().map(|&source| self.resolve(source, &performed)).collect();
        self.contents = after;
        self.forget()?;
        // Copies alone only take constraints away.
        if effect.operations.is_empty() { Ok(()) } else { self.settle() }
    }

    fn resolve(&self, source: Source, performed: &[Contents]) -> Contents {
        match source {
            Source::Location(at) => self.contents[at as usize],
            Source::Store(at) => performed[at as usize],
            Source::Initial => Contents::Initial,
            Source::Nothing => Contents::Nothing,
        }
    }

    fn load(&mut self, proc: u8, block: u8, from: Contents) -> Result<(), Fault> {
        let columns = self.columns;
        let last = columns.last(proc);
        let mut reached = self.column(last);
        match from {
            Contents::Nothing => return Err(Fault::LoadsNothing),
            Contents::Initial if self.stored[usize::from(block)] => {
                self.precede(reached, At::First(usize::from(block)))?;
            }
            Contents::Initial => self.add_column(columns.front(block), reached),
            Contents::Current(found) => {
                if found != block {
                    return Err(Fault::OtherBlock);
                }
                reached = reached.or(self.column(columns.tail(block)));
                self.add_column(last, reached);
                self.add_column(columns.front(block), reached);
            }
            Contents::Class(class) => {
                let Class { block: found, pending } = self.class(class);
                if found != block {
                    return Err(Fault::OtherBlock);
                }
                reached = reached.or(self.column(columns.own(class)));
                self.add_column(last, reached);
                if pending {
                    self.add_column(columns.readers(class), reached);
                } else {
                    self.precede(reached, At::Class(usize::from(class)))?;
                }
            }
        }
        Ok(())
    }

    /// Performs a store, and gives what holds its value.
    fn store(
        &mut self,
        proc: u8,
        block: u8,
        performed: &mut [Contents],
    ) -> Result<Contents, Fault> {
        let columns = self.columns;
        let (last, tail, front) = (columns.last(proc), columns.tail(block), columns.front(block));
        if self.serializes {
            let class = self.new_class(Class { block, pending: true })?;
            let own = columns.own(class);
            let mut reached = self.column(last);
            reached.by_class |= 1 << class;
            self.add_column(last, reached);
            self.add_column(own, reached);
            return Ok(Contents::Class(class));
        }
        let reached = self.column(last).or(self.column(front));
        let stale = self.overwrite(block, performed)?;
        self.add_column(last, reached);
        self.set_column(tail, reached);
        self.set_column(front, reached);
        // The new store has no edges out of it: it reaches itself.
        let row = 1 << last | 1 << tail | 1 << front;
        self.set_row(stale, row);
        Ok(Contents::Current(block))
    }

    fn serialize(
        &mut self,
        block: u8,
        from: Contents,
        performed: &mut [Contents],
    ) -> Result<(), Fault> {
        let class = match from {
            Contents::Nothing => return Err(Fault::SerializesNothing),
            Contents::Initial => return Ok(()),
            Contents::Current(found) if found == block => return Ok(()),
            Contents::Class(class) if self.class(class).block == block => class,
            Contents::Current(_) | Contents::Class(_) => return Err(Fault::OtherBlock),
        };
        if !self.class(class).pending {
            return Ok(());
        }
        self.append(class)?;
        let stale = self.overwrite(block, performed)?;
        self.set_row(stale, self.rows[usize::from(class)]);
        let columns = self.columns;
        let own = self.column(columns.own(class));
        let front = own.or(self.column(columns.readers(class)));
        self.set_column(columns.tail(block), own);
        self.set_column(columns.front(block), front);
        let held = Contents::Class(class);
        let everywhere = self.contents.iter_mut().chain(performed);
        everywhere.filter(|c| **c == held).for_each(|c| *c = Contents::Current(block));
        self.drop_class(class);
        Ok(())
    }

    /// Puts a pending store behind the last store of its block and the loads of that one.
    fn append(&mut self, class: u8) -> Result<(), Fault> {
        let front = self.column(self.columns.front(self.class(class).block));
        self.precede(front, At::Class(usize::from(class)))
    }

    /// Makes the last store of a block stale, or the initial value, for a next store to come; gives
    /// the rows that are to be what the next store reaches.
    fn overwrite(
        &mut self,
        block: u8,
        performed: &mut [Contents],
    ) -> Result<(Option<u8>, Option<u8>), Fault> {
        let is_first = !std::mem::replace(&mut self.stored[usize::from(block)], true);
        let first = is_first && self.contents.contains(&Contents::Initial);
        let first = first.then_some(block);
        let current = Contents::Current(block);
        if !self.contents.iter().chain(&*performed).any(|&c| c == current) {
            return Ok((None, first));
        }
        let tail = self.column(self.columns.tail(block));
        let class = self.new_class(Class { block, pending: false })?;
        self.set_column(self.columns.own(class), tail);
        let everywhere = self.contents.iter_mut().chain(performed);
        everywhere.filter(|c| **c == current).for_each(|c| *c = Contents::Class(class));
        Ok((Some(class), first))
    }

    fn set_row(&mut self, (class, first): (Option<u8>, Option<u8>), row: Row) {
        if let Some(class) = class {
            self.rows[usize::from(class)] = row;
        }
        if let Some(block) = first {
            self.first_rows[usize::from(block)] = row;
        }
    }

    /// Adds an edge from the node that is reached so to an obligation.
    fn precede(&mut self, reached: Reached, obligation: At) -> Result<(), Fault> {
        if reached.has(obligation) {
            return Err(Fault::Cycle);
        }
        let gained = match obligation {
            At::Class(c) => self.rows[c],
            At::First(b) => self.first_rows[b],
        };
        for (c, row) in self.rows.iter_mut().enumerate() {
            if reached.has(At::Class(c)) {
                *row |= gained;
            }
        }
        for (b, row) in self.first_rows.iter_mut().enumerate() {
            if reached.has(At::First(b)) {
                *row |= gained;
            }
        }
        Ok(())
    }

    /// Drops what nothing can depend on any more.
    fn forget(&mut self) -> Result<(), Fault> {
        for class in 0..self.classes.len() {
            let held = || self.contents.contains(&Contents::Class(class as u8));
            match self.classes[class] {
                Some(_) if held() => {}
                Some(Class { pending: true, .. }) => return Err(Fault::LostStore),
                Some(_) => self.drop_class(class as u8),
                None => {}
            }
        }
        if !self.contents.contains(&Contents::Initial) {
            self.stored.fill(false);
            self.first_rows.fill(0);
        }
        for block in 0..self.columns.blocks {
            if !self.contents.contains(&Contents::Current(block)) {
                self.set_column(self.columns.tail(block), Reached::default());
            }
        }
        Ok(())
    }

    /// Asks for an order of the pending stores that closes no cycle.
    fn settle(&self) -> Result<(), Fault> {
        let pending = |class: &&Option<Class>| class.is_some_and(|c| c.pending);
        if self.classes.iter().filter(pending).count() == 0 || self.can_end() {
            return Ok(());
        }
        Err(Fault::NoOrder)
    }

    fn can_end(&self) -> bool {
        let mut pending = (0u8..).zip(self.classes.iter()).filter_map(|(c, class)| {
            class.filter(|class| class.pending).map(|class| (c, class.block))
        });
        let Some((first, block)) = pending.next() else { return true };
        // The order of stores to different blocks is free, so one block is done after the other.
        let others = pending.filter(|&(_, other)| other == block).map(|(class, _)| class);
        std::iter::once(first).chain(others).any(|class| {
            // What locations hold does not matter for the order.
            let mut next = Obligations { contents: Vec::new(), ..*self };
            if next.append(class).is_err() {
                return false;
            }
            // No load follows, so nothing that is overwritten matters any more.
            let columns = self.columns;
            let own = next.column(columns.own(class));
            let front = own.or(next.column(columns.readers(class)));
            next.set_column(columns.front(block), front);
            next.drop_class(class);
            next.can_end()
        })
    }

    fn class(&self, class: u8) -> Class {
        self.classes[usize::from(class)].expect("a class that is held is in the table")
    }

    fn new_class(&mut self, class: Class) -> Result<u8, Fault> {
        let free = self.classes.iter().position(Option::is_none);
        let at = free.unwrap_or(self.classes.len());
        if at == MAX_CLASSES {
            return Err(Fault::TooManyClasses);
        }
        if at == self.classes.len() {
            self.classes.push(None);
            self.rows.push(0);
        }
        self.classes[at] = Some(class);
        Ok(at as u8)
    }

    fn drop_class(&mut self, class: u8) {
        self.classes[usize::from(class)] = None;
        self.rows[usize::from(class)] = 0;
        self.set_column(self.columns.own(class), Reached::default());
        self.set_column(self.columns.readers(class), Reached::default());
    }

    fn column(&self, column: u32) -> Reached {
        let collect = |rows: &[Row]| {
            (0..).zip(rows).fold(0, |all, (at, row)| all | ((row >> column & 1) as u64) << at)
        };
        Reached { by_class: collect(&self.rows), by_first: collect(&self.first_rows) }
    }

    fn set_column(&mut self, column: u32, reached: Reached) {
        let set = |rows: &mut [Row], reached: u64| {
            for (at, row) in rows.iter_mut().enumerate() {
                *row = *row & !(1 << column) | Row::from(reached >> at & 1) << column;
            }
        };
        set(&mut self.rows, reached.by_class);
        set(&mut self.first_rows, reached.by_first);
    }

    /// Adds to what reaches a node that stays.
    fn add_column(&mut self, column: u32, reached: Reached) {
        self.set_column(column, self.column(column).or(reached));
    }
}
