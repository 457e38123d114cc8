//! Tracking: which loads, stores and copies a rule of a protocol performs.
//!
//! A protocol has L storage *locations*: the parts of its state that have the data type, wherever
//! they sit. A location holds the value of some store, an initial value, or nothing; the value
//! itself does not matter. When a rule fires, its [`Effect`] says what happened to the locations,
//! as the tracking labels of Condon and Hu (section 4.1) do: where each location's new contents
//! come from, and which operations of the trace the rule performs.
//!
//! A [`Companion`] runs beside the protocol: an observer with its checker. Its state is bytes to
//! the exploration, which stores it with the protocol's state, hands it every effect, and asks it
//! to follow when processors, blocks and locations are renamed.

/// Where the contents of a location come from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Source {
    /// From the location with this index, as it was *before* the rule fired; a location that the
    /// rule does not touch comes from itself.
    Location(u32),
    /// From the store with this index among the effect's operations.
    Store(u32),
    /// An initial value; only in the effect of a start state.
    Initial {
        /// Number of the value: two locations of a start state hold the same value if and only if
        /// their numbers are equal. Numbers count from 0 in the order of the locations.
        value: u32,
    },
    /// From nowhere: undefined, or cleared.
    Nothing,
}

/// An operation of the trace, or a step of the store order.
///
/// Processors and blocks count from 0. Operations happen in the order of the list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// A processor loads a block from a location.
    Load {
        /// The processor.
        proc: u32,
        /// The block.
        block: u32,
        /// What is read: a location as it was before the rule fired, or a store of the same rule.
        from: Source,
    },
    /// A processor stores a new value to a block; [`Effect::sources`] says which locations get it.
    Store {
        /// The processor.
        proc: u32,
        /// The block.
        block: u32,
    },
    /// The store whose value is read here is the next of its block in the store order.
    ///
    /// A protocol that has none of these orders its stores as they happen.
    Serialize {
        /// The block.
        block: u32,
        /// Which store is meant: what a location held before the rule fired, or a store of the
        /// same rule.
        from: Source,
    },
}

/// What a rule did to the locations, all of it at once.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Effect {
    /// The operations, in order.
    pub operations: Vec<Operation>,
    /// For each location where its contents come from; copies are simultaneous.
    pub sources: Vec<Source>,
}

impl Effect {
    /// Checks whether nothing happened that a companion could see.
    pub fn is_silent(&self) -> bool {
        self.operations.is_empty() && self.copies_nothing()
    }

    /// Checks whether every location holds what it held before.
    pub fn copies_nothing(&self) -> bool {
        self.sources.iter().zip(0..).all(|(&source, at)| source == Source::Location(at))
    }
}

/// The numbers that a companion is built for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// How many processors there are.
    pub procs: u32,
    /// How many blocks there are.
    pub blocks: u32,
    /// How many locations there are.
    pub locations: u32,
    /// Whether the store order is given by [`Operation::Serialize`] instead of by time.
    pub serializes: bool,
}

/// New names for processors, blocks and locations: for each old index the new one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Renaming {
    /// New indices of the processors.
    pub procs: Vec<u32>,
    /// New indices of the blocks.
    pub blocks: Vec<u32>,
    /// New indices of the locations.
    pub locations: Vec<u32>,
}

/// A companion found that what happened is not allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rejected;

/// What runs beside a protocol and sees each of its effects.
///
/// States are bytes of a fixed width. Equal situations must have equal bytes, or the exploration
/// does not end; whether a state accepts is decided on the step that leads to it. Who wants to know
/// more of a rejection feeds the effects of the run that was found to a companion of its own.
pub trait Companion: Sync {
    /// Returns how many bytes a state has.
    fn width(&self) -> usize;

    /// Writes the state after a start state of the protocol; `state` is all zeros.
    fn start(&self, effect: &Effect, state: &mut [u8]) -> Result<(), Rejected>;

    /// Follows what a rule did; `after` is all zeros.
    fn step(&self, before: &[u8], effect: &Effect, after: &mut [u8]) -> Result<(), Rejected>;

    /// Writes the same state under other names; `renamed` is all zeros.
    fn rename(&self, state: &[u8], renaming: &Renaming, renamed: &mut [u8]);

    /// Returns what computes many steps from one state, if that is better done at once.
    fn follower(&self) -> Option<Box<dyn Follower + '_>> {
        None
    }
}

/// A companion that keeps the state it is in, with memory of its own; one a thread.
pub trait Follower: Send {
    /// Writes the state after a start state of the protocol; `state` is all zeros.
    fn start(&mut self, effect: &Effect, state: &mut [u8]) -> Result<(), Rejected>;

    /// Takes up a state, from which steps are computed one by one.
    fn load(&mut self, state: &[u8]);

    /// Goes on from the state that was taken up by what a rule did; `after` is all zeros.
    fn step(&mut self, effect: &Effect, after: &mut [u8]) -> Result<(), Rejected>;

    /// Writes the state after the last step, or the one that was taken up if there was none since,
    /// under other names; `renamed` is all zeros.
    fn rename(&mut self, renaming: &Renaming, renamed: &mut [u8]);
}

/// Follows a companion that has no follower of its own.
pub(crate) struct ByBytes<'a> {
    companion: &'a dyn Companion,
    loaded: Vec<u8>,
    reached: Vec<u8>,
}

impl<'a> ByBytes<'a> {
    pub(crate) fn new(companion: &'a dyn Companion) -> Self {
        let nothing = vec![0; companion.width()];
        ByBytes { companion, loaded: nothing.clone(), reached: nothing }
    }
}

impl Follower for ByBytes<'_> {
    fn start(&mut self, effect: &Effect, state: &mut [u8]) -> Result<(), Rejected> {
        self.companion.start(effect, state)?;
        self.reached.copy_from_slice(state);
        Ok(())
    }

    fn load(&mut self, state: &[u8]) {
        self.loaded.copy_from_slice(state);
        self.reached.copy_from_slice(state);
    }

    fn step(&mut self, effect: &Effect, after: &mut [u8]) -> Result<(), Rejected> {
        if effect.is_silent() {
            after.copy_from_slice(&self.loaded);
        } else {
            self.companion.step(&self.loaded, effect, after)?;
        }
        self.reached.copy_from_slice(after);
        Ok(())
    }

    fn rename(&mut self, renaming: &Renaming, renamed: &mut [u8]) {
        self.companion.rename(&self.reached, renaming, renamed);
    }
}
