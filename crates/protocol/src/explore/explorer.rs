//! The entry point: a builder for the options of an exploration.
//!
//! A system without tracking is explored by itself. A system that tracks its data is explored
//! together with observer and checker, which proves that every run is sequentially consistent or
//! finds a run whose constraint graph fails. A failing run is not always a violation, because its
//! stores may have another order than the one that was assumed. Therefore a judge may decide the
//! history of the run; a run that it finds consistent does not end the search.

use consistory_history::History;
use consistory_verdict::{Budget, Stopped, Verdict};

use crate::explore::checkpoint::{Checkpoint, Snapshot};
use crate::explore::expand::{Product, Wrong};
use crate::explore::outcome::{
    Exploration, ExploreError, GivenUp, Options, Outcome, Unexplained, Unfinished, Violation,
};
use crate::explore::passing::Passing;
use crate::explore::search::{BreadthFirstSearch, Ended, STARTS_BETWEEN_CHECKS};
use crate::explore::trace::Run;
use crate::machine::stepper::{Fired, Serialization, Stepper};
use crate::murphi::TypeId;
use crate::observer::{Failure, MAX_CLASSES, Monitor, Witness, is_ambiguous};
use crate::system::System;
use crate::trace::{TraceNames, history};
use crate::tracking::{Companion, Shape};

type Judge<'a> = dyn FnMut(&History) -> Verdict + 'a;
type Report<'a> = dyn FnMut(&Snapshot<'_>) + 'a;

/// A builder for an exploration; [`run`](Explorer::run) performs it.
///
/// ```
/// use consistory_protocol::{Explorer, Model, Outcome};
///
/// let text = "var x: 0..3; startstate x := 0; end; rule x < 3 ==> x := x + 1; end;\
///             rule x = 3 ==> x := 0; end; invariant x < 3;";
/// let system = Model::parse("count.m", text)?.plain();
/// let exploration = Explorer::new(&system).run()?;
/// let Outcome::Violated { run, .. } = exploration.outcome else { panic!("x becomes 3") };
/// assert_eq!(run.steps.len(), 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Explorer<'a> {
    system: &'a System,
    companion: Option<&'a dyn Companion>,
    options: Options,
    budget: Budget,
    checkpoint: Option<Checkpoint>,
    report: Box<Report<'a>>,
    judge: Box<Judge<'a>>,
}

impl<'a> Explorer<'a> {
    /// Builds an explorer with default options and without limits.
    pub fn new(system: &'a System) -> Self {
        Explorer {
            system,
            companion: None,
            options: Options::default(),
            budget: Budget::unlimited(),
            checkpoint: None,
            report: Box::new(|_| {}),
            judge: Box::new(|_| Verdict::Violation),
        }
    }

    /// Sets the options.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets limits of time and memory.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Continues from a checkpoint of the same system and options.
    #[must_use]
    pub fn resume(mut self, checkpoint: Checkpoint) -> Self {
        self.checkpoint = Some(checkpoint);
        self
    }

