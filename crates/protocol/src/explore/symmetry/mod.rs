//! Scalarset symmetry: one representative for all states that differ by a renaming.
//!
//! The values of a scalarset have no names in a description, so permuting them maps runs to runs
//! (Ip and Dill, "Better Verification Through Symmetry"). The representative of a state is the
//! least of its permuted forms among those that sort the values by a *key*: a hash of all
//! occurrences of a value in the state that does not depend on the value itself (see [`keys`]).
//! Keys are permuted together with the values of a state, so states that differ by a renaming have
//! the same representative. Values with equal keys are tried in every order, unless they are twins
//! (see [`twins`]). The cost is about two passes over the state if all keys differ, and one more
//! for each value whose key is that of a twin.
//!
//! A companion is renamed with the state. The elements of a multiset have no order either: with a
//! companion, elements that differ only in the contents of their locations are also tried in every
//! order, up to a limit (see [`bags`]).
//!
//! *Soundness*: the representative is always a renaming of the state. *Exactness*: two states have
//! the same representative if and only if one is a renaming of the other, as long as the limit on
//! orders of multiset elements is not reached. Beyond that limit a state may have several
//! representatives, so more states are explored. If the budget runs out, the search for a
//! representative is aborted and `stopped` contains the reason.

mod bags;
mod keys;
mod twins;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use consistory_verdict::{Budget, Stopped};

use crate::machine::UNDEFINED;
use crate::machine::layout::SlotKind;
use crate::machine::run::position;
use crate::murphi::{Piece, Type, TypeId};
use crate::system::System;
use crate::tracking::{Companion, Follower, Renaming};
use bags::sort_bag;
use twins::mixed;

/// Number of slots after which the clock is read.
const SLOTS_BETWEEN_CHECKS: usize = 1 << 22;

/// The values of a scalarset that may be permuted.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: i32,
    size: u32,
}

/// Position of a slot in an array over a scalarset: the index is one of the scalarset's values.
#[derive(Clone, Copy, Debug)]
struct Digit {
    group: u32,
    value: u32,
    stride: u32,
}

#[derive(Clone, Debug)]
struct Place {
    /// Slot at which this one would be if every digit were 0.
    base: u32,
    digits: Vec<Digit>,
    /// Whether it may hold a value of a group.
    is_named: bool,
    /// Whether only definedness matters.
    is_erased: bool,
}

/// A processor or a block that may be renamed.
#[derive(Clone, Copy, Debug)]
struct Named {
    group: u32,
    value: u32,
    /// Number that the processor or block would have if its value were 0.
    offset: u32,
}

/// Computes representatives of states; each thread has its own.
pub(crate) struct Canonical<'a> {
    system: &'a System,
    groups: Vec<Group>,
    places: Vec<Place>,
    /// Slots outside multisets.
    plain: Vec<u32>,
    is_trivial: bool,
    /// Whether multisets hold locations that a companion watches.
    has_bag_locations: bool,
    /// Processors and blocks that may be renamed.
    procs: Vec<Option<Named>>,
    blocks: Vec<Option<Named>>,
    work: Work,
    budget: Budget,
    /// Reason why the search for the last representative was aborted, if it was.
    pub(crate) stopped: Option<Stopped>,
}

/// Follower of the state whose representative is computed, if there is a companion.
type Following<'f, 'g> = Option<&'f mut (dyn Follower + 'g)>;

/// Buffers that are reused for each state.
#[derive(Default)]
struct Work {
    /// Slots that were visited since the clock was read.
    slots_since_check: usize,
    /// Reason why the search is aborted, if it is.
    stopped: Option<Stopped>,
    memory: Vec<i32>,
    keys: Vec<Vec<u64>>,
    colours: Vec<Vec<u64>>,
    /// For each group, the least twin of each value.
    twins: Vec<Vec<u32>>,
    /// For each group, the value at each position.
    orders: Vec<Vec<u32>>,
    /// For each group, the position of each value.
    positions: Vec<Vec<u32>>,
    candidate: Vec<i32>,
    best: Vec<i32>,
    /// For each slot of the candidate, the slot of its origin.
    origins: Vec<u32>,
    bytes: Vec<u8>,
    best_bytes: Vec<u8>,
    renaming: Renaming,
}

