//! All small programs, one for each symmetry class.
//!
//! Programs of the paper's core (section 4.2): every read has a unique register and every write a
//! unique value, so only the shape remains: for each thread the kinds and addresses of its
//! accesses, and the neighbours with a fence between them. A fence at either end of a thread, or
//! next to another fence, has no effect and is left out. Optionally an access depends on an earlier
//! read of its thread, by its value if it writes and by its address if it reads.
//!
//! Two shapes that differ by the names of addresses or by the order of threads are symmetric. One
//! of each class is generated: threads come longest first, addresses are numbered in the order of
//! appearance, and of the remaining orders of threads the least text is kept. Unlike the paper's,
//! this reduction leaves no two symmetric programs.
//!
//! A program is redundant (section 4.3) if its conflict graph is not strongly connected: nodes are
//! accesses, edges are program order and, both ways, pairs with one address of which one writes.
//! Such a program falls into two that share no address, one before the other, and its outcomes are
//! those of the parts combined. A dependency of an access after a fence is redundant, too: the fence
//! keeps the pair in order already.

use std::cmp::Ordering;
use std::collections::VecDeque;

use consistory_verdict::{Budget, Stopped};

use crate::program::{
    Address, Expression, Instruction, Location, LocationId, Operator, Program, Register,
    RegisterId, Thread, Value,
};

/// Bounds on the size of programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// Largest number of reads and writes; fences do not count.
    pub accesses: usize,
    /// Largest number of threads.
    pub threads: usize,
    /// Largest number of reads and writes of one thread.
    pub per_thread: usize,
    /// Largest number of addresses.
    pub locations: usize,
    /// Whether there are fences.
    pub fences: bool,
    /// Whether accesses may depend on earlier reads.
    pub dependencies: bool,
}

impl Bound {
    /// Bounds the accesses, with at most three addresses and any number of threads and fences.
    pub fn accesses(accesses: usize) -> Self {
        Bound {
            accesses,
            threads: accesses,
            per_thread: accesses,
            locations: 3,
            fences: true,
            dependencies: false,
        }
    }
}

/// Largest number of names of addresses in a shape.
const MAX_NAMES: usize = 256;

/// A read or write of a shape.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Access {
    pub(crate) is_read: bool,
    pub(crate) address: u8,
    /// Whether there is a fence between it and the access before it.
    pub(crate) is_fenced: bool,
    /// Access of its thread that it depends on, counted from 1; 0 for none.
    pub(crate) depends: u8,
}

/// A program up to the names of registers and values.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Shape {
    pub(crate) threads: Vec<Vec<Access>>,
}

impl Shape {
    /// Counts the fences.
    pub fn fences(&self) -> usize {
        self.threads.iter().flatten().filter(|access| access.is_fenced).count()
    }

    /// Counts the reads and writes.
    pub fn accesses(&self) -> usize {
        self.threads.iter().map(Vec::len).sum()
    }

    /// Builds the program: addresses `X`, `Y`, `Z`, values from 1 and registers from `r1`.
    pub fn program(&self) -> Program {
        let mut program = Program::default();
        let addresses = self.threads.iter().flatten().map(|access| access.address + 1).max();
        for address in 0..addresses.unwrap_or(0) {
            program.locations.push(Location { name: name_of(address), initial: 0 });
        }
        let (mut registers, mut value): (usize, Value) = (0, 0);
        for accesses in &self.threads {
            let mut thread = Thread::default();
            // The register that each access reads into.
            let mut into = Vec::new();
            for access in accesses {
                if access.is_fenced {
                    thread.code.push(Instruction::fence());
                }
                let location = LocationId::new(usize::from(access.address));
                let source: Option<RegisterId> =
                    access.depends.checked_sub(1).and_then(|at| into[usize::from(at)]);
                if access.is_read {
                    registers += 1;
                    let register = RegisterId::new(thread.registers.len());
                    thread.registers.push(Register { name: format!("r{registers}"), initial: 0 });
                    let depends = source.into_iter().collect();
                    let address = Address { location, depends };
                    thread.code.push(Instruction::Read { register, address });
                    into.push(Some(register));
                } else {
                    value += 1;
                    let constant = Expression::Constant(value);
                    // A false dependency: the register's value does not matter.
                    let value = source.map_or(constant.clone(), |source| {
                        let register = || Box::new(Expression::Register(source));
                        let zero = Expression::Binary(Operator::Xor, register(), register());
                        Expression::Binary(Operator::Add, Box::new(zero), Box::new(constant))
                    });
                    thread.code.push(Instruction::Write { address: location.into(), value });
                    into.push(None);
                }
            }
            program.threads.push(thread);
        }
        program.observed = program.read_registers();
        program
    }

