//! Histories in the form that the evaluator uses: reads, writes, and the candidate sources of each
//! read.
//!
//! For a definition about registers every operation is its own unit. For one about transactions
//! (see [`crate::transactions`]) the unit of an operation is its transaction, which counts or does
//! not count as a whole.

use consistory_history::{Action, History, KeyId, OpId, Status};
use consistory_order::{Matrix, Set};

/// A read that violates every model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadRead {
    /// No operation can have written the value; the pattern gives the reason.
    NoSource { read: usize, pattern: &'static str },
    /// The only write of the value follows the read in its session.
    Future { read: usize, write: usize },
}

/// Roles of an operation if it counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Role {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    pub(crate) is_fence: bool,
}

impl Role {
    /// Checks whether the operation has any role.
    pub(crate) fn is_any(self) -> bool {
        self.reads || self.writes || self.is_fence
    }
}

/// A history in the form that the evaluator uses. Operations are numbered like [`OpId`]s, with
/// initial writes after the recorded operations.
#[derive(Debug)]
pub(crate) struct Register<'a> {
    pub(crate) history: &'a History,
    pub(crate) size: usize,
    /// Role of each operation; operations without a role are in no set and no relation.
    pub(crate) roles: Vec<Role>,
    /// Writes that each operation may have read from; empty unless it reads.
    pub(crate) candidates: Vec<Vec<usize>>,
    /// Writes of each key, including indeterminate ones, the initial one first.
    pub(crate) writes: Vec<Vec<usize>>,
    /// Whether an operation counts only if its unit is read from.
    pub(crate) is_uncertain: Vec<bool>,
    /// Whether an operation that may not count may have been read from.
    pub(crate) has_uncertain: bool,
    /// Unit of each operation: itself, or the number of its transaction.
    pub(crate) unit_of: Vec<usize>,
    /// Operations of each unit that have a role.
    pub(crate) members: Vec<Vec<usize>>,
    /// Pairs of writes that are ordered by lists; empty for registers.
    pub(crate) listed: Vec<(usize, usize)>,
    /// A read that violates every model, if there is one.
    pub(crate) bad_read: Option<BadRead>,
    /// Pairs of units ordered by the clients, and pairs ordered by real time; empty for definitions
    /// about registers.
    pub(crate) client_order: Vec<(usize, usize)>,
    pub(crate) real_time: Vec<(usize, usize)>,
    /// Whether a read from a later operation of its session is bad.
    pub(crate) forbids_future: bool,
}

/// Lists the pairs of operations of which the first returned before the second started; initial
/// writes come before all. Returns an empty list if no operation has a time.
fn real_time(history: &History) -> Vec<(usize, usize)> {
    let ops = || history.ops().filter(|&op| history.time(op).is_some());
    if ops().next().is_none() {
        return Vec::new();
    }
    let mut pairs = Vec::new();
    for after in history.ops() {
        pairs.extend(history.keys().map(|key| (history.initial_write(key).index(), after.index())));
        pairs.extend(
            ops()
                .filter(|&before| returned_before(history, before, after))
                .map(|before| (before.index(), after.index())),
        );
    }
    pairs
}

/// Returns whether one operation returned before another started. If an operation of a session
/// starts at the very time at which the previous one returned, session order decides.
fn returned_before(history: &History, before: OpId, after: OpId) -> bool {
    let (Some(first), Some(second)) = (history.time(before), history.time(after)) else {
        return false;
    };
    let Some(end) = first.end.filter(|_| history.status(before) != Status::Unknown) else {
        return false;
    };
    let is_next = history.session_of(before) == history.session_of(after) && before < after;
    end < second.start || (is_next && end == second.start)
}

impl<'a> Register<'a> {
    /// Returns the view for a definition about registers.
    pub(crate) fn new(history: &'a History) -> Self {
        let size = history.len() + history.key_count();
        let all = || (0..size).map(OpId::new);
        let mut writes: Vec<Vec<usize>> =
            history.keys().map(|key| vec![history.initial_write(key).index()]).collect();
        let mut is_uncertain = vec![false; size];
        for op in history.ops() {
            if let Some((key, _)) = history.writes(op) {
                writes[key.index()].push(op.index());
                is_uncertain[op.index()] = history.status(op) == Status::Unknown;
            }
        }
        let candidates: Vec<Vec<usize>> = all()
            .map(|op| match history.reads(op).filter(|_| !history.is_initial(op)) {
                Some((key, value)) => writes[key.index()]
                    .iter()
                    .copied()
                    .filter(|&w| w != op.index())
                    .filter(|&w| history.writes(OpId::new(w)).is_some_and(|(_, v)| v == value))
                    .collect(),
                None => Vec::new(),
            })
            .collect();
        let role = |op: OpId| Role {
            reads: !history.is_initial(op) && history.reads(op).is_some(),
            writes: history.writes(op).is_some(),
            is_fence: history.is_certain(op) && history.action(op) == Action::Fence,
        };
        let mut register = Register {
            history,
            size,
            roles: all().map(role).collect(),
            has_uncertain: candidates.iter().flatten().any(|&write| is_uncertain[write]),
            candidates,
            writes,
            is_uncertain,
            unit_of: (0..size).collect(),
            members: (0..size).map(|at| vec![at]).collect(),
            listed: Vec::new(),
            bad_read: None,
            client_order: Vec::new(),
            real_time: real_time(history),
            forbids_future: true,
        };
        register.bad_read = register.find_bad_read();
        register
    }

