//! The numbers of small programs, computed without enumerating them.
//!
//! A program is a multiset of threads up to the names of its addresses. By the lemma of Burnside,
//! the number of symmetry classes is the average, over all permutations of the names, of the number
//! of multisets that the permutation maps to themselves. Such a multiset consists of cycles of
//! threads, so its number follows from the number of cycles of each size and length by a product of
//! power series: cycles of `k` threads of length `l`, of which there are `c`, contribute
//! `(1 - x^(kl))^-c`. The period of a thread under a permutation depends only on the addresses that
//! the thread uses, so threads are counted by that set, access by access.
//!
//! A program of at least two accesses is not redundant if its conflict graph is strongly connected.
//! All accesses to an address that is written are in one component, and a read of an address that
//! is never written has only the edges of program order. So the graph is strongly connected if every
//! thread begins and ends with an access to a written address, and the relation "accessed before,
//! by some thread" connects the written addresses strongly. Programs with exactly these addresses
//! written are those with at most these written, by inclusion and exclusion. Programs whose relation
//! has a certain closure are those with at most this closure, by Möbius inversion over the
//! preorders of the written addresses, of which four addresses have 355.
//!
//! The cost depends on the number of addresses, and hardly on the number of accesses: nine accesses
//! of three addresses take milliseconds. With more than four addresses the programs are enumerated.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::enumerate::{Bound, Redundant, shapes};

/// Largest number of addresses of programs that are counted without enumerating them.
const MAX_ADDRESSES: usize = 4;

/// Number of programs after each reduction, `u64::MAX` for larger numbers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Number of programs without any reduction except unique values and registers.
    pub plain: u64,
    /// Number of symmetry classes.
    pub symmetric: u64,
    /// Number of symmetry classes that are not redundant.
    pub connected: u64,
}

/// Counts the programs of exactly this many accesses.
pub fn count(bound: &Bound, accesses: usize) -> Counts {
    // A program names no more addresses than it has accesses.
    let addresses = bound.locations.min(accesses);
    let (symmetric, connected) = if addresses > MAX_ADDRESSES {
        let length = |redundant| shapes(bound, accesses, redundant).len() as u64;
        (length(Redundant::Keep), length(Redundant::Drop))
    } else {
        let symmetric = symmetry_classes(bound, accesses, addresses);
        // The graph of a single access is connected.
        let connected = match accesses {
            0 | 1 => symmetric,
            _ => connected_classes(bound, accesses, addresses),
        };
        (symmetric, connected)
    };
    Counts { plain: plain(bound, accesses), symmetric, connected }
}

/// Counts the sequences of threads, with every naming of addresses.
fn plain(bound: &Bound, accesses: usize) -> u64 {
    let longest = bound.per_thread.min(accesses);
    // Threads of each length by their number of reads, up to the names of addresses.
    let threads: Vec<u128> = threads(bound, longest, 1, Frame::None)
        .iter()
        .enumerate()
        .map(|(length, kinds)| {
            let names = (bound.locations as u128).saturating_pow(length as u32);
            kinds.values().sum::<u128>().saturating_mul(names)
        })
        .collect();
    let mut sequences = vec![0_u128; accesses + 1];
    sequences[0] = 1;
    let mut total = u128::from(accesses == 0);
    for _ in 0..bound.threads.min(accesses) {
        let mut longer = vec![0_u128; accesses + 1];
        for (size, &number) in sequences.iter().enumerate() {
            for length in 1..=longest.min(accesses - size) {
                let product = number.saturating_mul(threads[length]);
                longer[size + length] = longer[size + length].saturating_add(product);
            }
        }
        sequences = longer;
        total = total.saturating_add(sequences[accesses]);
    }
    u64::try_from(total).unwrap_or(u64::MAX)
}

/// Counts the symmetry classes.
fn symmetry_classes(bound: &Bound, accesses: usize, addresses: usize) -> u64 {
    let kinds = threads(bound, bound.per_thread.min(accesses), addresses, Frame::None);
    let permutations = permutations(addresses);
    let fixed = permutations.iter().map(|permutation| {
        let mut cycles: BTreeMap<CycleSize, u128> = BTreeMap::new();
        for (length, kinds) in kinds.iter().enumerate().skip(1) {
            for (kind, number) in kinds {
                let period = period(permutation, kind.used);
                *cycles.entry(CycleSize { length, period }).or_default() += number;
            }
        }
        multisets(&cycles, accesses, bound.threads)
    });
    let total = fixed.sum::<i128>() / permutations.len() as i128;
    u64::try_from(total).unwrap_or(u64::MAX)
}

