//! The set of visited states: exact, with a few bytes per state.
//!
//! Lossless tree compression: the words of a state are interned one by one, then pairs of their
//! numbers, up to the root (Laarman, van de Pol and Weber, "Parallel Recursive State Compression
//! for Free"). States have few distinct halves, so nearly all the memory is the root's: a pair of
//! numbers, 8 bytes, and an index of 5 bytes per slot, of which at least seven eighths are filled.
//! The number of a state is its rank in the order of insertion, so the set is also the queue of the
//! search.
//!
//! Zeros are frequent, since a companion's state mostly ends in zeros. In every table except the
//! root's, the number of 0 is 0, so parts that consist of zeros need no lookup, and the words that
//! are mostly zero form their own branch at the root. The successors of a state have most words in
//! common, so each table caches its last lookup.
//!
//! The index has groups of eight slots. A slot has a tag, which is one byte of the hash, and a
//! number; the tags of a group are compared at once.

use std::io;

use crate::explore::checkpoint::{CheckpointError, WordReader, WordWriter};
use crate::explore::outcome::Options;
use crate::explore::search::shard_of_hash;

/// A set of 64-bit values, numbered in the order of their insertion.
#[derive(Debug)]
pub(crate) struct Interner {
    values: Vec<u64>,
    /// Eight tags per group; 0 is empty.
    tags: Vec<u64>,
    numbers: Vec<[u32; 8]>,
    /// Number that was returned last.
    last: u32,
}

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// Mixes the bits of a value.
#[inline]
pub(crate) fn hash(value: u64) -> u64 {
    let product = u128::from(value ^ 0x9e37_79b9_7f4a_7c15) * u128::from(0xa076_1d64_78bd_642f_u64);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Hashes the words of a state.
pub(crate) fn hash_words(words: &[u64]) -> u64 {
    words.iter().fold(0x51_7c_c1_b7, |sum, &word| hash(sum.rotate_left(23) ^ word))
}

impl Interner {
    pub(crate) fn new() -> Self {
        Interner { values: Vec::new(), tags: vec![0; 2], numbers: vec![[0; 8]; 2], last: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn get(&self, number: u32) -> u64 {
        self.values[number as usize]
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.values.capacity() * 8 + self.tags.len() * 8 + self.numbers.len() * 32) as u64
    }

    /// Builds an interner of distinct values.
    fn of(values: Vec<u64>) -> Self {
        let mut interner = Interner { values, ..Interner::new() };
        interner.index((interner.values.len() * 2 / 15 + 1).max(2));
        interner
    }

    /// Splits a hash into a group and a tag.
    #[inline]
    fn locate(&self, hash: u64) -> (usize, u64) {
        let group = ((hash >> 32) * self.tags.len() as u64) >> 32;
        (group as usize, (hash & 0xff).max(1))
    }

    /// Returns a value's number, and whether it is new.
    #[inline]
    pub(crate) fn intern(&mut self, value: u64) -> (u32, bool) {
        if self.values.get(self.last as usize) == Some(&value) {
            return (self.last, false);
        }
        let (number, is_new) = self.look_up(value);
        self.last = number;
        (number, is_new)
    }

    fn look_up(&mut self, value: u64) -> (u32, bool) {
        let (mut group, tag) = self.locate(hash(value));
        loop {
            let tags = self.tags[group];
            let mut hits = zeros(tags ^ (tag * ONES));
            while hits != 0 {
                let slot = (hits.trailing_zeros() / 8) as usize;
                let number = self.numbers[group][slot];
                if self.values[number as usize] == value {
                    return (number, false);
                }
                hits &= hits - 1;
            }
            let empty = zeros(tags);
            if empty != 0 {
                let slot = (empty.trailing_zeros() / 8) as usize;
                let number = self.values.len() as u32;
                self.tags[group] |= tag << (8 * slot);
                self.numbers[group][slot] = number;
                self.push(value);
                return (number, true);
            }
            group = if group + 1 == self.tags.len() { 0 } else { group + 1 };
        }
    }

    fn push(&mut self, value: u64) {
        if self.values.len() == self.values.capacity() {
            self.values.reserve_exact((self.values.len() / 64).max(16));
        }
        self.values.push(value);
        // The index is at most fifteen sixteenths full.
        if self.values.len() * 2 > self.tags.len() * 15 {
            self.grow();
        }
    }

    fn grow(&mut self) {
        self.index(self.tags.len() + (self.tags.len() / 16).max(2));
    }

    /// Rebuilds the index with the given number of groups.
    fn index(&mut self, groups: usize) {
        self.tags.clear();
        self.tags.resize(groups, 0);
        self.numbers.clear();
        self.numbers.reserve_exact(groups);
        self.numbers.resize(groups, [0; 8]);
        for (number, &value) in self.values.iter().enumerate() {
            let (mut group, tag) = self.locate(hash(value));
            let mut empty = zeros(self.tags[group]);
            while empty == 0 {
                group = if group + 1 == groups { 0 } else { group + 1 };
                empty = zeros(self.tags[group]);
            }
            let slot = (empty.trailing_zeros() / 8) as usize;
            self.tags[group] |= tag << (8 * slot);
            self.numbers[group][slot] = number as u32;
        }
    }
}

/// Marks the bytes that are zero by their top bits. Only the lowest mark is exact; callers check
/// the marks above it or ignore them.
#[inline]
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & TOPS
}

/// Number of words of a state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Width {
    pub(crate) words: usize,
    /// Number of words, from the first one on, that are usually not zero.
    pub(crate) head: usize,
}

