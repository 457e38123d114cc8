//! Small sets and relations as bits.
//!
//! A relation over n elements is a square matrix of n rows of n bits, in `u64` words. A composition
//! costs one row union per pair of the left relation, a transitive closure n² row unions
//! (Warshall), a test for cycles about 2n row scans. This suits a few hundred elements. There is
//! one function per operator of relational algebra.

use std::collections::VecDeque;

const BITS: usize = u64::BITS as usize;

/// A set of the numbers below its size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Set {
    size: usize,
    words: Vec<u64>,
}

/// A relation between the numbers below its size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matrix {
    size: usize,
    stride: usize,
    words: Vec<u64>,
}

impl Set {
    /// Builds the empty set of a universe.
    pub fn empty(size: usize) -> Self {
        Set { size, words: vec![0; size.div_ceil(BITS)] }
    }

    /// Builds a set of one element.
    pub fn singleton(size: usize, element: usize) -> Self {
        let mut set = Set::empty(size);
        set.insert(element);
        set
    }

    /// Adds an element.
    pub fn insert(&mut self, element: usize) {
        debug_assert!(element < self.size);
        self.words[element / BITS] |= 1 << (element % BITS);
    }

    /// Returns whether an element is in the set.
    pub fn contains(&self, element: usize) -> bool {
        self.words[element / BITS] & (1 << (element % BITS)) != 0
    }

    /// Returns whether no element is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Iterates over the elements in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        ones(&self.words)
    }

    /// Adds the elements of another set.
    pub fn union(&mut self, other: &Set) {
        combine(&mut self.words, &other.words, |a, b| a | b);
    }

    /// Keeps only the elements that are also in another set.
    pub fn intersect(&mut self, other: &Set) {
        combine(&mut self.words, &other.words, |a, b| a & b);
    }

    /// Removes the elements of another set.
    pub fn subtract(&mut self, other: &Set) {
        combine(&mut self.words, &other.words, |a, b| a & !b);
    }
}

impl Matrix {
    /// Builds the empty relation on a universe.
    pub fn empty(size: usize) -> Self {
        let stride = size.div_ceil(BITS);
        Matrix { size, stride, words: vec![0; size * stride] }
    }

    /// Builds the relation of each element of a set with itself.
    pub fn identity(set: &Set) -> Self {
        let mut matrix = Matrix::empty(set.size);
        for i in set.iter() {
            matrix.insert(i, i);
        }
        matrix
    }

    /// Builds the relation of each element of `from` with each element of `to`.
    pub fn product(from: &Set, to: &Set) -> Self {
        let mut matrix = Matrix::empty(from.size);
        for i in from.iter() {
            matrix.row_mut(i).copy_from_slice(&to.words);
        }
        matrix
    }

    /// Returns the size of the universe.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Adds a pair.
    pub fn insert(&mut self, from: usize, to: usize) {
        debug_assert!(from < self.size && to < self.size);
        self.words[from * self.stride + to / BITS] |= 1 << (to % BITS);
    }

    /// Returns whether a pair is in the relation.
    pub fn contains(&self, from: usize, to: usize) -> bool {
        self.words[from * self.stride + to / BITS] & (1 << (to % BITS)) != 0
    }

