//! The set of visited states: exact, and a few bytes a state.
//!
//! Lossless tree compression: the words of a state are interned one by one, then pairs of their
//! numbers, up to the root (Laarman, van de Pol and Weber, "Parallel Recursive State Compression
//! for Free"). States have few distinct halves, so nearly all the memory is the root's: a pair of
//! numbers, 8 bytes, and an index of 5 bytes a slot, of which seven eighths are filled at least. The
//! number of a state is its rank in the order of insertion, which makes the set the queue of the
//! search as well.
//!
//! Zeros are frequent, a companion's state mostly ends in them: in every table but the root's the
//! number of 0 is 0, so parts that are all zeros are not looked up.
//!
//! The index has groups of eight slots. A slot has a tag, one byte of the hash, and a number; the
//! tags of a group are compared at once.

use std::io;

use crate::explore::checkpoint::{CheckpointError, Sink, Source};
use crate::explore::search::shard_of_hash;

/// A set of 64-bit values, numbered in the order in which they came.
#[derive(Debug)]
pub(crate) struct Interner {
    values: Vec<u64>,
    /// Eight tags a group; 0 is empty.
    tags: Vec<u64>,
    numbers: Vec<[u32; 8]>,
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
        Interner { values: Vec::new(), tags: vec![0; 2], numbers: vec![[0; 8]; 2] }
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

    /// Makes an interner of values that all differ.
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

    /// Gives a value's number, and whether it is new.
    pub(crate) fn intern(&mut self, value: u64) -> (u32, bool) {
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
        // Fifteen sixteenths full at most.
        if self.values.len() * 2 > self.tags.len() * 15 {
            self.grow();
        }
    }

    fn grow(&mut self) {
        self.index(self.tags.len() + (self.tags.len() / 16).max(2));
    }

    /// Makes the index again, with so many groups.
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

/// Marks the bytes that are zero by their top bits; only the lowest mark is exact, and those above
/// it are tested by the caller or not used.
#[inline]
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & TOPS
}

/// Counts the tables of a tree over so many words; a single word is its own root.
fn tables(width: usize) -> usize {
    let mut count = 1;
    let mut level = width;
    while level > 1 {
        count += level - level % 2;
        level = level.div_ceil(2);
    }
    count
}

/// A set of states of a fixed number of words.
#[derive(Debug)]
pub(crate) struct Store {
    width: usize,
    /// The interners of the tree, level by level, leaves first; the last is the root.
    tables: Vec<Interner>,
}

impl Store {
    pub(crate) fn new(width: usize) -> Self {
        let mut tables: Vec<Interner> = (0..tables(width)).map(|_| Interner::new()).collect();
        let root = tables.len() - 1;
        for table in &mut tables[..root] {
            table.intern(0);
        }
        Store { width, tables }
    }

    fn write(&self, sink: &mut Sink<'_>) -> io::Result<()> {
        self.tables.iter().try_for_each(|table| sink.list(&table.values))
    }

    fn read(width: usize, source: &mut Source<'_>) -> Result<Self, CheckpointError> {
        let mut store = Store { width, tables: Vec::new() };
        for _ in 0..tables(width) {
            store.tables.push(Interner::of(source.list()?));
        }
        Ok(store)
    }