/// Returns the pairs of a tree over the words of a state, children first; a pair replaces its left
/// part.
fn pairs(width: Width) -> Vec<[usize; 2]> {
    let mut pairs = Vec::new();
    let head = width.head.min(width.words);
    for mut parts in [Vec::from_iter(0..head), Vec::from_iter(head..width.words)] {
        while parts.len() > 1 {
            pairs.extend(parts.chunks_exact(2).map(|pair| [pair[0], pair[1]]));
            parts = parts.into_iter().step_by(2).collect();
        }
    }
    if 0 < head && head < width.words {
        pairs.push([0, head]);
    }
    pairs
}

/// A set of states of a fixed number of words.
#[derive(Debug)]
pub(crate) struct Store {
    width: usize,
    pairs: Vec<[usize; 2]>,
    /// Interners of the parts of each pair; the last one is the root.
    tables: Vec<Interner>,
}

impl Store {
    pub(crate) fn new(width: Width) -> Self {
        let pairs = pairs(width);
        let mut tables: Vec<Interner> = (0..=2 * pairs.len()).map(|_| Interner::new()).collect();
        let root = tables.len() - 1;
        for table in &mut tables[..root] {
            table.intern(0);
        }
        Store { width: width.words, pairs, tables }
    }

    fn write(&self, sink: &mut WordWriter<'_>) -> io::Result<()> {
        self.tables.iter().try_for_each(|table| sink.list(&table.values))
    }

    fn read(width: Width, source: &mut WordReader<'_>) -> Result<Self, CheckpointError> {
        let mut tables = Vec::new();
        // If the width is damaged, reading stops at the end of the file.
        for _ in 0..=2 * (width.words - 1) {
            tables.push(Interner::of(source.list()?));
        }
        Ok(Store { width: width.words, pairs: pairs(width), tables })
    }

    /// Checks whether every pair in the tree refers to existing numbers.
    fn is_sound(&self) -> bool {
        let inner = &self.tables[..self.tables.len() - 1];
        if inner.iter().any(|table| table.values.first() != Some(&0)) {
            return false;
        }
        // For each part, the tables that its values are pairs of, or `None` if it is a single word.
        let mut parts: Vec<Option<&[Interner]>> = vec![None; self.width];
        let is_sound = |table: &Interner, parts: Option<&[Interner]>| {
            let Some([left, right]) = parts else { return true };
            table.values.iter().all(|&value| {
                (value >> 32) < left.len() as u64 && u64::from(value as u32) < right.len() as u64
            })
        };
        for (tables, &[left, right]) in inner.chunks_exact(2).zip(&self.pairs) {
            if !is_sound(&tables[0], parts[left]) || !is_sound(&tables[1], parts[right]) {
                return false;
            }
            parts[left] = Some(tables);
        }
        is_sound(self.root(), parts[0])
    }

    pub(crate) fn len(&self) -> usize {
        self.root().len()
    }

    fn root(&self) -> &Interner {
        self.tables.last().expect("there is a root")
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.tables.iter().map(Interner::bytes).sum()
    }

    /// Adds a state; returns whether it is new.
    pub(crate) fn insert(&mut self, words: &[u64], scratch: &mut Vec<u64>) -> bool {
        scratch.clear();
        scratch.extend_from_slice(words);
        let number = |table: &mut Interner, value: u64| match value {
            0 => 0,
            value => u64::from(table.intern(value).0),
        };
        let mut tables = self.tables.chunks_exact_mut(2);
        for (tables, &[left, right]) in tables.by_ref().zip(&self.pairs) {
            let (first, second) = (scratch[left], scratch[right]);
            if first | second != 0 {
                scratch[left] =
                    number(&mut tables[0], first) << 32 | number(&mut tables[1], second);
            }
        }
        let root = self.tables.last_mut().expect("there is a root");
        root.intern(scratch[0]).1
    }