    /// Returns the representative of the program's symmetry class that enumeration generates.
    pub(crate) fn canonical(&self) -> Shape {
        let mut threads: Vec<Vec<Access>> =
            self.threads.iter().filter(|thread| !thread.is_empty()).cloned().collect();
        for thread in &mut threads {
            thread[0].is_fenced = false;
        }
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.len()));
        let mut best: Option<Vec<Vec<Access>>> = None;
        each_order(&threads, &mut |order| {
            let renamed = renamed(order.iter().map(|&at| &threads[at]));
            if best.as_ref().is_none_or(|best| renamed < *best) {
                best = Some(renamed);
            }
        });
        Shape { threads: best.unwrap_or_default() }
    }

    /// Returns whether no other order of the threads has less text.
    fn is_canonical(&self) -> bool {
        let unnamed = [u8::MAX; MAX_NAMES];
        !self.has_less(&mut vec![false; self.threads.len()], 0, &unnamed, 0)
    }

    /// Returns whether an order of the unused threads, in the places from `place` on, has less text
    /// than the threads in these places. `names` has the new name of each address, of which `next`
    /// are taken.
    fn has_less(&self, used: &mut [bool], place: usize, names: &[u8; MAX_NAMES], next: u8) -> bool {
        let Some(current) = self.threads.get(place) else {
            return false;
        };
        // Lengths do not increase, so the next thread has the length of the one in its place.
        (0..self.threads.len()).any(|at| {
            if used[at] || self.threads[at].len() != current.len() {
                return false;
            }
            let (mut names, mut next) = (*names, next);
            for (access, current) in self.threads[at].iter().zip(current) {
                let name = &mut names[usize::from(access.address)];
                if *name == u8::MAX {
                    *name = next;
                    next += 1;
                }
                match (Access { address: *name, ..*access }).cmp(current) {
                    Ordering::Less => return true,
                    Ordering::Equal => {}
                    Ordering::Greater => return false,
                }
            }
            used[at] = true;
            let has_less = self.has_less(used, place + 1, &names, next);
            used[at] = false;
            has_less
        })
    }

    /// Returns whether the conflict graph is strongly connected.
    pub(crate) fn is_connected(&self) -> bool {
        let all: Vec<(usize, Access)> = self
            .threads
            .iter()
            .enumerate()
            .flat_map(|(thread, accesses)| accesses.iter().map(move |&access| (thread, access)))
            .collect();
        let conflict = |a: Access, b: Access| a.address == b.address && !(a.is_read && b.is_read);
        let mut reach: Vec<u64> = (0..all.len())
            .map(|a| {
                let leads = |&b: &usize| {
                    a != b && ((all[a].0 == all[b].0 && a < b) || conflict(all[a].1, all[b].1))
                };
                (0..all.len()).filter(leads).fold(1 << a, |set, b| set | (1 << b))
            })
            .collect();
        for middle in 0..all.len() {
            for at in 0..all.len() {
                if reach[at] & (1 << middle) != 0 {
                    reach[at] |= reach[middle];
                }
            }
        }
        let everything = (1u64 << all.len()) - 1;
        reach.iter().all(|&set| set == everything)
    }

    /// Returns the shapes with one fence, dependency or access less.
    pub(crate) fn smaller(&self) -> Vec<Shape> {
        let mut all = Vec::new();
        for (thread, accesses) in self.threads.iter().enumerate() {
            for (at, access) in accesses.iter().enumerate() {
                if access.is_fenced {
                    let mut shape = self.clone();
                    shape.threads[thread][at].is_fenced = false;
                    all.push(shape.canonical());
                }
                if access.depends > 0 {
                    let mut shape = self.clone();
                    shape.threads[thread][at].depends = 0;
                    all.push(shape.canonical());
                }
                let mut shape = self.clone();
                let rest = &mut shape.threads[thread];
                rest.remove(at);
                for later in &mut rest[at..] {
                    match usize::from(later.depends) {
                        gone if gone == at + 1 => later.depends = 0,
                        behind if behind > at + 1 => later.depends -= 1,
                        _ => {}
                    }
                }
                // A fence on either side is still between its neighbours.
                if let Some(next) = rest.get_mut(at) {
                    next.is_fenced |= access.is_fenced;
                }
                all.push(shape.canonical());
            }
        }
        all.sort();
        all.dedup();
        all
    }
}

/// Returns every shape of exactly this many accesses within the bound, one for each symmetry class,
/// those with few fences first.
pub fn shapes(bound: &Bound, accesses: usize, redundant: Redundant) -> Vec<Shape> {
    shapes_within(bound, accesses, redundant, &Budget::unlimited()).expect(UNLIMITED)
}

