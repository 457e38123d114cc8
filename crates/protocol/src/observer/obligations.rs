//! Observer and checker in one, which keep only the nodes through which a cycle can still be
//! closed.
//!
//! A new node gets edges from earlier nodes only, which close no cycle. Only an edge to an *older*
//! node can close a cycle, and only two kinds of older nodes ever get such an edge:
//!
//! - The successor k of a store whose value is still held somewhere although k has overwritten it:
//!   a load of this stale value is forced to come before k.
//! - A store that waits to be serialized: the last store of its block, and the loads of that store,
//!   will come before it.
//!
//! These nodes are the *obligations*. There are also few nodes from which such edges start: the
//! last operation of each processor, the last store of each block and the loads of its value, and
//! the stores whose stale or pending values are held. So it suffices to know which obligation
//! reaches which of these sources: a bit matrix, transitively closed, with a row for each
//! obligation and the columns
//!
//! | column | sources that an obligation may reach |
//! | --- | --- |
//! | `last(p)` | the last operation of processor p |
//! | `tail(b)` | the last store of block b |
//! | `front(b)` | the last store of block b or a load of its value; before there is a store, a load of the initial value |
//! | `own(c)` | the stale or pending store c |
//! | `readers(c)` | a load of the pending store c |
//!
//! A new node's column is the union of the columns of its predecessors. An edge from a node to an
//! obligation k closes a cycle if k reaches the node; otherwise every obligation that reaches the
//! node reaches from then on everything that k reaches. While no stale and no pending value is
//! held, there are no rows and the matrix is empty.
//!
//! The matrix is stored by columns, one word each: reading or setting a column is one instruction,
//! and an edge to an obligation takes one instruction per column.
//!
//! Stale and pending stores are *classes*: the locations that hold the value of the same store are
//! in one class. The initial value of a block is treated as the value of a store before all others.
//! If it is not known which block's initial value a location holds, the value may be that of any
//! block: each block that has a store then has a row for its first store.

use crate::observer::few::Few;
use crate::tracking::{Effect, Operation, Source};

/// Largest number of stale and pending stores at the same time.
pub(crate) const MAX_CLASSES: usize = 40;
/// Largest number of blocks; each has its own row after those of the classes.
const MAX_BLOCKS: usize = u64::BITS as usize - MAX_CLASSES;
/// Largest number of columns.
pub(super) const MAX_COLUMNS: usize = 128;

/// Contents of a location.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Contents {
    #[default]
    Nothing,
    /// The initial value of any block.
    Initial,
    /// The value of the last store of this block, or its initial value if there is no store.
    Current(u8),
    /// The value of a stale or pending store.
    Class(u8),
}

/// A stale or pending store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Class {
    pub(super) block: u8,
    /// Whether the store is pending.
    pub(super) pending: bool,
}

/// Reasons why a run is rejected; [`Failure`](super::Failure) has more details.
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

/// Positions of the columns.
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

    /// Counts the columns for a number of classes.
    pub(super) fn count(self, classes: usize) -> usize {
        usize::from(self.procs) + 2 * usize::from(self.blocks) + 2 * classes
    }
}

/// Obligations that reach a node: one bit per class, then one for each block's first store.
pub(super) type Reached = u64;

/// Returns the bit of a class.
fn of_class(class: u8) -> Reached {
    1 << class
}

/// Returns the bit of the first store of a block.
pub(super) fn of_first(block: u8) -> Reached {
    1 << (MAX_CLASSES + usize::from(block))
}

/// Contents of the locations, and the obligations that reach each source.
#[derive(Debug)]
pub(super) struct Obligations {
    pub(super) columns: Columns,
    pub(super) serializes: bool,
    pub(super) contents: Vec<Contents>,
    pub(super) classes: Few<Option<Class>, MAX_CLASSES>,
    /// Obligations that reach each column. The obligation of a stale class is its successor, that
    /// of a pending class is the store itself, and that of a block is its first store while an
    /// initial value of any block is held.
    pub(super) matrix: Few<Reached, MAX_COLUMNS>,
    /// Bits of the blocks that have a store in their order, while an initial value of any block is
    /// held.
    pub(super) stored: Reached,
    /// The value that each operation of a step stored; a store turns stale here as in the
    /// locations.
    performed: Vec<Contents>,
    /// Contents of the locations before a step.
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

    /// Copies the parts in use, reusing memory.
    fn clone_from(&mut self, other: &Self) {
        (self.columns, self.serializes) = (other.columns, other.serializes);
        self.contents.clone_from(&other.contents);
        self.classes.copy_from(&other.classes);
        self.matrix.copy_from(&other.matrix);
        self.stored = other.stored;
    }
}

impl Obligations {
    /// Builds the state before a start state.
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

    /// Sets the block whose initial value a location holds.
    pub(super) fn set_initial(&mut self, location: usize, block: u8) {
        if self.contents[location] == Contents::Initial {
            self.contents[location] = Contents::Current(block);
        }
    }

    /// Checks whether the operations of an effect that copies nothing are allowed and change
    /// nothing: they are loads of current values while there are no obligations.
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

    /// Removes all classes and the matrix.
    pub(super) fn clear_matrix(&mut self) {
        self.classes.clear();
        self.matrix.clear();
        (0..self.columns.count(0)).for_each(|_| self.matrix.push(0));
    }

    /// Follows the effect of a rule or a start state.
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
        // An effect with only copies can only remove constraints.
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

    /// Performs a store, and returns the contents of locations that hold its value.
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
        // The new store has no outgoing edges, so the rows whose obligation it is reach only it.
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
        // The store comes after the last store of its block and after the loads of that one.
        self.precede(self.matrix[columns.front(block)], of_class(class))?;
        let overwritten = self.overwrite(block)?;
        // The store is the obligation of the rows `overwritten`, so they reach what its own row
        // reaches.
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

    /// Makes the last store of a block, or its initial value, stale because of a next store.
    /// Returns the rows whose obligation is the next store.
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

    /// Adds an edge to an obligation from a node that the obligations `reached` reach.
    fn precede(&mut self, reached: Reached, obligation: Reached) -> Result<(), Fault> {
        if reached & obligation != 0 {
            return Err(Fault::Cycle);
        }
        for column in self.matrix.iter_mut().filter(|column| **column & obligation != 0) {
            *column |= reached;
        }
        Ok(())
    }

    /// Drops the state on which nothing can depend any more.
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

    /// Checks whether the pending stores have an order that closes no cycle.
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

/// Pending stores that are to be put after the others in some order. No load follows, so stores
/// that are overwritten do not matter any more.
#[derive(Clone, Copy)]
struct Ending<'a> {
    pending: Reached,
    classes: &'a [Option<Class>],
    /// Obligations that reach the front of each block.
    fronts: Few<Reached, MAX_BLOCKS>,
    /// Obligations that reach each pending store or a load of its value.
    behind: Few<Reached, MAX_CLASSES>,
}

impl Ending<'_> {
    fn is_possible(&self) -> bool {
        if self.pending == 0 {
            return true;
        }
        let block_of = |class: u32| self.classes[class as usize].map(|class| class.block);
        // The orders of stores to different blocks are independent, so the blocks are completed one
        // by one.
        let block = block_of(self.pending.trailing_zeros());
        let pending = (0..self.classes.len() as u32).filter(|class| self.pending >> class & 1 == 1);
        pending.filter(|&class| block_of(class) == block).any(|class| {
            let mut next = *self;
            next.append(class as u8, usize::from(block.unwrap_or(0))) && next.is_possible()
        })
    }

    /// Puts a store after the others of its block, and returns whether this closes no cycle.
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
