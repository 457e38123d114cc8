//! Keys: a summary, for each value of a scalarset, of its occurrences in a state.
//!
//! A key is a sum of hashes, one for each occurrence of the value in the state: a slot of an array
//! that it indexes, a slot that holds it, or an element of a multiset that contains it. A hash
//! covers the position without its indices, the contents without names, and the *colours* of the
//! other values that occur there, which are their keys of the previous round. Refinement repeats
//! this until no further values are distinguished, as programs for graph isomorphism do.
//!
//! Two values that a renaming exchanges always have equal keys. Different values may have equal
//! keys by chance or because only deeper structure distinguishes them; then all their orders are
//! tried.

use crate::explore::store::hash;
use crate::machine::UNDEFINED;

use super::{Canonical, Digit, Place, Work};

/// Salt of a slot that holds a value of a scalarset, so that it differs from one that holds a number.
const HOLDS_VALUE: u64 = 0x5ca1;

/// Salt of the key of a value that a slot holds, so that it differs from the key of an index.
const IS_HELD: u64 = 0xab;

impl Canonical<'_> {
    /// Computes keys from the previous keys, sorts each group by them, and returns the number of
    /// distinct keys.
    pub(super) fn sort_by_keys(&self, work: &mut Work) -> usize {
        std::mem::swap(&mut work.colours, &mut work.keys);
        self.compute_keys(work);
        for (order, keys) in work.orders.iter_mut().zip(&work.keys) {
            order.sort_unstable_by_key(|&value| (keys[value as usize], value));
        }
        let distinct = work.orders.iter().zip(&work.keys).map(|(order, keys)| {
            let pairs = order.iter().zip(&order[1..]);
            pairs.filter(|&(&a, &b)| keys[a as usize] != keys[b as usize]).count() + 1
        });
        distinct.sum()
    }

    /// Distinguishes values by their keys as far as possible.
    pub(super) fn refine(&self, work: &mut Work) {
        let all: usize = self.groups.iter().map(|group| group.size as usize).sum();
        let mut count = 0;
        loop {
            let now = self.sort_by_keys(work);
            if now == count || now == all {
                return;
            }
            count = now;
        }
    }

    /// Computes the sum of hashes of each value.
    pub(super) fn compute_keys(&self, work: &mut Work) {
        let Work { memory, keys, colours, .. } = work;
        for (keys, colours) in keys.iter_mut().zip(colours.iter()) {
            keys.iter_mut().zip(colours).for_each(|(key, &colour)| *key = hash(colour));
        }
        let named = |place: &Place, code: i32| {
            if place.is_named && code != UNDEFINED { self.find(code) } else { None }
        };
        // Hash of a slot's contents without names, and whether the slot holds the value to which
        // the key belongs.
        let content = |class: u32, place: &Place, code: i32| {
            let shown = match named(place, code) {
                Some((group, value)) => {
                    let is_own = |d: &Digit| (d.group, d.value) == (group, value);
                    let own = place.digits.iter().position(is_own).map_or(0, |at| at as u64 + 1);
                    let colour = colours[group as usize][value as usize];
                    // The group and the index of the held value, if any, use separate bits.
                    hash(colour ^ u64::from(group) << 8 ^ own << 16 ^ HOLDS_VALUE)
                }
                None => code as u32 as u64,
            };
            hash(shown.wrapping_add(u64::from(class) << 32))
        };
        let around = |place: &Place| {
            place.digits.iter().fold(0u64, |sum, digit| {
                hash(sum ^ colours[digit.group as usize][digit.value as usize])
            })
        };
        for &at in &self.plain {
            let place = &self.places[at as usize];
            let code = memory[at as usize];
            let name = named(place, code);
            if place.digits.is_empty() && name.is_none() {
                continue;
            }
            let content = content(place.base, place, code).wrapping_add(around(place));
            for (number, digit) in place.digits.iter().enumerate() {
                let key = &mut keys[digit.group as usize][digit.value as usize];
                *key = key.wrapping_add(hash(content ^ number as u64));
            }
            if let Some((group, value)) = name {
                let key = &mut keys[group as usize][value as usize];
                *key = key.wrapping_add(hash(content ^ IS_HELD));
            }
        }
        for bag in &self.system.layout.bags {
            let class = self.places[bag.at as usize].base;
            for number in 0..bag.capacity {
                let from = bag.at + number * bag.stride;
                if memory[from as usize] == UNDEFINED {
                    continue;
                }
                let parts = || (from + 1..from + bag.stride).map(|at| at as usize);
                let mut sum = around(&self.places[from as usize]);
                for at in parts() {
                    let class = class + (at as u32 - from);
                    sum = hash(sum ^ content(class, &self.places[at], memory[at]));
                }
                for (number, digit) in self.places[from as usize].digits.iter().enumerate() {
                    let key = &mut keys[digit.group as usize][digit.value as usize];
                    *key = key.wrapping_add(hash(sum ^ number as u64));
                }
                for at in parts() {
                    if let Some((group, value)) = named(&self.places[at], memory[at]) {
                        let key = &mut keys[group as usize][value as usize];
                        *key = key.wrapping_add(hash(sum ^ u64::from(at as u32 - from) << 8));
                    }
                }
            }
        }
    }
}
