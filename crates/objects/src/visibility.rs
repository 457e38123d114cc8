//! Weak consistency by linearizations and minimal visibilities (Emmi and Enea, "Monitoring Weak
//! Consistency", Figure 4 and Theorem 1).
//!
//! A linearization is extended operation by operation; the next operation must have no unlinearized
//! predecessor in `hb`. For each new operation, the search chooses the set of operations that are
//! visible to it (its *visibility*). By the axioms, the set must contain a base and be closed; by
//! `Ret`, the specification must produce the recorded return after the visible operations. By
//! Theorem 1 it suffices to try the minimal such sets, because a larger visibility can only oblige
//! later operations to see more. If no set fits, the search backtracks.
//!
//! - An axiom `vis >= r1 ; ... ; rn` whose last relation is not `vis` defines the base: everything
//!   that reaches the new operation by it. If the last is `vis`, then for each member the set
//!   contains everything that reaches the member by `r1 ; ... ; r(n-1)`. Axioms `lin >= ...` follow
//!   from `lin >= hb` and `lin >= vis`, which hold by construction.
//! - A minimal set contains operations that change no state only if the base or another member
//!   requires them. So the sets are found by closing the base, and then adding operations that may
//!   change the state one by one, smallest sets first. If the first few do not fit, the states that
//!   any such set can lead to are computed, and the operation is given up if none of them fits.
//! - If no axiom has `vis` on its right, the visibility of an operation affects no other operation,
//!   and any set that fits is enough: the search computes the states that subsequences can reach,
//!   with one set for each. An operation that changes no state is then linearized as soon as a set
//!   fits (unless an axiom composes `lin`, so that later operations might have to see more because
//!   of it).
//! - Two orders of the same operations that differ only in the positions of operations that change
//!   no state have the same future if their visibilities are the same; one is explored.
//!
//! The strategies of Wing and Gong and of Lowe explore the same tree of orders: the first extends
//! an order by any minimal operation, the second by an operation that is open when the first
//! unlinearized operation returns, and these are the same operations. The strategies differ in the
//! one that they try first: the one called first, or the one that returns first.
//!
//! The naive strategy, which enumerates all closed sets that contain the base, large ones first and
//! without memory, is kept as the baseline of the paper's comparison.
//!
//! Cost: exponential in the number of overlapping operations and, if `vis` is on the right of an
//! axiom, also in the number of operations that may or may not be seen.

use std::collections::VecDeque;

use consistory_history::OpId;
use consistory_spec::{Atom, Left, ObjectModel};
use consistory_verdict::{Attempt, BYTES_PER_ALLOCATION, Budget, Bytes, Instead, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::calls::CallIndex;
use crate::definition::Execution;
use crate::machine::{StateId, TransitionTable};
use crate::small_set::SmallSet;
use crate::task::Task;

/// Order in which the candidates for the next operation are tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Strategy {
    /// The operation that was called first (Wing and Gong).
    WingGong,
    /// The operation that returns first (Lowe).
    #[default]
    JustInTime,
}

/// Visibilities that are tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Visibility {
    /// Minimal sets, smallest first.
    #[default]
    Minimal,
    /// All sets, largest first: the baseline.
    All,
}

/// Largest number of furthest attempts kept.
const MAX_ATTEMPTS_KEPT: usize = 8;
/// Steps between two checks of the budget.
const STEPS_PER_CHECK: u32 = 256;
/// Largest number of operations that the search supports.
pub(crate) const MAX_OPERATIONS: usize = 64 * 64;
/// Number of visibilities tried before the states are computed to which any of them can lead.
const SETS_TRIED_FIRST: usize = 4;
/// Largest number of such states.
const MAX_STATES_COMPARED: usize = 4096;
/// Largest number of operations whose subsets the naive strategy enumerates.
const MAX_SUBSET_OPERATIONS: usize = 62;

/// Result of the search.
pub(crate) enum Explanation {
    /// An abstract execution that satisfies the axioms.
    Found(Execution),
    /// No such execution exists.
    Stuck {
        /// The operation that was never explained; among several, the one that returns last.
        stuck: CallIndex,
        /// The furthest attempts.
        attempts: Vec<Execution>,
    },
}

