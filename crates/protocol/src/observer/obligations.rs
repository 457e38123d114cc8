//! Observer and checker in one, which keep only the nodes through which a cycle can still be
//! closed.
//! A new node gets edges from earlier nodes only, and these close no cycle. Only an edge into an
//! *older* node can close a cycle, and only two kinds of older nodes ever get such an edge:
//! - The successor k of a store whose value is still held somewhere although k has overwritten it:
//!   a load of the stale value is forced to come before k.
//! - A store that waits to be serialized: the last store of its block, and the loads of that one,
//!   will come before it.
//!
//! Call these the obligations. The sources of edges are few as well: the last operation of each
//! processor, the last store of each block and the loads of its value, and the stores whose stale
//! or pending values are held. So it is enough to know which obligation reaches which source: a bit
//! matrix, closed under transitivity, with a row for each obligation and the columns
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
//! The matrix is kept by columns, a word each: to read or to set a column is one instruction, and an
//! edge to an obligation takes one for each column.
//!
//! Stale and pending stores are *classes*: the locations that hold the value of the same store are
//! of one class. The initial value of a block is as that of a store that came before everything. If
//! it is not known which block's initial value a location holds, it stands for that of any: each
//! block that has a store then has a row for its first store.

use crate::observer::few::Few;
use crate::tracking::{Effect, Operation, Source};

/// How many stale and pending stores there can be at once.
pub(crate) const MAX_CLASSES: usize = 40;
/// How many blocks there can be: each has a row of its own after those of the classes.
const MAX_BLOCKS: usize = u64::BITS as usize - MAX_CLASSES;
/// How many columns there can be.
pub(super) const MAX_COLUMNS: usize = 128;

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

/// Which column is where.
///
/// The numbers of processors and blocks are bounded by the constructor of
/// [`Witness`](super::Witness).
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    pub(super) procs: u8,
    pub(super) blocks: u8,
}

impl Columns {
    pub(super) fn last(self, proc: u8) -> usize {
        usize::from(proc)
    }

    pub(super) fn tail(self, block: u8) -> usize {
        usize::from(self.procs + block)
    }

    pub(super) fn front(self, block: u8) -> usize {
        usize::from(self.procs + self.blocks + block)
    }

    pub(super) fn own(self, class: u8) -> usize {
        self.count(usize::from(class))
    }

    pub(super) fn readers(self, class: u8) -> usize {
        self.own(class) + 1
    }

    /// Counts the columns when there are so many classes.
    pub(super) fn count(self, classes: usize) -> usize {
        usize::from(self.procs) + 2 * usize::from(self.blocks) + 2 * classes
    }
}

/// Which obligations reach a node: a bit for each class, then one for each block's first store.
pub(super) type Reached = u64;

/// The bit of a class.
fn of_class(class: u8) -> Reached {
    1 << class
}

/// The bit of the first store of a block.
pub(super) fn of_first(block: u8) -> Reached {
    1 << (MAX_CLASSES + usize::from(block))
}

/// Which locations hold what, and which obligation reaches which source.
#[derive(Debug)]
pub(super) struct Obligations {
    pub(super) columns: Columns,
    pub(super) serializes: bool,
    pub(super) contents: Vec<Contents>,
    pub(super) classes: Few<Option<Class>, MAX_CLASSES>,
    /// What reaches each column: for a stale class its successor, for a pending one the store
    /// itself; for a block its first store, while an initial value of any block is held.
    pub(super) matrix: Few<Reached, MAX_COLUMNS>,
    /// Which blocks have a store in their order, by their bits, while an initial value of any block
    /// is held.
    pub(super) stored: Reached,
    /// What each operation of a step stored; a store turns stale there as it does in the locations.
    performed: Vec<Contents>,
    /// What locations held before a step.
    before: Vec<Contents>,
}

impl Clone for Obligations {
    fn clone(&self) -> Self {
        Obligations {
            contents: self.contents.clone(),
            performed: Vec::new(),
            before: Vec::new(),
            ..*self
        }
    }