/// Counts the symmetry classes whose conflict graph is strongly connected, of at least two
/// accesses, without dependencies across fences.
fn connected_classes(bound: &Bound, accesses: usize, addresses: usize) -> u64 {
    let permutations = permutations(addresses);
    let mut total = 0_i128;
    for written in 1..=addresses {
        // The addresses written are the first ones; every other choice gives the same number.
        let choices = binomial(addresses as u128, written as u128) as i128;
        let longest = bound.per_thread.min(accesses);
        let kinds = threads(bound, longest, addresses, Frame::Written(written));
        let preorders = Preorders::of(written);
        for permutation in &permutations {
            if permutation[..written].iter().any(|&to| usize::from(to) >= written) {
                continue;
            }
            let mut groups: FxHashMap<Group, u128> = FxHashMap::default();
            for (length, kinds) in kinds.iter().enumerate().skip(1) {
                for (kind, number) in kinds.iter().filter(|(kind, _)| kind.ends_framed) {
                    let period = period(permutation, kind.used);
                    let (mut writes, mut before) = (kind.written, kind.before);
                    let mut image = (writes, before);
                    for _ in 1..period {
                        image = (mapped(permutation, image.0), mapped_pairs(permutation, image.1));
                        writes |= image.0;
                        before |= image.1;
                    }
                    let before = preorders.closures[&before];
                    let size = CycleSize { length, period };
                    *groups.entry(Group { size, writes, before }).or_default() += number;
                }
            }
            for writes in 0..1_u8 << written {
                let is_even = (written - writes.count_ones() as usize).is_multiple_of(2);
                let sign = if is_even { 1 } else { -1 };
                for (at, &preorder) in preorders.all.iter().enumerate() {
                    if preorders.moebius[at] == 0 {
                        continue;
                    }
                    let mut cycles: BTreeMap<CycleSize, u128> = BTreeMap::new();
                    for (group, number) in &groups {
                        if group.writes & !writes == 0 && group.before & !preorder == 0 {
                            *cycles.entry(group.size).or_default() += number;
                        }
                    }
                    let number = multisets(&cycles, accesses, bound.threads);
                    total += choices * sign * preorders.moebius[at] * number;
                }
            }
        }
    }
    u64::try_from(total / permutations.len() as i128).unwrap_or(u64::MAX)
}

/// Pairs of addresses as bits, [`MAX_ADDRESSES`] for each first address.
type Pairs = u16;

/// What the counts need to know of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
struct Kind {
    /// The addresses that it accesses.
    used: u8,
    /// The addresses that it writes.
    written: u8,
    /// The pairs of different addresses of the frame accessed one after the other.
    before: Pairs,
    /// The last address of the frame.
    last: Option<u8>,
    /// Whether the last access is to an address of the frame.
    ends_framed: bool,
    /// Number of reads on which the next access may depend.
    reads: u8,
}

/// The addresses that may be written.
#[derive(Clone, Copy)]
enum Frame {
    /// All of them, and nothing else is to be known.
    None,
    /// The first ones, and each thread begins with one of them.
    Written(usize),
}

/// Returns the numbers of threads of each kind, for each length from 0 on.
fn threads(
    bound: &Bound,
    longest: usize,
    addresses: usize,
    frame: Frame,
) -> Vec<FxHashMap<Kind, u128>> {
    let mut levels = vec![FxHashMap::from_iter([(Kind::default(), 1_u128)])];
    for length in 0..longest {
        let mut next: FxHashMap<Kind, u128> = FxHashMap::default();
        for (kind, number) in &levels[length] {
            for address in 0..addresses as u8 {
                for is_read in [false, true] {
                    let Some(longer) = kind.and_access(address, is_read, frame) else {
                        continue;
                    };
                    let reads = u8::from(is_read && bound.dependencies);
                    let choices = 1 + u128::from(kind.reads);
                    let unfenced = Kind { reads: kind.reads + reads, ..longer };
                    *next.entry(unfenced).or_default() += number * choices;
                    if length > 0 && bound.fences {
                        // A dependency across a fence is redundant.
                        let (reads, choices) = match frame {
                            Frame::None => (kind.reads + reads, choices),
                            Frame::Written(_) => (reads, 1),
                        };
                        *next.entry(Kind { reads, ..longer }).or_default() += number * choices;
                    }
                }
            }
        }
        levels.push(next);
    }
    levels
}