/// Returns every shape as [`shapes`] does, within a budget.
pub fn shapes_within(
    bound: &Bound,
    accesses: usize,
    redundant: Redundant,
    budget: &Budget,
) -> Result<Vec<Shape>, Stopped> {
    /// Number of shapes visited between two checks of the budget.
    const SHAPES_PER_LOOK: usize = 256;
    let mut all = Vec::new();
    let mut visited = 0_usize;
    let mut step = || {
        visited += 1;
        if visited.is_multiple_of(SHAPES_PER_LOOK) { budget.check() } else { Ok(()) }
    };
    each_core(bound, accesses, &mut |core| {
        step()?;
        if redundant == Redundant::Drop && !core.is_connected() {
            return Ok(());
        }
        each_decoration(bound, core, redundant, &mut |shape| {
            if shape.is_canonical() {
                all.push(shape.clone());
            }
            step()
        })
    })?;
    let size = |shape: &Shape| (shape.fences(), shape.threads.len());
    sort_within(all, |a, b| size(a).cmp(&size(b)).then_with(|| a.cmp(b)), budget)
}

/// Sorts within a budget: pieces first, which are then merged two by two.
fn sort_within<T>(
    mut all: Vec<T>,
    order: impl Fn(&T, &T) -> Ordering,
    budget: &Budget,
) -> Result<Vec<T>, Stopped> {
    /// Number of elements sorted or merged between two checks of the budget.
    const ELEMENTS_PER_LOOK: usize = 4096;
    let mut runs = VecDeque::new();
    while !all.is_empty() {
        budget.check()?;
        let mut run = all.split_off(all.len().saturating_sub(ELEMENTS_PER_LOOK));
        run.sort_unstable_by(&order);
        runs.push_back(run);
    }
    loop {
        let (left, right) = match (runs.pop_front(), runs.pop_front()) {
            (Some(left), Some(right)) => (left, right),
            (last, _) => return Ok(last.unwrap_or_default()),
        };
        let mut merged = Vec::with_capacity(left.len() + right.len());
        let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
        while let Some(next) = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) if order(a, b).is_gt() => right.next(),
            (Some(_), _) => left.next(),
            (None, _) => right.next(),
        } {
            merged.push(next);
            if merged.len().is_multiple_of(ELEMENTS_PER_LOOK) {
                budget.check()?;
            }
        }
        runs.push_back(merged);
    }
}

/// The treatment of redundant programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Redundant {
    /// They are kept.
    Keep,
    /// They are dropped.
    Drop,
}

/// Returns every shape without any reduction: every order of threads and every naming of addresses.
pub fn plain_shapes(bound: &Bound, accesses: usize) -> Vec<Shape> {
    let mut all = Vec::new();
    each_split(accesses, bound, usize::MAX, &mut Vec::new(), &mut |lengths, is_sorted| {
        let _ = is_sorted;
        let mut shape = Shape { threads: vec![Vec::new(); lengths.len()] };
        fill(bound, lengths, Naming::Any, &mut shape, &mut |core| {
            each_decoration(bound, core, Redundant::Keep, &mut |shape| {
                all.push(shape.clone());
                Ok(())
            })
        })
    })
    .expect(UNLIMITED);
    all
}

/// Naming of addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Naming {
    /// In the order of appearance.
    Appearance,
    /// Arbitrarily.
    Any,
}

/// Function that receives each shape, until it fails.
type Visit<'v> = dyn FnMut(&Shape) -> Result<(), Stopped> + 'v;

/// Function that receives the lengths of the threads, and whether the longest come first.
type VisitSplit<'v> = dyn FnMut(&[usize], bool) -> Result<(), Stopped> + 'v;

/// Message for an enumeration without a budget, which cannot stop.
const UNLIMITED: &str = "nothing stops an enumeration without a budget";

/// Visits the shapes without fences and dependencies, threads longest first.
fn each_core(bound: &Bound, accesses: usize, visit: &mut Visit<'_>) -> Result<(), Stopped> {
    each_split(accesses, bound, accesses, &mut Vec::new(), &mut |lengths, is_sorted| {
        if !is_sorted {
            return Ok(());
        }
        let mut shape = Shape { threads: vec![Vec::new(); lengths.len()] };
        fill(bound, lengths, Naming::Appearance, &mut shape, visit)
    })
}

/// Visits every way to split accesses among threads; `limit` of `usize::MAX` is any order.
fn each_split(
    rest: usize,
    bound: &Bound,
    limit: usize,
    lengths: &mut Vec<usize>,
    visit: &mut VisitSplit<'_>,
) -> Result<(), Stopped> {
    if rest == 0 {
        return visit(lengths, lengths.is_sorted_by(|a, b| a >= b));
    }
    if lengths.len() == bound.threads {
        return Ok(());
    }
    for length in 1..=rest.min(bound.per_thread).min(limit) {
        lengths.push(length);
        each_split(
            rest - length,
            bound,
            limit.min(if limit == usize::MAX { limit } else { length }),
            lengths,
            visit,
        )?;
        lengths.pop();
    }
    Ok(())
}