    /// Calls a function after each round of the search.
    #[must_use]
    pub fn report(mut self, report: impl FnMut(&Snapshot<'_>) + 'a) -> Self {
        self.report = Box::new(report);
        self
    }

    /// Sets a judge that decides the history of each run whose constraint graph fails.
    ///
    /// After a consistent or undecided run, the search continues with runs that do not start with
    /// this run. If it finds no violation, the outcome is [`Unfinished::Unexplained`]. Without a
    /// judge, the first failing run ends the search.
    #[must_use]
    pub fn judge(mut self, judge: impl FnMut(&History) -> Verdict + 'a) -> Self {
        self.judge = Box::new(judge);
        self
    }

    /// Runs the caller's companion next to the system, instead of observer and checker.
    #[must_use]
    pub fn companion(mut self, companion: &'a dyn Companion) -> Self {
        self.companion = Some(companion);
        self
    }

    /// Performs the exploration.
    pub fn run(mut self) -> Result<Exploration, ExploreError> {
        let system = self.system;
        if let Err(stopped) = self.budget.reserve(system.estimated_bytes(self.options.jobs)) {
            return Ok(stopped_at_start(system.shape(), stopped));
        }
        if let Some(companion) = self.companion {
            let judge = &mut |_: &Run| Verdict::Violation;
            return self.search(Some(companion), Serialization::Inferred, judge, None);
        }
        let Some(shape) = system.shape() else {
            let judge = &mut |_: &Run| Verdict::Violation;
            return self.search(None, Serialization::Inferred, judge, None);
        };
        let tracked = Tracked::new(system, shape);
        let mut witness = Witness::new(shape)?.with_homes(&tracked.homes);
        match has_ambiguous_start(system, &tracked.homes, &self.budget) {
            Ok(false) => {}
            Ok(true) => witness = witness.telling_initials_apart(),
            Err(stopped) => return Ok(stopped_at_start(Some(shape), stopped)),
        }
        let resumed = self.checkpoint.as_ref().map(Checkpoint::serialization);
        let first = resumed.unwrap_or(Serialization::Inferred);
        let exploration = self.prove(&tracked, &witness, first)?;
        let is_unexplained = |e: &Exploration| {
            matches!(e.outcome, Outcome::Undecided { reason: Unfinished::Unexplained(_) })
        };
        // A store that seemed to take effect immediately may be serialized later.
        if first == Serialization::Inferred && shape.serializes && is_unexplained(&exploration) {
            let second = self.prove(&tracked, &witness, Serialization::MarksOnly)?;
            if !matches!(second.outcome, Outcome::Undecided { .. }) {
                return Ok(second);
            }
        }
        Ok(exploration)
    }

    /// Explores together with observer and checker.
    fn prove(
        &mut self,
        tracked: &Tracked,
        witness: &Witness,
        serialization: Serialization,
    ) -> Result<Exploration, ExploreError> {
        let mut judge = std::mem::replace(&mut self.judge, Box::new(|_| Verdict::Violation));
        // If the monitor accepts the run, only the witness rejected it, because it reached its
        // limits.
        let judge_run = &mut |run: &Run| match tracked.failure(run) {
            None => Verdict::Violation,
            Some(_) => judge(&tracked.history(run)),
        };
        let explored = self.search(Some(witness), serialization, judge_run, Some(tracked));
        self.judge = judge;
        let exploration = explored?;
        Ok(Exploration { shape: Some(tracked.shape), ..exploration })
    }

    /// Searches; starts again with fewer symmetric scalarsets if a loop distinguishes values of one
    /// of them.
    fn search<'j>(
        &mut self,
        companion: Option<&dyn Companion>,
        serialization: Serialization,
        judge: &'j mut (dyn FnMut(&Run) -> Verdict + 'j),
        tracked: Option<&Tracked>,
    ) -> Result<Exploration, ExploreError> {
        let system = self.system;
        let mut passing = Passing::new(judge);
        let mut options = self.options.clone();
        let mut found_before = false;
        let mut given_up = match options.symmetry {
            true => system.clear_notes(),
            false => Vec::new(),
        };
        let mut symmetric = match options.symmetry {
            true => system.symmetric.types.clone(),
            false => Vec::new(),
        };
        if let Some(checkpoint) = &self.checkpoint {
            let product = Product { system, companion, symmetric: &symmetric, serialization };
            checkpoint.fits(&product, &options)?;
            symmetric.retain(|ty| checkpoint.symmetric.contains(ty));
        }
        loop {
            let product = Product { system, companion, symmetric: &symmetric, serialization };
            let mut search = BreadthFirstSearch::new(product, &options, &self.budget);
            search.has_found = found_before;
            let from = self.checkpoint.take().map(|checkpoint| search.restore(checkpoint));
            passing.restart();
            let found = search.search(from, &mut *self.report, &mut passing);
            if let Ok(Some((Wrong::Fault { site, .. }, _))) = &found
                && let Some(types) = system.ordered_loop(*site)
            {
                let place = system.fault(*site).position;
                let reason = format!("the result of the loop at {place} depends on its order");
                give_up(system, &mut symmetric, types, &reason, &mut given_up);
                continue;
            }
            // A run cannot be reconstructed from hashes alone: this requires the states themselves.
            if options.compaction && matches!(found, Ok(Some(_))) {
                options.compaction = false;
                found_before = true;
                continue;
            }
            let (ended, progress) = search.finish(found, &mut passing);
            if matches!(ended, Ended::Undecided(Unfinished::Representatives))
                && !symmetric.is_empty()
            {
                let types = symmetric.clone();
                let reason = "states have too many alike elements for one representative each";
                give_up(system, &mut symmetric, &types, reason, &mut given_up);
                continue;
            }
            let states = progress.states as f64;
            return Ok(Exploration {
                outcome: outcome(ended, passing.passed, tracked),
                progress,
                shape: None,
                given_up,
                omission: options.compaction.then(|| states * states / 2f64.powi(65)),
                passed: passing.passed,
            });
        }
    }
}

