//! Shapes of histories, each once up to the names of sessions, variables and values.
//!
//! The values of a differentiated history only determine the source of each read, so a history is a
//! *shape* (which session reads and writes which variable in which order) and a source for each
//! read. Two histories are the same if a permutation of the sessions and one of the variables maps
//! one to the other. One history of each class is generated:
//!
//! - sessions are sorted by length, longest first, and sessions of the same length by the kinds of
//!   their operations; the remaining permutations exchange sessions with the same kinds. This is a
//!   *skeleton*;
//! - variables are numbered by first occurrence, and the smallest of the numberings under these
//!   permutations is kept. A shape stores the permutations that leave it unchanged;
//! - the smallest of the choices of sources under those permutations is kept ([`crate::sources`]).
//!
//! No history is stored for comparison, so memory does not grow with the number of histories.

use crate::relation::LIMIT;

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Write,
    Read,
    Rmw,
    Fence,
}

/// A space of histories to examine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Space {
    /// Largest number of operations.
    pub operations: usize,
    /// Largest number of sessions.
    pub sessions: usize,
    /// Largest number of variables.
    pub variables: usize,
    /// Whether there are fences.
    pub fences: bool,
    /// Whether there are read-modify-writes.
    pub rmws: bool,
}

impl Space {
    /// Returns the space of all histories of reads and writes with at most this many operations.
    pub fn of(operations: usize) -> Self {
        let variables = operations.min(LIMIT.saturating_sub(operations));
        Space { operations, sessions: operations, variables, fences: false, rmws: false }
    }

    /// Returns whether the histories are small enough: at most sixteen operations and variables
    /// together.
    pub fn is_small(&self) -> bool {
        self.operations + self.variables.min(self.operations) <= LIMIT
    }
}

/// The kinds of operations of each session in order, without variables and sources.
#[derive(Clone, Debug)]
pub(crate) struct Skeleton {
    pub(crate) kinds: Vec<Kind>,
    /// The session of each operation.
    pub(crate) session: Vec<usize>,
    pub(crate) sessions: usize,
    /// Permutations of operations, other than the identity, that exchange sessions with the same
    /// kinds: the operation that moves to each position.
    symmetries: Vec<Vec<u8>>,
}

/// The kinds and variables of the operations of each session in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    skeleton: &'a Skeleton,
    variable: [u8; LIMIT],
    variables: usize,
}

/// The source of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    pub(crate) read: usize,
    pub(crate) variable: usize,
    /// The write, or nothing for the initial value.
    pub(crate) write: Option<usize>,
}

const NO_VARIABLE: u8 = u8::MAX;

impl Skeleton {
    /// Counts the operations that are neither plain reads nor plain writes.
    pub(crate) fn extras(&self) -> usize {
        self.kinds.iter().filter(|kind| matches!(kind, Kind::Rmw | Kind::Fence)).count()
    }

    /// Returns whether an operation is the first of its session.
    pub(crate) fn is_first(&self, at: usize) -> bool {
        at == 0 || self.session[at - 1] != self.session[at]
    }

    /// Returns whether an operation is the last of its session.
    pub(crate) fn is_last(&self, at: usize) -> bool {
        self.session.get(at + 1) != Some(&self.session[at])
    }

    /// Calls `each` for every shape with `variables` variables and the permutations that leave it
    /// unchanged, until `each` returns `false`. Returns whether that never happened.
    pub(crate) fn shapes(
        &self,
        variables: usize,
        each: &mut dyn FnMut(&Shape<'_>, &[&[u8]]) -> bool,
    ) -> bool {
        let shape = Shape { skeleton: self, variable: [NO_VARIABLE; LIMIT], variables: 0 };
        self.name(shape, 0, variables, each)
    }

    /// Chooses the variables of the operations from `at` on.
    fn name(
        &self,
        mut shape: Shape<'_>,
        at: usize,
        variables: usize,
        each: &mut dyn FnMut(&Shape<'_>, &[&[u8]]) -> bool,
    ) -> bool {
        if at == self.kinds.len() {
            return shape.variables != variables
                || match self.automorphisms(&shape) {
                    Some(automorphisms) => each(&shape, &automorphisms),
                    None => true,
                };
        }
        if self.kinds[at] == Kind::Fence {
            return self.name(shape, at + 1, variables, each);
        }
        let left = self.kinds[at..].iter().filter(|&&kind| kind != Kind::Fence).count();
        if shape.variables + left < variables {
            return true;
        }
        let known = shape.variables;
        (0..(known + 1).min(variables)).all(|variable| {
            shape.variable[at] = variable as u8;
            shape.variables = known.max(variable + 1);
            self.name(shape, at + 1, variables, each)
        })
    }

    /// Returns the symmetries that leave a shape unchanged; `None` if a symmetry makes it smaller.
    fn automorphisms(&self, shape: &Shape<'_>) -> Option<Vec<&[u8]>> {
        let mut found = Vec::new();
        'symmetries: for symmetry in &self.symmetries {
            let mut names = [NO_VARIABLE; LIMIT];
            let mut count = 0;
            for (at, &from) in symmetry.iter().enumerate() {
                let variable = shape.variable[usize::from(from)];
                if variable == NO_VARIABLE {
                    continue;
                }
                let name = &mut names[usize::from(variable)];
                if *name == NO_VARIABLE {
                    *name = count;
                    count += 1;
                }
                match (*name).cmp(&shape.variable[at]) {
                    std::cmp::Ordering::Less => return None,
                    std::cmp::Ordering::Greater => continue 'symmetries,
                    std::cmp::Ordering::Equal => {}
                }
            }
            found.push(&symmetry[..]);
        }
        Some(found)
    }
}

impl Shape<'_> {
    pub(crate) fn len(&self) -> usize {
        self.skeleton.kinds.len()
    }

