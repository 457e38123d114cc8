//! The observer and checker of an exploration, encoded as bytes.
//!
//! A state is packed bit by bit: the contents of each location, the blocks that have been stored
//! to, and the columns of the matrix of obligations, if there are any. Classes are numbered by the
//! first location that holds them, so that equal states have equal bytes. Columns come last and are
//! packed for the current number of classes: a state is usually much shorter than the fixed width,
//! and the rest is zeros.

use crate::observer::few::Few;
use crate::observer::initials::InitialValues;
use crate::observer::obligations::{
    Class, Columns, Contents, MAX_CLASSES, MAX_COLUMNS, Obligations, Reached, of_first,
};
use crate::tracking::{Companion, Effect, Follower, Rejected, Renaming, Shape};

/// The error that a protocol is too large for a [`Witness`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{procs} processors and {blocks} blocks are too many: processors plus twice the blocks may be at most {limit}"
)]
pub struct WitnessError {
    /// Number of processors.
    pub procs: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Largest number of columns for processors and blocks.
    pub limit: u32,
}

/// A companion that accepts the runs whose constraint graph is acyclic.
#[derive(Clone, Debug)]
pub struct Witness {
    columns: Columns,
    locations: usize,
    serializes: bool,
    homes: Vec<Option<u32>>,
    /// Whether loads of different initial values are distinguished.
    tells_initials: bool,
}

/// Numbers before those that denote a class or a block.
const NOTHING: u32 = 0;
const INITIAL: u32 = 1;
const BLOCKS: u32 = 2;

impl Witness {
    /// Builds a witness for a protocol.
    pub fn new(shape: Shape) -> Result<Self, WitnessError> {
        let Shape { procs, blocks, locations, serializes } = shape;
        let limit = (MAX_COLUMNS - 2 * MAX_CLASSES) as u32;
        let fits = procs <= limit && blocks <= limit && procs + 2 * blocks <= limit;
        if !fits {
            return Err(WitnessError { procs, blocks, limit });
        }
        let columns = Columns { procs: procs as u8, blocks: blocks as u8 };
        let locations = locations as usize;
        Ok(Witness {
            columns,
            locations,
            serializes,
            homes: vec![None; locations],
            tells_initials: false,
        })
    }

    /// Sets the block whose initial value a start state puts into each location, where it is known.
    ///
    /// Otherwise the value counts as the initial value of whichever block is loaded from the
    /// location, which takes more states.
    #[must_use]
    pub fn with_homes(mut self, homes: &[Option<u32>]) -> Self {
        self.homes.clear();
        self.homes.extend_from_slice(homes);
        self.homes.resize(self.locations, None);
        self
    }

    /// Distinguishes loads of different initial values, for start states that hold several of one
    /// block.
    #[must_use]
    pub(crate) fn telling_initials_apart(mut self) -> Self {
        self.tells_initials = true;
        self
    }

    /// Builds the initial values before a start state; without locations if they are not
    /// distinguished.
    fn no_initials(&self) -> InitialValues {
        match self.tells_initials {
            true => InitialValues::new(self.locations, self.columns.blocks.into()),
            false => InitialValues::new(0, 0),
        }
    }

    /// Counts the bytes of the obligations, which come first.
    fn obligation_bytes(&self) -> usize {
        self.bits(self.max_classes(), usize::from(self.columns.blocks)).div_ceil(8)
    }

    /// Counts the bits that a state actually uses.
    pub fn bits_used(&self, state: &[u8]) -> usize {
        let mut situation = self.nothing();
        self.decode(&state[..self.obligation_bytes()], &mut situation);
        let firsts = if situation.contents.contains(&Contents::Initial) {
            situation.stored.count_ones() as usize
        } else {
            0
        };
        self.bits(situation.classes.len(), firsts)
    }

    fn bits(&self, classes: usize, firsts: usize) -> usize {
        let blocks = usize::from(self.columns.blocks);
        let heads = self.locations * self.tag_bits() as usize + blocks;
        let kinds = classes * (self.block_bits() as usize + usize::from(self.serializes));
        heads + kinds + (classes + firsts) * self.used_columns(classes)
    }

    /// Counts the columns that are used with a number of classes.
    fn used_columns(&self, classes: usize) -> usize {
        let readers = if self.serializes { 0 } else { classes };
        self.columns.count(classes) - readers
    }