    /// Copies what is in use, into memory that is there already.
    fn clone_from(&mut self, other: &Self) {
        (self.columns, self.serializes) = (other.columns, other.serializes);
        self.contents.clone_from(&other.contents);
        self.classes.copy_from(&other.classes);
        self.matrix.copy_from(&other.matrix);
        self.stored = other.stored;
    }
}

impl Obligations {
    /// Builds the situation before a start state.
    pub(super) fn new(columns: Columns, locations: usize, serializes: bool) -> Self {
        Obligations {
            columns,
            serializes,
            contents: vec![Contents::Nothing; locations],
            classes: Few::new(),
            matrix: Few::filled(columns.count(0)),
            stored: 0,
            performed: Vec::new(),
            before: Vec::new(),
        }
    }

    /// Says which block's initial value a location holds.
    pub(super) fn set_initial(&mut self, location: usize, block: u8) {
        if self.contents[location] == Contents::Initial {
            self.contents[location] = Contents::Current(block);
        }
    }

    /// Checks whether operations that copy nothing are evidently fine and change nothing: loads of
    /// current values while there are no obligations.
    pub(super) fn is_idle(&self, effect: &Effect) -> bool {
        let is_current = |operation: &Operation| match *operation {
            Operation::Load { block, from: Source::Location(at), .. } => {
                self.contents[at as usize] == Contents::Current(block as u8)
            }
            _ => false,
        };
        self.classes.is_empty()
            && self.stored == 0
            && effect.operations.iter().all(is_current)
            && effect.copies_nothing()
    }

    /// Forgets the classes and what is reached.
    pub(super) fn clear_matrix(&mut self) {
        self.classes.clear();
        self.matrix.clear();
        (0..self.columns.count(0)).for_each(|_| self.matrix.push(0));
    }

    /// Follows what a rule or a start state did.
    pub(super) fn step(&mut self, effect: &Effect) -> Result<(), Fault> {
        self.performed.clear();
        for &operation in &effect.operations {
            let done = match operation {
                Operation::Load { proc, block, from } => {
                    let from = self.resolve(from);
                    self.load(proc as u8, block as u8, from)?;
                    Contents::Nothing
                }
                Operation::Store { proc, block } => self.store(proc as u8, block as u8)?,
                Operation::Serialize { block, from } => {
                    let from = self.resolve(from);
                    self.serialize(block as u8, from)?;
                    Contents::Nothing
                }
            };
            self.performed.push(done);
        }
        self.before.clone_from(&self.contents);
        for (contents, &source) in self.contents.iter_mut().zip(&effect.sources) {
            *contents = resolve(source, &self.before, &self.performed);
        }
        self.forget()?;
        // Copies alone only take constraints away.
        if effect.operations.is_empty() { Ok(()) } else { self.settle() }
    }

    fn resolve(&self, source: Source) -> Contents {
        resolve(source, &self.contents, &self.performed)
    }

    fn load(&mut self, proc: u8, block: u8, from: Contents) -> Result<(), Fault> {
        let columns = self.columns;
        let (last, front) = (columns.last(proc), columns.front(block));
        let mut reached = self.matrix[last];
        match from {
            Contents::Nothing => return Err(Fault::LoadsNothing),
            Contents::Initial if self.stored & of_first(block) != 0 => {
                self.precede(reached, of_first(block))?;
            }
            Contents::Initial => self.matrix[front] |= reached,
            Contents::Current(found) => {
                if found != block {
                    return Err(Fault::OtherBlock);
                }
                reached |= self.matrix[columns.tail(block)];
                self.matrix[last] |= reached;
                self.matrix[front] |= reached;
            }
            Contents::Class(class) => {
                let Class { block: found, pending } = self.class(class);
                if found != block {
                    return Err(Fault::OtherBlock);
                }
                reached |= self.matrix[columns.own(class)];
                self.matrix[last] |= reached;
                if pending {
                    self.matrix[columns.readers(class)] |= reached;
                } else {
                    self.precede(reached, of_class(class))?;
                }
            }
        }
        Ok(())
    }