/// Searches for an abstract execution of a task that satisfies a model.
pub(crate) fn explain(
    task: &Task<'_>,
    model: &ObjectModel,
    strategy: Strategy,
    visibility: Visibility,
    budget: &Budget,
) -> Result<Explanation, Stopped> {
    match task.len().div_ceil(64) {
        0..=1 => VisibilitySearch::<1>::new(task, model, strategy, visibility, budget).run(),
        2 => VisibilitySearch::<2>::new(task, model, strategy, visibility, budget).run(),
        3..=8 => VisibilitySearch::<8>::new(task, model, strategy, visibility, budget).run(),
        9..=64 => VisibilitySearch::<64>::new(task, model, strategy, visibility, budget).run(),
        _ => Err(Stopped::Size { operations: task.len(), limit: MAX_OPERATIONS }),
    }
}

/// Searches for an abstract execution that begins with `past`, of which every operation, every
/// visibility and every return is already known to satisfy the model.
pub(crate) fn explain_after(
    task: &Task<'_>,
    model: &ObjectModel,
    past: &Execution,
    budget: &Budget,
) -> Result<Explanation, Stopped> {
    match task.len().div_ceil(64) {
        0..=1 => continue_from::<1>(task, model, past, budget),
        2 => continue_from::<2>(task, model, past, budget),
        3..=8 => continue_from::<8>(task, model, past, budget),
        9..=64 => continue_from::<64>(task, model, past, budget),
        _ => Err(Stopped::Size { operations: task.len(), limit: MAX_OPERATIONS }),
    }
}

fn continue_from<const W: usize>(
    task: &Task<'_>,
    model: &ObjectModel,
    past: &Execution,
    budget: &Budget,
) -> Result<Explanation, Stopped> {
    let (strategy, visibility) = (Strategy::default(), Visibility::default());
    let mut search = VisibilitySearch::<W>::new(task, model, strategy, visibility, budget);
    for (&place, seen) in past.lin.iter().zip(&past.vis) {
        search.append(place, seen.iter().map(|p| p.index()).collect());
    }
    search.run()
}

/// Computes the return of the operation that an attempt does not explain, according to the
/// specification, to be shown in place of the recorded return.
pub fn instead(task: &Task<'_>, model: &ObjectModel, attempt: &Attempt) -> Option<Instead> {
    match task.len().div_ceil(64) {
        0..=1 => instead_in::<1>(task, model, attempt),
        2..=64 => instead_in::<64>(task, model, attempt),
        _ if model.is_linearizability() => instead_in::<1>(task, model, attempt),
        _ => None,
    }
}

fn instead_in<const W: usize>(
    task: &Task<'_>,
    model: &ObjectModel,
    attempt: &Attempt,
) -> Option<Instead> {
    let calls = task.calls();
    let places: FxHashMap<OpId, CallIndex> = calls.places().map(|p| (calls.get(p).id, p)).collect();
    let order: Option<Vec<CallIndex>> =
        attempt.linearization.order.iter().map(|op| places.get(op).copied()).collect();
    let (order, next) = (order?, *places.get(&attempt.unexplained)?);
    let mut machine = TransitionTable::new(task);
    let mut returned = |sees: &dyn Fn(CallIndex) -> bool| {
        let mut state = machine.initial();
        for &place in order.iter().filter(|&&p| sees(p) && !task.is_read_only(p)) {
            state = machine.step(state, place)?.0;
        }
        let (_, value) = machine.step(state, next)?;
        Some(machine.get(value).clone())
    };
    let most = returned(&|_| true);
    if model.is_linearizability() {
        return Some(Instead { least: most.clone(), most });
    }
    let budget = Budget::unlimited();
    let mut search = VisibilitySearch::<W>::new(
        task,
        model,
        Strategy::default(),
        Visibility::default(),
        &budget,
    );
    for (i, &place) in order.iter().enumerate() {
        let sees = match &attempt.linearization.vis {
            Some(vis) => vis[i].iter().filter_map(|op| places.get(op)).map(|p| p.index()).collect(),
            None => order[..i].iter().map(|p| p.index()).collect(),
        };
        search.append(place, sees);
    }
    let base = search.base(next);
    let least = returned(&|place| base.contains(place.index()));
    Some(Instead { least, most })
}

