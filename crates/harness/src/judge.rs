//! Judges the outcomes of programs, each different outcome once.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use consistory::{Court, Verdict};
use consistory_history::History;
use consistory_objects::{Calls, Levels, Options, Task, TaskError, infer_levels};
use consistory_spec::{Level, Object, ObjectModel};
use consistory_verdict::Budget;
use rustc_hash::FxHashSet;

use crate::outcome::Outcome;
use crate::program::Program;

/// Number of outcomes remembered as judged.
const MAX_REMEMBERED_OUTCOMES: usize = 1 << 20;

/// The consistency that an object promises to its concurrent callers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Promise {
    /// A consistency model.
    Model(ObjectModel),
    /// A visibility level for each method.
    Levels {
        /// The levels, by the methods' names in the specification.
        levels: Vec<(Box<str>, Level)>,
        /// The level of methods that are not listed.
        other: Level,
    },
}

impl Promise {
    /// Returns the promise of linearizability: each call takes effect at one moment between its
    /// start and its return.
    pub fn linearizability() -> Self {
        let model = ObjectModel::named("linearizability");
        Promise::Model(model.expect("linearizability is a named model"))
    }

    /// Returns whether the promise is linearizability.
    pub fn is_linearizability(&self) -> bool {
        matches!(self, Promise::Model(model) if model.is_linearizability())
    }

    /// Returns the name in reports.
    pub fn name(&self) -> String {
        match self {
            Promise::Model(model) => model.id.to_string(),
            Promise::Levels { levels, other } => {
                let mut shown: Vec<String> =
                    levels.iter().map(|(method, level)| format!("{method}={level}")).collect();
                shown.push(format!("others={other}"));
                format!("levels({})", shown.join(","))
            }
        }
    }
}

/// The reason why an outcome is bad.
#[derive(Clone, Debug)]
pub enum Fault {
    /// It violates the promise, as confirmed by the independent checker.
    Violation(Box<Verdict<'static>>),
    /// A call panicked.
    Panic {
        /// The message of the panic.
        message: String,
    },
}

/// Result of judging an outcome.
pub(crate) enum Ruling {
    Good,
    Bad(Box<Fault>),
    Undecided,
}

/// Judges outcomes.
pub(crate) struct Judge {
    pub(crate) object: Arc<dyn Object>,
    /// Judges without certificates; violations are certified afterwards.
    court: Court,
    /// Time limit for one outcome.
    time: Duration,
    /// The levels that explain everything so far, if they are inferred.
    pub(crate) levels: Option<Levels>,
    /// Fingerprints of judged good outcomes. A collision would hide an outcome; with a million
    /// fingerprints of 64 bits this happens once in ten million campaigns.
    good: FxHashSet<u64>,
    /// Number of judged outcomes, not counting remembered ones.
    pub(crate) judged: u64,
}

impl Judge {
    pub(crate) fn new(object: Arc<dyn Object>, promise: &Promise, time: Duration) -> Self {
        let court = Court::own_object("object", object.clone());
        let court = match promise.clone() {
            Promise::Model(model) => {
                court.object_model(model).expect("the court is one for an object")
            }
            Promise::Levels { levels, other } => court.method_levels(levels, other),
        };
        let court = court.budget(time).memory(u64::MAX).jobs(1).without_certification();
        Judge { object, court, time, levels: None, good: FxHashSet::default(), judged: 0 }
    }

    /// Judges an outcome of a program.
    pub(crate) fn judge(&mut self, program: &Program, outcome: &Outcome) -> Ruling {
        if let Some(message) = outcome.panic() {
            let message = message.to_owned();
            return Ruling::Bad(Box::new(Fault::Panic { message }));
        }
        let mut hasher = DefaultHasher::new();
        (program, outcome).hash(&mut hasher);
        let fingerprint = hasher.finish();
        if self.good.contains(&fingerprint) {
            return Ruling::Good;
        }
        self.judged += 1;
        let history = outcome.history(program);
        if let Some(levels) = &mut self.levels {
            let budget = Budget::unlimited().with_time(self.time);
            let options = Options { budget, ..Options::default() };
            let task = Calls::new(&history)
                .map_err(TaskError::from)
                .and_then(|calls| Task::new(calls, self.object.clone()));
            // The ruling below also handles outcomes that are undecided or unexplained here.
            let _ = task.map(|task| infer_levels(&task, levels, &options));
        }
        let ruling = self.rule(history);
        if matches!(ruling, Ruling::Good) && self.good.len() < MAX_REMEMBERED_OUTCOMES {
            self.good.insert(fingerprint);
        }
        ruling
    }

    /// Judges a history by the promise.
    fn rule(&self, history: History) -> Ruling {
        let Ok(report) = self.court.judge_case(history.into()) else { return Ruling::Undecided };
        let Some(verdict) = report.into_iter().next() else { return Ruling::Undecided };
        if verdict.is_consistent() {
            return Ruling::Good;
        }
        let verdict = verdict.certified();
        match verdict.is_violation() {
            true => Ruling::Bad(Box::new(Fault::Violation(Box::new(verdict)))),
            false => Ruling::Undecided,
        }
    }

    /// Guesses the calls that a bad outcome needs: calls that changed nothing, and unaffected parts
    /// of the object, are left out as long as the outcome stays bad.
    pub(crate) fn core(&self, program: &Program, outcome: &Outcome) -> Program {
        let mut kept: Vec<Vec<bool>> =
            program.threads.iter().map(|calls| vec![true; calls.len()]).collect();
        let is_bad = |kept: &[Vec<bool>]| {
            let history = outcome.filtered(kept).history(&program.filtered(|t, i| kept[t][i]));
            matches!(self.rule(history), Ruling::Bad(_))
        };
        if outcome.panic().is_some() {
            return program.clone();
        }
        let part = |t: usize, i: usize| {
            let call = &program.threads[t][i];
            let method = self.object.resolve(&call.method, call.args.len()).ok().flatten();
            self.object.part(method.map_or(&*call.method, |m| &*m.name), &call.args)
        };
        let places =
            || (0..kept.len()).flat_map(|t| (0..program.threads[t].len()).map(move |i| (t, i)));
        let places: Vec<(usize, usize)> = places().collect();
        if places.iter().all(|&(t, i)| part(t, i).is_some()) {
            for &(t, i) in &places {
                let mut fewer = kept.clone();
                let without = part(t, i);
                for &(s, j) in places.iter().filter(|&&(s, j)| part(s, j) == without) {
                    fewer[s][j] = false;
                }
                if is_bad(&fewer) {
                    kept = fewer;
                }
            }
        }
        for &(t, i) in places.iter().rev() {
            let call = &program.threads[t][i];
            let returns = outcome.returns().get(t).and_then(|returns| returns.get(i));
            let method = self.object.resolve(&call.method, call.args.len()).ok().flatten();
            let name = method.map_or(&*call.method, |m| &*m.name);
            if kept[t][i] && self.object.is_read_only(name, returns) {
                kept[t][i] = false;
                if !is_bad(&kept) {
                    kept[t][i] = true;
                }
            }
        }
        program.filtered(|t, i| kept[t][i])
    }
}