    fn max_classes(&self) -> usize {
        self.locations.min(MAX_CLASSES)
    }

    fn tag_bits(&self) -> u32 {
        bits_for(BLOCKS + u32::from(self.columns.blocks) + self.max_classes() as u32)
    }

    fn block_bits(&self) -> u32 {
        bits_for(u32::from(self.columns.blocks))
    }

    /// Returns the state before a start state.
    fn nothing(&self) -> Obligations {
        Obligations::new(self.columns, self.locations, self.serializes)
    }

    fn encode(&self, situation: &Obligations, state: &mut [u8]) {
        let mut bits = Bits { bytes: state, at: 0, pending: 0, count: 0 };
        let blocks = u32::from(self.columns.blocks);
        let (tag_bits, block_bits) = (self.tag_bits(), self.block_bits());
        // Classes in the order of their names, and the name of each class.
        let mut named: Few<u8, MAX_CLASSES> = Few::new();
        let mut names = [u8::MAX; MAX_CLASSES];
        let mut is_initial = false;
        for &contents in &situation.contents {
            let tag = match contents {
                Contents::Nothing => NOTHING,
                Contents::Initial => {
                    is_initial = true;
                    INITIAL
                }
                Contents::Current(block) => BLOCKS + u32::from(block),
                Contents::Class(class) => {
                    let name = &mut names[usize::from(class)];
                    if *name == u8::MAX {
                        *name = named.len() as u8;
                        named.push(class);
                    }
                    BLOCKS + blocks + u32::from(*name)
                }
            };
            bits.push(tag.into(), tag_bits);
        }
        bits.push(situation.stored >> MAX_CLASSES, blocks);
        for &class in named.iter() {
            let Class { block, pending } =
                situation.classes[usize::from(class)].expect("a class that is held");
            bits.push(block.into(), block_bits);
            if self.serializes {
                bits.push(pending.into(), 1);
            }
        }
        if named.is_empty() && !is_initial {
            return bits.finish();
        }
        let is_renamed = (0..).zip(named.iter()).any(|(name, &class)| name != class);
        let mut push = |column: usize| {
            let reached = situation.matrix[column];
            let of_classes = match is_renamed {
                true => (0..).zip(named.iter()).fold(0, |all, (name, &class)| {
                    let all: u64 = all;
                    all | (reached >> class & 1) << name
                }),
                false => reached & ((1 << named.len()) - 1),
            };
            bits.push(of_classes, named.len() as u32);
            if is_initial {
                bits.push_where(reached >> MAX_CLASSES, situation.stored >> MAX_CLASSES);
            }
        };
        (0..self.columns.count(0)).for_each(&mut push);
        for &class in named.iter() {
            push(self.columns.own(class));
            if self.serializes {
                push(self.columns.readers(class));
            }
        }
        bits.finish();
    }

    fn decode(&self, state: &[u8], situation: &mut Obligations) {
        let mut bits = Reader { bytes: state, pending: 0, count: 0 };
        let blocks = u32::from(self.columns.blocks);
        let (tag_bits, block_bits) = (self.tag_bits(), self.block_bits());
        let mut classes = 0;
        let mut is_initial = false;
        for contents in &mut situation.contents {
            *contents = match bits.take(tag_bits) as u32 {
                NOTHING => Contents::Nothing,
                INITIAL => {
                    is_initial = true;
                    Contents::Initial
                }
                tag if tag < BLOCKS + blocks => Contents::Current((tag - BLOCKS) as u8),
                tag => {
                    let class = tag - BLOCKS - blocks;
                    classes = classes.max(class + 1);
                    Contents::Class(class as u8)
                }
            };
        }
        situation.stored = bits.take(blocks) << MAX_CLASSES;
        situation.clear_matrix();
        for _ in 0..classes {
            let block = bits.take(block_bits) as u8;
            let pending = self.serializes && bits.take(1) == 1;
            situation.push_class(Class { block, pending });
        }
        if classes == 0 && !is_initial {
            return;
        }
        let mut take = |column: &mut Reached| {
            *column = bits.take(classes);
            if is_initial {
                *column |= bits.take_where(situation.stored >> MAX_CLASSES) << MAX_CLASSES;
            }
        };
        let (fixed, of_classes) = situation.matrix.split_at_mut(self.columns.count(0));
        fixed.iter_mut().for_each(&mut take);
        for column in of_classes.chunks_exact_mut(2) {
            take(&mut column[0]);
            if self.serializes {
                take(&mut column[1]);
            }
        }
    }