/// An axiom `vis >= ...` without its last relation, and the methods that it concerns.
pub(crate) struct Demand {
    /// Position of the axiom in the model.
    pub(crate) axiom: usize,
    /// Relations before the last one.
    pub(crate) prefix: Vec<Atom>,
    /// Last relation.
    pub(crate) last: Atom,
}

/// Returns the axioms of a model that bound `vis`, without those that hold for every `vis`.
pub(crate) fn demands(model: &ObjectModel) -> Vec<Demand> {
    let axioms = model.axioms.iter().enumerate();
    axioms
        .filter(|(_, axiom)| axiom.left == Left::Vis && axiom.right != [Atom::Vis])
        .map(|(i, axiom)| {
            let (&last, prefix) = axiom.right.split_last().expect("an axiom is not empty");
            Demand { axiom: i, prefix: prefix.to_vec(), last }
        })
        .collect()
}

struct VisibilityFrame<const W: usize> {
    /// Operations left to linearize next, the next one last.
    candidates: Vec<CallIndex>,
    /// The candidate whose visibilities are being tried.
    current: Option<(CallIndex, VisibilityOptions<W>)>,
    has_child: bool,
}

/// The remaining visibilities of one operation.
enum VisibilityOptions<const W: usize> {
    Listed(VecDeque<SmallSet<W>>),
    Subsets(Subsets<W>),
}

impl<const W: usize> VisibilityOptions<W> {
    /// Returns the size of the sets in bytes; constant during the search.
    fn bytes(&self) -> u64 {
        match self {
            VisibilityOptions::Listed(sets) => (sets.capacity() * size_of::<SmallSet<W>>()) as u64,
            VisibilityOptions::Subsets(_) => 0,
        }
    }
}

/// Iterator over all sets that contain a base, by decreasing size.
struct Subsets<const W: usize> {
    base: SmallSet<W>,
    free: Vec<usize>,
    /// Members of `free` left out of the next set, as a bit mask; masks with fewer bits come first.
    /// `None` at the end.
    left_out: Option<u64>,
}

struct VisibilitySearch<'a, 'h, const W: usize> {
    task: &'a Task<'h>,
    model: &'a ObjectModel,
    strategy: Strategy,
    visibility: Visibility,
    budget: &'a Budget,
    machine: TransitionTable<'a, 'h>,
    demands: Vec<Demand>,
    /// Whether the visibility of an operation affects no other operation.
    is_independent: bool,
    /// Whether configurations may be compared without the positions of operations that change no
    /// state.
    is_comparable: bool,
    hb: Vec<SmallSet<W>>,
    po: Vec<SmallSet<W>>,
    /// Operations by return, pending ones last.
    by_return: Vec<CallIndex>,
    rank: Vec<u32>,
    lin: Vec<CallIndex>,
    linearized: SmallSet<W>,
    /// Operations linearized before each linearized operation, by its [`CallIndex`].
    before: Vec<SmallSet<W>>,
    /// Operations visible to each linearized operation, by its [`CallIndex`].
    vis: Vec<SmallSet<W>>,
    seen: FxHashSet<Box<[u64]>>,
    seen_words: u64,
    /// Bytes of the sets under construction.
    growing_bytes: u64,
    stack_bytes: u64,
    steps: u32,
    furthest: usize,
    attempts: Vec<Execution>,
}