impl Kind {
    /// Returns the kind of the thread with one more access, if the frame permits the access.
    fn and_access(&self, address: u8, is_read: bool, frame: Frame) -> Option<Kind> {
        let used = self.used | 1 << address;
        let Frame::Written(written) = frame else {
            return Some(Kind { used, ..*self });
        };
        if usize::from(address) >= written {
            let is_inside = is_read && self.used != 0;
            return is_inside.then_some(Kind { used, ends_framed: false, ..*self });
        }
        let before = match self.last {
            Some(last) if last != address => self.before | pair(last, address),
            _ => self.before,
        };
        Some(Kind {
            used,
            written: self.written | u8::from(!is_read) << address,
            before,
            last: Some(address),
            ends_framed: true,
            reads: self.reads,
        })
    }
}

/// Length and number of the threads of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct CycleSize {
    length: usize,
    period: usize,
}

/// Threads whose cycles have one size and affect the same addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Group {
    size: CycleSize,
    /// The addresses that the cycle writes.
    writes: u8,
    /// The closure of the pairs that the cycle accesses one after the other.
    before: Pairs,
}

/// Counts the multisets of cycles with this many accesses and at most this many threads, given the
/// number of threads in cycles of each size.
fn multisets(cycles: &BTreeMap<CycleSize, u128>, accesses: usize, threads: usize) -> i128 {
    let threads = threads.min(accesses);
    // Numbers by accesses and threads.
    let mut numbers = vec![vec![0_u128; threads + 1]; accesses + 1];
    numbers[0][0] = 1;
    for (size, in_cycles) in cycles {
        let cycles = in_cycles / size.period as u128;
        let weight = size.length * size.period;
        let mut more = numbers.clone();
        for times in 1..=accesses / weight {
            let Some(choices) = cycles.checked_add(times as u128 - 1) else { continue };
            let choices = binomial(choices, times as u128);
            for from in 0..=accesses - times * weight {
                for used in 0..=threads.saturating_sub(times * size.period) {
                    if numbers[from][used] > 0 && used + times * size.period <= threads {
                        more[from + times * weight][used + times * size.period] +=
                            numbers[from][used] * choices;
                    }
                }
            }
        }
        numbers = more;
    }
    numbers[accesses].iter().sum::<u128>() as i128
}

/// Returns `n` over `k`, 0 if `n` is less than `k`.
fn binomial(n: u128, k: u128) -> u128 {
    if n < k {
        return 0;
    }
    (0..k).fold(1, |product, i| product * (n - i) / (i + 1))
}

/// Returns all permutations of the first numbers.
fn permutations(length: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    for next in 0..length as u8 {
        all = all
            .iter()
            .flat_map(|permutation: &Vec<u8>| {
                (0..=permutation.len()).map(move |at| {
                    let mut longer = permutation.clone();
                    longer.insert(at, next);
                    longer
                })
            })
            .collect();
    }
    all
}

/// Returns how often a permutation must be applied to return each address of a set to itself.
fn period(permutation: &[u8], set: u8) -> usize {
    let mut image: Vec<u8> = permutation.to_vec();
    let mut period = 1;
    while (0..permutation.len()).any(|at| set & 1 << at != 0 && usize::from(image[at]) != at) {
        for to in &mut image {
            *to = permutation[usize::from(*to)];
        }
        period += 1;
    }
    period
}

/// Returns the image of a set of addresses.
fn mapped(permutation: &[u8], set: u8) -> u8 {
    let bits = (0..permutation.len()).filter(|at| set & 1 << at != 0);
    bits.fold(0, |image, at| image | 1 << permutation[at])
}

/// Returns the image of a set of pairs.
fn mapped_pairs(permutation: &[u8], pairs: Pairs) -> Pairs {
    let mut image = 0;
    for (from, &to_from) in permutation.iter().enumerate() {
        for (to, &to_to) in permutation.iter().enumerate() {
            if pairs & pair(from as u8, to as u8) != 0 {
                image |= pair(to_from, to_to);
            }
        }
    }
    image
}