    /// Writes a state with renamed processors, blocks and locations.
    fn rename_into(&self, old: &Obligations, renaming: &Renaming, new: &mut Obligations) {
        new.clone_from(old);
        let block = |block: u8| renaming.blocks[usize::from(block)] as u8;
        for (contents, &to) in old.contents.iter().zip(&renaming.locations) {
            new.contents[to as usize] = match *contents {
                Contents::Current(b) => Contents::Current(block(b)),
                other => other,
            };
        }
        for class in new.classes.iter_mut().flatten() {
            class.block = block(class.block);
        }
        let columns = self.columns;
        for (p, &to) in (0..).zip(&renaming.procs) {
            new.matrix[columns.last(to as u8)] = old.matrix[columns.last(p)];
        }
        for (b, &to) in (0..).zip(&renaming.blocks) {
            new.matrix[columns.tail(to as u8)] = old.matrix[columns.tail(b)];
            new.matrix[columns.front(to as u8)] = old.matrix[columns.front(b)];
        }
        if old.stored != 0 {
            let moved = |reached: Reached| {
                let of_classes = reached & (of_first(0) - 1);
                (0..columns.blocks).fold(of_classes, |all, b| match reached & of_first(b) {
                    0 => all,
                    _ => all | of_first(block(b)),
                })
            };
            new.stored = moved(old.stored);
            new.matrix.iter_mut().for_each(|column| *column = moved(*column));
        }
    }
}

impl Companion for Witness {
    fn width(&self) -> usize {
        self.obligation_bytes() + self.no_initials().width()
    }

    fn start(&self, effect: &Effect, state: &mut [u8]) -> Result<(), Rejected> {
        self.follow().start(effect, state)
    }

    fn step(&self, before: &[u8], effect: &Effect, after: &mut [u8]) -> Result<(), Rejected> {
        let mut follower = self.follow();
        follower.load(before);
        follower.step(effect, after)
    }

    fn rename(&self, state: &[u8], renaming: &Renaming, renamed: &mut [u8]) {
        let mut follower = self.follow();
        follower.load(state);
        follower.rename(renaming, renamed);
    }

    fn follower(&self) -> Option<Box<dyn Follower + '_>> {
        Some(Box::new(self.follow()))
    }
}

impl Witness {
    fn follow(&self) -> Following<'_> {
        let nothing = || self.nothing();
        Following {
            witness: self,
            state: vec![0; self.width()],
            loaded: nothing(),
            reached: nothing(),
            renamed: nothing(),
            has_moved: false,
            initials: self.no_initials(),
            next_initials: self.no_initials(),
            renamed_initials: self.no_initials(),
            split: self.obligation_bytes(),
        }
    }
}

/// A follower of a witness: states are decoded once, and memory is reused.
struct Following<'a> {
    witness: &'a Witness,
    /// Bytes of the loaded state.
    state: Vec<u8>,
    loaded: Obligations,
    reached: Obligations,
    renamed: Obligations,
    /// Whether the last step led to `reached`; otherwise nothing has changed.
    has_moved: bool,
    /// Initial values of the loaded state, after the last step, and renamed.
    initials: InitialValues,
    next_initials: InitialValues,
    renamed_initials: InitialValues,
    /// Number of bytes before the initial values.
    split: usize,
}

impl Following<'_> {
    /// Follows the effect on the initial values, if they are distinguished.
    fn step_initials(&mut self, effect: &Effect, after: &mut [u8]) -> Result<(), Rejected> {
        if !self.witness.tells_initials {
            return Ok(());
        }
        self.next_initials.clone_from(&self.initials);
        self.next_initials.step(effect).map_err(|_| Rejected)?;
        self.next_initials.encode(&mut after[self.split..]);
        Ok(())
    }
}