    pub(crate) fn op(&self, at: usize) -> OpId {
        OpId::new(at)
    }

    /// Returns the key that an operation accesses.
    pub(crate) fn key(&self, at: usize) -> Option<KeyId> {
        self.history.key_of(OpId::new(at))
    }

    /// Finds a read that violates every model under all choices.
    fn find_bad_read(&self) -> Option<BadRead> {
        let reads = || (0..self.size).filter(|&at| self.roles[at].reads);
        let thin_air = reads().find(|&read| self.candidates[read].is_empty());
        let future = || {
            reads().find_map(|read| match self.candidates[read][..] {
                [write] if self.is_future(read, write) => Some(BadRead::Future { read, write }),
                _ => None,
            })
        };
        thin_air.map(|read| BadRead::NoSource { read, pattern: "ThinAirRead" }).or_else(future)
    }

    /// Returns whether `write` follows `read` in the read's own session and this is forbidden.
    pub(crate) fn is_future(&self, read: usize, write: usize) -> bool {
        self.forbids_future
            && write < self.history.len()
            && self.session(read) == self.session(write)
            && read < write
    }

    fn session(&self, at: usize) -> usize {
        self.history.session_of(OpId::new(at)).index()
    }

    /// Returns whether an operation counts if the reads have the sources that `wr_of` returns.
    pub(crate) fn counts(&self, at: usize, wr_of: &[Option<usize>]) -> bool {
        !self.is_uncertain[at]
            || wr_of.iter().flatten().any(|&write| self.unit_of[write] == self.unit_of[at])
    }

    /// Returns the operations that count if the reads have the sources that `wr_of` returns (`None`
    /// while nothing is chosen): those that took effect, and those of units that are read from.
    pub(crate) fn counting(&self, wr_of: &[Option<usize>]) -> Set {
        let mut set = Set::empty(self.size);
        for at in 0..self.size {
            if self.roles[at].is_any() && !self.is_uncertain[at] {
                set.insert(at);
            }
        }
        for &write in wr_of.iter().flatten() {
            for &at in &self.members[self.unit_of[write]] {
                set.insert(at);
            }
        }
        set
    }

    /// Returns the predefined sets and relations over the operations that count.
    pub(crate) fn basics(&self, counting: Set, wr_of: &[Option<usize>]) -> Basics {
        let empty = || Set::empty(self.size);
        let (mut writes, mut reads, mut fences, mut initial) = (empty(), empty(), empty(), empty());
        let is_initial = |at: usize| at >= self.history.len();
        for at in counting.iter() {
            let role = self.roles[at];
            let sets = [
                (&mut initial, is_initial(at)),
                (&mut reads, role.reads),
                (&mut writes, role.writes),
                (&mut fences, role.is_fence),
            ];
            for (set, is_member) in sets {
                if is_member {
                    set.insert(at);
                }
            }
        }
        let relation = || Matrix::empty(self.size);
        let (mut po, mut wr, mut loc, mut int, mut txn) =
            (relation(), relation(), relation(), relation(), relation());
        for a in counting.iter() {
            for b in counting.iter() {
                let is_internal = match (is_initial(a), is_initial(b)) {
                    (false, false) => self.session(a) == self.session(b),
                    _ => a == b,
                };
                if is_internal {
                    int.insert(a, b);
                }
                if (is_internal && a < b) || (is_initial(a) && !is_initial(b)) {
                    po.insert(a, b);
                }
                if self.key(a).is_some() && self.key(a) == self.key(b) {
                    loc.insert(a, b);
                }
                if self.unit_of[a] == self.unit_of[b] {
                    txn.insert(a, b);
                }
            }
        }
        for (read, write) in wr_of.iter().enumerate() {
            if let Some(write) = *write {
                wr.insert(write, read);
            }
        }
        let so = self.between_units(&self.client_order, &counting);
        let rt = self.between_units(&self.real_time, &counting);
        Basics { counting, writes, reads, fences, initial, po, wr, loc, int, txn, so, rt }
    }

    /// Relates all counting operations of units that are related.
    fn between_units(&self, pairs: &[(usize, usize)], counting: &Set) -> Matrix {
        let mut relation = Matrix::empty(self.size);
        for &(first, second) in pairs {
            for &a in self.members[first].iter().filter(|&&a| counting.contains(a)) {
                for &b in self.members[second].iter().filter(|&&b| counting.contains(b)) {
                    relation.insert(a, b);
                }
            }
        }
        relation
    }
}

/// The predefined sets and relations, under one choice of `wr`.
#[derive(Debug)]
pub(crate) struct Basics {
    pub(crate) counting: Set,
    pub(crate) writes: Set,
    pub(crate) reads: Set,
    pub(crate) fences: Set,
    pub(crate) initial: Set,
    pub(crate) po: Matrix,
    pub(crate) wr: Matrix,
    pub(crate) loc: Matrix,
    pub(crate) int: Matrix,
    pub(crate) txn: Matrix,
    pub(crate) so: Matrix,
    pub(crate) rt: Matrix,
}
