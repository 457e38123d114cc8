//! A search in waves: breadth first through the returns with a limited number of configurations (a
//! beam search that returns to the configurations it left out).
//!
//! The configurations and steps are those of [`crate::just_in_time`], with the rules for
//! overwriting operations ([`crate::overwriting_steps`]). A wave takes some configurations before
//! the same return, linearizes until that return has passed, and continues with those before the
//! next one; if there are too many, the others wait. When a wave ends, a wider one starts from the
//! furthest waiting configurations, and becomes narrower again once it gets further than all
//! earlier waves. So a linearization that is easy to find is found without exploring everything,
//! even if the first guesses were wrong, which a depth-first search corrects last.
//!
//! Pruning, in addition to that of [`crate::just_in_time`]: a configuration is dropped in favour of
//! another one before the same return, in the same state, with the same linearized operations among
//! those that change the state without overwriting it, if the other one has
//! - used no more pending and no more overwriting operations, and
//! - linearized no fewer reads, and settled no fewer operations.
//!
//! Everything possible from the dropped configuration is possible from the other. As in
//! [`crate::just_in_time`] this is not circular: a configuration is dropped only for one that is
//! not further from the end.
//!
//! Memory: all configurations from the first return on before which some are unexplored, and 8
//! bytes for every earlier configuration, for its predecessor and step.

use std::collections::BTreeMap;

use consistory_verdict::{Budget, Bytes, Stopped};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::calls::CallIndex;
use crate::just_in_time::{Linearization, MAX_ATTEMPTS_KEPT, STEPS_PER_CHECK};
use crate::machine::{StateId, TransitionTable};
use crate::overwrites::Overwrites;
use crate::overwriting_steps::{OverwritingStep, OverwritingSteps};
use crate::plain_steps::{Configuration, PlainSteps, Reached, StepPlan};
use crate::small_set::SmallSet;

/// Largest number of configurations before one return in the first wave, and in any wave.
const MIN_WAVE_WIDTH: usize = 64;
const MAX_WAVE_WIDTH: usize = 1 << 16;
/// Number of configurations that a new one is compared with.
const MAX_CONFIGURATIONS_COMPARED: usize = 64;
/// The predecessor of the first configuration.
const NO_PREDECESSOR: u32 = u32::MAX;

/// Searches for a linearization until `limit` configurations were reached; `None` if the search has
/// not ended.
pub(crate) fn search_in_waves<const W: usize>(
    plan: &StepPlan<'_, '_>,
    budget: &Budget,
    most: u64,
) -> Result<Option<Linearization>, Stopped> {
    let mut machine = TransitionTable::new(plan.task);
    match Overwrites::new(plan.task, &plan.timeline, &mut machine) {
        Some(overwrites) => {
            let steps = OverwritingSteps::<W>::new(plan, machine, &overwrites);
            search(plan, Some(&overwrites), steps, budget, most)
        }
        None => search(plan, None, PlainSteps::<W>::new(plan, machine), budget, most),
    }
}

/// The steps of a wave.
trait WaveSteps<'a, 'h: 'a, const W: usize> {
    /// Returns the first configuration.
    fn start(&mut self) -> Reached<W>;

    /// Lists the steps from a configuration, each with its result.
    fn expand(
        &mut self,
        from: &Configuration<W>,
        candidates: &mut Vec<CallIndex>,
        next: &mut Vec<(OverwritingStep, Reached<W>)>,
    );

    /// Returns a read that can no longer return its value, if one is known.
    fn hopeless(&mut self, configuration: &Configuration<W>) -> Option<CallIndex>;

    /// Computes the order that some steps lead to. Each operation is paired with the one at whose
    /// return it was linearized.
    fn unfold(&mut self, steps: Vec<OverwritingStep>) -> Vec<(CallIndex, CallIndex)>;

    fn machine(&mut self) -> &mut TransitionTable<'a, 'h>;
}

impl<'a, 'h: 'a, const W: usize> WaveSteps<'a, 'h, W> for PlainSteps<'a, 'h, W> {
    fn start(&mut self) -> Reached<W> {
        PlainSteps::start(self)
    }

    fn expand(
        &mut self,
        from: &Configuration<W>,
        candidates: &mut Vec<CallIndex>,
        next: &mut Vec<(OverwritingStep, Reached<W>)>,
    ) {
        self.order.clear();
        candidates.clear();
        self.list(from, candidates);
        self.choose(from, candidates, 0);
        for &candidate in candidates.iter().rev() {
            let reached = self.follow(from, candidate);
            next.extend(reached.map(|reached| (OverwritingStep::Take(candidate), reached)));
        }
    }

    fn hopeless(&mut self, configuration: &Configuration<W>) -> Option<CallIndex> {
        PlainSteps::hopeless(self, configuration)
    }

    fn unfold(&mut self, steps: Vec<OverwritingStep>) -> Vec<(CallIndex, CallIndex)> {
        self.order.clear();
        let mut reached = PlainSteps::start(self);
        for step in steps {
            if let (Reached::Before(from), OverwritingStep::Take(place)) = (reached, step) {
                reached = self.follow(&from, place).unwrap_or(reached);
            }
        }
        std::mem::take(&mut self.order)
    }

    fn machine(&mut self) -> &mut TransitionTable<'a, 'h> {
        &mut self.machine
    }
}

