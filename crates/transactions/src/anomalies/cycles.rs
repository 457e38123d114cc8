//! Short cycles that match the pattern of an anomaly.
//!
//! A pattern is a small automaton over the kinds of dependencies. The search goes breadth first
//! through pairs of a transaction and a state. Patterns with an anti-dependency start at a read,
//! the others at a transaction. Only strongly connected components of at least two transactions are
//! searched, so a history without cycles costs one pass.
//!
//! From each start the search finds a shortest walk that matches the pattern. A walk that visits a
//! transaction twice is not an example, and longer walks from the same start are not searched,
//! since finding all of them takes exponential time. After [`MAX_PATTERN_STEPS`] the shortest cycle
//! so far is taken. If a walk is rejected or the limit is reached, and no cycle of a class is
//! found, the class is reported as unfinished.

use consistory_history::KeyId;
use consistory_verdict::{Anomaly, Budget, Dependency, Level, Stopped, TransactionCertificate};
use rustc_hash::{FxHashMap, FxHashSet};

use super::graph::{DependencyGraph, Kind};

/// Largest number of steps of the search for one pattern.
const MAX_PATTERN_STEPS: u64 = 3_000_000;

/// Classes whose pattern is a cycle, the worst first.
pub(super) const CLASSES: [Anomaly; 13] = [
    Anomaly::DirtyWrite,
    Anomaly::CircularDependency,
    Anomaly::NonMonotonicRead,
    Anomaly::FracturedRead,
    Anomaly::SessionMiss,
    Anomaly::StaleRead,
    Anomaly::CausalityViolation,
    Anomaly::LostUpdate,
    Anomaly::ReadSkew,
    Anomaly::LongFork,
    Anomaly::NonAdjacent,
    Anomaly::WriteSkew,
    Anomaly::AntiDependencyCycle,
];

/// Searches for a short cycle of every class. Adds the cycles found, and removes the classes whose
/// search was completed from the unfinished ones.
pub(super) fn search(
    graph: &DependencyGraph<'_, '_>,
    budget: &Budget,
    found: &mut Vec<(Anomaly, TransactionCertificate)>,
    unfinished: &mut Vec<Anomaly>,
) -> Result<(), Stopped> {
    let components = components(graph, &Kind::ALL, budget)?;
    let mut sizes: FxHashMap<u32, u32> = FxHashMap::default();
    for &component in &components[..graph.transactions()] {
        *sizes.entry(component).or_default() += 1;
    }
    let starts: Vec<u32> = (0..graph.transactions() as u32)
        .filter(|&node| sizes[&components[node as usize]] > 1)
        .collect();
    if starts.is_empty() {
        if graph.is_whole() {
            unfinished.clear();
        }
        return Ok(());
    }
    for class in CLASSES {
        let mut search = PatternSearch {
            graph,
            components: &components,
            class,
            level: class.weakest_violated(),
            best: None,
            longest: usize::MAX,
            steps: 0,
            has_passed_twice: false,
        };
        for &start in &starts {
            budget.check()?;
            search.search_from(start);
            let is_shortest = search.longest < shortest_possible(class);
            if is_shortest || search.steps > MAX_PATTERN_STEPS {
                break;
            }
        }
        let is_complete =
            graph.is_whole() && search.steps <= MAX_PATTERN_STEPS && !search.has_passed_twice;
        if search.best.is_some() || is_complete {
            unfinished.retain(|&other| other != class);
        }
        if let Some(edges) = search.best {
            found.push((class, TransactionCertificate::Cycle { edges }));
        }
    }
    Ok(())
}

fn shortest_possible(class: Anomaly) -> usize {
    match class {
        Anomaly::CausalityViolation | Anomaly::AntiDependencyCycle => 3,
        Anomaly::LongFork | Anomaly::NonAdjacent => 4,
        _ => 2,
    }
}