impl<'a, 'h, const W: usize> VisibilitySearch<'a, 'h, W> {
    fn new(
        task: &'a Task<'h>,
        model: &'a ObjectModel,
        strategy: Strategy,
        visibility: Visibility,
        budget: &'a Budget,
    ) -> Self {
        let calls = task.calls();
        let matrix = |holds: &dyn Fn(CallIndex, CallIndex) -> bool| -> Vec<SmallSet<W>> {
            let into = |b| calls.places().filter(|&a| holds(a, b)).map(CallIndex::index).collect();
            calls.places().map(into).collect()
        };
        let demands = demands(model);
        let mentions = |atom| demands.iter().any(|d| d.last == atom || d.prefix.contains(&atom));
        let is_independent = !mentions(Atom::Vis);
        let is_comparable = demands.iter().all(|d| {
            !d.prefix.contains(&Atom::Lin) && (d.last != Atom::Lin || d.prefix.is_empty())
        });
        let mut by_return: Vec<CallIndex> = calls.places().collect();
        if calls.is_timed() {
            by_return.sort_by_key(|&p| (task.is_pending(p), calls.get(p).end, p));
        } else {
            let index = |p: CallIndex| calls.history().index_in_session(calls.get(p).id);
            by_return.sort_by_key(|&p| (task.is_pending(p), index(p), p));
        }
        let mut rank = vec![0; task.len()];
        for (i, &place) in by_return.iter().enumerate() {
            rank[place.index()] = i as u32;
        }
        VisibilitySearch {
            task,
            model,
            strategy,
            visibility,
            budget,
            machine: TransitionTable::new(task),
            demands,
            is_independent,
            is_comparable,
            hb: matrix(&|a, b| calls.happens_before(a, b)),
            po: matrix(&|a, b| calls.program_order(a, b)),
            by_return,
            rank,
            lin: Vec::new(),
            linearized: SmallSet::EMPTY,
            before: vec![SmallSet::EMPTY; task.len()],
            vis: vec![SmallSet::EMPTY; task.len()],
            seen: FxHashSet::default(),
            seen_words: 0,
            growing_bytes: 0,
            stack_bytes: 0,
            steps: 0,
            furthest: 0,
            attempts: Vec::new(),
        }
    }

    fn run(mut self) -> Result<Explanation, Stopped> {
        // Length of the linearization before each frame's own operations.
        let mut lengths = vec![0];
        self.absorb()?;
        if self.is_complete() {
            return Ok(Explanation::Found(self.execution()));
        }
        let mut stack = vec![self.frame()];
        while let Some(frame) = stack.last_mut() {
            self.tick()?;
            let Some((place, mut options)) = frame.current.take() else {
                match frame.candidates.pop() {
                    Some(place) => frame.current = Some((place, self.options(place)?)),
                    None => {
                        if !frame.has_child {
                            self.keep_attempt();
                        }
                        stack.pop();
                        self.unwind(lengths.pop().expect("each frame has a length"));
                    }
                }
                continue;
            };
            let Some(sees) = self.next_option(place, &mut options)? else {
                self.stack_bytes -= options.bytes();
                continue;
            };
            frame.current = Some((place, options));
            let length = self.lin.len();
            self.append(place, sees);
            self.absorb()?;
            if self.is_complete() {
                return Ok(Explanation::Found(self.execution()));
            }
            if self.is_new() {
                frame.has_child = true;
                lengths.push(length);
                stack.push(self.frame());
            } else {
                self.unwind(length);
            }
        }
        let stuck = self.by_return[self.furthest];
        Ok(Explanation::Stuck { stuck, attempts: self.attempts })
    }

    /// Counts a step, and checks the budget from time to time.
    fn tick(&mut self) -> Result<(), Stopped> {
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(STEPS_PER_CHECK) {
            self.budget.check()?;
            self.check_memory()?;
        }
        Ok(())
    }

    /// Checks the estimated memory of tables and sets against the budget.
    fn check_memory(&self) -> Result<(), Stopped> {
        let relations = (4 * self.task.len() * size_of::<SmallSet<W>>()) as u64;
        let keys = self.seen.len() as u64 * BYTES_PER_ALLOCATION + 8 * self.seen_words;
        let sets = self.growing_bytes + self.stack_bytes + relations;
        let tables = self.seen.table_bytes() + keys + self.machine.memory();
        self.budget.reserve(tables + sets)
    }

    /// Checks whether all completed operations are linearized.
    fn is_complete(&self) -> bool {
        self.first_unlinearized().is_none()
    }

    /// Returns the rank of the completed operation that returns first of those not linearized.
    fn first_unlinearized(&self) -> Option<usize> {
        let completed = self.by_return.iter().take_while(|&&p| !self.task.is_pending(p));
        completed.into_iter().position(|p| !self.linearized.contains(p.index()))
    }

    fn append(&mut self, place: CallIndex, sees: SmallSet<W>) {
        self.before[place.index()] = self.linearized;
        self.vis[place.index()] = sees;
        self.linearized.insert(place.index());
        self.lin.push(place);
    }

    fn unwind(&mut self, length: usize) {
        for place in self.lin.drain(length..) {
            self.linearized.remove(place.index());
        }
    }

