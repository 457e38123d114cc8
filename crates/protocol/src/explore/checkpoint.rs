//! Checkpoints: the state of a search as bytes, from which it can be continued.
//!
//! A checkpoint is a sequence of 64-bit little-endian words: the identity of the description and
//! the options, the progress of the search, the tables of the visited states without their indices,
//! and a checksum. It takes as many bytes as the states in memory. It is read in bounded pieces, so
//! a damaged length is harmless. If the search is continued with another number of threads, the
//! states are redistributed.

use std::io::{self, Read, Write};
use std::time::Duration;

use crate::explore::expand::Product;
use crate::explore::outcome::{Options, Progress};
use crate::explore::search::BreadthFirstSearch;
use crate::explore::store::{Shard, Storage, Width, hash};
use crate::machine::stepper::Serialization;
use crate::murphi::TypeId;
use crate::system::System;

/// First word of every checkpoint.
const MAGIC: u64 = u64::from_le_bytes(*b"cnstyck3");

/// Exclusive upper bound of the number of words of a state.
const MAX_STATE_WORDS: u64 = 1 << 32;

/// The saved state of a search.
#[derive(Debug)]
pub struct Checkpoint {
    identity: Identity,
    pub(crate) symmetric: Vec<TypeId>,
    pub(crate) progress: Progress,
    pub(crate) shards: Vec<Shard>,
    pub(crate) levels: Vec<Vec<u32>>,
    /// For each shard, the first state of the current level that has not been expanded.
    pub(crate) at: Vec<u32>,
}

/// The description and the options to which a checkpoint belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Identity {
    /// Hash of the version that wrote the checkpoint, because other versions may lay out states
    /// differently.
    version: u64,
    description: u64,
    width: Width,
    is_tracked: bool,
    serialization: Serialization,
    has_symmetry: bool,
    finds_deadlock: bool,
    is_compact: bool,
}

/// Reasons why a checkpoint cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Reading failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The bytes are not a checkpoint.
    #[error("this is not a checkpoint")]
    Foreign,
    /// The checksum is wrong.
    #[error("the checkpoint is damaged")]
    Damaged,
}

/// Reasons why a checkpoint does not fit the search that would continue it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Mismatch {
    /// Another version wrote the checkpoint.
    #[error("the checkpoint was written by another version of this program")]
    Version,
    /// The checkpoint belongs to another description.
    #[error("the checkpoint belongs to another description")]
    Description,
    /// The checkpoint was made with other options.
    #[error("the checkpoint was made {was}, but this search runs {is}")]
    Options {
        /// Option of the checkpoint.
        was: &'static str,
        /// Option of this search.
        is: &'static str,
    },
}

impl Identity {
    fn new(product: &Product<'_>, options: &Options) -> Self {
        Identity {
            version: hash_text(env!("CARGO_PKG_VERSION")),
            description: describe(product.system),
            width: product.width(),
            is_tracked: product.companion.is_some(),
            serialization: product.serialization,
            has_symmetry: options.symmetry,
            finds_deadlock: options.deadlock,
            is_compact: options.compaction,
        }
    }

    fn storage(&self) -> Storage {
        if self.is_compact { Storage::Hashes } else { Storage::States }
    }

    fn flags(&self) -> [bool; 4] {
        [self.is_tracked, self.has_symmetry, self.finds_deadlock, self.is_compact]
    }
}

impl Checkpoint {
    /// Checks whether bytes are the start of a checkpoint of this or another version.
    pub fn is_start(bytes: &[u8]) -> bool {
        bytes.starts_with(b"cnstyck")
    }

    /// Reads a checkpoint.
    pub fn read(reader: &mut dyn Read) -> Result<Self, CheckpointError> {
        let mut source = WordReader { reader, sum: 0 };
        match source.word() {
            Ok(MAGIC) => {}
            Err(CheckpointError::Io(error)) => return Err(error.into()),
            _ => return Err(CheckpointError::Foreign),
        }
        let version = source.word()?;
        let description = source.word()?;
        let (words, head) = (source.word()?, source.word()?);
        if words == 0 || words > MAX_STATE_WORDS || head == 0 || head > words {
            return Err(CheckpointError::Damaged);
        }
        let width = Width { words: words as usize, head: head as usize };
        let serialization = match source.word()? {
            0 => Serialization::Inferred,
            _ => Serialization::MarksOnly,
        };
        let mut flag = || -> Result<bool, CheckpointError> { Ok(source.word()? == 1) };
        let identity = Identity {
            version,
            description,
            width,
            serialization,
            is_tracked: flag()?,
            has_symmetry: flag()?,
            finds_deadlock: flag()?,
            is_compact: flag()?,
        };
        let symmetric = source.list()?.into_iter().map(|id| TypeId(id as u32)).collect();
        let mut progress = Progress { fired: source.word()?, ..Progress::default() };
        (progress.loads, progress.stores) = (source.word()?, source.word()?);
        progress.depth = source.word()? as u32;
        progress.elapsed = Duration::from_millis(source.word()?);
        let mut shards = Vec::new();
        for _ in 0..source.word()? {
            shards.push(Shard::read(width, identity.storage(), &mut source)?);
        }
        let mut levels = Vec::new();
        for _ in 0..source.word()? {
            levels.push(source.numbers()?);
        }
        let at = source.numbers()?;
        source.end()?;
        let checkpoint = Checkpoint { identity, symmetric, progress, shards, levels, at };
        if checkpoint.is_sound() { Ok(checkpoint) } else { Err(CheckpointError::Damaged) }
    }

