//! Tracking: the loads, stores and copies that a rule of a protocol performs.
//!
//! A protocol has L storage *locations*: the parts of its state that have the data type, at any
//! place in the state. A location holds the value of some store, an initial value, or nothing; the
//! value itself does not matter. When a rule fires, its [`Effect`] describes what happened to the
//! locations, like the tracking labels of Condon and Hu (section 4.1): the source of each
//! location's new contents, and the operations of the trace that the rule performs.
//!
//! A [`Companion`] runs next to the protocol: an observer with its checker. To the exploration, a
//! companion's state is a sequence of bytes. The exploration stores these bytes with the protocol's
//! state, passes every effect to the companion, and asks it to rename processors, blocks and
//! locations.

/// Source of the contents of a location.
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
    /// No source: the location is undefined or cleared.
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
        /// The loaded contents: those of a location before the rule fired, or the value of a store
        /// of the same rule.
        from: Source,
    },
    /// A processor stores a new value to a block; [`Effect::sources`] determines which locations
    /// get it.
    Store {
        /// The processor.
        proc: u32,
        /// The block.
        block: u32,
    },
    /// The store whose value is read here is the next one of its block in the store order.
    ///
    /// In a protocol without such operations, the store order is the order in which stores happen.
    Serialize {
        /// The block.
        block: u32,
        /// The store: the one whose value a location held before the rule fired, or a store of the
        /// same rule.
        from: Source,
    },
}

/// Effect of a rule on the locations, which changes all of them simultaneously.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Effect {
    /// Operations, in order.
    pub operations: Vec<Operation>,
    /// Source of each location's contents; copies are simultaneous.
    pub sources: Vec<Source>,
}

impl Effect {
    /// Checks whether a companion can observe nothing.
    pub fn is_silent(&self) -> bool {
        self.operations.is_empty() && self.copies_nothing()
    }

    /// Checks whether every location keeps its contents.
    pub fn copies_nothing(&self) -> bool {
        self.sources.iter().zip(0..).all(|(&source, at)| source == Source::Location(at))
    }
}

/// Numbers for which a companion is built.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// Number of processors.
    pub procs: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Number of locations.
    pub locations: u32,
    /// Whether [`Operation::Serialize`] determines the store order, instead of time.
    pub serializes: bool,
}

/// New indices of processors, blocks and locations, by their old indices.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Renaming {
    /// New indices of the processors.
    pub procs: Vec<u32>,
    /// New indices of the blocks.
    pub blocks: Vec<u32>,
    /// New indices of the locations.
    pub locations: Vec<u32>,
}

/// The error that a companion does not allow an effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rejected;

/// An observer that runs next to a protocol and sees each of its effects.
///
/// States are bytes of a fixed width. Equivalent states must have equal bytes, or the exploration
/// does not end; whether a state is accepted is decided by the step that leads to it. To learn more
/// about a rejection, pass the effects of the run that was found to a separate companion.
pub trait Companion: Sync {
    /// Returns the number of bytes of a state.
    fn width(&self) -> usize;

    /// Writes the state after a start state of the protocol; `state` is all zeros.
    fn start(&self, effect: &Effect, state: &mut [u8]) -> Result<(), Rejected>;

    /// Writes the state after the effect of a rule; `after` is all zeros.
    fn step(&self, before: &[u8], effect: &Effect, after: &mut [u8]) -> Result<(), Rejected>;

    /// Writes the same state with renamed indices; `renamed` is all zeros.
    fn rename(&self, state: &[u8], renaming: &Renaming, renamed: &mut [u8]);

    /// Returns a follower, if computing many steps from one state is faster with one.
    fn follower(&self) -> Option<Box<dyn Follower + '_>> {
        None
    }
}

/// A companion with its own memory for the current state; each thread has its own.
pub trait Follower: Send {
    /// Writes the state after a start state of the protocol; `state` is all zeros.
    fn start(&mut self, effect: &Effect, state: &mut [u8]) -> Result<(), Rejected>;

    /// Loads a state, from which steps are computed one by one.
    fn load(&mut self, state: &[u8]);

    /// Writes the state after the effect of a rule on the loaded state; `after` is all zeros.
    fn step(&mut self, effect: &Effect, after: &mut [u8]) -> Result<(), Rejected>;

    /// Writes the state after the last step since loading, or the loaded state if there was none,
    /// with renamed indices; `renamed` is all zeros.
    fn rename(&mut self, renaming: &Renaming, renamed: &mut [u8]);
}

/// A follower for a companion that has no follower of its own.
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
