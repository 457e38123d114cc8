//! Two segment trees: a minimum with search, and the number of zones that cover each cell.

/// Table of numbers; finds the first number below a bound in a range in O(log n).
pub(super) struct Least {
    size: usize,
    least: Vec<u32>,
}

impl Least {
    pub(super) fn new(values: &[u32]) -> Self {
        let size = values.len().next_power_of_two();
        let mut least = vec![u32::MAX; 2 * size];
        least[size..size + values.len()].copy_from_slice(values);
        for node in (1..size).rev() {
            least[node] = least[2 * node].min(least[2 * node + 1]);
        }
        Least { size, least }
    }

    pub(super) fn set(&mut self, at: usize, value: u32) {
        let mut node = self.size + at;
        self.least[node] = value;
        while node > 1 {
            node /= 2;
            self.least[node] = self.least[2 * node].min(self.least[2 * node + 1]);
        }
    }

    /// Returns the first position in `from..to` whose number is below `bound`.
    pub(super) fn first_below(&self, from: usize, to: usize, bound: u32) -> Option<usize> {
        if from >= to {
            return None;
        }
        // Goes up along the right-hand neighbours, then down to the first leaf.
        let mut node = self.size + from;
        while self.least[node] >= bound {
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < self.size {
            node *= 2;
            if self.least[node] >= bound {
                node += 1;
            }
        }
        Some(node - self.size).filter(|&at| at < to)
    }
}

/// Cover count of each cell; a cell whose count drops to 0 is reported once.
pub(super) struct Coverage {
    size: usize,
    /// Minimum below each node, without the amounts added at the node's ancestors.
    least: Vec<i64>,
    added: Vec<i64>,
}

/// Count of a cell that was reported already, so large that the cell is never reported again.
const FOUND: i64 = i64::MAX / 4;

impl Coverage {
    pub(super) fn new(counts: &[u32]) -> Self {
        let size = counts.len().next_power_of_two().max(1);
        let mut least = vec![FOUND; 2 * size];
        for (leaf, &count) in least[size..].iter_mut().zip(counts) {
            *leaf = i64::from(count);
        }
        for node in (1..size).rev() {
            least[node] = least[2 * node].min(least[2 * node + 1]);
        }
        Coverage { size, least, added: vec![0; 2 * size] }
    }

    /// Subtracts one from every count in `from..to`.
    pub(super) fn uncover(&mut self, from: usize, to: usize) {
        self.add(1, 0, self.size, from, to);
    }

    fn add(&mut self, node: usize, low: usize, high: usize, from: usize, to: usize) {
        if from >= high || to <= low {
            return;
        }
        if from <= low && high <= to {
            self.least[node] -= 1;
            self.added[node] -= 1;
            return;
        }
        let middle = (low + high) / 2;
        self.add(2 * node, low, middle, from, to);
        self.add(2 * node + 1, middle, high, from, to);
        self.least[node] = self.least[2 * node].min(self.least[2 * node + 1]) + self.added[node];
    }

    /// Finds the cells in `from..to` that are no longer covered, in order.
    pub(super) fn take_bare(&mut self, from: usize, to: usize, found: &mut Vec<usize>) {
        self.take(1, 0, self.size, from, to, 0, found);
    }

    #[allow(clippy::too_many_arguments)]
    fn take(
        &mut self,
        node: usize,
        low: usize,
        high: usize,
        from: usize,
        to: usize,
        above: i64,
        found: &mut Vec<usize>,
    ) {
        if from >= high || to <= low || self.least[node] + above > 0 {
            return;
        }
        if high - low == 1 {
            found.push(low);
            self.least[node] = FOUND;
            return;
        }
        let middle = (low + high) / 2;
        let above = above + self.added[node];
        self.take(2 * node, low, middle, from, to, above, found);
        self.take(2 * node + 1, middle, high, from, to, above, found);
        self.least[node] = self.least[2 * node].min(self.least[2 * node + 1]) + self.added[node];
    }
}
