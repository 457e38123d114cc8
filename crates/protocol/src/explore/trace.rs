//! Finds a run that leads to a state, by searching again instead of storing predecessors.
//!
//! The search keeps no predecessors, but it numbers states level by level. So a predecessor of a
//! state of level n is among the states of level n - 1, and expanding these again finds it; at
//! worst the whole search is repeated. With symmetry, the states on the path are representatives: a
//! real run is then built forwards, where each step chooses a rule that leads to a state with the
//! right representative.

use consistory_verdict::{Budget, Stopped};
use consistory_work::side_by_side;

use crate::explore::expand::{Expander, Product, Wrong};
use crate::explore::outcome::{Unfinished, Violation};
use crate::explore::search::BreadthFirstSearch;
use crate::lanes::Lanes;
use crate::system::{Entry, Position};
use crate::trace::Values;
use crate::tracking::{Effect, Operation};

/// A run of a protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The steps; the first one builds the start state.
    pub steps: Vec<RunStep>,
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStep {
    /// The rule or start state, with its parameters.
    pub rule: String,
    /// Position of the rule or start state.
    pub position: Option<Position>,
    /// Lane of the acting participant, if a parameter names one; see [`crate::System::lane_names`].
    pub actor: Option<u32>,
    /// Lanes whose parts of the state change.
    pub touched: Vec<u32>,
    /// Printed text.
    pub printed: String,
    /// State after the step; for the last step of a failing run, the state at the failure.
    pub state: Vec<Entry>,
    /// Effect on the locations; empty without tracking.
    pub effect: Effect,
    /// Loads and stores in the notation of histories, with the values of [`crate::history`].
    pub operations: Vec<String>,
}

impl RunStep {
    /// Lists the differences from the previous state: name, old and new value.
    pub fn changes<'a>(
        &'a self,
        before: &'a RunStep,
    ) -> impl Iterator<Item = (&'a Entry, &'a Entry)> {
        before.state.iter().zip(&self.state).filter(|(old, new)| old != new)
    }
}

/// Reasons why a run could not be reconstructed.
#[derive(Clone, Debug)]
pub(crate) enum Lost {
    /// The budget ran out.
    Stopped(Stopped),
    /// No step leads from one representative to the next, because some state has several
    /// representatives.
    Representatives,
}

impl From<Lost> for Unfinished {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Stopped(stopped) => Unfinished::Run(stopped),
            Lost::Representatives => Unfinished::Representatives,
        }
    }
}

/// Finds a run to a violation at a state.
pub(crate) fn run_to(
    search: &BreadthFirstSearch<'_>,
    wrong: Wrong,
    at: &[u64],
    budget: &Budget,
) -> Result<(Violation, Run), Lost> {
    let system = search.product.system;
    let mut way = Vec::new();
    if !at.is_empty() {
        way.push(at.to_vec());
        let mut level = level_of(search, at);
        while level > 0 {
            level -= 1;
            let found = predecessor(search, level, way.last().expect("it has a state"), budget)?;
            way.push(found);
        }
    }
    way.reverse();
    let mut replay = Replay::new(search.product, budget);
    for state in &way {
        replay.step_to(state)?;
    }
    let violation = match wrong {
        Wrong::Fault { instance, site } => {
            let fault = system.fault(site);
            let rule = replay.last(instance, way.is_empty(), &wrong)?;
            Violation::Fault { rule, fault }
        }
        Wrong::Rejected { instance } => {
            let rule = replay.last(instance, way.is_empty(), &wrong)?;
            let position = replay.steps.last().and_then(|step| step.position.clone());
            let position = position.unwrap_or_else(|| system.position(Default::default()));
            Violation::Rejected { rule, position }
        }
        Wrong::Invariant { claim } => Violation::Invariant {
            name: system.claim_name(claim),
            position: system.claim_position(claim),
            fault: None,
        },
        Wrong::InvariantFault { claim, site } => Violation::Invariant {
            name: system.claim_name(claim),
            position: system.claim_position(claim),
            fault: Some(system.fault(site)),
        },
        Wrong::Deadlock => Violation::Deadlock,
        Wrong::Stopped => return Err(Lost::Stopped(Stopped::Interrupted)),
    };
    Ok((violation, Run { steps: replay.steps }))
}

/// Returns the level of a visited state.
fn level_of(search: &BreadthFirstSearch<'_>, at: &[u64]) -> usize {
    let width = search.product.words();
    let mut words = vec![0; width];
    // The state is usually in one of the last two levels, so the levels are searched backwards.
    for level in (0..search.levels.len() - 1).rev() {
        for (shard, store) in search.shards.iter().enumerate() {
            for number in search.levels[level][shard]..search.levels[level + 1][shard] {
                store.get(number, &mut words);
                if words == at {
                    return level;
                }
            }
        }
    }
    0
}

/// Finds the least state of a level that has `target` as a successor; the result does not depend on
/// the number of threads.
fn predecessor(
    search: &BreadthFirstSearch<'_>,
    level: usize,
    target: &[u64],
    budget: &Budget,
) -> Result<Vec<u64>, Lost> {
    // Each thread searches one shard.
    let shards = search.shards.len();
    let found =
        side_by_side(shards, shards, |shard| look_through(search, level, shard, target, budget));
    let found: Result<Vec<Option<Vec<u64>>>, Stopped> = found.into_iter().collect();
    let found = found.map_err(Lost::Stopped)?;
    found.into_iter().flatten().min().ok_or(Lost::Representatives)
}