    pub(crate) fn variables(&self) -> usize {
        self.variables
    }

    pub(crate) fn skeleton(&self) -> &Skeleton {
        self.skeleton
    }

    pub(crate) fn kind(&self, at: usize) -> Kind {
        self.skeleton.kinds[at]
    }

    pub(crate) fn session(&self, at: usize) -> usize {
        self.skeleton.session[at]
    }

    /// Returns the variable of an operation that is not a fence.
    pub(crate) fn variable(&self, at: usize) -> Option<usize> {
        Some(self.variable[at]).filter(|&v| v != NO_VARIABLE).map(usize::from)
    }

    pub(crate) fn reads(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Read | Kind::Rmw)
    }

    pub(crate) fn writes(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Write | Kind::Rmw)
    }
}

/// Lists the skeletons of a number of operations in a number of sessions.
pub(crate) fn skeletons(space: &Space, operations: usize, sessions: usize) -> Vec<Skeleton> {
    let mut kinds = vec![Kind::Write, Kind::Read];
    if space.rmws {
        kinds.push(Kind::Rmw);
    }
    if space.fences {
        kinds.push(Kind::Fence);
    }
    let mut found = Vec::new();
    partitions(operations, sessions, operations, &mut Vec::new(), &mut |lengths| {
        fill(lengths, &kinds, &mut Vec::new(), &mut found);
    });
    found
}

/// Lists the partitions of a number, largest parts first.
fn partitions(
    total: usize,
    parts: usize,
    largest: usize,
    chosen: &mut Vec<usize>,
    each: &mut dyn FnMut(&[usize]),
) {
    if parts == 0 {
        if total == 0 {
            each(chosen);
        }
        return;
    }
    for part in (1..=largest.min(total)).rev().filter(|part| part * parts >= total) {
        chosen.push(part);
        partitions(total - part, parts - 1, part, chosen, each);
        chosen.pop();
    }
}

/// Fills sessions of given lengths with kinds; sessions of the same length are in order.
fn fill(lengths: &[usize], kinds: &[Kind], filled: &mut Vec<Vec<Kind>>, found: &mut Vec<Skeleton>) {
    let Some(&length) = lengths.get(filled.len()) else {
        found.push(skeleton(filled));
        return;
    };
    let mut session = match filled.last().filter(|last| last.len() == length) {
        Some(last) => last.clone(),
        None => vec![kinds[0]; length],
    };
    loop {
        filled.push(session.clone());
        fill(lengths, kinds, filled, found);
        filled.pop();
        // The next sequence of kinds in lexicographic order.
        let Some(at) = session.iter().rposition(|kind| Some(kind) != kinds.last()) else {
            return;
        };
        let next = kinds.iter().position(|&kind| kind == session[at]).expect("it is one of them");
        session[at] = kinds[next + 1];
        session[at + 1..].fill(kinds[0]);
    }
}

fn skeleton(sessions: &[Vec<Kind>]) -> Skeleton {
    let mut orders: Vec<Vec<usize>> = vec![Vec::new()];
    // A session can be mapped only to sessions with the same kinds.
    for place in sessions {
        orders = orders
            .into_iter()
            .flat_map(|order| {
                (0..sessions.len())
                    .filter(|s| !order.contains(s) && sessions[*s] == *place)
                    .map(|s| [&order[..], &[s]].concat())
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    let starts: Vec<usize> = sessions
        .iter()
        .scan(0, |start, session| Some(std::mem::replace(start, *start + session.len())))
        .collect();
    let places = |order: &Vec<usize>| -> Vec<u8> {
        let of = |&s: &usize| starts[s]..starts[s] + sessions[s].len();
        order.iter().flat_map(of).map(|at| at as u8).collect()
    };
    Skeleton {
        kinds: sessions.concat(),
        session: (0..sessions.len())
            .flat_map(|s| std::iter::repeat_n(s, sessions[s].len()))
            .collect(),
        sessions: sessions.len(),
        symmetries: orders.iter().map(places).filter(|order| !order.is_sorted()).collect(),
    }
}
