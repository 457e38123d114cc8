//! Scalarset symmetry: one representative for all states that differ by a renaming.
//!
//! The values of a scalarset have no names in a description, so permuting them maps runs to runs
//! (Ip and Dill, "Better Verification Through Symmetry"). The representative of a state is the
//! least of its permuted forms among those that sort the values by a *key*: a hash of all that the
//! state says of a value without naming it. Keys follow the values when a state is permuted, so
//! states that differ by a renaming have the same representative.
//!
//! Values with equal keys must be tried in every order, with two exceptions. *Twins* are values
//! that can be swapped without changing anything; to be twins is an equivalence, and the order among
//! them does not matter. Where others are left, keys are refined by the keys of the values that they
//! stand next to, until no more are told apart, and again once a class of twins is put first, as
//! programs for the isomorphism of graphs do. The reduction is exact: two states have the same
//! representative if and only if one is a renaming of the other. It costs about two passes over the
//! state when all keys differ, and one more for each value whose key is that of a twin.
//!
//! A companion is renamed along. The elements of a multiset have no order either: with a companion,
//! elements that are alike but for what their locations hold are tried in every order too.

use std::cmp::Ordering;

use crate::explore::store::hash;
use crate::machine::UNDEFINED;
use crate::machine::layout::{Bag, SlotKind};
use crate::machine::run::{next_order, position};
use crate::murphi::{Piece, Type, TypeId};
use crate::system::System;
use crate::tracking::{Companion, Follower, Renaming};

/// What marks a value that was put in front of others with the same key.
const FIRST: u64 = 0xf125_7000_0000_0001;

/// Up to how many orders of alike elements of multisets are tried.
const MOST_ORDERS: usize = 720;

/// The values of a scalarset that may be permuted.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: i32,
    size: u32,
}

/// A slot lies in an array over a scalarset: at the place of one of its values.
#[derive(Clone, Copy, Debug)]
struct Digit {
    group: u32,
    value: u32,
    stride: u32,
}

#[derive(Clone, Debug)]
struct Place {
    /// The slot that this one would be if every digit were 0.
    base: u32,
    digits: Vec<Digit>,
    /// Whether it may hold a value of a group.
    is_named: bool,
    /// Whether only being defined counts.
    is_erased: bool,
}

/// A processor or a block that may be renamed.
#[derive(Clone, Copy, Debug)]
struct Named {
    group: u32,
    value: u32,
    /// What its number would be if its value were 0.
    offset: u32,
}

/// Finds representatives of states; one a thread.
pub(crate) struct Canonical<'a> {
    system: &'a System,
    groups: Vec<Group>,
    places: Vec<Place>,
    /// The slots outside multisets.
    plain: Vec<u32>,
    is_trivial: bool,
    /// Whether multisets hold locations that a companion watches.
    has_bag_locations: bool,
    /// The processors and the blocks that may be renamed.
    procs: Vec<Option<Named>>,
    blocks: Vec<Option<Named>>,
    work: Work,
}

/// What follows the state whose representative is looked for, if anything does.
type Following<'f, 'g> = Option<&'f mut (dyn Follower + 'g)>;

/// Memory that is used again for each state.
#[derive(Default)]
struct Work {
    memory: Vec<i32>,
    keys: Vec<Vec<u64>>,
    colours: Vec<Vec<u64>>,
    /// For each group the least twin of each value.
    twins: Vec<Vec<u32>>,
    /// For each group the value that comes to each position.
    orders: Vec<Vec<u32>>,
    /// For each group the position of each value.
    positions: Vec<Vec<u32>>,
    candidate: Vec<i32>,
    best: Vec<i32>,
    /// For each slot of the candidate the slot that it comes from.
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

    /// Lists the values of a type of processors or blocks.
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

    /// Says whether every state is its own representative.
    pub(crate) fn is_trivial(&self) -> bool {
        self.is_trivial
    }

    /// Adds the places of a type; `base` is where they would be if every digit were 0.
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

    /// Finds the group of an index; an integer is never of a group, though it may look like one.
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