    /// Returns the state with a given number.
    pub(crate) fn get(&self, number: u32, words: &mut [u64]) {
        words[0] = self.root().get(number);
        for (tables, &[left, right]) in self.tables.chunks_exact(2).zip(&self.pairs).rev() {
            let value = words[left];
            words[left] = tables[0].get((value >> 32) as u32);
            words[right] = tables[1].get(value as u32);
        }
    }
}

/// The stored part of a state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// The whole state.
    States,
    /// A hash.
    Hashes,
}

impl Storage {
    pub(crate) fn of(options: &Options) -> Self {
        if options.compaction { Storage::Hashes } else { Storage::States }
    }
}

/// States of a thread: stored exactly, or only by their hashes.
#[derive(Debug)]
pub(crate) enum Shard {
    Exact(Store),
    Compact(Compact),
}

impl Shard {
    pub(crate) fn new(width: Width, storage: Storage) -> Self {
        match storage {
            Storage::Hashes => Shard::Compact(Compact::new(width.words)),
            Storage::States => Shard::Exact(Store::new(width)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Shard::Exact(store) => store.len(),
            Shard::Compact(compact) => compact.count,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Shard::Exact(store) => store.bytes(),
            Shard::Compact(compact) => compact.bytes(),
        }
    }

    /// Adds a state unless it is present.
    pub(crate) fn insert(&mut self, words: &[u64], scratch: &mut Vec<u64>) {
        match self {
            Shard::Exact(store) => drop(store.insert(words, scratch)),
            Shard::Compact(compact) => compact.insert(words),
        }
    }

    /// Returns the state with a given number, which must be in the current level if only hashes are
    /// stored.
    pub(crate) fn get(&self, number: u32, words: &mut [u64]) {
        match self {
            Shard::Exact(store) => store.get(number, words),
            Shard::Compact(compact) => compact.get(number, words),
        }
    }

    pub(crate) fn write(&self, sink: &mut WordWriter<'_>) -> io::Result<()> {
        match self {
            Shard::Exact(store) => store.write(sink),
            Shard::Compact(compact) => compact.write(sink),
        }
    }

    pub(crate) fn read(
        width: Width,
        storage: Storage,
        source: &mut WordReader<'_>,
    ) -> Result<Self, CheckpointError> {
        Ok(match storage {
            Storage::Hashes => Shard::Compact(Compact::read(width.words, source)?),
            Storage::States => Shard::Exact(Store::read(width, source)?),
        })
    }

    /// Checks whether the data that was read is a set of states, in which the states from a number
    /// on are stored completely.
    pub(crate) fn is_sound(&self, from: u32) -> bool {
        match self {
            Shard::Exact(store) => store.is_sound(),
            Shard::Compact(compact) => compact.is_sound(from),
        }
    }

    /// Moves states that are stored by their hashes to other shards. Complete states before `at`
    /// are already expanded, so from now on only their hashes are stored.
    pub(crate) fn redistribute(from: Vec<Shard>, at: &[u32], to: &mut [Shard]) {
        let count = to.len();
        let mut to: Vec<&mut Compact> = to
            .iter_mut()
            .filter_map(|shard| match shard {
                Shard::Compact(compact) => Some(compact),
                Shard::Exact(_) => None,
            })
            .collect();
        for (shard, &at) in from.iter().zip(at) {
            let Shard::Compact(shard) = shard else { continue };
            for &hash in shard.hashes.iter().filter(|&&hash| hash != 0) {
                to[shard_of_hash(hash, count)].add(hash);
            }
            let expanded = (at - shard.first) as usize * shard.width;
            for words in shard.level[expanded..].chunks_exact(shard.width) {
                to[shard_of_hash(hash_words(words), count)].level.extend_from_slice(words);
            }
            for words in shard.next.chunks_exact(shard.width) {
                to[shard_of_hash(hash_words(words), count)].next.extend_from_slice(words);
            }
        }
        for shard in to {
            let known = (shard.level.len() + shard.next.len()) / shard.width;
            shard.first = (shard.count - known) as u32;
        }
    }

    /// Returns the number of the first state of the current level that is stored completely.
    pub(crate) fn level_start(&self) -> u32 {
        match self {
            Shard::Exact(_) => 0,
            Shard::Compact(compact) => compact.first,
        }
    }

    /// Returns the number after the states of the current level.
    pub(crate) fn level_end(&self) -> u32 {
        match self {
            Shard::Exact(store) => store.len() as u32,
            Shard::Compact(compact) => (compact.count - compact.next.len() / compact.width) as u32,
        }
    }

    /// Proceeds to the states that were added since the last call.
    pub(crate) fn next_level(&mut self) {
        if let Shard::Compact(compact) = self {
            compact.first += (compact.level.len() / compact.width) as u32;
            compact.level = std::mem::take(&mut compact.next);
        }
    }
}

/// Hash compaction (Wolper and Leroy; Stern and Dill): stores 64 bits of each state, and stores
/// only the states of the current level and the next one completely.
///
/// Two states with the same hash are treated as one, and states that only the second one leads to
/// are missed. Among n states this happens with a probability of less than n² / 2^65.
#[derive(Debug)]
pub(crate) struct Compact {
    width: usize,
    /// Hash table with open addressing; 0 is empty.
    hashes: Vec<u64>,
    count: usize,
    /// Number of the first state of the current level.
    first: u32,
    level: Vec<u64>,
    next: Vec<u64>,
}

impl Compact {
    fn new(width: usize) -> Self {
        let hashes = vec![0; 64];
        Compact { width, hashes, count: 0, first: 0, level: Vec::new(), next: Vec::new() }
    }

