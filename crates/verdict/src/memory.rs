//! Sizes of a search's tables in bytes, for comparison with a memory budget.
//!
//! A nearly full table counts together with the larger one that is about to replace it: both exist
//! while entries are moved, and a search could exceed its budget at that moment.

use std::collections::{HashMap, HashSet, VecDeque};

/// A table whose bytes can be counted.
pub trait Bytes {
    /// Estimates the bytes of the entries in the table, without the data that they own.
    fn table_bytes(&self) -> u64;
}

impl<K, V, S> Bytes for HashMap<K, V, S> {
    fn table_bytes(&self) -> u64 {
        hash_table_bytes(self.len(), self.capacity(), size_of::<(K, V)>())
    }
}

impl<T, S> Bytes for HashSet<T, S> {
    fn table_bytes(&self) -> u64 {
        hash_table_bytes(self.len(), self.capacity(), size_of::<T>())
    }
}

impl<T> Bytes for Vec<T> {
    fn table_bytes(&self) -> u64 {
        growing(self.len(), self.capacity(), (self.capacity() * size_of::<T>()) as u64)
    }
}

impl<T> Bytes for VecDeque<T> {
    fn table_bytes(&self) -> u64 {
        growing(self.len(), self.capacity(), (self.capacity() * size_of::<T>()) as u64)
    }
}

/// Estimates the bytes of a hash table with room for `capacity` entries: it has one extra byte per
/// entry, and an eighth of the table stays free.
fn hash_table_bytes(len: usize, capacity: usize, entry: usize) -> u64 {
    growing(len, capacity, (capacity * (entry + 1) / 7 * 8) as u64)
}

/// Adds the table of twice the size that replaces a nearly full one.
fn growing(len: usize, capacity: usize, bytes: u64) -> u64 {
    let is_nearly_full = len > 64 && len + len / 32 + 16 > capacity;
    if is_nearly_full { 3 * bytes } else { bytes }
}

/// The overhead of a small allocation in bytes.
pub const BYTES_PER_ALLOCATION: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_nearly_full_counts_with_the_next_one() {
        let mut table: Vec<u64> = Vec::with_capacity(1000);
        table.resize(100, 0);
        assert_eq!(table.table_bytes(), 8000);
        table.resize(1000, 0);
        assert_eq!(table.table_bytes(), 24_000);
        let mut hashed: HashSet<u64> = HashSet::default();
        hashed.extend(0..100);
        assert!(hashed.table_bytes() >= 128 * 9 && hashed.table_bytes() < 3 * 256 * 9);
    }
}