    /// Gives the representative of a state and of its companion's, which a follower is in.
    pub(crate) fn of<'f>(
        &mut self,
        slots: &[i32],
        bytes: &[u8],
        mut follower: Option<&mut (dyn Follower + 'f)>,
    ) -> (&[i32], &[u8]) {
        let follower = &mut follower;
        let mut work = std::mem::take(&mut self.work);
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
            // Two values are as quickly tried as compared.
            [Cell { group, from, to }] if to - from == 2 => {
                self.try_order(&mut work, follower);
                work.orders[group].swap(from, from + 1);
                self.try_order(&mut work, follower);
            }
            _ => {
                self.find_twins(&cells, &mut work, bytes, follower);
                if mixed(&work).is_some() {
                    self.refine(&mut work);
                    self.sort_twins(&mut work);
                }
                self.descend(&mut work, follower);
            }
        }
        self.work = work;
        (&self.work.best, &self.work.best_bytes)
    }

    /// Computes keys that depend on the old ones, sorts each group by them, and counts how many
    /// there are.
    fn sort_by_keys(&self, work: &mut Work) -> usize {
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

    /// Tells values apart by their keys as far as possible.
    fn refine(&self, work: &mut Work) {
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

    /// Finds among values with equal keys those that are twins. How many twins a value has goes
    /// into its key, and twins stand side by side in the orders.
    fn find_twins(
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
            // The least value of each class, and how many it has.
            let mut classes: Vec<(u32, u32)> = Vec::new();
            let mut values = work.orders[group][from..to].to_vec();
            values.sort_unstable();
            for &value in &values {
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

    fn sort_twins(&self, work: &mut Work) {
        let groups = work.orders.iter_mut().zip(&work.keys).zip(&work.twins);
        for ((order, keys), twins) in groups {
            order.sort_unstable_by_key(|&value| {
                (keys[value as usize], twins[value as usize], value)
            });
        }
    }

    /// Says whether two values of a group can be swapped without changing anything.
    fn are_twins(
        &self,
        group: usize,
        [a, b]: [u32; 2],
        work: &mut Work,
        bytes: &[u8],
        follower: &mut Following<'_, '_>,
    ) -> bool {
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
    /// classes in front, and refines.
    ///
    /// It goes as deep as there are classes that only such a choice tells apart.
    fn descend(&self, work: &mut Work, follower: &mut Following<'_, '_>) {
        let Some(Cell { group, from, to }) = mixed(work) else {
            return self.try_order(work, follower);
        };
        let values = &work.orders[group][from..to];
        let mut classes: Vec<u32> =
            values.iter().map(|&value| work.twins[group][value as usize]).collect();
        classes.dedup();
        let keys = work.keys.clone();
        for class in classes {
            work.keys.clone_from(&keys);
            for (key, &twin) in work.keys[group].iter_mut().zip(&work.twins[group]) {
                if twin == class {
                    *key = hash(*key ^ FIRST);
                }
            }
            self.refine(work);
            self.sort_twins(work);
            self.descend(work, follower);
        }
    }

    /// Sums up what a state says of each value.
    fn compute_keys(&self, work: &mut Work) {
        let Work { memory, keys, colours, .. } = work;
        for (keys, colours) in keys.iter_mut().zip(colours.iter()) {
            keys.iter_mut().zip(colours).for_each(|(key, &colour)| *key = hash(colour));
        }
        let named = |place: &Place, code: i32| {
            if place.is_named && code != UNDEFINED { self.find(code) } else { None }
        };
        // What a slot holds, without names, and whether it holds the value that it belongs to.
        let content = |class: u32, place: &Place, code: i32| {
            let shown = match named(place, code) {
                Some((group, value)) => {
                    let is_own = |d: &Digit| (d.group, d.value) == (group, value);
                    let own = place.digits.iter().position(is_own).map_or(0, |at| at as u64 + 1);
                    let colour = colours[group as usize][value as usize];
                    hash(colour ^ u64::from(group) << 8 ^ own << 16 ^ 0x5ca1)
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
                *key = key.wrapping_add(hash(content ^ 0xab));
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

    /// Permutes the state by the current orders and keeps it if it is the least so far.
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

    /// Writes the permuted state into `candidate`, as far as it is not greater than the best.
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

    /// Renames the companion's state by the current orders, and by every order of alike elements.
    fn rename(
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
        if orders > MOST_ORDERS {
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

    /// Renames the location of a slot.
    fn locate(&self, slot: u32, new: u32, renaming: &mut Renaming) {
        if let SlotKind::Location(old) = self.system.layout.slots[slot as usize].kind {
            renaming.locations[old as usize] = new;
        }
    }

    /// Finds the elements of multisets that are alike and have locations.
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

/// Elements of a multiset that are alike, and an order to try them in.
struct Alike {
    at: u32,
    stride: u32,
    order: Vec<u32>,
}

impl Alike {
    /// Gives the slot whose contents come to a slot.
    fn moved(&self, slot: u32) -> Option<u32> {
        let offset = slot.checked_sub(self.at)?;
        let from = self.order.get((offset / self.stride) as usize)?;
        Some(self.at + from * self.stride + offset % self.stride)
    }
}

/// Sorts the elements of a multiset, those that are there first, and where they come from.
fn sort_bag(bag: Bag, area: &mut [i32], origins: &mut [u32]) {
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

/// Finds the first values with equal keys that are not all twins; twins stand side by side.
fn mixed(work: &Work) -> Option<Cell> {
    cells(work).into_iter().find(|&Cell { group, from, to }| {
        let twin = |at: usize| work.twins[group][work.orders[group][at] as usize];
        twin(from) != twin(to - 1)
    })
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use consistory_verdict::Budget;

    use super::*;
    use crate::explore::{Options, explore};
    use crate::machine::stepper::{Fired, Stepper};
    use crate::system::Model;

    /// Visits every state by the plainest of searches.
    fn all_states(system: &System) -> HashSet<Vec<i32>> {
        let mut stepper = Stepper::new(system);
        let mut found = HashSet::new();
        let mut open = Vec::new();
        for number in 0..system.lowered.starts.len() {
            assert_eq!(stepper.start(number), Fired::Done);
            open.push(stepper.slots().to_vec());
        }
        while let Some(state) = open.pop() {
            if !found.insert(state.clone()) {
                continue;
            }
            stepper.load_slots(&state);
            for rule in 0..system.lowered.rules.len() {
                if stepper.fire(rule) == Fired::Done {
                    open.push(stepper.slots().to_vec());
                }
                stepper.reset();
            }
        }
        found
    }

    /// Gives all renamings of a state.
    fn orbit(canonical: &Canonical<'_>, state: &[i32]) -> HashSet<Vec<i32>> {
        let mut work = Work {
            memory: state.to_vec(),
            orders: canonical.groups.iter().map(|group| (0..group.size).collect()).collect(),
            positions: canonical.groups.iter().map(|group| vec![0; group.size as usize]).collect(),
            candidate: vec![UNDEFINED; state.len()],
            origins: vec![0; state.len()],
            ..Work::default()
        };
        let mut orbit = HashSet::new();
        loop {
            canonical.apply(&mut work);
            orbit.insert(work.candidate.clone());
            if !work.orders.iter_mut().any(|order| next_order(order)) {
                return orbit;
            }
        }
    }

    fn is_exact(text: &str) {
        let system = Model::parse("test.m", text).unwrap_or_else(|e| panic!("{e}")).plain();
        let mut canonical = Canonical::new(&system, None, &system.symmetric.types);
        let states = all_states(&system);
        let mut left: HashSet<Vec<i32>> = states.clone();
        let mut orbits = 0;
        while let Some(state) = left.iter().next().cloned() {
            let orbit = orbit(&canonical, &state);
            let first = canonical.of(&state, &[], None).0.to_vec();
            assert!(orbit.contains(&first), "the representative is a renaming");
            for renamed in &orbit {
                assert!(states.contains(renamed), "renaming leads to states that are reached");
                assert_eq!(
                    canonical.of(renamed, &[], None).0,
                    first,
                    "{renamed:?} has the same one"
                );
                left.remove(renamed);
            }
            orbits += 1;
        }
        let count = |symmetry| {
            let options = Options { symmetry, deadlock: false, ..Options::default() };
            explore(&system, None, &options, &Budget::unlimited(), &mut |_| {}).progress.states
        };
        assert_eq!((count(false), count(true)), (states.len() as u64, orbits), "{text}");
    }

    #[test]
    fn representatives_are_exact() {
        for text in [
            include_str!("../../tests/models/unions.m"),
            include_str!("../../tests/models/multisets.m"),
            include_str!("../../tests/models/nested.m"),
            include_str!("../../tests/models/doubtful-loop.m"),
            &include_str!("../../tests/models/german.m").replace("CLIENTS: 4", "CLIENTS: 2"),
            // Values that point at each other: a cycle of three and a pair look the same to keys.
            "type P: scalarset(5); var next: array [P] of P;\n\
             startstate undefine next; end;\n\
             ruleset p: P; q: P do\n\
               rule p != q & isundefined(next[p]) & forall r: P do isundefined(next[r]) | next[r] != q end\n\
               ==> next[p] := q; end;\n\
             end;",
            // Two scalarsets, an array over both, multisets in an array.
            "type P: scalarset(3); B: scalarset(2); var on: array [P] of array [B] of boolean;\n\
             net: array [P] of multiset [2] of record b: B; p: P; end;\n\
             startstate for p: P do for b: B do on[p][b] := false; end; end; undefine net; end;\n\
             ruleset p: P; b: B do\n\
               rule !on[p][b] & multisetcount(i: net[p], true) < 1 ==>\n\
               var m: record b: B; p: P; end; begin m.b := b; m.p := p; on[p][b] := true;\n\
               for q: P do if q != p & multisetcount(i: net[q], true) < 2 then multisetadd(m, net[q]); end; end;\n\
               end;\n\
             end;\n\
             ruleset p: P do choose i: net[p] do\n\
               rule on[net[p][i].p][net[p][i].b] ==> on[net[p][i].p][net[p][i].b] := false; multisetremove(i, net[p]); end;\n\
               rule !on[net[p][i].p][net[p][i].b] ==> multisetremove(i, net[p]); end;\n\
             end; end;",
        ] {
            is_exact(text);
        }
    }
}
