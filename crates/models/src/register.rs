//! Register histories: which operations read and write what, and who may have read from whom.

use consistory_history::{Action, History, OpId, Status};

use consistory_order::{Matrix, Set};

/// A read that nothing can have written: it rules out every model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadRead {
    /// No operation wrote the value.
    ThinAir { read: usize },
    /// The one write of the value follows the read in its session.
    Future { read: usize, write: usize },
}

/// A history as the evaluator sees it. Operations are numbered as [`OpId`]s are, initial writes
/// behind the recorded operations.
#[derive(Debug)]
pub(crate) struct Register<'a> {
    pub(crate) history: &'a History,
    pub(crate) size: usize,
    /// For each operation the writes that it may have read from; empty unless it reads.
    pub(crate) candidates: Vec<Vec<usize>>,
    /// The writes of each key, those of unknown status too, the initial one first.
    pub(crate) writes: Vec<Vec<usize>>,
    /// Whether an operation is a write of unknown status.
    pub(crate) is_uncertain: Vec<bool>,
    /// Whether there is a write of unknown status that something may have read.
    pub(crate) has_uncertain: bool,
}

impl<'a> Register<'a> {
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
        let has_uncertain = candidates.iter().flatten().any(|&write| is_uncertain[write]);
        Register { history, size, candidates, writes, is_uncertain, has_uncertain }
    }

    pub(crate) fn op(&self, at: usize) -> OpId {
        OpId::new(at)
    }

    pub(crate) fn reads(&self, at: usize) -> bool {
        !self.history.is_initial(OpId::new(at)) && self.history.reads(OpId::new(at)).is_some()
    }

    /// Finds a read that rules out every model whatever is chosen.
    pub(crate) fn bad_read(&self) -> Option<BadRead> {
        let reads = || (0..self.size).filter(|&at| self.reads(at));
        let thin_air = reads().find(|&read| self.candidates[read].is_empty());
        let future = || {
            reads().find_map(|read| match self.candidates[read][..] {
                [write] if self.is_future(read, write) => Some(BadRead::Future { read, write }),
                _ => None,
            })
        };
        thin_air.map(|read| BadRead::ThinAir { read }).or_else(future)
    }

    /// Says whether `write` follows `read` in the read's own session.
    pub(crate) fn is_future(&self, read: usize, write: usize) -> bool {
        write < self.history.len() && self.session(read) == self.session(write) && read < write
    }

    fn session(&self, at: usize) -> usize {
        self.history.session_of(OpId::new(at)).index()
    }

    /// Finds what counts when the reads take their values as `wr_of` says (`None` while nothing is
    /// chosen): what took effect, and the writes of unknown status that something reads from.
    pub(crate) fn counting(&self, wr_of: &[Option<usize>]) -> Set {
        let mut set = Set::empty(self.size);
        for at in 0..self.size {
            let op = OpId::new(at);
            if self.history.is_initial(op) || self.history.is_certain(op) {
                set.insert(at);
            }
        }
        for write in wr_of.iter().flatten().copied() {
            set.insert(write);
        }
        set
    }

    /// Gives the predefined sets and relations over the operations that count.
    pub(crate) fn basics(&self, counting: Set, wr_of: &[Option<usize>]) -> Basics {
        let h = self.history;
        let empty = || Set::empty(self.size);
        let (mut writes, mut reads, mut fences, mut initial) = (empty(), empty(), empty(), empty());
        let key = |at: usize| match h.action(OpId::new(at)) {
            Action::Read { key, .. } | Action::Write { key, .. } | Action::Rmw { key, .. } => {
                Some(key)
            }
            Action::Append { .. } | Action::Fence | Action::Call(_) => None,
        };
        let is_initial = |at: usize| at >= h.len();
        for at in counting.iter() {
            let op = OpId::new(at);
            if is_initial(at) {
                initial.insert(at);
                writes.insert(at);
                continue;
            }
            if h.reads(op).is_some() {
                reads.insert(at);
            }
            if h.writes(op).is_some() {
                writes.insert(at);
            }
            if h.action(op) == Action::Fence {
                fences.insert(at);
            }
        }
        let relation = || Matrix::empty(self.size);
        let (mut po, mut wr, mut loc, mut int) = (relation(), relation(), relation(), relation());
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
                if key(a).is_some() && key(a) == key(b) {
                    loc.insert(a, b);
                }
            }
        }
        for (read, write) in wr_of.iter().enumerate() {
            if let Some(write) = *write {
                wr.insert(write, read);
            }
        }
        Basics { counting, writes, reads, fences, initial, po, wr, loc, int }
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
}
