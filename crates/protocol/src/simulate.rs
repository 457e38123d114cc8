//! Random runs of a protocol.

use consistory_random::QuickRandom;
use consistory_verdict::Budget;

use crate::machine::stepper::{Fired, Serialization, Stepper};
use crate::system::{Fault, System};
use crate::tracking::{Effect, Operation};

/// A random run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Simulation {
    /// Effects of the start state and of each rule on the locations.
    pub effects: Vec<Effect>,
    /// The fault that ended the run, if any.
    pub fault: Option<Fault>,
}

/// Largest number of rules that fire per load or store, because a run may stop performing any.
const MAX_RULES_PER_OPERATION: usize = 200;

/// Runs a system that tracks its data until it has performed the given number of loads and stores,
/// fails, or makes no progress.
///
/// The same seed produces the same run.
pub fn simulate(system: &System, operations: usize, seed: u64) -> Simulation {
    let mut random = QuickRandom::new(seed);
    let mut below = |bound: usize| random.below(bound);
    let mut stepper = Stepper::new(system, Serialization::Inferred, Budget::unlimited());
    let mut simulation = Simulation { effects: Vec::new(), fault: None };
    let starts = system.lowered.starts.len();
    if starts == 0 {
        return simulation;
    }
    if let Fired::Fault(site) = stepper.start(below(starts)) {
        simulation.fault = Some(system.fault(site));
        return simulation;
    }
    simulation.effects.push(stepper.effect.clone());
    let mut rules: Vec<usize> = (0..system.lowered.rules.len()).collect();
    let ends = &system.lowered.priority_ends;
    let mut performed = 0;
    for _ in 0..operations.saturating_mul(MAX_RULES_PER_OPERATION) {
        if performed >= operations {
            break;
        }
        let state = stepper.slots().to_vec();
        stepper.load_slots(&state);
        let mut fired = Fired::Disabled;
        for tried in 0..rules.len() {
            // Rules of one priority are tried in a random order, after those of smaller priority
            // numbers.
            let end = ends[ends.partition_point(|&end| end <= tried)];
            let other = tried + below(end - tried);
            rules.swap(tried, other);
            fired = stepper.fire(rules[tried]);
            if fired != Fired::Disabled {
                break;
            }
            stepper.reset();
        }
        match fired {
            Fired::Done => {
                let is_traced = |op: &&Operation| !matches!(op, Operation::Serialize { .. });
                performed += stepper.effect.operations.iter().filter(is_traced).count();
                simulation.effects.push(stepper.effect.clone());
            }
            Fired::Fault(site) => {
                simulation.fault = Some(system.fault(site));
                break;
            }
            Fired::Disabled => break,
        }
    }
    simulation
}
