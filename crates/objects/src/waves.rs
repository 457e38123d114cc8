//! A search by waves: breadth first through the returns, a part of what is open at a time.
//!
//! The configurations and steps are those of [`crate::linearize`], and what is known of operations
//! that overwrite comes in addition ([`crate::overwrites`]). A wave takes some configurations that
//! stand before the same return, linearizes until that return has passed, and goes on with those
//! that stand before the next one; those that are too many for it stay behind. When a wave has run
//! dry, a wider one starts from the configurations that are furthest, and gets narrower again where it
//! comes further than any before. So a linearization that is easy to find is found without looking at
//! everything, even if the first guesses were wrong, which a search depth first takes back last.
//!
//! What is pruned, beside what linearize.rs says: a configuration gives way to one before the same
//! return, in the same state, in which the same operations that change states in other ways than
//! overwriting are linearized, and
//! - no more pending operations and no more of those that overwrite are used up,
//! - no fewer of those that change no state are linearized, and no fewer settled.
//!
//! Whatever can be done in the one, can be done in the other. As in linearize.rs this is not
//! circular: who gives way to whom, does so to one that is no further from the end.
//!
//! Memory: the configurations before returns at which, or before which, some are left to look at,
//! and 8 bytes for each other one, which say where it came from.

use std::collections::BTreeMap;