    /// Performs a store, and gives what holds its value.
    fn store(&mut self, proc: u8, block: u8) -> Result<Contents, Fault> {
        let columns = self.columns;
        let (last, tail, front) = (columns.last(proc), columns.tail(block), columns.front(block));
        if self.serializes {
            let class = self.new_class(Class { block, pending: true })?;
            let reached = self.matrix[last] | of_class(class);
            self.matrix[last] |= reached;
            self.matrix[columns.own(class)] |= reached;
            return Ok(Contents::Class(class));
        }
        let reached = self.matrix[last] | self.matrix[front];
        let overwritten = self.overwrite(block)?;
        self.matrix[last] |= reached;
        self.matrix[tail] = reached;
        self.matrix[front] = reached;
        // The new store has no edges out of it: it reaches itself.
        for column in [last, tail, front] {
            self.matrix[column] |= overwritten;
        }
        Ok(Contents::Current(block))
    }

    fn serialize(&mut self, block: u8, from: Contents) -> Result<(), Fault> {
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
        let columns = self.columns;
        // It comes after the last store of its block and the loads of that one.
        self.precede(self.matrix[columns.front(block)], of_class(class))?;
        let overwritten = self.overwrite(block)?;
        // What it reaches is what the successor of the store before it reaches.
        for column in self.matrix.iter_mut().filter(|column| **column & of_class(class) != 0) {
            *column |= overwritten;
        }
        let own = self.matrix[columns.own(class)];
        self.matrix[columns.tail(block)] = own;
        self.matrix[columns.front(block)] = own | self.matrix[columns.readers(class)];
        let held = Contents::Class(class);
        let everywhere = self.contents.iter_mut().chain(&mut self.performed);
        everywhere.filter(|c| **c == held).for_each(|c| *c = Contents::Current(block));
        self.drop_class(class);
        Ok(())
    }

    /// Builds the last store of a block stale, or the initial value, for a next store to come; gives
    /// the rows that are to be what the next store reaches.
    fn overwrite(&mut self, block: u8) -> Result<Reached, Fault> {
        let is_first = self.stored & of_first(block) == 0;
        self.stored |= of_first(block);
        let mut overwritten = 0;
        if is_first && self.contents.contains(&Contents::Initial) {
            overwritten |= of_first(block);
        }
        let current = Contents::Current(block);
        if !self.contents.iter().chain(&self.performed).any(|&c| c == current) {
            return Ok(overwritten);
        }
        let class = self.new_class(Class { block, pending: false })?;
        self.matrix[self.columns.own(class)] = self.matrix[self.columns.tail(block)];
        let everywhere = self.contents.iter_mut().chain(&mut self.performed);
        everywhere.filter(|c| **c == current).for_each(|c| *c = Contents::Class(class));
        Ok(overwritten | of_class(class))
    }

    /// Adds an edge from the node that is reached so to an obligation.
    fn precede(&mut self, reached: Reached, obligation: Reached) -> Result<(), Fault> {
        if reached & obligation != 0 {
            return Err(Fault::Cycle);
        }
        for column in self.matrix.iter_mut().filter(|column| **column & obligation != 0) {
            *column |= reached;
        }
        Ok(())
    }

    /// Drops what nothing can depend on any more.
    fn forget(&mut self) -> Result<(), Fault> {
        let (mut classes, mut blocks, mut is_initial) = (0u64, 0u64, false);
        for &contents in &self.contents {
            match contents {
                Contents::Nothing => {}
                Contents::Initial => is_initial = true,
                Contents::Current(block) => blocks |= 1 << block,
                Contents::Class(class) => classes |= of_class(class),
            }
        }
        for class in 0..self.classes.len() as u8 {
            match self.classes[usize::from(class)] {
                Some(Class { pending, .. }) if classes & of_class(class) == 0 => {
                    if pending {
                        return Err(Fault::LostStore);
                    }
                    self.drop_class(class);
                }
                _ => {}
            }
        }
        if !is_initial && self.stored != 0 {
            self.stored = 0;
            self.matrix.iter_mut().for_each(|column| *column &= of_first(0) - 1);
        }
        for block in 0..self.columns.blocks {
            if blocks >> block & 1 == 0 {
                self.matrix[self.columns.tail(block)] = 0;
            }
        }
        Ok(())
    }

