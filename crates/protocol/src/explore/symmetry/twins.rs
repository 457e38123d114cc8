//! Twins: values that can be swapped without changing the state.
//!
//! Being twins is an equivalence relation, and the order among twins does not matter. So among
//! values with equal keys, only the classes of twins are tried in every order: each class with
//! the first ambiguous key is put first in turn, the keys are refined, and the procedure is
//! repeated.

use crate::explore::store::hash;
use crate::machine::UNDEFINED;

use super::bags::sort_bag;
use super::{Canonical, Cell, Following, Work, cells};

/// Mixed into the key of a value that is put before other values with the same key.
const PUT_FIRST: u64 = 0xf125_7000_0000_0001;

impl Canonical<'_> {
    /// Finds the twins among values with equal keys. The number of a value's twins becomes a part
    /// of its key, and twins are adjacent in the orders.
    pub(super) fn find_twins(
        &self,
        cells: &[Cell],
        work: &mut Work,
        bytes: &[u8],
        follower: &mut Following<'_, '_>,
    ) {
        for twins in &mut work.twins {
            twins.iter_mut().zip(0..).for_each(|(twin, value)| *twin = value);
        }
        for &Cell { group, from, to } in cells {
            // Least value and size of each class.
            let mut classes: Vec<(u32, u32)> = Vec::new();
            let mut values = work.orders[group][from..to].to_vec();
            values.sort_unstable();
            for &value in &values {
                if work.stopped.is_some() {
                    break;
                }
                let mut known = classes.iter_mut();
                match known.find(|(first, _)| {
                    self.are_twins(group, [*first, value], work, bytes, follower)
                }) {
                    Some((first, count)) => {
                        work.twins[group][value as usize] = *first;
                        *count += 1;
                    }
                    None => classes.push((value, 1)),
                }
            }
            for (first, count) in classes {
                for &value in &values {
                    if work.twins[group][value as usize] == first {
                        let key = &mut work.keys[group][value as usize];
                        *key = hash(*key ^ u64::from(count));
                    }
                }
            }
        }
        self.sort_twins(work);
    }

    pub(super) fn sort_twins(&self, work: &mut Work) {
        let groups = work.orders.iter_mut().zip(&work.keys).zip(&work.twins);
        for ((order, keys), twins) in groups {
            order.sort_unstable_by_key(|&value| {
                (keys[value as usize], twins[value as usize], value)
            });
        }
    }

    /// Checks whether two values of a group can be swapped without changing the state.
    pub(super) fn are_twins(
        &self,
        group: usize,
        [a, b]: [u32; 2],
        work: &mut Work,
        bytes: &[u8],
        follower: &mut Following<'_, '_>,
    ) -> bool {
        if self.is_over(work) {
            return false;
        }
        let swapped = |in_group: u32, value: u32| match value {
            _ if in_group as usize != group => value,
            value if value == a => b,
            value if value == b => a,
            value => value,
        };
        let Work { memory, candidate, origins, positions, renaming, .. } = &mut *work;
        let moved = |at: usize| {
            let place = &self.places[at];
            let digits = place.digits.iter();
            let from: u32 = digits.map(|d| swapped(d.group, d.value) * d.stride).sum();
            let from = place.base + from;
            let code = memory[from as usize];
            match place.is_named && code != UNDEFINED {
                true => match self.find(code) {
                    Some((group, value)) => {
                        let first = self.groups[group as usize].first;
                        (from, first + swapped(group, value) as i32)
                    }
                    None => (from, code),
                },
                false => (from, code),
            }
        };
        for &at in &self.plain {
            let (from, code) = moved(at as usize);
            if code != memory[at as usize] {
                return false;
            }
            origins[at as usize] = from;
        }
        for bag in &self.system.layout.bags {
            let area = bag.at as usize..(bag.at + bag.capacity * bag.stride) as usize;
            for at in area.clone() {
                (origins[at], candidate[at]) = moved(at);
            }
            sort_bag(*bag, &mut candidate[area.clone()], &mut origins[area.clone()]);
            if candidate[area.clone()] != memory[area] {
                return false;
            }
        }
        let Some(follower) = follower else { return true };
        for (positions, in_group) in positions.iter_mut().zip(0..) {
            for (position, value) in positions.iter_mut().zip(0..) {
                *position = swapped(in_group, value);
            }
        }
        self.name(positions, renaming);
        for (&slot, new) in self.system.layout.locations.iter().zip(0..) {
            self.locate(origins[slot as usize], new, renaming);
        }
        work.bytes.fill(0);
        follower.rename(&work.renaming, &mut work.bytes);
        work.bytes == bytes
    }

    /// Tries every order of the classes of twins that have equal keys: puts each of the first such
    /// classes in front in turn, and refines the keys.
    ///
    /// The depth of the recursion is the number of classes that only such a choice distinguishes.
    pub(super) fn descend(&self, work: &mut Work, follower: &mut Following<'_, '_>) {
        let cell = if self.is_over(work) { None } else { mixed(work) };
        let Some(Cell { group, from, to }) = cell else {
            return self.try_order(work, follower);
        };
        let values = &work.orders[group][from..to];
        let mut classes: Vec<u32> =
            values.iter().map(|&value| work.twins[group][value as usize]).collect();
        classes.dedup();
        let keys = work.keys.clone();
        for class in classes {
            if !work.best.is_empty() && self.is_over(work) {
                return;
            }
            work.keys.clone_from(&keys);
            for (key, &twin) in work.keys[group].iter_mut().zip(&work.twins[group]) {
                if twin == class {
                    *key = hash(*key ^ PUT_FIRST);
                }
            }
            self.refine(work);
            self.sort_twins(work);
            self.descend(work, follower);
        }
    }
}

/// Finds the first values with equal keys that are not all twins; twins must be adjacent.
pub(super) fn mixed(work: &Work) -> Option<Cell> {
    cells(work).into_iter().find(|&Cell { group, from, to }| {
        let twin = |at: usize| work.twins[group][work.orders[group][at] as usize];
        twin(from) != twin(to - 1)
    })
}
