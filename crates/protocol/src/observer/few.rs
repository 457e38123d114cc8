//! A short list stored in place, without an allocation.

use std::ops::{Deref, DerefMut};

/// A list of at most N items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Few<T, const N: usize> {
    items: [T; N],
    len: usize,
}

impl<T: Copy + Default, const N: usize> Few<T, N> {
    /// Builds an empty list.
    pub(super) fn new() -> Self {
        Few { items: [T::default(); N], len: 0 }
    }

    /// Builds a list of `len` default values.
    pub(super) fn filled(len: usize) -> Self {
        Few { items: [T::default(); N], len }
    }

    /// Appends an item; there must be room for it.
    pub(super) fn push(&mut self, item: T) {
        self.items[self.len] = item;
        self.len += 1;
    }

    /// Copies another list; the memory after its end is not changed.
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.items[..other.len].copy_from_slice(&other.items[..other.len]);
        self.len = other.len;
    }

    /// Removes all items.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }
}

impl<T, const N: usize> Deref for Few<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items[..self.len]
    }
}

impl<T, const N: usize> DerefMut for Few<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items[..self.len]
    }
}