/// Treats scalarsets as ordinary types, and records the reason for those that were symmetric.
fn give_up(
    system: &System,
    symmetric: &mut Vec<TypeId>,
    types: &[TypeId],
    reason: &str,
    given_up: &mut Vec<GivenUp>,
) {
    for ty in types {
        if symmetric.contains(ty) {
            let scalarset = system.program.types.show(*ty);
            given_up.push(GivenUp { scalarset, reason: reason.to_owned() });
        }
    }
    symmetric.retain(|ty| !types.contains(ty));
}

/// Checks whether a start state holds different initial values of one block.
fn has_ambiguous_start(
    system: &System,
    homes: &[Option<u32>],
    budget: &Budget,
) -> Result<bool, Stopped> {
    let mut stepper = Stepper::new(system, Serialization::Inferred, budget.clone());
    for number in 0..system.lowered.starts.len() {
        if number % STARTS_BETWEEN_CHECKS == STARTS_BETWEEN_CHECKS - 1 {
            budget.check()?;
        }
        let started = stepper.start(number);
        if let Some(stopped) = stepper.machine.stopped.take() {
            return Err(stopped);
        }
        if started == Fired::Done && is_ambiguous(&stepper.effect, homes) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Builds the result of an exploration that stopped before its first state.
fn stopped_at_start(shape: Option<Shape>, stopped: Stopped) -> Exploration {
    Exploration {
        outcome: Outcome::Undecided { reason: Unfinished::Budget(stopped) },
        progress: Default::default(),
        shape,
        given_up: Vec::new(),
        omission: None,
        passed: 0,
    }
}

/// A system with the data that explains why one of its runs fails.
struct Tracked {
    names: TraceNames,
    homes: Vec<Option<u32>>,
    shape: Shape,
}

impl Tracked {
    fn new(system: &System, shape: Shape) -> Self {
        let names = TraceNames { procs: system.proc_names(), blocks: system.block_names() };
        Tracked { names, homes: system.location_homes(), shape }
    }

    fn history(&self, run: &Run) -> History {
        history(&self.names, run.steps.iter().map(|step| &step.effect))
            .expect("a run that was found fits into a history")
    }

    /// Returns the reason why the constraint graph of a run fails.
    fn failure(&self, run: &Run) -> Option<Failure> {
        let mut monitor = Monitor::new(self.shape).with_homes(&self.homes);
        run.steps.iter().find_map(|step| monitor.step(&step.effect).err())
    }
}

/// Converts the end of a search into an outcome; `judged` is the number of runs that the judge let
/// pass.
fn outcome(ended: Ended, judged: u32, tracked: Option<&Tracked>) -> Outcome {
    let (violation, run, passed) = match ended {
        Ended::Holds => return Outcome::Holds,
        Ended::Undecided(reason) => return Outcome::Undecided { reason },
        Ended::Wrong(violation, run) => (violation, run, None),
        Ended::PassedOver { violation, run, stopped } => (violation, run, Some(stopped)),
    };
    let (Violation::Rejected { .. }, Some(tracked)) = (&violation, tracked) else {
        return Outcome::Violated { violation, run };
    };
    let Some(failure) = tracked.failure(&run) else {
        let limit = MAX_CLASSES as u32;
        return Outcome::Undecided { reason: Unfinished::Values { limit } };
    };
    let history = tracked.history(&run);
    match passed {
        None => {
            let violation = Violation::Graph { failure, history: Box::new(history) };
            Outcome::Violated { violation, run }
        }
        Some(stopped) => {
            let unexplained = Unexplained { run, failure, history, judged, stopped };
            Outcome::Undecided { reason: Unfinished::Unexplained(Box::new(unexplained)) }
        }
    }
}