    /// Returns whether no pair is in the relation.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Iterates over the elements to which `from` is related.
    pub fn successors(&self, from: usize) -> impl Iterator<Item = usize> + '_ {
        ones(self.row(from))
    }

    /// Iterates over all pairs, row by row.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.size).flat_map(|i| self.successors(i).map(move |j| (i, j)))
    }

    /// Adds the pairs of another relation.
    pub fn union(&mut self, other: &Matrix) {
        combine(&mut self.words, &other.words, |a, b| a | b);
    }

    /// Keeps only the pairs that are also in another relation.
    pub fn intersect(&mut self, other: &Matrix) {
        combine(&mut self.words, &other.words, |a, b| a & b);
    }

    /// Removes the pairs of another relation.
    pub fn subtract(&mut self, other: &Matrix) {
        combine(&mut self.words, &other.words, |a, b| a & !b);
    }

    /// Returns the composition of this relation with another one, this one first.
    pub fn compose(&self, other: &Matrix) -> Matrix {
        let mut result = Matrix::empty(self.size);
        for i in 0..self.size {
            for middle in self.successors(i) {
                combine(result.row_mut(i), other.row(middle), |a, b| a | b);
            }
        }
        result
    }

    /// Returns the inverse relation.
    pub fn inverse(&self) -> Matrix {
        let mut result = Matrix::empty(self.size);
        for (i, j) in self.pairs() {
            result.insert(j, i);
        }
        result
    }

    /// Replaces the relation by its transitive closure.
    pub fn close(&mut self) {
        for middle in 0..self.size {
            let row = self.row(middle).to_vec();
            for i in 0..self.size {
                if self.contains(i, middle) {
                    combine(self.row_mut(i), &row, |a, b| a | b);
                }
            }
        }
    }

    /// Adds a pair to a transitive relation and keeps it transitive.
    pub fn insert_transitively(&mut self, from: usize, to: usize) {
        let mut after = self.row(to).to_vec();
        after[to / BITS] |= 1 << (to % BITS);
        for i in 0..self.size {
            if i == from || self.contains(i, from) {
                combine(self.row_mut(i), &after, |a, b| a | b);
            }
        }
    }

    /// Returns the domain: the elements that are related to some element.
    pub fn domain(&self) -> Set {
        let mut set = Set::empty(self.size);
        for i in (0..self.size).filter(|&i| self.row(i).iter().any(|&word| word != 0)) {
            set.insert(i);
        }
        set
    }

    /// Returns the range: the elements that some element is related to.
    pub fn range(&self) -> Set {
        let mut set = Set::empty(self.size);
        for i in 0..self.size {
            combine(&mut set.words, self.row(i), |a, b| a | b);
        }
        set
    }

    /// Finds an element that is related to itself.
    pub fn reflexive_element(&self) -> Option<usize> {
        (0..self.size).find(|&i| self.contains(i, i))
    }

    /// Returns the elements in an order that extends the relation, or `None` if it has a cycle.
    pub fn topological_order(&self) -> Option<Vec<usize>> {
        let mut before = vec![0u32; self.size];
        for (_, j) in self.pairs() {
            before[j] += 1;
        }
        let mut ready: VecDeque<usize> = (0..self.size).filter(|&i| before[i] == 0).collect();
        let mut order = Vec::with_capacity(self.size);
        while let Some(i) = ready.pop_front() {
            order.push(i);
            for j in self.successors(i) {
                before[j] -= 1;
                if before[j] == 0 {
                    ready.push_back(j);
                }
            }
        }
        (order.len() == self.size).then_some(order)
    }

    /// Returns whether the relation has no cycle, by a depth-first walk with its own stack.
    pub fn is_acyclic(&self) -> bool {
        let mut unfinished = vec![u64::MAX; self.stride];
        let mut on_path = Set::empty(self.size);
        for root in 0..self.size {
            if unfinished[root / BITS] & (1 << (root % BITS)) == 0 {
                continue;
            }
            let mut path = vec![root];
            on_path.insert(root);
            while let Some(&top) = path.last() {
                let next =
                    self.row(top).iter().zip(&unfinished).enumerate().find_map(|(w, (a, b))| {
                        let both = a & b;
                        (both != 0).then(|| w * BITS + both.trailing_zeros() as usize)
                    });
                match next {
                    Some(next) if on_path.contains(next) => return false,
                    Some(next) => {
                        path.push(next);
                        on_path.insert(next);
                    }
                    None => {
                        unfinished[top / BITS] &= !(1 << (top % BITS));
                        on_path.words[top / BITS] &= !(1 << (top % BITS));
                        path.pop();
                    }
                }
            }
        }
        true
    }

    /// Finds a shortest path of one step or more, both ends included.
    pub fn shortest_path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut previous = vec![usize::MAX; self.size];
        let mut seen = vec![0u64; self.stride];
        let mut queue = VecDeque::from([from]);
        while let Some(i) = queue.pop_front() {
            for (w, (word, seen)) in self.row(i).iter().zip(&mut seen).enumerate() {
                let mut fresh = word & !*seen;
                *seen |= fresh;
                while fresh != 0 {
                    let j = w * BITS + fresh.trailing_zeros() as usize;
                    fresh &= fresh - 1;
                    previous[j] = i;
                    if j == to {
                        let mut path = vec![to];
                        let mut at = i;
                        while at != from {
                            path.push(at);
                            at = previous[at];
                        }
                        path.push(from);
                        path.reverse();
                        return Some(path);
                    }
                    queue.push_back(j);
                }
            }
        }
        None
    }

    /// Finds a shortest cycle; the first element is repeated at the end.
    pub fn shortest_cycle(&self) -> Option<Vec<usize>> {
        if self.is_acyclic() {
            return None;
        }
        let mut best: Option<Vec<usize>> = None;
        for i in 0..self.size {
            if let Some(cycle) = self.shortest_path(i, i)
                && best.as_ref().is_none_or(|best| cycle.len() < best.len())
            {
                let is_minimal = cycle.len() == 2;
                best = Some(cycle);
                if is_minimal {
                    break;
                }
            }
        }
        best
    }

    fn row(&self, i: usize) -> &[u64] {
        &self.words[i * self.stride..(i + 1) * self.stride]
    }

    fn row_mut(&mut self, i: usize) -> &mut [u64] {
        &mut self.words[i * self.stride..(i + 1) * self.stride]
    }
}