    /// Lists the operations that may be linearized next; the one to try first comes last.
    fn frame(&mut self) -> VisibilityFrame<W> {
        let first = self.first_unlinearized().expect("a complete linearization needs no frame");
        if first > self.furthest {
            self.furthest = first;
            self.attempts.clear();
        }
        let mut candidates: Vec<CallIndex> = self.minimals().collect();
        candidates.retain(|&p| !(self.task.is_pending(p) && self.task.is_read_only(p)));
        match self.strategy {
            Strategy::WingGong => candidates.sort_by_key(|&p| (self.task.is_pending(p), p)),
            Strategy::JustInTime => candidates.sort_by_key(|&p| self.rank[p.index()]),
        }
        candidates.reverse();
        VisibilityFrame { candidates, current: None, has_child: false }
    }

    /// Returns the unlinearized operations without an unlinearized predecessor in `hb`.
    fn minimals(&self) -> impl Iterator<Item = CallIndex> {
        let left = self.task.calls().places().filter(|p| !self.linearized.contains(p.index()));
        left.filter(|p| self.hb[p.index()].is_subset(&self.linearized))
    }

    /// Linearizes operations that change no state and can be explained, if that is never worse.
    fn absorb(&mut self) -> Result<(), Stopped> {
        if !self.is_independent || !self.is_comparable || self.visibility == Visibility::All {
            return Ok(());
        }
        let mut again = true;
        while again {
            again = false;
            let ready: Vec<CallIndex> = self
                .minimals()
                .filter(|&p| self.task.is_read_only(p) && !self.task.is_pending(p))
                .collect();
            for place in ready {
                if let Some(sees) = self.any_visibility(place)? {
                    self.append(place, sees);
                    again = true;
                }
            }
        }
        Ok(())
    }

    /// Checks whether the current configuration is new.
    fn is_new(&mut self) -> bool {
        if !self.is_comparable || self.visibility == Visibility::All {
            return true;
        }
        let mut key: Vec<u64> = self.linearized.words().to_vec();
        let writers = self.lin.iter().filter(|&&p| !self.task.is_read_only(p));
        key.extend(writers.map(|p| u64::from(p.0)));
        if !self.is_independent {
            key.extend(self.linearized.iter().flat_map(|p| *self.vis[p].words()));
        }
        if self.seen.contains(key.as_slice()) {
            return false;
        }
        self.seen_words += key.len() as u64;
        self.seen.insert(key.into_boxed_slice())
    }

    /// Returns everything that reaches some operations by a composition of relations.
    fn reaching(&self, relations: &[Atom], operations: SmallSet<W>) -> SmallSet<W> {
        relations.iter().rev().fold(operations, |reached, relation| {
            let into = match relation {
                Atom::Po => &self.po,
                Atom::Hb => &self.hb,
                Atom::Lin => &self.before,
                Atom::Vis => &self.vis,
            };
            reached.iter().fold(SmallSet::EMPTY, |all, p| all.union(&into[p]))
        })
    }

    fn demands_of(&self, place: CallIndex) -> impl Iterator<Item = &Demand> {
        let method = &*self.task.invocation(place).method;
        self.demands.iter().filter(move |d| self.model.axioms[d.axiom].concerns(method))
    }

    /// Returns the operations that the next linearized operation must see in any case.
    fn base(&self, place: CallIndex) -> SmallSet<W> {
        let last = |atom| match atom {
            Atom::Po => Some(self.po[place.index()]),
            Atom::Hb => Some(self.hb[place.index()]),
            Atom::Lin => Some(self.linearized),
            Atom::Vis => None,
        };
        let bases = self
            .demands_of(place)
            .filter_map(|demand| last(demand.last).map(|set| self.reaching(&demand.prefix, set)));
        let base = bases.fold(SmallSet::EMPTY, |all, set| all.union(&set));
        self.closed(place, base)
    }

    /// Closes the set of operations that an operation sees under the axioms.
    fn closed(&self, place: CallIndex, mut sees: SmallSet<W>) -> SmallSet<W> {
        if self.is_independent {
            return sees;
        }
        loop {
            let closing = self.demands_of(place).filter(|demand| demand.last == Atom::Vis);
            let more = closing
                .map(|demand| self.reaching(&demand.prefix, sees))
                .fold(sees, |all, set| all.union(&set));
            if more == sees {
                return sees;
            }
            sees = more;
        }
    }