    /// Returns which stores took effect immediately in the search.
    pub(crate) fn serialization(&self) -> Serialization {
        self.identity.serialization
    }

    /// Checks whether all state numbers are in range and ascending.
    fn is_sound(&self) -> bool {
        let count = self.shards.len();
        let lens: Vec<u32> = self.shards.iter().map(|shard| shard.len() as u32).collect();
        let is_row = |row: &&Vec<u32>| row.len() == count;
        let rows: Vec<&Vec<u32>> = self.levels.iter().chain([&lens]).filter(is_row).collect();
        let ascend = |low: &[u32], high: &[u32]| low.iter().zip(high).all(|(a, b)| a <= b);
        let [.., start, end, _] = &rows[..] else { return false };
        count > 0
            && rows.len() == self.levels.len() + 1
            && rows.windows(2).all(|pair| ascend(pair[0], pair[1]))
            && self.at.len() == count
            && ascend(start, &self.at)
            && ascend(&self.at, end)
            && self.shards.iter().zip(&self.at).all(|(shard, &at)| shard.is_sound(at))
    }

    /// Returns an error if the checkpoint does not fit a search.
    pub(crate) fn fits(&self, product: &Product<'_>, options: &Options) -> Result<(), Mismatch> {
        let wanted = Identity::new(product, options);
        if self.identity.version != wanted.version {
            return Err(Mismatch::Version);
        }
        if self.identity.description != wanted.description {
            return Err(Mismatch::Description);
        }
        let names = [
            ("without tracking", "with observer and checker"),
            ("without symmetry", "with symmetry"),
            ("without a check for deadlocks", "with a check for deadlocks"),
            ("with exact states", "with hash compaction"),
        ];
        let flags = self.identity.flags().into_iter().zip(wanted.flags());
        for ((was, is), (no, yes)) in flags.zip(names) {
            if was != is {
                let name = |flag: bool| if flag { yes } else { no };
                return Err(Mismatch::Options { was: name(was), is: name(is) });
            }
        }
        if self.identity.width != wanted.width {
            return Err(Mismatch::Version);
        }
        Ok(())
    }

    /// Redistributes the states over another number of shards.
    pub(crate) fn with_shards(self, count: usize) -> Self {
        if self.shards.len() == count {
            return self;
        }
        let (width, storage) = (self.identity.width, self.identity.storage());
        let mut shards: Vec<Shard> = (0..count).map(|_| Shard::new(width, storage)).collect();
        if storage == Storage::Hashes {
            Shard::redistribute(self.shards, &self.at, &mut shards);
            let at: Vec<u32> = shards.iter().map(Shard::level_start).collect();
            let ends: Vec<u32> = shards.iter().map(Shard::level_end).collect();
            return Checkpoint { shards, levels: vec![at.clone(), ends], at, ..self };
        }
        let lens: Vec<u32> = self.shards.iter().map(|shard| shard.len() as u32).collect();
        let (mut state, mut scratch) = (vec![0; width.words], Vec::new());
        // The expanded states of the current level come before the others.
        let current = self.levels.len() - 1;
        let mut ends: Vec<(&Vec<u32>, bool)> =
            self.levels[1..].iter().map(|level| (level, true)).collect();
        ends.insert(current - 1, (&self.at, false));
        ends.push((&lens, false));
        let mut levels = vec![vec![0; count]];
        let (mut at, mut from) = (Vec::new(), vec![0; self.shards.len()]);
        for (end, is_level) in ends {
            for (shard, store) in self.shards.iter().enumerate() {
                for number in from[shard]..end[shard] {
                    store.get(number, &mut state);
                    let home = super::search::shard_of(&state, count, Storage::States);
                    shards[home].insert(&state, &mut scratch);
                }
            }
            let reached: Vec<u32> = shards.iter().map(|shard| shard.len() as u32).collect();
            match is_level {
                true => levels.push(reached),
                false if at.is_empty() => at = reached,
                false => {}
            }
            from.clone_from(end);
        }
        Checkpoint { shards, levels, at, ..self }
    }
}