use consistory_verdict::{Budget, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bits::Bits;
use crate::calls::Place;
use crate::linearize::{ATTEMPTS, Linearization, PATIENCE};
use crate::machine::{Machine, StateId};
use crate::memory::Bytes;
use crate::overwrites::Overwrites;
use crate::steps::{Configuration, Plan, Step, Stepper};

/// How many configurations before one return the first wave takes, and the most that any takes.
const NARROW: usize = 64;
const WIDE: usize = 1 << 16;
/// How many configurations are compared with a new one, of those that it may give way to.
const MOST_COMPARED: usize = 64;
/// Where the first configuration came from.
const NOBODY: u32 = u32::MAX;

/// Searches for a linearization until so many configurations were reached; `None` if that is not the
/// end.
pub(crate) fn search_by_waves<const W: usize>(
    plan: &Plan<'_, '_>,
    budget: &Budget,
    most: u64,
) -> Result<Option<Linearization>, Stopped> {
    let mut machine = Machine::new(plan.task);
    let overwrites = Overwrites::new(plan.task, &plan.timeline, &mut machine);
    let overwrites = overwrites.as_ref();
    let mut stepper = Stepper::<W>::new(plan, machine, overwrites);
    let (start, is_over) = stepper.start();
    if is_over {
        return Ok(Some(Linearization::Found(stepper.order)));
    }
    let mut waves = Waves {
        plan,
        overwrites,
        stepper,
        candidates: Vec::new(),
        next: Vec::new(),
        tables: BTreeMap::new(),
        known: 0,
        came: vec![(NOBODY, Step::Pass)],
        open: BTreeMap::from([(start.at, vec![(start, 0)])]),
        furthest: 0,
        attempts: Vec::new(),
    };
    let (mut at, mut width, mut left) = (start.at, NARROW, NARROW);
    loop {
        // The wave's share of this return is done, or all of it.
        let here = waves.open.get_mut(&at).filter(|_| left > 0);
        let Some(here) = here.filter(|here| !here.is_empty()) else {
            let Some((next, is_further)) = waves.next(at) else { break };
            // What is hard may lie behind.
            width = match is_further {
                false => (2 * width).min(WIDE),
                true if next > waves.furthest => (width - width / 16).max(NARROW),
                true => width,
            };
            (at, left) = (next, width);
            continue;
        };
        if waves.came.len() as u64 > most {
            return Ok(None);
        }
        let wave = here.split_off(here.len().saturating_sub(left));
        left -= wave.len();
        if let Some((from, step)) = waves.advance(at, &wave, budget)? {
            let way = way(&waves.came, from).into_iter().chain([step]);
            return Ok(Some(Linearization::Found(waves.stepper.unfold(way).0)));
        }
        budget.check()?;
        budget.reserve(waves.memory())?;
    }
    let stuck = plan.timeline.returns[waves.furthest as usize];
    let mut attempts = Vec::new();
    let stepper = &mut waves.stepper;
    for &(from, unexplained) in &waves.attempts {
        let (order, state) = stepper.unfold(way(&waves.came, from));
        // Whom nobody saw may have left what the operation returned, too late for it.
        if state.is_none_or(|state| stepper.machine.perform(state, unexplained).is_none()) {
            attempts.push((order.into_iter().map(|(place, _)| place).collect(), unexplained));
        }
    }
    Ok(Some(Linearization::Stuck { stuck, attempts }))
}

/// Gives the steps that lead to a configuration.
fn way(came: &[(u32, Step)], to: u32) -> Vec<Step> {
    let came = |number: u32| Some(came[number as usize]).filter(|came| came.0 != NOBODY);
    let steps = std::iter::successors(came(to), |&(from, _)| came(from)).map(|(_, step)| step);
    let mut way: Vec<Step> = steps.collect();
    way.reverse();
    way
}

/// A configuration that was reached, and its number.
type Open<const W: usize> = (Configuration<W>, u32);

struct Waves<'a, 'h, const W: usize> {
    plan: &'a Plan<'a, 'h>,
    overwrites: Option<&'a Overwrites>,
    stepper: Stepper<'a, 'h, W>,
    candidates: Vec<Place>,
    next: Vec<(Step, Configuration<W>, bool)>,
    /// The configurations that were reached, by the next return.
    tables: BTreeMap<u32, Table<W>>,
    /// How many are in the tables, at most.
    known: usize,
    /// For each configuration that was reached from which one, and how.
    came: Vec<(u32, Step)>,
    /// What is still to be looked at, by the next return.
    open: BTreeMap<u32, Vec<Open<W>>>,
    furthest: u32,
    /// The configurations before the furthest return that lead nowhere, and an operation that
    /// cannot come next.
    attempts: Vec<(u32, Place)>,
}

impl<const W: usize> Waves<'_, '_, W> {
    /// Looks at configurations before one return; gives the step to the end, if there is one.
    fn advance(
        &mut self,
        at: u32,
        wave: &[Open<W>],
        budget: &Budget,
    ) -> Result<Option<(u32, Step)>, Stopped> {
        if at > self.furthest {
            self.furthest = at;
            self.attempts.clear();
        }
        for (i, (configuration, number)) in wave.iter().enumerate() {
            if (i as u64 + 1).is_multiple_of(PATIENCE) {
                budget.check()?;
                budget.reserve(self.memory())?;
            }
            let mut unexplained = self.stepper.hopeless(configuration);
            if unexplained.is_none() {
                self.next.clear();
                self.stepper.expand(configuration, &mut self.candidates, &mut self.next);
                if self.next.is_empty() {
                    unexplained = Some(self.stepper.returning(configuration));
                }
            }
            if let Some(unexplained) = unexplained {
                if at == self.furthest && self.attempts.len() < ATTEMPTS {
                    self.attempts.push((*number, unexplained));
                }
                continue;
            }
            for &(step, next, is_over) in &self.next {
                if is_over {
                    return Ok(Some((*number, step)));
                }
                let table = self.tables.entry(next.at);
                let table = table
                    .or_insert_with(|| Table::new(Kinds::new(self.plan, self.overwrites, next.at)));
                if table.insert(&next) {
                    self.known += 1;
                    let open = self.open.entry(next.at).or_default();
                    open.push((next, self.came.len() as u32));
                    self.came.push((*number, step));
                }
            }
        }
        Ok(None)
    }

    /// Finds the return that configurations are to be looked at before next, and whether it is
    /// further; forgets what no other configuration leads to any more.
    fn next(&mut self, at: u32) -> Option<(u32, bool)> {
        if self.open.get(&at).is_some_and(Vec::is_empty) {
            self.open.remove(&at);
        }
        let first = self.open.keys().next().copied().unwrap_or(0);
        while let Some(entry) = self.tables.first_entry().filter(|entry| *entry.key() < first) {
            self.known -= entry.remove().count();
        }
        match self.open.range(at + 1..).next() {
            Some((&next, _)) => Some((next, true)),
            None => self.open.keys().next_back().map(|&next| (next, false)),
        }
    }

    /// Estimates the memory that all takes, in bytes.
    fn memory(&self) -> u64 {
        // The tables of returns grow one after the other; most are not about to.
        let entry = size_of::<Known<W>>() + size_of::<((StateId, Bits<W>), u32)>() + 1;
        let tables = self.known * entry * 5 / 3 + self.tables.len() * size_of::<Table<W>>();
        let open: u64 = self.open.values().map(Bytes::table_bytes).sum();
        self.stepper.machine.memory() + tables as u64 + open + self.came.table_bytes()
    }
}

/// The slots of operations before one return, by what they are.
struct Kinds<const W: usize> {
    /// Of those that it is good to have linearized, as they change no state.
    pure: Bits<W>,
    /// Of those that it is good not to have used.
    useful: Bits<W>,
}

impl<const W: usize> Kinds<W> {
    fn new(plan: &Plan<'_, '_>, overwrites: Option<&Overwrites>, at: u32) -> Self {
        let timeline = &plan.timeline;
        let mut pure = Bits::EMPTY;
        let mut useful: Bits<W> = (0..timeline.pending.len()).collect();
        for &place in timeline.open(at as usize) {
            let slot = timeline.slot[place.index()] as usize;
            if plan.task.is_pure(place) {
                pure.insert(slot);
            } else if overwrites.is_some_and(|overwrites| overwrites.contains(place)) {
                useful.insert(slot);
            }
        }
        Kinds { pure, useful }
    }
}

/// The configurations before one return.
struct Table<const W: usize> {
    kinds: Kinds<W>,
    /// For each state, and other operations that are linearized, where the last one is.
    last: FxHashMap<(StateId, Bits<W>), u32>,
    known: Vec<Known<W>>,
    /// Those that are too many to be compared with.
    others: FxHashSet<Configuration<W>>,
}

struct Known<const W: usize> {
    /// What is linearized, where that is good, and settled.
    done: Bits<W>,
    settled: Bits<W>,
    used: Bits<W>,
    before: u32,
}

impl<const W: usize> Table<W> {
    fn new(kinds: Kinds<W>) -> Self {
        let (last, others) = (FxHashMap::default(), FxHashSet::default());
        Table { kinds, last, known: Vec::new(), others }
    }

    fn count(&self) -> usize {
        self.known.len() + self.others.len()
    }

    fn insert(&mut self, configuration: &Configuration<W>) -> bool {
        let Configuration { state, linearized, settled, .. } = *configuration;
        let done = linearized.intersection(&self.kinds.pure);
        let used = linearized.intersection(&self.kinds.useful);
        let rest = linearized.difference(&self.kinds.pure).difference(&self.kinds.useful);
        let last = self.last.entry((state, rest)).or_insert(NOBODY);
        let mut at = *last;
        let mut compared = 0;
        while at != NOBODY {
            let known = &mut self.known[at as usize];
            if done.is_subset(&known.done)
                && settled.is_subset(&known.settled)
                && known.used.is_subset(&used)
            {
                return false;
            }
            if known.done.is_subset(&done)
                && known.settled.is_subset(&settled)
                && used.is_subset(&known.used)
            {
                (known.done, known.settled, known.used) = (done, settled, used);
                return true;
            }
            compared += 1;
            at = known.before;
        }
        if compared >= MOST_COMPARED {
            return self.others.insert(*configuration);
        }
        let fresh = self.known.len() as u32;
        let before = std::mem::replace(last, fresh);
        self.known.push(Known { done, settled, used, before });
        true
    }
}