/// Consecutive positions of a group whose values have equal keys.
#[derive(Clone, Copy)]
struct Cell {
    group: usize,
    from: usize,
    to: usize,
}

impl<'a> Canonical<'a> {
    pub(crate) fn new(
        system: &'a System,
        companion: Option<&dyn Companion>,
        symmetric: &[TypeId],
        budget: Budget,
    ) -> Self {
        let mut canonical = Canonical {
            system,
            groups: Vec::new(),
            places: Vec::new(),
            plain: Vec::new(),
            is_trivial: false,
            has_bag_locations: false,
            procs: Vec::new(),
            blocks: Vec::new(),
            work: Work::default(),
            budget,
            stopped: None,
        };
        let data = system.flow.as_ref().map(|flow| flow.data);
        for &ty in symmetric {
            if let Type::Scalarset { first, size } = *system.program.types.get(ty)
                && size > 1
                && data != Some(ty)
            {
                canonical.groups.push(Group { first, size });
            }
        }
        for &var in &system.program.globals {
            let ty = system.program.variables[var.0 as usize].ty;
            let at = canonical.places.len() as u32;
            canonical.add(ty, at, &mut Vec::new());
        }
        let layout = &system.layout;
        for (place, slot) in canonical.places.iter_mut().zip(&layout.slots) {
            place.is_erased = matches!(slot.kind, SlotKind::Location(_) | SlotKind::Ghost);
            place.is_named &= slot.kind == SlotKind::Value;
        }
        let mut in_bag = vec![false; layout.slots.len()];
        for bag in &layout.bags {
            let end = bag.at + bag.capacity * bag.stride;
            in_bag[bag.at as usize..end as usize].fill(true);
        }
        canonical.plain = (0..in_bag.len() as u32).filter(|&at| !in_bag[at as usize]).collect();
        canonical.has_bag_locations =
            companion.is_some() && layout.locations.iter().any(|&slot| in_bag[slot as usize]);
        canonical.is_trivial = canonical.groups.is_empty() && !canonical.has_bag_locations;
        if let Some(flow) = &system.flow {
            canonical.procs = canonical.named(flow.proc);
            canonical.blocks = flow.block.map_or_else(|| vec![None], |ty| canonical.named(ty));
        }
        let sizes = || canonical.groups.iter().map(|group| group.size as usize);
        canonical.work = Work {
            keys: sizes().map(|size| vec![0; size]).collect(),
            colours: sizes().map(|size| vec![0; size]).collect(),
            twins: sizes().map(|size| vec![0; size]).collect(),
            renaming: Renaming {
                procs: vec![0; canonical.procs.len()],
                blocks: vec![0; canonical.blocks.len()],
                locations: vec![0; layout.locations.len()],
            },
            orders: sizes().map(|size| (0..size as u32).collect()).collect(),
            positions: sizes().map(|size| (0..size as u32).collect()).collect(),
            candidate: vec![UNDEFINED; layout.slots.len()],
            origins: vec![0; layout.slots.len()],
            bytes: vec![0; companion.map_or(0, Companion::width)],
            ..Work::default()
        };
        canonical
    }

    /// Lists the values of the type of processors or blocks.
    fn named(&self, ty: TypeId) -> Vec<Option<Named>> {
        let pieces = self.system.program.types.pieces(ty);
        let codes =
            pieces.iter().flat_map(|piece| (0..piece.count).map(|i| piece.first + i as i32));
        let named = codes.map(|code| {
            let (group, value) = self.group_of(code, ty)?;
            let offset = position(&pieces, self.groups[group as usize].first)?;
            Some(Named { group, value, offset })
        });
        named.collect()
    }

    /// Checks whether every state is its own representative.
    pub(crate) fn is_trivial(&self) -> bool {
        self.is_trivial
    }

