//! The observer and checker of an exploration, as bytes.
//!
//! A state is packed bit by bit: what each location holds, which blocks have been stored to, and
//! the rows of the obligations, if there are any. Classes are numbered by the first location that
//! holds them, so that equal situations are equal bytes. Rows come last and are packed for the
//! number of classes that there are: a state is mostly much shorter than the fixed width, and the
//! rest is zeros.

use crate::observer::few::Few;
use crate::observer::obligations::{Class, Columns, Contents, MAX_CLASSES, Obligations};
use crate::tracking::{Companion, Effect, Rejected, Renaming, Shape};

/// A protocol is too large for a [`Witness`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{procs} processors and {blocks} blocks are too many: twice the blocks and the processors may be at most {limit}"
)]
pub struct WitnessError {
    /// How many processors there are.
    pub procs: u32,
    /// How many blocks there are.
    pub blocks: u32,
    /// How many columns there may be for them.
    pub limit: u32,
}

/// Runs beside a protocol and accepts the runs whose constraint graph is acyclic.
#[derive(Clone, Debug)]
pub struct Witness {
    columns: Columns,
    locations: usize,
    serializes: bool,
    homes: Vec<Option<u32>>,
}

/// Numbers in front of those that name a class or a block.
const NOTHING: u32 = 0;
const INITIAL: u32 = 1;
const BLOCKS: u32 = 2;

impl Witness {
    /// Makes a witness for a protocol.
    pub fn new(shape: Shape) -> Result<Self, WitnessError> {
        let Shape { procs, blocks, locations, serializes } = shape;
        let limit = u128::BITS - 2 * MAX_CLASSES as u32;
        let fits = procs <= limit && blocks <= limit && procs + 2 * blocks <= limit;
        if !fits {
            return Err(WitnessError { procs, blocks, limit });
        }
        let columns = Columns { procs: procs as u8, blocks: blocks as u8 };
        let locations = locations as usize;
        Ok(Witness { columns, locations, serializes, homes: vec![None; locations] })
    }

    /// Says for each location of which block the initial value is that a start state puts there.
    ///
    /// Without that it counts as the initial value of whichever block is loaded from it, which takes
    /// more states.
    #[must_use]
    pub fn with_homes(mut self, homes: &[Option<u32>]) -> Self {
        self.homes.clear();
        self.homes.extend_from_slice(homes);
        self.homes.resize(self.locations, None);
        self
    }

    /// Counts the bits that a state really uses.
    pub fn bits_used(&self, state: &[u8]) -> usize {
        let situation = self.decode(state);
        let classes = situation.classes.len();
        let firsts = if situation.contents.contains(&Contents::Initial) {
            situation.stored.iter().filter(|&&stored| stored).count()
        } else {
            0
        };
        self.bits(classes, firsts)
    }

    fn bits(&self, classes: usize, firsts: usize) -> usize {
        let blocks = usize::from(self.columns.blocks);
        let heads = self.locations * self.tag_bits() as usize + blocks;
        let kinds = classes * (self.block_bits() as usize + usize::from(self.serializes));
        heads + kinds + (classes + firsts) * self.row_bits(classes)
    }

    fn row_bits(&self, classes: usize) -> usize {
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

    fn encode(&self, situation: &Obligations, state: &mut [u8]) {
        let mut names: Few<u8, MAX_CLASSES> = Few::new();
        for contents in &situation.contents {
            if let Contents::Class(class) = *contents
                && !names.contains(&class)
            {
                names.push(class);
            }
        }
        let mut bits = Bits { bytes: state, at: 0 };
        let blocks = u32::from(self.columns.blocks);
        for contents in &situation.contents {
            let tag = match *contents {
                Contents::Nothing => NOTHING,
                Contents::Initial => INITIAL,
                Contents::Current(block) => BLOCKS + u32::from(block),
                Contents::Class(class) => {
                    let name = names.iter().position(|&c| c == class).expect("it was named");
                    BLOCKS + blocks + name as u32
                }
            };
            bits.push(tag.into(), self.tag_bits());
        }
        situation.stored.iter().for_each(|&stored| bits.push(stored.into(), 1));
        for &name in names.iter() {
            let Class { block, pending } =
                situation.classes[usize::from(name)].expect("a class that is held");
            bits.push(block.into(), self.block_bits());
            if self.serializes {
                bits.push(pending.into(), 1);
            }
        }
        let fixed = self.columns.count(0) as u32;
        let width = self.row_bits(names.len()) as u32;
        let mut push_row = |row: u128| {
            let mut packed = row & ((1 << fixed) - 1);
            let mut at = fixed;
            for &name in names.iter() {
                packed |= (row >> self.columns.own(name) & 1) << at;
                at += 1;
            }
            if self.serializes {
                for &name in names.iter() {
                    packed |= (row >> self.columns.readers(name) & 1) << at;
                    at += 1;
                }
            }
            bits.push(packed, width);
        };
        names.iter().for_each(|&name| push_row(situation.rows[usize::from(name)]));
        if situation.contents.contains(&Contents::Initial) {
            let firsts = situation.stored.iter().zip(situation.first_rows.iter());
            firsts.filter(|(stored, _)| **stored).for_each(|(_, &row)| push_row(row));
        }
    }

    fn decode(&self, state: &[u8]) -> Obligations {
        let mut bits = Reader { bytes: state, at: 0 };
        let mut situation = Obligations::new(self.columns, self.locations, self.serializes);
        let blocks = u32::from(self.columns.blocks);
        let mut classes = 0;
        for contents in &mut situation.contents {
            *contents = match bits.take(self.tag_bits()) as u32 {
                NOTHING => Contents::Nothing,
                INITIAL => Contents::Initial,
                tag if tag < BLOCKS + blocks => Contents::Current((tag - BLOCKS) as u8),
                tag => {
                    let class = tag - BLOCKS - blocks;
                    classes = classes.max(class + 1);
                    Contents::Class(class as u8)
                }
            };
        }
        situation.stored.iter_mut().for_each(|stored| *stored = bits.take(1) == 1);
        for _ in 0..classes {
            let block = bits.take(self.block_bits()) as u8;
            let pending = self.serializes && bits.take(1) == 1;
            situation.classes.push(Some(Class { block, pending }));
        }
        let fixed = self.columns.count(0) as u32;
        let width = self.row_bits(classes as usize) as u32;
        let mut take_row = || {
            let packed = bits.take(width);
            let mut row = packed & ((1 << fixed) - 1);
            for class in 0..classes {
                row |= (packed >> (fixed + class) & 1) << self.columns.own(class as u8);
            }
            if self.serializes {
                for class in 0..classes {
                    let at = fixed + classes + class;
                    row |= (packed >> at & 1) << self.columns.readers(class as u8);
                }
            }
            row
        };
        (0..classes).for_each(|_| situation.rows.push(take_row()));
        if situation.contents.contains(&Contents::Initial) {
            for (stored, row) in situation.stored.iter().zip(situation.first_rows.iter_mut()) {
                if *stored {
                    *row = take_row();
                }
            }
        }
        situation
    }
}

impl Companion for Witness {
    fn width(&self) -> usize {
        self.bits(self.max_classes(), usize::from(self.columns.blocks)).div_ceil(8)
    }