    fn bytes(&self) -> u64 {
        8 * (self.hashes.len() + self.level.capacity() + self.next.capacity()) as u64
    }

    fn insert(&mut self, words: &[u64]) {
        if self.add(hash_words(words).max(1)) {
            self.next.extend_from_slice(words);
        }
    }

    /// Adds a hash; returns whether it is new.
    fn add(&mut self, hash: u64) -> bool {
        if !place(&mut self.hashes, hash) {
            return false;
        }
        self.count += 1;
        // The table is at most seven eighths full.
        if self.count * 8 > self.hashes.len() * 7 {
            let mut larger = vec![0; self.hashes.len() + self.hashes.len() / 4];
            for &hash in self.hashes.iter().filter(|&&hash| hash != 0) {
                place(&mut larger, hash);
            }
            self.hashes = larger;
        }
        true
    }

    fn write(&self, sink: &mut WordWriter<'_>) -> io::Result<()> {
        sink.list(&self.hashes)?;
        sink.words(&[self.first.into()])?;
        sink.list(&self.level)?;
        sink.list(&self.next)
    }

    fn read(width: usize, source: &mut WordReader<'_>) -> Result<Self, CheckpointError> {
        let hashes = source.list()?;
        let first = source.word()? as u32;
        let (level, next) = (source.list()?, source.list()?);
        let count = hashes.iter().filter(|&&hash| hash != 0).count();
        Ok(Compact { width, hashes, count, first, level, next })
    }

    fn is_sound(&self, from: u32) -> bool {
        let known = self.level.len() + self.next.len();
        self.hashes.len() > self.count
            && known.is_multiple_of(self.width.max(1))
            && self.level.len().is_multiple_of(self.width.max(1))
            && self.first as usize + known / self.width.max(1) == self.count
            && from >= self.first
    }

    fn get(&self, number: u32, words: &mut [u64]) {
        let from = (number - self.first) as usize * self.width;
        words.copy_from_slice(&self.level[from..from + self.width]);
    }
}

/// Inserts a hash into a table; returns whether it is new.
fn place(table: &mut [u64], hash: u64) -> bool {
    let mut at = ((u128::from(hash) * table.len() as u128) >> 64) as usize;
    loop {
        match table[at] {
            0 => {
                table[at] = hash;
                return true;
            }
            known if known == hash => return false,
            _ => at = if at + 1 == table.len() { 0 } else { at + 1 },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// A small generator of test data.
    fn next(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash(*seed)
    }

    #[test]
    fn a_store_is_a_set_that_remembers_the_order() {
        for (width, head) in
            (1..=9).flat_map(|width| (1..=width + 1).map(move |head| (width, head)))
        {
            let mut store = Store::new(Width { words: width, head });
            let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
            let (mut seed, mut scratch) = (width as u64, Vec::new());
            for _ in 0..4_000 {
                let words: Vec<u64> = (0..width).map(|_| next(&mut seed) % 7).collect();
                let number = known.len() as u32;
                let is_new = !known.contains_key(&words);
                assert_eq!(store.insert(&words, &mut scratch), is_new);
                if is_new {
                    known.insert(words, number);
                }
            }
            assert_eq!(store.len(), known.len());
            assert!(store.is_sound());
            for (words, &number) in &known {
                let mut found = vec![0; width];
                store.get(number, &mut found);
                assert_eq!(&found, words);
            }
        }
    }

    #[test]
    fn many_states_take_few_bytes() {
        let mut store = Store::new(Width { words: 2, head: 2 });
        let mut scratch = Vec::new();
        for i in 0..300_000u64 {
            store.insert(&[i % 1000, i / 1000], &mut scratch);
        }
        assert_eq!(store.len(), 300_000);
        assert!(store.bytes() <= 16 * 300_000, "{} bytes", store.bytes());
    }
}
