//! Multisets, whose elements have no order.
//!
//! Elements are sorted by their contents. With a companion, elements that differ only in the
//! contents of their locations are tried in every order, because the companion distinguishes them.

use crate::machine::UNDEFINED;
use crate::machine::layout::{Bag, SlotKind};
use crate::machine::run::next_order;

use super::{Canonical, Following, Work};

/// Largest number of orders of equal elements that are tried; if there are more, their order is
/// kept.
const MAX_ORDERS_TRIED: usize = 720;

impl Canonical<'_> {
    /// Renames the companion's state by the current orders, and by every order of equal elements.
    pub(super) fn rename(
        &self,
        work: &mut Work,
        follower: &mut Following<'_, '_>,
        consider: &mut dyn FnMut(&[u8]),
    ) {
        let Some(follower) = follower else { return };
        let layout = &self.system.layout;
        self.name(&work.positions, &mut work.renaming);
        let mut runs =
            if self.has_bag_locations { self.alike(&work.candidate) } else { Vec::new() };
        let orders = runs
            .iter()
            .fold(1usize, |product, run| product.saturating_mul((1..=run.order.len()).product()));
        if orders > MAX_ORDERS_TRIED {
            runs.clear();
        }
        loop {
            for (&slot, new) in layout.locations.iter().zip(0..) {
                let slot = runs.iter().find_map(|run| run.moved(slot)).unwrap_or(slot);
                self.locate(work.origins[slot as usize], new, &mut work.renaming);
            }
            work.bytes.fill(0);
            follower.rename(&work.renaming, &mut work.bytes);
            consider(&work.bytes);
            if !runs.iter_mut().any(|run| next_order(&mut run.order)) {
                return;
            }
        }
    }

    /// Finds the elements of multisets that are equal and have locations.
    fn alike(&self, candidate: &[i32]) -> Vec<Alike> {
        let mut runs = Vec::new();
        let is_location =
            |at: u32| matches!(self.system.layout.slots[at as usize].kind, SlotKind::Location(_));
        for bag in &self.system.layout.bags {
            if !(bag.at..bag.at + bag.stride).any(is_location) {
                continue;
            }
            let element = |number: u32| {
                let from = (bag.at + number * bag.stride) as usize;
                &candidate[from..from + bag.stride as usize]
            };
            let mut from = 0;
            while from < bag.capacity && element(from)[0] != UNDEFINED {
                let mut to = from + 1;
                while to < bag.capacity && element(to) == element(from) {
                    to += 1;
                }
                if to - from > 1 {
                    let at = bag.at + from * bag.stride;
                    let order = (0..to - from).collect();
                    runs.push(Alike { at, stride: bag.stride, order });
                }
                from = to;
            }
        }
        runs
    }
}

/// Equal elements of a multiset, and an order in which they are tried.
struct Alike {
    at: u32,
    stride: u32,
    order: Vec<u32>,
}

impl Alike {
    /// Returns the slot whose contents are moved to a given slot.
    fn moved(&self, slot: u32) -> Option<u32> {
        let offset = slot.checked_sub(self.at)?;
        let from = self.order.get((offset / self.stride) as usize)?;
        Some(self.at + from * self.stride + offset % self.stride)
    }
}

/// Sorts the elements of a multiset, present elements first, together with the slots of their
/// origin.
pub(super) fn sort_bag(bag: Bag, area: &mut [i32], origins: &mut [u32]) {
    let stride = bag.stride as usize;
    let element = |area: &[i32], number: usize| -> Vec<i32> {
        area[number * stride..(number + 1) * stride].to_vec()
    };
    let count = bag.capacity as usize;
    let is_sorted = (1..count).all(|number| {
        area[number * stride..(number + 1) * stride] <= area[(number - 1) * stride..number * stride]
    });
    if is_sorted {
        return;
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&number| std::cmp::Reverse(element(area, number)));
    let (old, old_origins) = (area.to_vec(), origins.to_vec());
    for (to, &from) in order.iter().enumerate() {
        let (to, from) = (to * stride, from * stride);
        area[to..to + stride].copy_from_slice(&old[from..from + stride]);
        origins[to..to + stride].copy_from_slice(&old_origins[from..from + stride]);
    }
}