    /// Adds the slots of a type; `base` is the first slot if every digit is 0.
    fn add(&mut self, ty: TypeId, base: u32, digits: &mut Vec<Digit>) {
        let types = &self.system.program.types;
        match types.get(ty) {
            Type::Record(fields) => {
                for field in fields {
                    self.add(field.ty, base + field.offset, digits);
                }
            }
            Type::Array { index, element } => {
                let stride = types.slots(*element);
                let mut at = base;
                for piece in types.pieces(*index) {
                    for code in (0..piece.count).map(|i| piece.first + i as i32) {
                        match self.group_of(code, *index) {
                            Some((group, value)) => {
                                digits.push(Digit { group, value, stride });
                                self.add(*element, at - value * stride, digits);
                                digits.pop();
                            }
                            None => self.add(*element, at, digits),
                        }
                        at += stride;
                    }
                }
            }
            Type::Multiset { capacity, element } => {
                let stride = 1 + types.slots(*element);
                for number in 0..*capacity {
                    self.place(base + number * stride, digits, false);
                    self.add(*element, base + number * stride + 1, digits);
                }
            }
            _ => {
                let pieces = types.pieces(ty);
                let is_named = !matches!(types.get(ty), Type::Range { .. } | Type::Boolean)
                    && pieces.iter().any(|piece| self.overlaps(*piece));
                self.place(base, digits, is_named);
            }
        }
    }

    fn place(&mut self, base: u32, digits: &[Digit], is_named: bool) {
        self.places.push(Place { base, digits: digits.to_vec(), is_named, is_erased: false });
    }

    fn overlaps(&self, piece: Piece) -> bool {
        self.groups.iter().any(|group| piece.position(group.first).is_some())
    }

    /// Returns the group of an index. An integer belongs to no group, even if it equals the code of
    /// a value.
    fn group_of(&self, code: i32, ty: TypeId) -> Option<(u32, u32)> {
        match self.system.program.types.get(ty) {
            Type::Scalarset { .. } | Type::Union(_) => self.find(code),
            _ => None,
        }
    }

    #[inline]
    fn find(&self, code: i32) -> Option<(u32, u32)> {
        let groups = self.groups.iter().zip(0..);
        groups
            .map(|(group, number)| (code.wrapping_sub(group.first) as u32, group.size, number))
            .find(|&(value, size, _)| value < size)
            .map(|(value, _, number)| (number, value))
    }

    /// Returns the representative of a state, together with its companion's state, which the
    /// follower has loaded.
    pub(crate) fn of<'f>(
        &mut self,
        slots: &[i32],
        bytes: &[u8],
        mut follower: Option<&mut (dyn Follower + 'f)>,
    ) -> (&[i32], &[u8]) {
        let follower = &mut follower;
        let mut work = std::mem::take(&mut self.work);
        work.stopped = None;
        work.memory.clear();
        work.memory.extend(
            slots
                .iter()
                .zip(&self.places)
                .map(|(&code, place)| if place.is_erased && code != UNDEFINED { 0 } else { code }),
        );
        work.keys.iter_mut().for_each(|keys| keys.fill(0));
        self.sort_by_keys(&mut work);
        work.best.clear();
        let cells = cells(&work);
        match cells[..] {
            [] => self.try_order(&mut work, follower),
            // Trying both orders of two values is as fast as comparing the values.
            [Cell { group, from, to }] if to - from == 2 => {
                self.try_order(&mut work, follower);
                work.orders[group].swap(from, from + 1);
                self.try_order(&mut work, follower);
            }
            _ => {
                self.find_twins(&cells, &mut work, bytes, follower);
                if work.stopped.is_none() && mixed(&work).is_some() {
                    self.refine(&mut work);
                    self.sort_twins(&mut work);
                }
                self.descend(&mut work, follower);
            }
        }
        self.stopped = work.stopped.take();
        self.work = work;
        (&self.work.best, &self.work.best_bytes)
    }

    /// Reads the clock occasionally; once the time is over, any representative is acceptable.
    fn is_over(&self, work: &mut Work) -> bool {
        work.slots_since_check += self.places.len();
        if work.slots_since_check >= SLOTS_BETWEEN_CHECKS {
            work.slots_since_check = 0;
            if work.stopped.is_none() {
                work.stopped = self.budget.check().err();
            }
        }
        work.stopped.is_some()
    }