/// Fills the threads with accesses in every way.
fn fill(
    bound: &Bound,
    lengths: &[usize],
    naming: Naming,
    shape: &mut Shape,
    visit: &mut Visit<'_>,
) -> Result<(), Stopped> {
    let open = (0..lengths.len()).find(|&at| shape.threads[at].len() < lengths[at]);
    let Some(thread) = open else {
        return visit(shape);
    };
    let used = shape.threads.iter().flatten().map(|access| usize::from(access.address) + 1).max();
    let names = match naming {
        Naming::Appearance => (used.unwrap_or(0) + 1).min(bound.locations),
        Naming::Any => bound.locations,
    };
    for is_read in [false, true] {
        for address in 0..names as u8 {
            shape.threads[thread].push(Access { is_read, address, is_fenced: false, depends: 0 });
            fill(bound, lengths, naming, shape, visit)?;
            shape.threads[thread].pop();
        }
    }
    Ok(())
}

/// Visits every way to put fences and dependencies into a shape.
fn each_decoration(
    bound: &Bound,
    core: &Shape,
    redundant: Redundant,
    visit: &mut Visit<'_>,
) -> Result<(), Stopped> {
    let places: Vec<(usize, usize)> = core
        .threads
        .iter()
        .enumerate()
        .flat_map(|(thread, accesses)| (1..accesses.len()).map(move |at| (thread, at)))
        .collect();
    let mut shape = core.clone();
    decorate(bound, &places, redundant, &mut shape, visit)
}

fn decorate(
    bound: &Bound,
    places: &[(usize, usize)],
    redundant: Redundant,
    shape: &mut Shape,
    visit: &mut Visit<'_>,
) -> Result<(), Stopped> {
    let Some((&(thread, at), rest)) = places.split_first() else {
        return visit(shape);
    };
    for is_fenced in [false, true] {
        if is_fenced && !bound.fences {
            continue;
        }
        shape.threads[thread][at].is_fenced = is_fenced;
        decorate(bound, rest, redundant, shape, visit)?;
        if bound.dependencies {
            // The last access at or before this one that has a fence before it.
            let fence = shape.threads[thread][..=at].iter().rposition(|access| access.is_fenced);
            let first = match redundant {
                Redundant::Keep => 0,
                Redundant::Drop => fence.unwrap_or(0),
            };
            for source in first..at {
                if !shape.threads[thread][source].is_read {
                    continue;
                }
                shape.threads[thread][at].depends = source as u8 + 1;
                decorate(bound, rest, redundant, shape, visit)?;
            }
            shape.threads[thread][at].depends = 0;
        }
    }
    shape.threads[thread][at].is_fenced = false;
    Ok(())
}

/// Visits every order of threads that keeps the longest first.
fn each_order(threads: &[Vec<Access>], visit: &mut dyn FnMut(&[usize])) {
    fn extend(threads: &[Vec<Access>], order: &mut Vec<usize>, visit: &mut dyn FnMut(&[usize])) {
        if order.len() == threads.len() {
            visit(order);
            return;
        }
        // Lengths do not increase, so the next has the length of the thread at this place.
        let length = threads[order.len()].len();
        for next in 0..threads.len() {
            if threads[next].len() == length && !order.contains(&next) {
                order.push(next);
                extend(threads, order, visit);
                order.pop();
            }
        }
    }
    extend(threads, &mut Vec::with_capacity(threads.len()), visit);
}

/// Numbers the addresses in the order of appearance.
fn renamed<'a>(threads: impl Iterator<Item = &'a Vec<Access>>) -> Vec<Vec<Access>> {
    let mut names = [u8::MAX; MAX_NAMES];
    let mut next = 0;
    threads
        .map(|thread| {
            let mut thread = thread.clone();
            for access in &mut thread {
                let name = &mut names[usize::from(access.address)];
                if *name == u8::MAX {
                    *name = next;
                    next += 1;
                }
                access.address = *name;
            }
            thread
        })
        .collect()
}

fn name_of(address: u8) -> String {
    match address {
        0 => "X".to_owned(),
        1 => "Y".to_owned(),
        2 => "Z".to_owned(),
        more => format!("A{more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn one_of_each_symmetry_class_is_made() {
        for accesses in 1..=4 {
            for dependencies in [false, true] {
                let bound = Bound { dependencies, ..Bound::accesses(accesses) };
                let plain: BTreeSet<Shape> =
                    plain_shapes(&bound, accesses).iter().map(Shape::canonical).collect();
                let made = shapes(&bound, accesses, Redundant::Keep);
                assert_eq!(made.len(), plain.len(), "{accesses} accesses");
                assert_eq!(made.into_iter().collect::<BTreeSet<_>>(), plain);
            }
        }
    }
}