fn combine(target: &mut [u64], other: &[u64], operation: impl Fn(u64, u64) -> u64) {
    for (a, &b) in target.iter_mut().zip(other) {
        *a = operation(*a, b);
    }
}

/// Iterates over the positions of the bits that are 1.
fn ones(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(w, &word)| {
        std::iter::successors((word != 0).then_some(word), |&rest| {
            let rest = rest & (rest - 1);
            (rest != 0).then_some(rest)
        })
        .map(move |rest| w * BITS + rest.trailing_zeros() as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    type Pairs = BTreeSet<(usize, usize)>;

    fn matrix(size: usize, pairs: &Pairs) -> Matrix {
        let mut m = Matrix::empty(size);
        for &(i, j) in pairs {
            m.insert(i, j);
        }
        m
    }

    fn closure(pairs: &Pairs) -> Pairs {
        let mut all = pairs.clone();
        loop {
            let more: Pairs = all
                .iter()
                .flat_map(|&(i, j)| all.iter().filter(move |p| p.0 == j).map(move |p| (i, p.1)))
                .collect();
            let before = all.len();
            all.extend(more);
            if all.len() == before {
                return all;
            }
        }
    }

    /// Compares the operators on relations of 70 elements, whose rows have two words, with sets of
    /// pairs.
    #[test]
    fn operators_agree_with_sets_of_pairs() {
        let size = 70;
        let mut seed = 7u64;
        let mut random = move |bound: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % bound
        };
        for round in 0..10 {
            let mut draw =
                || (0..20 + 2 * round).map(|_| (random(size), random(size))).collect::<Pairs>();
            let (a, b) = (draw(), draw());
            let (ma, mb) = (matrix(size, &a), matrix(size, &b));
            let composed: Pairs = a
                .iter()
                .flat_map(|p| b.iter().filter(|q| p.1 == q.0).map(|q| (p.0, q.1)))
                .collect();
            assert_eq!(ma.compose(&mb).pairs().collect::<Pairs>(), composed);
            assert_eq!(
                ma.inverse().pairs().collect::<Pairs>(),
                a.iter().map(|p| (p.1, p.0)).collect()
            );
            let closed = closure(&a);
            let mut mc = ma.clone();
            mc.close();
            assert_eq!(mc.pairs().collect::<Pairs>(), closed);
            let is_acyclic = closed.iter().all(|p| p.0 != p.1);
            assert_eq!(ma.is_acyclic(), is_acyclic);
            assert_eq!(ma.topological_order().is_some(), is_acyclic);
            assert_eq!(ma.shortest_cycle().is_none(), is_acyclic);
            let &(from, to) = a.first().unwrap();
            mc.insert_transitively(to, from);
            let mut with = a.clone();
            with.insert((to, from));
            assert_eq!(mc.pairs().collect::<Pairs>(), closure(&with));
            assert_eq!(
                ma.domain().iter().collect::<BTreeSet<_>>(),
                a.iter().map(|p| p.0).collect()
            );
            assert_eq!(ma.range().iter().collect::<BTreeSet<_>>(), a.iter().map(|p| p.1).collect());
        }
    }

    #[test]
    fn a_shortest_cycle_is_shortest() {
        let m = matrix(6, &[(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 3), (4, 5)].into());
        assert_eq!(m.shortest_cycle(), Some(vec![3, 4, 3]));
        assert_eq!(m.shortest_path(0, 5), Some(vec![0, 1, 2, 3, 4, 5]));
        assert_eq!(m.shortest_path(5, 0), None);
    }
}
