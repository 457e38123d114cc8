//! The set of visited states: exact, and a few bytes a state.
//!
//! Lossless tree compression: the words of a state are interned one by one, then pairs of their
//! numbers, up to the root (Laarman, van de Pol and Weber, "Parallel Recursive State Compression
//! for Free"). States have few distinct halves, so nearly all the memory is the root's: a pair of
//! numbers, 8 bytes, and an index of 5 bytes a slot, of which more than three quarters are filled. The
//! number of a state is its rank in the order of insertion, which makes the set the queue of the
//! search as well.
//!
//! The index has groups of eight slots. A slot has a tag, one byte of the hash, and a number; the
//! tags of a group are compared at once.

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
            self.values.reserve_exact((self.values.len() / 32).max(16));
        }
        self.values.push(value);
        // Seven eighths full at most.
        if self.values.len() > self.tags.len() * 7 {
            self.grow();
        }
    }

    fn grow(&mut self) {
        let groups = self.tags.len() + (self.tags.len() / 8).max(2);
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

/// A set of states of a fixed number of words.
#[derive(Debug)]
pub(crate) struct Store {
    width: usize,
    /// The interners of the tree, level by level, leaves first; the last is the root.
    tables: Vec<Interner>,
}

impl Store {
    pub(crate) fn new(width: usize) -> Self {
        let mut count = 0;
        let mut level = width;
        while level > 1 {
            count += level - level % 2;
            level = level.div_ceil(2);
        }
        // A single word is its own root.
        let tables = (0..=count).map(|_| Interner::new()).collect();
        Store { width, tables }
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
                let (left, _) = self.tables[table].intern(left);
                let (right, _) = self.tables[table + 1].intern(right);
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
        let hash = hash_words(words).max(1);
        if !place(&mut self.hashes, hash) {
            return;
        }
        self.count += 1;
        self.next.extend_from_slice(words);
        // Seven eighths full at most.
        if self.count * 8 > self.hashes.len() * 7 {
            let mut larger = vec![0; self.hashes.len() + self.hashes.len() / 4];
            for &hash in self.hashes.iter().filter(|&&hash| hash != 0) {
                place(&mut larger, hash);
            }
            self.hashes = larger;
        }
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