    /// Permutes the state by the current orders, and keeps the result if it is the least so far.
    fn try_order(&self, work: &mut Work, follower: &mut Following<'_, '_>) {
        let compared = self.apply(work);
        let is_first = work.best.is_empty();
        if !is_first && compared == Ordering::Greater {
            return;
        }
        if is_first || compared == Ordering::Less {
            let Work { candidate, best, .. } = work;
            best.clear();
            best.extend_from_slice(candidate);
            work.best_bytes.clear();
        }
        let mut best = std::mem::take(&mut work.best_bytes);
        self.rename(work, follower, &mut |renamed| {
            if best.is_empty() || *renamed < best[..] {
                best.clear();
                best.extend_from_slice(renamed);
            }
        });
        work.best_bytes = best;
    }

    /// Writes the permuted state into `candidate`, until it is known to be greater than the best.
    fn apply(&self, work: &mut Work) -> Ordering {
        let Work { memory, orders, positions, candidate, best, origins, .. } = work;
        for (order, positions) in orders.iter().zip(positions.iter_mut()) {
            for (&value, position) in order.iter().zip(0..) {
                positions[value as usize] = position;
            }
        }
        let mut write = |at: usize| {
            let place = &self.places[at];
            let mut from = place.base;
            for digit in &place.digits {
                from += orders[digit.group as usize][digit.value as usize] * digit.stride;
            }
            let mut code = memory[from as usize];
            if place.is_named
                && code != UNDEFINED
                && let Some((group, value)) = self.find(code)
            {
                let position = positions[group as usize][value as usize];
                code = self.groups[group as usize].first + position as i32;
            }
            candidate[at] = code;
            origins[at] = from;
            code
        };
        let mut compared = Ordering::Equal;
        for &at in &self.plain {
            let code = write(at as usize);
            if compared == Ordering::Equal && !best.is_empty() {
                compared = code.cmp(&best[at as usize]);
                if compared == Ordering::Greater {
                    return compared;
                }
            }
        }
        for bag in &self.system.layout.bags {
            let area = bag.at as usize..(bag.at + bag.capacity * bag.stride) as usize;
            area.clone().for_each(|at| {
                write(at);
            });
        }
        for bag in &self.system.layout.bags {
            let area = bag.at as usize..(bag.at + bag.capacity * bag.stride) as usize;
            sort_bag(*bag, &mut candidate[area.clone()], &mut origins[area.clone()]);
            if compared == Ordering::Equal && !best.is_empty() {
                compared = candidate[area.clone()].cmp(&best[area]);
            }
        }
        compared
    }

    /// Renames processors and blocks by the positions of their values.
    fn name(&self, positions: &[Vec<u32>], renaming: &mut Renaming) {
        let new = |named: &Option<Named>, number: u32| match *named {
            Some(Named { group, value, offset }) => {
                offset + positions[group as usize][value as usize]
            }
            None => number,
        };
        for (all, to) in [(&self.procs, &mut renaming.procs), (&self.blocks, &mut renaming.blocks)]
        {
            for ((named, number), to) in all.iter().zip(0..).zip(to) {
                *to = new(named, number);
            }
        }
    }

    /// Renames the location of a slot, if it has one.
    fn locate(&self, slot: u32, new: u32, renaming: &mut Renaming) {
        if let SlotKind::Location(old) = self.system.layout.slots[slot as usize].kind {
            renaming.locations[old as usize] = new;
        }
    }
}

/// Finds the runs of values with equal keys.
fn cells(work: &Work) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (group, (order, keys)) in work.orders.iter().zip(&work.keys).enumerate() {
        let mut from = 0;
        for to in 1..=order.len() {
            let key = |at: usize| keys[order[at] as usize];
            if to == order.len() || key(to) != key(from) {
                if to - from > 1 {
                    cells.push(Cell { group, from, to });
                }
                from = to;
            }
        }
    }
    cells
}