    /// Checks whether an operation returns its recorded value after the operations that it sees.
    fn fits(&mut self, place: CallIndex, sees: &SmallSet<W>) -> bool {
        let mut state = self.machine.initial();
        for i in 0..self.lin.len() {
            let seen = self.lin[i];
            if sees.contains(seen.index()) && !self.task.is_read_only(seen) {
                match self.machine.step(state, seen) {
                    Some((next, _)) => state = next,
                    None => return false,
                }
            }
        }
        self.machine.perform(state, place).is_some()
    }

    fn options(&mut self, place: CallIndex) -> Result<VisibilityOptions<W>, Stopped> {
        if self.visibility == Visibility::All {
            let base = self.base(place);
            let free: Vec<usize> = self.linearized.difference(&base).iter().collect();
            if free.len() > MAX_SUBSET_OPERATIONS {
                return Err(Stopped::Size {
                    operations: self.task.len(),
                    limit: MAX_SUBSET_OPERATIONS,
                });
            }
            return Ok(VisibilityOptions::Subsets(Subsets { base, free, left_out: Some(0) }));
        }
        let sets = match self.is_independent {
            true => self.any_visibility(place)?.into_iter().collect(),
            false => self.minimal_visibilities(place)?,
        };
        self.growing_bytes = 0;
        let options = VisibilityOptions::Listed(sets.into());
        self.stack_bytes += options.bytes();
        Ok(options)
    }

    fn next_option(
        &mut self,
        place: CallIndex,
        options: &mut VisibilityOptions<W>,
    ) -> Result<Option<SmallSet<W>>, Stopped> {
        match options {
            VisibilityOptions::Listed(sets) => Ok(sets.pop_front()),
            VisibilityOptions::Subsets(subsets) => {
                for sees in subsets.by_ref() {
                    self.tick()?;
                    if self.closed(place, sees) == sees && self.fits(place, &sees) {
                        return Ok(Some(sees));
                    }
                }
                Ok(None)
            }
        }
    }

    /// Finds the minimal sets that the next linearized operation can see.
    ///
    /// Sets grow from the base by one operation at a time; a set that fits is not grown further.
    fn minimal_visibilities(&mut self, place: CallIndex) -> Result<Vec<SmallSet<W>>, Stopped> {
        let base = self.base(place);
        let writers: Vec<usize> = self
            .linearized
            .iter()
            .filter(|&p| !self.task.is_read_only(CallIndex::new(p)))
            .collect();
        let mut reached: FxHashSet<SmallSet<W>> = FxHashSet::from_iter([base]);
        let mut queue = VecDeque::from([base]);
        let mut minimal: Vec<SmallSet<W>> = Vec::new();
        let mut tried = 0;
        while let Some(sees) = queue.pop_front() {
            self.tick()?;
            tried += 1;
            if tried == SETS_TRIED_FIRST && minimal.is_empty() && self.fits_nowhere(place, &base)? {
                return Ok(minimal);
            }
            if minimal.iter().any(|smaller| smaller.is_subset(&sees)) {
                continue;
            }
            if self.fits(place, &sees) {
                // Closing may add many operations at once, so a set found later may be smaller.
                minimal.retain(|larger| !sees.is_subset(larger));
                minimal.push(sees);
                continue;
            }
            for &writer in writers.iter().filter(|&&writer| !sees.contains(writer)) {
                let grown = self.closed(place, sees.with(writer));
                if reached.insert(grown) {
                    queue.push_back(grown);
                }
            }
            self.growing_bytes =
                reached.table_bytes() + queue.table_bytes() + minimal.table_bytes();
        }
        Ok(minimal)
    }

    /// Checks whether an operation returns its recorded value after no set that contains `base`, by
    /// the states that such sets lead to; `false` if there are too many of them.
    fn fits_nowhere(&mut self, place: CallIndex, base: &SmallSet<W>) -> Result<bool, Stopped> {
        let mut reached: FxHashSet<StateId> = FxHashSet::from_iter([self.machine.initial()]);
        for i in 0..self.lin.len() {
            let seen = self.lin[i];
            if self.task.is_read_only(seen) {
                continue;
            }
            self.tick()?;
            let after: Vec<StateId> = reached
                .iter()
                .filter_map(|&state| self.machine.step(state, seen))
                .map(|(after, _)| after)
                .collect();
            if base.contains(seen.index()) {
                reached.clear();
            }
            reached.extend(after);
            if reached.len() > MAX_STATES_COMPARED {
                return Ok(false);
            }
        }
        Ok(!reached.into_iter().any(|state| self.machine.perform(state, place).is_some()))
    }