    /// Asks for an order of the pending stores that closes no cycle.
    fn settle(&self) -> Result<(), Fault> {
        let mut ending = Ending {
            pending: 0,
            classes: &self.classes,
            fronts: Few::new(),
            behind: Few::filled(self.classes.len()),
        };
        for (class, pending) in (0u8..).zip(self.classes.iter()) {
            if pending.is_some_and(|class| class.pending) {
                ending.pending |= of_class(class);
                let columns = self.columns;
                ending.behind[usize::from(class)] =
                    self.matrix[columns.own(class)] | self.matrix[columns.readers(class)];
            }
        }
        if ending.pending == 0 {
            return Ok(());
        }
        (0..self.columns.blocks)
            .for_each(|block| ending.fronts.push(self.matrix[self.columns.front(block)]));
        if ending.is_possible() { Ok(()) } else { Err(Fault::NoOrder) }
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
            self.push_class(class);
        }
        self.classes[at] = Some(class);
        Ok(at as u8)
    }

    /// Adds a class after the others, with columns for it.
    pub(super) fn push_class(&mut self, class: Class) {
        self.classes.push(Some(class));
        self.matrix.push(0);
        self.matrix.push(0);
    }

    fn drop_class(&mut self, class: u8) {
        self.classes[usize::from(class)] = None;
        self.matrix.iter_mut().for_each(|column| *column &= !of_class(class));
        self.matrix[self.columns.own(class)] = 0;
        self.matrix[self.columns.readers(class)] = 0;
    }
}

fn resolve(source: Source, contents: &[Contents], performed: &[Contents]) -> Contents {
    match source {
        Source::Location(at) => contents[at as usize],
        Source::Store(at) => performed[at as usize],
        Source::Initial { .. } => Contents::Initial,
        Source::Nothing => Contents::Nothing,
    }
}

/// Pending stores that are to be put after the others in some order, when no load follows: nothing
/// that is overwritten matters any more.
#[derive(Clone, Copy)]
struct Ending<'a> {
    pending: Reached,
    classes: &'a [Option<Class>],
    /// What reaches the front of each block.
    fronts: Few<Reached, MAX_BLOCKS>,
    /// What reaches each pending store or a load of it.
    behind: Few<Reached, MAX_CLASSES>,
}

impl Ending<'_> {
    fn is_possible(&self) -> bool {
        if self.pending == 0 {
            return true;
        }
        let block_of = |class: u32| self.classes[class as usize].map(|class| class.block);
        // The order of stores to different blocks is free, so one block is done after the other.
        let block = block_of(self.pending.trailing_zeros());
        let pending = (0..self.classes.len() as u32).filter(|class| self.pending >> class & 1 == 1);
        pending.filter(|&class| block_of(class) == block).any(|class| {
            let mut next = *self;
            next.append(class as u8, usize::from(block.unwrap_or(0))) && next.is_possible()
        })
    }

    /// Puts a store after the others of its block, unless that closes a cycle.
    fn append(&mut self, class: u8, block: usize) -> bool {
        let front = self.fronts[block];
        if front & of_class(class) != 0 {
            return false;
        }
        let columns = self.behind.iter_mut().chain(self.fronts.iter_mut());
        for column in columns.filter(|column| **column & of_class(class) != 0) {
            *column = (*column | front) & !of_class(class);
        }
        self.fronts[block] = self.behind[usize::from(class)];
        self.pending &= !of_class(class);
        true
    }
}