impl Follower for Following<'_> {
    fn start(&mut self, effect: &Effect, state: &mut [u8]) -> Result<(), Rejected> {
        let witness = self.witness;
        self.has_moved = true;
        self.reached = witness.nothing();
        self.reached.step(effect).map_err(|_| Rejected)?;
        for (location, home) in witness.homes.iter().enumerate() {
            if let Some(block) = *home {
                self.reached.set_initial(location, block as u8);
            }
        }
        witness.encode(&self.reached, &mut state[..self.split]);
        self.initials = witness.no_initials();
        self.step_initials(effect, state)
    }

    fn load(&mut self, state: &[u8]) {
        self.has_moved = false;
        self.state.copy_from_slice(state);
        self.witness.decode(&state[..self.split], &mut self.loaded);
        if self.witness.tells_initials {
            self.initials.decode(&state[self.split..]);
            self.next_initials.clone_from(&self.initials);
        }
    }

    fn step(&mut self, effect: &Effect, after: &mut [u8]) -> Result<(), Rejected> {
        self.step_initials(effect, after)?;
        self.has_moved = !effect.is_silent() && !self.loaded.is_idle(effect);
        if !self.has_moved {
            after[..self.split].copy_from_slice(&self.state[..self.split]);
            return Ok(());
        }
        self.reached.clone_from(&self.loaded);
        self.reached.step(effect).map_err(|_| Rejected)?;
        self.witness.encode(&self.reached, &mut after[..self.split]);
        Ok(())
    }

    fn rename(&mut self, renaming: &Renaming, renamed: &mut [u8]) {
        let old = if self.has_moved { &self.reached } else { &self.loaded };
        self.witness.rename_into(old, renaming, &mut self.renamed);
        self.witness.encode(&self.renamed, &mut renamed[..self.split]);
        if self.witness.tells_initials {
            self.next_initials.rename_into(renaming, &mut self.renamed_initials);
            self.renamed_initials.encode(&mut renamed[self.split..]);
        }
    }
}

/// Returns the number of bits that distinguish `things` values.
fn bits_for(things: u32) -> u32 {
    things.max(1).next_power_of_two().trailing_zeros()
}

/// Writes bits, eight bytes at a time.
struct Bits<'a> {
    bytes: &'a mut [u8],
    at: usize,
    /// Bits that have not been written yet, and their number.
    pending: u64,
    count: u32,
}

impl Bits<'_> {
    /// Appends the `count` lowest bits of a number, whose other bits are 0; `count` is less than
    /// 64.
    #[inline]
    fn push(&mut self, number: u64, count: u32) {
        self.pending |= number << self.count;
        self.count += count;
        if self.count >= u64::BITS {
            self.bytes[self.at..self.at + 8].copy_from_slice(&self.pending.to_le_bytes());
            self.at += 8;
            self.count -= u64::BITS;
            // The bits that did not fit; 0 if all did.
            self.pending = number.checked_shr(count - self.count).unwrap_or(0);
        }
    }

    /// Appends the bits of a number at the positions where a mask is 1.
    fn push_where(&mut self, number: u64, mut mask: u64) {
        while mask != 0 {
            self.push(number >> mask.trailing_zeros() & 1, 1);
            mask &= mask - 1;
        }
    }

    fn finish(self) {
        let left = self.count.div_ceil(8) as usize;
        self.bytes[self.at..self.at + left].copy_from_slice(&self.pending.to_le_bytes()[..left]);
    }
}

/// Reads bits, eight bytes at a time.
struct Reader<'a> {
    bytes: &'a [u8],
    /// Bits that were read but not taken, and their number.
    pending: u64,
    count: u32,
}

impl Reader<'_> {
    /// Takes `count` bits, fewer than 64.
    #[inline]
    fn take(&mut self, count: u32) -> u64 {
        let mut number = self.pending;
        if count > self.count {
            let (next, rest) = self.bytes.split_at(self.bytes.len().min(8));
            let mut word = [0; 8];
            word[..next.len()].copy_from_slice(next);
            let word = u64::from_le_bytes(word);
            self.bytes = rest;
            number |= word << self.count;
            let taken = count - self.count;
            self.pending = word >> taken;
            self.count = u64::BITS - taken;
        } else {
            self.pending = self.pending.checked_shr(count).unwrap_or(0);
            self.count -= count;
        }
        number & ((1 << count) - 1)
    }

    /// Takes a bit for each position where a mask is 1.
    fn take_where(&mut self, mut mask: u64) -> u64 {
        let mut number = 0;
        while mask != 0 {
            number |= self.take(1) << mask.trailing_zeros();
            mask &= mask - 1;
        }
        number
    }
}