    /// Finds one set that the next linearized operation can see, if any set is enough.
    ///
    /// Processes the linearization and stores, for each state that a subsequence with the base can
    /// reach, how it was reached.
    fn any_visibility(&mut self, place: CallIndex) -> Result<Option<SmallSet<W>>, Stopped> {
        let base = self.base(place);
        let mut reached: Vec<(StateId, SmallSet<W>)> =
            vec![(self.machine.initial(), SmallSet::EMPTY)];
        let mut index: FxHashSet<StateId> = FxHashSet::default();
        for i in 0..self.lin.len() {
            let seen = self.lin[i];
            let is_forced = base.contains(seen.index());
            if self.task.is_read_only(seen) {
                continue;
            }
            self.tick()?;
            let mut next: Vec<(StateId, SmallSet<W>)> = Vec::new();
            index.clear();
            if !is_forced {
                // All of these entries stay, and their states differ.
                let entry = size_of::<(StateId, SmallSet<W>)>() + 2 * size_of::<StateId>();
                self.growing_bytes = reached.table_bytes() + (reached.len() * entry) as u64;
                self.check_memory()?;
                next.extend_from_slice(&reached);
                index.extend(reached.iter().map(|&(state, _)| state));
            }
            for &(state, sees) in &reached {
                self.tick()?;
                if let Some((after, _)) = self.machine.step(state, seen)
                    && index.insert(after)
                {
                    next.push((after, sees.with(seen.index())));
                }
                // The next step checks the budget.
                if self.steps.wrapping_add(1).is_multiple_of(STEPS_PER_CHECK) {
                    self.growing_bytes =
                        reached.table_bytes() + next.table_bytes() + index.table_bytes();
                }
            }
            reached = next;
        }
        let fitting =
            reached.into_iter().find(|(state, _)| self.machine.perform(*state, place).is_some());
        Ok(fitting.map(|(_, sees)| sees.union(&base)))
    }

    fn keep_attempt(&mut self) {
        if self.attempts.len() < MAX_ATTEMPTS_KEPT
            && self.first_unlinearized() == Some(self.furthest)
        {
            self.attempts.push(self.execution());
        }
    }

    fn execution(&self) -> Execution {
        let sees = |place: &CallIndex| {
            let vis = &self.vis[place.index()];
            self.lin.iter().copied().filter(|p| vis.contains(p.index())).collect()
        };
        Execution { lin: self.lin.clone(), vis: self.lin.iter().map(sees).collect() }
    }
}

impl<const W: usize> Iterator for Subsets<W> {
    type Item = SmallSet<W>;

    fn next(&mut self) -> Option<SmallSet<W>> {
        let left_out = self.left_out?;
        let all = (1u64 << self.free.len()) - 1;
        // The next larger number with the same number of one bits, or the least number with one
        // more.
        self.left_out = if left_out == all {
            None
        } else {
            let lowest = left_out & left_out.wrapping_neg();
            let ripple = left_out + lowest;
            let next = match left_out {
                0 => 1,
                _ => ripple | (((left_out ^ ripple) >> 2) / lowest),
            };
            if next > all { Some((1 << (left_out.count_ones() + 1)) - 1) } else { Some(next) }
        };
        let kept = self.free.iter().enumerate().filter(|(i, _)| left_out >> i & 1 == 0);
        Some(kept.fold(self.base, |sees, (_, &p)| sees.with(p)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_come_once_and_by_decreasing_size() {
        let base: SmallSet<1> = [9].into_iter().collect();
        let subsets = Subsets { base, free: vec![1, 2, 4, 7], left_out: Some(0) };
        let sizes: Vec<usize> = subsets.map(|sees| sees.iter().count()).collect();
        assert_eq!(sizes, [5, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 1]);
        let subsets = Subsets { base, free: vec![1, 2, 4, 7], left_out: Some(0) };
        assert_eq!(subsets.collect::<FxHashSet<_>>().len(), 16);
        let none = Subsets { base, free: vec![], left_out: Some(0) };
        assert_eq!(none.collect::<Vec<_>>(), [base]);
    }
}