/// The progress of a search, and the state from which it can be continued.
#[derive(Clone, Copy)]
pub struct Snapshot<'a> {
    pub(crate) search: &'a BreadthFirstSearch<'a>,
    pub(crate) at: &'a [u32],
    pub(crate) is_last: bool,
}

impl Snapshot<'_> {
    /// Returns the progress of the search.
    pub fn progress(&self) -> &Progress {
        &self.search.progress
    }

    /// Checks whether the search ends here undecided.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Checks whether a search that continues from here would reach the same verdict. It would not
    /// if something was found in states that it would not examine again.
    pub fn is_whole(&self) -> bool {
        !self.search.has_found
    }

    /// Writes a checkpoint.
    pub fn write(&self, writer: &mut dyn Write) -> io::Result<()> {
        let BreadthFirstSearch { product, options, shards, levels, progress, .. } = self.search;
        let mut sink = WordWriter { writer, sum: 0 };
        let identity = Identity::new(product, options);
        let Width { words, head } = identity.width;
        sink.words(&[MAGIC, identity.version, identity.description, words as u64, head as u64])?;
        sink.words(&[u64::from(identity.serialization == Serialization::MarksOnly)])?;
        sink.words(&identity.flags().map(u64::from))?;
        let symmetric: Vec<u32> = product.symmetric.iter().map(|ty| ty.0).collect();
        sink.numbers(&symmetric)?;
        let millis = progress.elapsed.as_millis() as u64;
        sink.words(&[progress.fired, progress.loads, progress.stores])?;
        sink.words(&[progress.depth.into(), millis])?;
        sink.words(&[shards.len() as u64])?;
        for shard in shards {
            shard.write(&mut sink)?;
        }
        sink.words(&[levels.len() as u64])?;
        for level in levels {
            sink.numbers(level)?;
        }
        sink.numbers(self.at)?;
        sink.end()
    }
}

/// Writes words and keeps their checksum.
pub(crate) struct WordWriter<'a> {
    writer: &'a mut dyn Write,
    sum: u64,
}

impl WordWriter<'_> {
    pub(crate) fn words(&mut self, words: &[u64]) -> io::Result<()> {
        for &word in words {
            self.writer.write_all(&word.to_le_bytes())?;
            self.sum = add(self.sum, word);
        }
        Ok(())
    }

    /// Writes a list of words with its length.
    pub(crate) fn list(&mut self, words: &[u64]) -> io::Result<()> {
        self.words(&[words.len() as u64])?;
        self.words(words)
    }

    fn numbers(&mut self, numbers: &[u32]) -> io::Result<()> {
        let words: Vec<u64> = numbers.iter().map(|&number| number.into()).collect();
        self.list(&words)
    }

    fn end(&mut self) -> io::Result<()> {
        self.writer.write_all(&self.sum.to_le_bytes())
    }
}

/// Reads words and keeps their checksum.
pub(crate) struct WordReader<'a> {
    reader: &'a mut dyn Read,
    sum: u64,
}

impl WordReader<'_> {
    pub(crate) fn word(&mut self) -> Result<u64, CheckpointError> {
        let word = self.raw()?;
        self.sum = add(self.sum, word);
        Ok(word)
    }

    fn raw(&mut self) -> Result<u64, CheckpointError> {
        let mut bytes = [0; 8];
        match self.reader.read_exact(&mut bytes) {
            Ok(()) => Ok(u64::from_le_bytes(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(CheckpointError::Damaged)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a list of words with its length; memory grows only with the words that actually
    /// follow.
    pub(crate) fn list(&mut self) -> Result<Vec<u64>, CheckpointError> {
        let count = self.word()?;
        let mut words = Vec::with_capacity(count.min(1 << 16) as usize);
        for _ in 0..count {
            words.push(self.word()?);
        }
        Ok(words)
    }

    fn numbers(&mut self) -> Result<Vec<u32>, CheckpointError> {
        Ok(self.list()?.into_iter().map(|word| word as u32).collect())
    }

    /// Compares the checksum, after which nothing may follow.
    fn end(&mut self) -> Result<(), CheckpointError> {
        let sum = self.sum;
        let is_right = self.raw()? == sum;
        let mut more = [0];
        match is_right && self.reader.read(&mut more)? == 0 {
            true => Ok(()),
            false => Err(CheckpointError::Damaged),
        }
    }
}

fn add(sum: u64, word: u64) -> u64 {
    hash(sum.rotate_left(23) ^ word)
}

/// Hashes a description and the values that were given for its constants.
fn describe(system: &System) -> u64 {
    let mut constants: Vec<String> =
        system.constants.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    constants.sort();
    let text = hash_text(&system.source.text);
    constants.iter().fold(text, |sum, constant| add(sum, hash_text(constant)))
}

fn hash_text(text: &str) -> u64 {
    text.bytes().fold(text.len() as u64, |sum, byte| add(sum, byte.into()))
}