    fn start(&self, effect: &Effect, state: &mut [u8]) -> Result<(), Rejected> {
        let mut situation = Obligations::new(self.columns, self.locations, self.serializes);
        situation.step(effect).map_err(|_| Rejected)?;
        for (location, home) in self.homes.iter().enumerate() {
            if let Some(block) = *home {
                situation.set_initial(location, block as u8);
            }
        }
        self.encode(&situation, state);
        Ok(())
    }

    fn step(&self, before: &[u8], effect: &Effect, after: &mut [u8]) -> Result<(), Rejected> {
        if effect.is_silent() {
            after.copy_from_slice(before);
            return Ok(());
        }
        let mut situation = self.decode(before);
        situation.step(effect).map_err(|_| Rejected)?;
        self.encode(&situation, after);
        Ok(())
    }

    fn rename(&self, state: &[u8], renaming: &Renaming, renamed: &mut [u8]) {
        let old = self.decode(state);
        let mut new = old.clone();
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
        let row = |row: u128| {
            let classes = row >> columns.count(0) << columns.count(0);
            let moved = |from: u32, to: u32| (row >> from & 1) << to;
            let procs = (0..columns.procs).map(|p| {
                let to = renaming.procs[usize::from(p)] as u8;
                moved(columns.last(p), columns.last(to))
            });
            let blocks = (0..columns.blocks).map(|b| {
                let to = block(b);
                moved(columns.tail(b), columns.tail(to))
                    | moved(columns.front(b), columns.front(to))
            });
            procs.chain(blocks).fold(classes, |all, bit| all | bit)
        };
        new.rows.iter_mut().for_each(|r| *r = row(*r));
        for (b, &to) in (0..).zip(&renaming.blocks) {
            new.stored[to as usize] = old.stored[b];
            new.first_rows[to as usize] = row(old.first_rows[b]);
        }
        self.encode(&new, renamed);
    }
}

/// Gives how many bits tell so many things apart.
fn bits_for(things: u32) -> u32 {
    things.max(1).next_power_of_two().trailing_zeros()
}

struct Bits<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Bits<'_> {
    /// Appends the lowest bits of a number; the bytes were zeros.
    fn push(&mut self, number: u128, count: u32) {
        let offset = self.at % 8;
        let from = self.at / 8;
        self.at += count as usize;
        let to = self.at.div_ceil(8);
        // What does not fit into 128 bits together with the offset goes into one more byte.
        let low = (number << offset).to_le_bytes();
        for (byte, &bits) in self.bytes[from..to].iter_mut().zip(&low) {
            *byte |= bits;
        }
        if to - from > 16 {
            self.bytes[to - 1] |= (number >> (128 - offset)) as u8;
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, count: u32) -> u128 {
        let offset = self.at % 8;
        let from = self.at / 8;
        self.at += count as usize;
        let to = self.at.div_ceil(8);
        let mut low = [0; 16];
        for (byte, &bits) in low.iter_mut().zip(&self.bytes[from..to]) {
            *byte = bits;
        }
        let mut number = u128::from_le_bytes(low) >> offset;
        if to - from > 16 {
            number |= u128::from(self.bytes[to - 1]) << (128 - offset);
        }
        if count < 128 { number & ((1 << count) - 1) } else { number }
    }
}