/// Returns the state of a class's automaton after a dependency.
fn next_state(class: Anomaly, state: u8, kind: Kind) -> Option<u8> {
    use Kind::{Rt, Rw, So, Wr, Ww};
    let found = match (class, state, kind) {
        (Anomaly::DirtyWrite, 0, Ww) => 0,
        (Anomaly::CircularDependency, _, Rw) => return None,
        (Anomaly::CircularDependency, state, Ww) => state,
        (Anomaly::CircularDependency, _, _) => 1,
        (Anomaly::DirtyWrite, ..) => return None,
        // All other patterns start with an anti-dependency.
        (_, 0, Rw) => 1,
        (_, 0, _) => return None,
        (Anomaly::NonMonotonicRead | Anomaly::FracturedRead, 1, Wr)
        | (Anomaly::SessionMiss, 1, So)
        | (Anomaly::StaleRead, 1, Rt)
        | (Anomaly::LostUpdate, 1, Ww)
        | (Anomaly::WriteSkew, 1, Rw) => 2,
        (Anomaly::CausalityViolation, state, So | Rt | Wr) => (state + 1).min(3),
        (Anomaly::ReadSkew, 1 | 2, So | Rt | Wr) => 2,
        (Anomaly::ReadSkew, 1 | 2, Ww) | (Anomaly::ReadSkew, 3, So | Rt | Wr | Ww) => 3,
        (Anomaly::LongFork, 1, Wr) => 2,
        (Anomaly::LongFork, 2, Rw) => 3,
        (Anomaly::LongFork, 3, Wr) => 4,
        (Anomaly::NonAdjacent, 1 | 2, So | Rt | Wr | Ww) => 2,
        (Anomaly::NonAdjacent, 2 | 4, Rw) => 3,
        (Anomaly::NonAdjacent, 3 | 4, So | Rt | Wr | Ww) => 4,
        (Anomaly::AntiDependencyCycle, 1, Rw) => 2,
        (Anomaly::AntiDependencyCycle, 2 | 3, _) => 3,
        _ => return None,
    };
    Some(found)
}

/// Returns the state in which a class's automaton accepts.
fn accepting(class: Anomaly) -> u8 {
    match class {
        Anomaly::DirtyWrite => 0,
        Anomaly::CircularDependency => 1,
        Anomaly::CausalityViolation | Anomaly::ReadSkew | Anomaly::AntiDependencyCycle => 3,
        Anomaly::LongFork | Anomaly::NonAdjacent => 4,
        _ => 2,
    }
}

/// A dependency on the way to a transaction.
#[derive(Clone, Copy)]
struct Arrival {
    /// Transaction and state at which the dependency starts.
    from: (u32, u8),
    kind: Kind,
    read: u32,
    key: Option<KeyId>,
}

struct PatternSearch<'a, 'p, 't> {
    graph: &'a DependencyGraph<'p, 't>,
    components: &'a [u32],
    class: Anomaly,
    level: Level,
    best: Option<Vec<Dependency>>,
    /// Largest number of dependencies of a cycle that is still useful.
    longest: usize,
    steps: u64,
    /// Whether a walk was rejected because it visits a transaction twice.
    has_passed_twice: bool,
}