impl<'a, 'h: 'a, const W: usize> WaveSteps<'a, 'h, W> for OverwritingSteps<'a, 'h, W> {
    fn start(&mut self) -> Reached<W> {
        OverwritingSteps::start(self)
    }

    fn expand(
        &mut self,
        from: &Configuration<W>,
        candidates: &mut Vec<CallIndex>,
        next: &mut Vec<(OverwritingStep, Reached<W>)>,
    ) {
        OverwritingSteps::expand(self, from, candidates, next);
    }

    fn hopeless(&mut self, configuration: &Configuration<W>) -> Option<CallIndex> {
        OverwritingSteps::hopeless(self, configuration)
    }

    fn unfold(&mut self, steps: Vec<OverwritingStep>) -> Vec<(CallIndex, CallIndex)> {
        OverwritingSteps::unfold(self, steps)
    }

    fn machine(&mut self) -> &mut TransitionTable<'a, 'h> {
        OverwritingSteps::machine(self)
    }
}

fn search<'a, 'h: 'a, const W: usize, T: WaveSteps<'a, 'h, W>>(
    plan: &'a StepPlan<'a, 'h>,
    overwrites: Option<&Overwrites>,
    mut steps: T,
    budget: &Budget,
    most: u64,
) -> Result<Option<Linearization>, Stopped> {
    let Reached::Before(start) = steps.start() else {
        return Ok(Some(Linearization::Found(steps.unfold(Vec::new()))));
    };
    let mut waves = WaveSearch {
        plan,
        overwrites,
        steps,
        candidates: Vec::new(),
        next: Vec::new(),
        tables: BTreeMap::new(),
        known: 0,
        came: vec![(NO_PREDECESSOR, OverwritingStep::Pass)],
        open: BTreeMap::from([(start.at, vec![(start, 0)])]),
        furthest: 0,
        attempts: Vec::new(),
    };
    let (mut at, mut width, mut left) = (start.at, MIN_WAVE_WIDTH, MIN_WAVE_WIDTH);
    loop {
        // The wave explored its share of the configurations before this return, or all of them.
        let here = waves.open.get_mut(&at).filter(|_| left > 0);
        let Some(here) = here.filter(|here| !here.is_empty()) else {
            let Some((next, is_further)) = waves.next(at) else { break };
            // A narrower wave is enough where the search makes progress.
            width = match is_further {
                false => (2 * width).min(MAX_WAVE_WIDTH),
                true if next > waves.furthest => (width - width / 16).max(MIN_WAVE_WIDTH),
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
            let mut path = path(&waves.came, from);
            path.push(step);
            return Ok(Some(Linearization::Found(waves.steps.unfold(path))));
        }
        budget.check()?;
        budget.reserve(waves.memory())?;
    }
    let stuck = plan.timeline.returns[waves.furthest as usize];
    let mut attempts = Vec::new();
    for &(from, unexplained) in &waves.attempts {
        let order = waves.steps.unfold(path(&waves.came, from));
        let machine = waves.steps.machine();
        let mut state = Some(machine.initial());
        for &(place, _) in &order {
            state = state.and_then(|state| machine.perform(state, place));
        }
        // An operation without readers may have written the value that `unexplained` returned,
        // although the search found no way for it to return.
        if state.is_none_or(|state| machine.perform(state, unexplained).is_none()) {
            attempts.push((order.into_iter().map(|(place, _)| place).collect(), unexplained));
        }
    }
    Ok(Some(Linearization::Stuck { stuck, attempts }))
}

/// Returns the steps that lead to a configuration.
fn path(came: &[(u32, OverwritingStep)], to: u32) -> Vec<OverwritingStep> {
    let came = |number: u32| Some(came[number as usize]).filter(|came| came.0 != NO_PREDECESSOR);
    let steps = std::iter::successors(came(to), |&(from, _)| came(from)).map(|(_, step)| step);
    let mut path: Vec<OverwritingStep> = steps.collect();
    path.reverse();
    path
}

/// A reached configuration and its number.
type Open<const W: usize> = (Configuration<W>, u32);

struct WaveSearch<'a, 'h, 'o, const W: usize, T> {
    plan: &'a StepPlan<'a, 'h>,
    overwrites: Option<&'o Overwrites>,
    steps: T,
    candidates: Vec<CallIndex>,
    next: Vec<(OverwritingStep, Reached<W>)>,
    /// The configurations that were reached, by the next return.
    tables: BTreeMap<u32, ConfigurationTable<W>>,
    /// Number of configurations in the tables.
    known: usize,
    /// Predecessor and step of each reached configuration.
    came: Vec<(u32, OverwritingStep)>,
    /// The configurations left to explore, by the next return.
    open: BTreeMap<u32, Vec<Open<W>>>,
    furthest: u32,
    /// Furthest configurations without successors, each with an operation that cannot come next.
    attempts: Vec<(u32, CallIndex)>,
}