    /// Says whether every pair in the tree is of numbers that there are.
    fn is_sound(&self) -> bool {
        // For each part of a level the tables that its values are pairs of, if they are.
        let mut parts: Vec<Option<usize>> = vec![None; self.width];
        let is_pair = |table: &Interner, left: usize| {
            let (left, right) = (self.tables[left].len(), self.tables[left + 1].len());
            table
                .values
                .iter()
                .all(|&value| (value >> 32) < left as u64 && u64::from(value as u32) < right as u64)
        };
        let inner = &self.tables[..self.tables.len() - 1];
        if inner.iter().any(|table| table.values.first() != Some(&0)) {
            return false;
        }
        let mut first = 0;
        while parts.len() > 1 {
            let paired = parts.len() - parts.len() % 2;
            let mut above: Vec<Option<usize>> =
                (0..paired).step_by(2).map(|part| Some(first + part)).collect();
            above.extend_from_slice(&parts[paired..]);
            for (part, table) in parts[..paired].iter().zip(&self.tables[first..]) {
                if part.is_some_and(|left| !is_pair(table, left)) {
                    return false;
                }
            }
            first += paired;
            parts = above;
        }
        parts[0].is_none_or(|left| is_pair(self.root(), left))
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

    /// Adds a state; gives whether it is new.
    pub(crate) fn insert(&mut self, words: &[u64], scratch: &mut Vec<u64>) -> bool {
        scratch.clear();
        scratch.extend_from_slice(words);
        let mut table = 0;
        let mut level = self.width;
        while level > 1 {
            for pair in 0..level / 2 {
                let (left, right) = (scratch[2 * pair], scratch[2 * pair + 1]);
                let mut number = |table: usize, value: u64| match value {
                    0 => 0,
                    value => self.tables[table].intern(value).0,
                };
                let (left, right) = (number(table, left), number(table + 1, right));
                table += 2;
                scratch[pair] = u64::from(left) << 32 | u64::from(right);
            }
            if level % 2 == 1 {
                scratch[level / 2] = scratch[level - 1];
            }
            level = level.div_ceil(2);
        }
        self.tables[table].intern(scratch[0]).1
    }

    /// Gives the state with a number.
    pub(crate) fn get(&self, number: u32, words: &mut [u64]) {
        let mut levels = Vec::new();
        let mut level = self.width;
        while level > 1 {
            levels.push(level);
            level = level.div_ceil(2);
        }
        words[0] = self.root().get(number);
        let mut table = self.tables.len() - 1;
        for &level in levels.iter().rev() {
            if level % 2 == 1 {
                words[level - 1] = words[level / 2];
            }
            table -= level - level % 2;
            for pair in (0..level / 2).rev() {
                let value = words[pair];
                words[2 * pair + 1] = self.tables[table + 2 * pair + 1].get(value as u32);
                words[2 * pair] = self.tables[table + 2 * pair].get((value >> 32) as u32);
            }
        }
    }
}

/// The states of a thread: kept exactly, or by their hashes only.
#[derive(Debug)]
pub(crate) enum Shard {
    Exact(Store),
    Compact(Compact),
}

impl Shard {
    pub(crate) fn new(width: usize, is_compact: bool) -> Self {
        match is_compact {
            true => Shard::Compact(Compact::new(width)),
            false => Shard::Exact(Store::new(width)),
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

    /// Adds a state unless it is known.
    pub(crate) fn insert(&mut self, words: &[u64], scratch: &mut Vec<u64>) {
        match self {
            Shard::Exact(store) => drop(store.insert(words, scratch)),
            Shard::Compact(compact) => compact.insert(words),
        }
    }

    /// Gives the state with a number; by hashes only, it must be one of the current level.
    pub(crate) fn get(&self, number: u32, words: &mut [u64]) {
        match self {
            Shard::Exact(store) => store.get(number, words),
            Shard::Compact(compact) => compact.get(number, words),
        }
    }

    pub(crate) fn write(&self, sink: &mut Sink<'_>) -> io::Result<()> {
        match self {
            Shard::Exact(store) => store.write(sink),
            Shard::Compact(compact) => compact.write(sink),
        }
    }

    pub(crate) fn read(
        width: usize,
        is_compact: bool,
        source: &mut Source<'_>,
    ) -> Result<Self, CheckpointError> {
        Ok(match is_compact {
            true => Shard::Compact(Compact::read(width, source)?),
            false => Shard::Exact(Store::read(width, source)?),
        })
    }

    /// Says whether what was read is a set of states of which those from a number on are known.
    pub(crate) fn is_sound(&self, from: u32) -> bool {
        match self {
            Shard::Exact(store) => store.is_sound(),
            Shard::Compact(compact) => compact.is_sound(from),
        }
    }

    /// Moves states that are kept by their hashes to other shards; those that are in full and come
    /// before `at` are expanded, and are kept by their hashes from now on.
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

    /// Gives the number of the first state of the current level that is kept in full.
    pub(crate) fn level_start(&self) -> u32 {
        match self {
            Shard::Exact(_) => 0,
            Shard::Compact(compact) => compact.first,
        }
    }

    /// Gives the number behind the states of the current level.
    pub(crate) fn level_end(&self) -> u32 {
        match self {
            Shard::Exact(store) => store.len() as u32,
            Shard::Compact(compact) => (compact.count - compact.next.len() / compact.width) as u32,
        }
    }

    /// Goes on to the states that were added since the last call.
    pub(crate) fn next_level(&mut self) {
        if let Shard::Compact(compact) = self {
            compact.first += (compact.level.len() / compact.width) as u32;
            compact.level = std::mem::take(&mut compact.next);
        }
    }
}

/// Hash compaction (Wolper and Leroy; Stern and Dill): 64 bits of each state, and in full only the
/// states of the current level and the next.
///
/// Two states with one hash are taken for the same, and what only the second leads to is missed.
/// Among n states that happens with a probability of less than n² / 2^65.
#[derive(Debug)]
pub(crate) struct Compact {
    width: usize,
    /// Open addressing; 0 is empty.
    hashes: Vec<u64>,
    count: usize,
    /// The number of the first state of the current level.
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

    /// Adds a hash; gives whether it is new.
    fn add(&mut self, hash: u64) -> bool {
        if !place(&mut self.hashes, hash) {
            return false;
        }
        self.count += 1;
        // Seven eighths full at most.
        if self.count * 8 > self.hashes.len() * 7 {
            let mut larger = vec![0; self.hashes.len() + self.hashes.len() / 4];
            for &hash in self.hashes.iter().filter(|&&hash| hash != 0) {
                place(&mut larger, hash);
            }
            self.hashes = larger;
        }
        true
    }

    fn write(&self, sink: &mut Sink<'_>) -> io::Result<()> {
        sink.list(&self.hashes)?;
        sink.words(&[self.first.into()])?;
        sink.list(&self.level)?;
        sink.list(&self.next)
    }

    fn read(width: usize, source: &mut Source<'_>) -> Result<Self, CheckpointError> {
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

/// Puts a hash into a table; gives whether it is new.
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
        for width in 1..=9 {
            let mut store = Store::new(width);
            let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
            let (mut seed, mut scratch) = (width as u64, Vec::new());
            for _ in 0..20_000 {
                let words: Vec<u64> = (0..width).map(|_| next(&mut seed) % 7).collect();
                let number = known.len() as u32;
                let is_new = !known.contains_key(&words);
                assert_eq!(store.insert(&words, &mut scratch), is_new);
                if is_new {
                    known.insert(words, number);
                }
            }
            assert_eq!(store.len(), known.len());
            for (words, &number) in &known {
                let mut found = vec![0; width];
                store.get(number, &mut found);
                assert_eq!(&found, words);
            }
        }
    }

    #[test]
    fn many_states_take_few_bytes() {
        let mut store = Store::new(2);
        let mut scratch = Vec::new();
        for i in 0..300_000u64 {
            store.insert(&[i % 1000, i / 1000], &mut scratch);
        }
        assert_eq!(store.len(), 300_000);
        assert!(store.bytes() <= 16 * 300_000, "{} bytes", store.bytes());
    }
}