fn look_through(
    search: &BreadthFirstSearch<'_>,
    level: usize,
    shard: usize,
    target: &[u64],
    budget: &Budget,
) -> Result<Option<Vec<u64>>, Stopped> {
    let mut expander = Expander::new(search.product, budget);
    let mut words = vec![0; search.product.words()];
    let mut least: Option<Vec<u64>> = None;
    for number in search.levels[level][shard]..search.levels[level + 1][shard] {
        if number % 256 == 0 {
            budget.check()?;
        }
        search.shards[shard].get(number, &mut words);
        if least.as_ref().is_some_and(|least| *least <= words) {
            continue;
        }
        expander.load(&words);
        let lowered = &search.product.system.lowered;
        let mut by_priority = lowered.by_priority();
        for rule in 0..lowered.rules.len() {
            if !by_priority.admits(rule) {
                break;
            }
            let is_target = match expander.fire(rule) {
                Ok(None) => continue,
                Ok(Some(successor)) => successor == target,
                Err(Wrong::Stopped) => {
                    return Err(expander.stopped().unwrap_or(Stopped::Interrupted));
                }
                Err(_) => false,
            };
            by_priority.fired();
            expander.reset();
            if is_target {
                least = Some(words.clone());
                break;
            }
        }
    }
    Ok(least)
}

/// Builds a real run along representatives.
struct Replay<'a> {
    product: Product<'a>,
    expander: Expander<'a>,
    lanes: Lanes,
    blocks: Vec<String>,
    values: Values,
    steps: Vec<RunStep>,
}

impl<'a> Replay<'a> {
    fn new(product: Product<'a>, budget: &Budget) -> Self {
        let mut expander = Expander::new(product, budget);
        expander.stepper.machine.printed = Some(Vec::new());
        Replay {
            product,
            expander,
            lanes: product.system.lanes(),
            blocks: product.system.block_names(),
            values: Values::default(),
            steps: Vec::new(),
        }
    }

    /// Takes a step to a state with a given representative.
    fn step_to(&mut self, target: &[u64]) -> Result<(), Lost> {
        let system = self.product.system;
        if self.steps.is_empty() {
            for number in 0..system.lowered.starts.len() {
                self.listen();
                if self.expander.start(number).is_ok_and(|words| words == target) {
                    self.note(system.start_name(number), None);
                    self.expander.advance();
                    return Ok(());
                }
            }
            return Err(self.lost());
        }
        let mut by_priority = system.lowered.by_priority();
        for number in 0..system.lowered.rules.len() {
            if !by_priority.admits(number) {
                break;
            }
            self.listen();
            match self.expander.fire(number) {
                Ok(None) => continue,
                Ok(Some(words)) if words == target => {
                    self.note(system.rule_name(number), Some(number));
                    self.expander.advance();
                    return Ok(());
                }
                _ => self.expander.reset(),
            }
            by_priority.fired();
        }
        Err(self.lost())
    }

    /// Returns the reason why no step was found.
    fn lost(&self) -> Lost {
        self.expander.stopped().map_or(Lost::Representatives, Lost::Stopped)
    }

    /// Takes the failing step; the rule may differ from that of the representative.
    fn last(&mut self, instance: usize, is_start: bool, wrong: &Wrong) -> Result<String, Lost> {
        let system = self.product.system;
        if is_start {
            self.listen();
            let _ = self.expander.start(instance);
            let name = system.start_name(instance);
            self.note(name.clone(), None);
            return Ok(name);
        }
        let is_alike = |found: &Wrong| match (found, wrong) {
            (Wrong::Fault { site: a, .. }, Wrong::Fault { site: b, .. }) => a == b,
            (Wrong::Rejected { instance: a }, Wrong::Rejected { instance: b }) => {
                system.lowered.rules[*a].rule == system.lowered.rules[*b].rule
            }
            _ => false,
        };
        // The rule itself is tried first, since without symmetry it fails; another one has the same
        // priority.
        let priority = |number: usize| {
            let rule = system.lowered.rules[number].rule;
            system.program.rules[rule as usize].priority
        };
        let rules = 0..system.lowered.rules.len();
        let others = rules.filter(|&number| priority(number) == priority(instance));
        for number in std::iter::once(instance).chain(others) {
            self.listen();
            match self.expander.fire(number) {
                Ok(None) => continue,
                Err(found) if is_alike(&found) => {
                    let name = system.rule_name(number);
                    self.note(name.clone(), Some(number));
                    return Ok(name);
                }
                _ => self.expander.reset(),
            }
        }
        Err(self.lost())
    }

    fn listen(&mut self) {
        self.expander.stepper.machine.printed = Some(Vec::new());
    }

    /// Records a step of a rule, or of a start state if `number` is `None`.
    fn note(&mut self, rule: String, number: Option<usize>) {
        let system = self.product.system;
        let printed = self.expander.stepper.machine.printed.take().unwrap_or_default();
        let effect = match system.flow {
            Some(_) => self.expander.effect().clone(),
            None => Effect::default(),
        };
        let mut operations = Vec::new();
        self.values.step(&effect, &mut |operation, value| match operation {
            Operation::Load { block, .. } => {
                operations.push(format!("r({},{value})", self.blocks[block as usize]));
            }
            Operation::Store { block, .. } => {
                operations.push(format!("w({},{value})", self.blocks[block as usize]));
            }
            Operation::Serialize { .. } => {}
        });
        let state = system.entries(self.expander.stepper.slots(), &self.values.contents);
        let touched =
            self.steps.last().map_or(Vec::new(), |last| self.lanes.touched(&last.state, &state));
        self.steps.push(RunStep {
            rule,
            position: number.map(|number| system.rule_position(number)),
            actor: number.and_then(|number| system.actor(&self.lanes, number)),
            touched,
            printed: system.show_printed(&printed),
            state,
            effect,
            operations,
        });
    }
}