impl PatternSearch<'_, '_, '_> {
    /// Searches for cycles that start at a transaction.
    fn search_from(&mut self, start: u32) {
        let mut reads = Vec::new();
        let level = self.level;
        self.graph.dependencies(start, level, |kind, _, read| match kind {
            Kind::Rw => reads.push(Some(read)),
            _ if next_state(self.class, 0, kind).is_some() => reads.push(None),
            _ => {}
        });
        if next_state(self.class, 0, Kind::Rw).is_none() {
            reads.retain(Option::is_none);
        }
        reads.dedup();
        for first in reads {
            self.search_from_read(start, first);
            if self.longest < shortest_possible(self.class) || self.steps > MAX_PATTERN_STEPS {
                return;
            }
        }
    }

    /// Searches breadth first; the first dependency is the anti-dependency of `first`, if there is one.
    fn search_from_read(&mut self, start: u32, first: Option<u32>) {
        let graph = self.graph;
        let component = self.components[start as usize];
        let mut arrivals: FxHashMap<(u32, u8), Arrival> = FxHashMap::default();
        // Transaction from which each auxiliary node was reached.
        let mut passed: FxHashMap<(u32, u8), u32> = FxHashMap::default();
        let mut frontier = vec![(start, 0u8)];
        let mut length = 0;
        while !frontier.is_empty() && length < self.longest && self.steps <= MAX_PATTERN_STEPS {
            length += 1;
            let mut next: Vec<(u32, u8)> = Vec::new();
            for from in frontier {
                let mut open: Vec<(u32, Arrival, u8)> = Vec::new();
                graph.dependencies(from.0, self.level, |kind, to, read| {
                    if length == 1 && first.is_some() && (kind, Some(read)) != (Kind::Rw, first) {
                        return;
                    }
                    if let Some(state) = next_state(self.class, from.1, kind) {
                        open.push((to, Arrival { from, kind, read, key: graph.key_at(to) }, state));
                    }
                });
                while let Some((node, arrival, state)) = open.pop() {
                    self.steps += 1;
                    if self.components[node as usize] != component {
                        continue;
                    }
                    if (node as usize) < graph.transactions() {
                        if node == start {
                            if state == accepting(self.class) && from.0 != start {
                                self.close(start, &arrivals, arrival, length);
                            }
                        } else if node != from.0 && !arrivals.contains_key(&(node, state)) {
                            arrivals.insert((node, state), arrival);
                            next.push((node, state));
                        }
                        continue;
                    }
                    match passed.get(&(node, state)) {
                        // A transaction has no anti-dependency on itself, so the first transaction
                        // that reached its version may not be the one that can reach the
                        // transaction.
                        Some(&earlier) if earlier != from.0 => {
                            graph.passages(node, self.level, |to| {
                                if to == earlier {
                                    open.push((to, arrival, state));
                                }
                            });
                        }
                        Some(_) => {}
                        None => {
                            passed.insert((node, state), from.0);
                            graph.passages(node, self.level, |to| open.push((to, arrival, state)));
                        }
                    }
                }
            }
            frontier = next;
        }
    }

    /// Stores a cycle if it is simple and belongs to the class.
    fn close(
        &mut self,
        start: u32,
        arrivals: &FxHashMap<(u32, u8), Arrival>,
        last: Arrival,
        length: usize,
    ) {
        if length > self.longest {
            return;
        }
        let mut steps = vec![(start, last)];
        while let Some(&(_, arrival)) = steps.last()
            && arrival.from != (start, 0)
        {
            let Some(&earlier) = arrivals.get(&arrival.from) else { return };
            steps.push((arrival.from.0, earlier));
        }
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        if !steps.iter().all(|(to, _)| seen.insert(*to)) {
            self.has_passed_twice = true;
            return;
        }
        // If two transactions miss each other's writes of one key, this is a lost update.
        if self.class == Anomaly::WriteSkew {
            let key = |arrival: &Arrival| self.graph.problem.key_of(arrival.read);
            if key(&steps[0].1) == key(&steps[1].1) {
                return;
            }
        }
        let dependency = |(to, arrival): &(u32, Arrival)| {
            let Arrival { from, kind, read, key } = *arrival;
            self.graph.dependency((from.0, *to), kind, read, key, self.level)
        };
        let Some(edges) = steps.iter().rev().map(dependency).collect::<Option<Vec<_>>>() else {
            return;
        };
        let certificate = TransactionCertificate::Cycle { edges };
        if Anomaly::of_certificate(self.graph.problem.tx.history(), &certificate)
            == Some(self.class)
            && let TransactionCertificate::Cycle { edges } = certificate
        {
            self.best = Some(edges);
            self.longest = length - 1;
        }
    }
}

/// Computes the strongly connected component of every node, along dependencies of some kinds only
/// (Tarjan, without recursion).
pub(super) fn components(
    graph: &DependencyGraph<'_, '_>,
    kinds: &[Kind],
    budget: &Budget,
) -> Result<Vec<u32>, Stopped> {
    const NEW: u32 = u32::MAX;
    let count = graph.len();
    let (mut index, mut low) = (vec![NEW; count], vec![0u32; count]);
    let mut component = vec![NEW; count];
    let (mut counter, mut components) = (0, 0);
    let mut stack: Vec<u32> = Vec::new();
    let mut calls: Vec<(u32, Vec<u32>)> = Vec::new();
    let level = Level::Serializable;
    let successors = |node: u32| {
        let mut next = Vec::new();
        if (node as usize) < graph.transactions() {
            graph.dependencies(node, level, |kind, to, _| {
                if kinds.contains(&kind) {
                    next.push(to);
                }
            });
        } else {
            graph.passages(node, level, |to| next.push(to));
        }
        next
    };
    for root in 0..graph.transactions() as u32 {
        if root % 1024 == 0 {
            budget.check()?;
        }
        if index[root as usize] != NEW {
            continue;
        }
        let mut entered = Some(root);
        loop {
            if let Some(node) = entered.take() {
                index[node as usize] = counter;
                low[node as usize] = counter;
                counter += 1;
                stack.push(node);
                calls.push((node, successors(node)));
            }
            let Some((node, open)) = calls.last_mut() else { break };
            let node = *node as usize;
            if let Some(next) = open.pop() {
                if index[next as usize] == NEW {
                    entered = Some(next);
                } else if component[next as usize] == NEW {
                    low[node] = low[node].min(index[next as usize]);
                }
                continue;
            }
            calls.pop();
            if low[node] == index[node] {
                while let Some(member) = stack.pop() {
                    component[member as usize] = components;
                    if member as usize == node {
                        break;
                    }
                }
                components += 1;
            }
            if let Some((parent, _)) = calls.last() {
                low[*parent as usize] = low[*parent as usize].min(low[node]);
            }
        }
    }
    Ok(component)
}