/// Returns the pair of two addresses.
fn pair(from: u8, to: u8) -> Pairs {
    1 << (usize::from(from) * MAX_ADDRESSES + usize::from(to))
}

/// The preorders of the first addresses, without their pairs of equal addresses.
struct Preorders {
    all: Vec<Pairs>,
    /// The Möbius function between each preorder and the greatest.
    moebius: Vec<i128>,
    /// The closure of each relation.
    closures: FxHashMap<Pairs, Pairs>,
}

impl Preorders {
    /// Lists the preorders.
    fn of(addresses: usize) -> Self {
        let names = 0..addresses as u8;
        let edges: Vec<Pairs> = names
            .clone()
            .flat_map(|from| names.clone().filter(move |&to| to != from).map(move |to| (from, to)))
            .map(|(from, to)| pair(from, to))
            .collect();
        let mut closures = FxHashMap::default();
        for set in 0..1_u32 << edges.len() {
            let chosen = edges.iter().enumerate().filter(|(at, _)| set & 1 << at != 0);
            let relation = chosen.fold(0, |relation, (_, edge)| relation | edge);
            closures.insert(relation, closure(relation, addresses as u8));
        }
        let mut all: Vec<Pairs> = closures.values().copied().collect();
        // The greatest first, so that each comes after all that contain it.
        all.sort_by_key(|preorder| (std::cmp::Reverse(preorder.count_ones()), *preorder));
        all.dedup();
        let mut moebius: Vec<i128> = Vec::with_capacity(all.len());
        for (at, &preorder) in all.iter().enumerate() {
            let above = (0..at).filter(|&above| all[above] & preorder == preorder);
            let sum: i128 = above.map(|above| moebius[above]).sum();
            moebius.push(if at == 0 { 1 } else { -sum });
        }
        Preorders { all, moebius, closures }
    }
}

/// Returns the transitive closure of a relation, without pairs of equal addresses.
fn closure(mut relation: Pairs, addresses: u8) -> Pairs {
    for middle in 0..addresses {
        for from in 0..addresses {
            for to in 0..addresses {
                let is_step =
                    relation & pair(from, middle) != 0 && relation & pair(middle, to) != 0;
                if from != to && is_step {
                    relation |= pair(from, to);
                }
            }
        }
    }
    relation
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enumerate::plain_shapes;

    #[test]
    fn counts_are_of_the_enumeration() {
        let all = |accesses: usize| Bound::accesses(accesses);
        for accesses in 0..=4 {
            for bound in [
                all(accesses),
                Bound { dependencies: true, ..all(accesses) },
                Bound { dependencies: true, fences: false, locations: 2, ..all(accesses) },
                Bound { threads: 2, ..all(accesses) },
                Bound { per_thread: 2, locations: 4, ..all(accesses) },
                Bound { fences: false, locations: 4, ..all(accesses) },
                Bound { locations: 1, threads: 3, ..all(accesses) },
            ] {
                let counts = count(&bound, accesses);
                let plain = plain_shapes(&bound, accesses).len() as u64;
                let symmetric = shapes(&bound, accesses, Redundant::Keep).len() as u64;
                let connected = shapes(&bound, accesses, Redundant::Drop).len() as u64;
                let expected = Counts { plain, symmetric, connected };
                assert_eq!(counts, expected, "{accesses} accesses, {bound:?}");
            }
        }
        // Cycles of three addresses, and threads of three accesses.
        for bound in [
            Bound { per_thread: 3, ..all(6) },
            Bound { per_thread: 2, locations: 4, fences: false, ..all(6) },
            Bound { threads: 2, dependencies: true, ..all(5) },
            Bound { locations: 5, fences: false, per_thread: 2, ..all(5) },
        ] {
            let counts = count(&bound, bound.accesses);
            let symmetric = shapes(&bound, bound.accesses, Redundant::Keep).len() as u64;
            let connected = shapes(&bound, bound.accesses, Redundant::Drop).len() as u64;
            assert_eq!((counts.symmetric, counts.connected), (symmetric, connected), "{bound:?}");
        }
    }

    #[test]
    fn preorders_are_counted_as_known() {
        let numbers: Vec<usize> = (1..=4).map(|n| Preorders::of(n).all.len()).collect();
        assert_eq!(numbers, [1, 4, 29, 355]);
    }
}