impl<'a, 'h: 'a, const W: usize, T: WaveSteps<'a, 'h, W>> WaveSearch<'a, 'h, '_, W, T> {
    /// Explores configurations before one return. Returns the step to the end, if there is one.
    fn advance(
        &mut self,
        at: u32,
        wave: &[Open<W>],
        budget: &Budget,
    ) -> Result<Option<(u32, OverwritingStep)>, Stopped> {
        if at > self.furthest {
            self.furthest = at;
            self.attempts.clear();
        }
        for (i, (configuration, number)) in wave.iter().enumerate() {
            if (i as u64 + 1).is_multiple_of(STEPS_PER_CHECK) {
                budget.check()?;
                budget.reserve(self.memory())?;
            }
            let mut unexplained = self.steps.hopeless(configuration);
            if unexplained.is_none() {
                self.next.clear();
                self.steps.expand(configuration, &mut self.candidates, &mut self.next);
                if self.next.is_empty() {
                    unexplained = Some(self.plan.timeline.returns[configuration.at as usize]);
                }
            }
            if let Some(unexplained) = unexplained {
                if at == self.furthest && self.attempts.len() < MAX_ATTEMPTS_KEPT {
                    self.attempts.push((*number, unexplained));
                }
                continue;
            }
            for &(step, next) in &self.next {
                let Reached::Before(next) = next else { return Ok(Some((*number, step))) };
                let table = self.tables.entry(next.at);
                let table = table.or_insert_with(|| {
                    ConfigurationTable::new(Kinds::new(self.plan, self.overwrites, next.at))
                });
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

    /// Chooses the return before which configurations are explored next. Also returns whether it is
    /// later than `at`. Drops the tables of returns before the first unexplored configuration.
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

    /// Estimates the memory of all tables, in bytes.
    fn memory(&mut self) -> u64 {
        // The tables of returns grow one after the other, so few of them are about to double.
        let entry =
            size_of::<ReachedConfigurations<W>>() + size_of::<((StateId, SmallSet<W>), u32)>() + 1;
        let tables =
            self.known * entry * 5 / 3 + self.tables.len() * size_of::<ConfigurationTable<W>>();
        let open: u64 = self.open.values().map(Bytes::table_bytes).sum();
        self.steps.machine().memory() + tables as u64 + open + self.came.table_bytes()
    }
}

/// Slots of the operations before one return, by kind.
struct Kinds<const W: usize> {
    /// Operations that change no state: a configuration with more of them linearized dominates.
    pure: SmallSet<W>,
    /// Pending and overwriting operations: a configuration with fewer of them used dominates.
    useful: SmallSet<W>,
}

impl<const W: usize> Kinds<W> {
    fn new(plan: &StepPlan<'_, '_>, overwrites: Option<&Overwrites>, at: u32) -> Self {
        let timeline = &plan.timeline;
        let mut pure = SmallSet::EMPTY;
        let mut useful: SmallSet<W> = (0..timeline.pending.len()).collect();
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
struct ConfigurationTable<const W: usize> {
    kinds: Kinds<W>,
    /// Index of the last entry of `known` for each state and set of linearized operations of other
    /// kinds.
    last: FxHashMap<(StateId, SmallSet<W>), u32>,
    known: Vec<ReachedConfigurations<W>>,
    /// Configurations in groups that are too large to compare with every member.
    others: FxHashSet<Configuration<W>>,
}

struct ReachedConfigurations<const W: usize> {
    /// Linearized operations that change no state, and settled operations.
    done: SmallSet<W>,
    settled: SmallSet<W>,
    used: SmallSet<W>,
    before: u32,
}

impl<const W: usize> ConfigurationTable<W> {
    fn new(kinds: Kinds<W>) -> Self {
        let (last, others) = (FxHashMap::default(), FxHashSet::default());
        ConfigurationTable { kinds, last, known: Vec::new(), others }
    }

    fn count(&self) -> usize {
        self.known.len() + self.others.len()
    }

    fn insert(&mut self, configuration: &Configuration<W>) -> bool {
        let Configuration { state, linearized, settled, .. } = *configuration;
        let done = linearized.intersection(&self.kinds.pure);
        let used = linearized.intersection(&self.kinds.useful);
        let rest = linearized.difference(&self.kinds.pure).difference(&self.kinds.useful);
        let last = self.last.entry((state, rest)).or_insert(NO_PREDECESSOR);
        let mut at = *last;
        let mut compared = 0;
        while at != NO_PREDECESSOR {
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
        if compared >= MAX_CONFIGURATIONS_COMPARED {
            return self.others.insert(*configuration);
        }
        let fresh = self.known.len() as u32;
        let before = std::mem::replace(last, fresh);
        self.known.push(ReachedConfigurations { done, settled, used, before });
        true
    }
}
