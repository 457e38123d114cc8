//! Judging: which search decides, and what it proves.
//!
//! Linearizability of a large history is decided in polynomial time where that is known how
//! ([`crate::monitors`]); apart from that it has a search of its own ([`crate::linearize`]), and is decided part by part
//! where every call is confined to a part of the object: linearizability is local (Herlihy and
//! Wing), so a history is linearizable iff the calls of each part are. The proof needs that `hb`
//! comes from intervals, so a history without times, or in which operations of a session meet, is
//! searched whole; and so is one judged by any other model, which are not local.
//!
//! One long part, or a history that has no parts, is searched by all threads that are free.
//!
//! Parts take turns, a few steps each at first and then more and more: a part that fails soon saves the
//! others what comes after it, since only a shorter prefix that fails would matter then.
//!
//! If there is no explanation, the shortest prefix that already fails is looked for. Histories
//! that satisfy a model are closed under prefixes (an operation that has not returned in the
//! prefix counts as pending), so a prefix can be found by bisection. The search gives where to
//! start: its furthest point fails if what returns later is taken into account, and most often
//! without that too. A core from a polynomial decider is of some prefix; what returned before its
//! last return is decided again, until that is linearizable. That a prefix is shortest is shown by
//! what explains all that returned before its end.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::Instant;

use consistory_history::{OpId, Value};
use consistory_spec::{NAMED, ObjectModel, object_model_implies};
use consistory_verdict::{
    Attempt, Budget, Core, Linearization as LinearizationCertificate, Prefix, Stopped, Unexplained,
};
use rustc_hash::FxHashMap;

use crate::calls::Place;
use crate::definition::Execution;
use crate::linearize::{Linearization, Threads, linearize, linearize_within};
use crate::monitors::{Outcome, Pattern, Violation, monitor};
use crate::reads::few_reads;
use crate::task::Task;
use crate::visibility::{Explanation, Strategy, Visibility, explain};
use crate::{Judgement, Options, Ruling};

/// Settings of these deciders; the verdicts do not depend on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// How to search.
    pub engine: Engine,
    /// Number of steps that a search for a linearization takes depth first, and then by waves,
    /// before it starts again on all threads; more if there are many calls.
    pub alone: u64,
}

impl Default for Tuning {
    fn default() -> Self {
        Tuning { engine: Engine::default(), alone: 20_000 }
    }
}

fn threads(options: &Options) -> Threads {
    Threads::new(options.jobs, options.tuning.alone)
}

/// Which search decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Engine {
    /// The fastest that there is for the model.
    #[default]
    Fastest,
    /// The paper's algorithm, for any model.
    Paper {
        /// Which operation is tried first.
        strategy: Strategy,
        /// Which visibilities are tried.
        visibility: Visibility,
    },
}

/// Judges a history of an object's calls by each of the models.
///
/// If the history is linearizable it satisfies every model, by the same certificate: each
/// operation sees all that is linearized before it. Of the named models weak ones are judged
/// first: what violates one violates those that imply it.
pub fn judge_objects(task: &Task<'_>, models: &[ObjectModel], options: &Options) -> Vec<Ruling> {
    let mut started = Instant::now();
    let mut rule = |judgement: Judgement, via| {
        let now = Instant::now();
        let time = now - std::mem::replace(&mut started, now);
        Ruling { judgement, via, time }
    };
    let asked = models.iter().any(ObjectModel::is_linearizability);
    let share = options.budget.share(if asked { 1 } else { 4 });
    let linearizability = judge_linearizability(task, &share, &threads(options));
    if let Ok(judgement @ Judgement::Consistent(_)) = &linearizability {
        return models.iter().map(|_| rule(judgement.clone(), None)).collect();
    }
    // Named models from weak to strong, then the others.
    let strength = |model: &ObjectModel| NAMED.iter().rev().position(|id| *id == model.id);
    let mut order: Vec<usize> = (0..models.len()).collect();
    order.sort_by_key(|&i| strength(&models[i]).unwrap_or(usize::MAX));
    let mut rulings: Vec<Option<Ruling>> = vec![None; models.len()];
    let mut violated: Vec<(&'static str, Judgement)> = Vec::new();
    for i in order {
        let model = &models[i];
        let id = strength(model).map(|at| NAMED[NAMED.len() - 1 - at]);
        let weaker = violated
            .iter()
            .find(|(weaker, _)| id.is_some_and(|id| object_model_implies(id, weaker)));
        let ruling = if model.is_linearizability()
            && let Ok(judgement) = &linearizability
        {
            rule(judgement.clone(), None)
        } else if let Some((weaker, judgement)) = weaker {
            rule(judgement.clone(), Some(*weaker))
        } else if let (true, Err(stopped)) = (model.is_linearizability(), &linearizability) {
            rule(Judgement::Undecided(stopped.clone()), None)
        } else {
            let (strategy, visibility) = (Strategy::default(), Visibility::default());
            let budget = options.budget.renewed();
            let judgement = judge_by_axioms(task, model, strategy, visibility, &budget);
            rule(judgement.unwrap_or_else(Judgement::Undecided), None)
        };
        if let (Some(id), Judgement::Violation { .. }, None) = (id, &ruling.judgement, ruling.via) {
            violated.push((id, ruling.judgement.clone()));
        }
        rulings[i] = Some(ruling);
    }
    rulings.into_iter().map(|ruling| ruling.expect("every model is judged")).collect()
}

/// Judges a history of an object's calls by one model and one way to search.
pub fn judge_object(task: &Task<'_>, model: &ObjectModel, options: &Options) -> Ruling {
    let started = Instant::now();
    let budget = options.budget.renewed();
    let judgement = match options.tuning.engine {
        Engine::Fastest if model.is_linearizability() => {
            judge_linearizability(task, &budget, &threads(options))
        }
        Engine::Fastest => {
            judge_by_axioms(task, model, Strategy::default(), Visibility::default(), &budget)
        }
        Engine::Paper { strategy, visibility } => {
            judge_by_axioms(task, model, strategy, visibility, &budget)
        }
    };
    let judgement = judgement.unwrap_or_else(Judgement::Undecided);
    Ruling::own(judgement, started.elapsed())
}

fn judge_by_axioms(
    task: &Task<'_>,
    model: &ObjectModel,
    strategy: Strategy,
    visibility: Visibility,
    budget: &Budget,
) -> Result<Judgement, Stopped> {
    let search = |task: &Task<'_>| explain(task, model, strategy, visibility, budget);
    let certificate = |execution: Execution| {
        let vis = execution.vis.iter().map(|seen| ids(task, seen)).collect();
        let is_complete = execution.vis.iter().enumerate().all(|(i, seen)| seen.len() == i);
        let order = ids(task, &execution.lin);
        LinearizationCertificate { order, vis: (!is_complete).then_some(vis) }
    };
    let stuck = match search(task)? {
        Explanation::Found(execution) => {
            return Ok(certificate(execution).into());
        }
        Explanation::Stuck { stuck, .. } => stuck,
    };
    let places: Vec<Place> = task.calls().places().collect();
    let returns = by_return(task, &places);
    let (last, mut unexplained) =
        shortest_prefix(task, &returns, stuck, None, |task| match search(task)? {
            Explanation::Found(_) => Ok(None),
            Explanation::Stuck { stuck, attempts } => {
                let unexplained = task.calls().get(stuck).id;
                let attempt =
                    |execution| Attempt { linearization: certificate(execution), unexplained };
                Ok(Some((stuck, attempts.into_iter().map(attempt).collect())))
            }
        })?;
    let key = |place: Place| return_key(task, place);
    let before = task.relaxed(|place| key(place) < key(last));
    if let Ok(Explanation::Found(execution)) = search(&before) {
        unexplained.before = Some(certificate(execution));
    }
    Ok(unexplained.into())
}

/// How many operations a history has at most that is searched though it has a polynomial decider:
/// the shortest prefix that fails says more than a core.
const SMALL: usize = 64;

/// Says whether a history satisfies a model, and no more.
pub(crate) fn is_explained(
    task: &Task<'_>,
    model: &ObjectModel,
    budget: &Budget,
) -> Result<bool, Stopped> {
    if !model.is_linearizability() {
        let found = explain(task, model, Strategy::default(), Visibility::default(), budget)?;
        return Ok(matches!(found, Explanation::Found(_)));
    }
    // No certificate is asked for, so the deciders do for small histories too.
    if let Some(decided) = by_monitor(task) {
        return Ok(decided.is_ok());
    }
    let threads = threads(&Options::default());
    for part in parts(task) {
        let is_linearizable = match by_monitor(&part.task) {
            Some(decided) => decided.is_ok(),
            None => matches!(linearize(&part.task, budget, &threads)?, Linearization::Found(_)),
        };
        if !is_linearizable {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Asks a polynomial decider about a history that is not small; `None` if none applies.
fn monitor_large(task: &Task<'_>) -> Option<Result<Vec<Place>, Violation>> {
    if task.len() > SMALL { by_monitor(task) } else { None }
}

fn by_monitor(task: &Task<'_>) -> Option<Result<Vec<Place>, Violation>> {
    match monitor(task.calls(), task.object()) {
        Outcome::Linearizable(order) => Some(Ok(order)),
        Outcome::Violation(violation) => Some(Err(violation)),
        Outcome::NotApplicable(_) => None,
    }
}

/// What is decided of a part of a history.
enum Decided {
    /// The operations in order, each with the operation at whose return it was linearized.
    Linearizable(Vec<(Place, Place)>),
    /// The search ended there, with the operation that an attempt did not explain.
    Stuck { stuck: Place, suspect: Option<Place> },
    /// A polynomial decider refuted it.
    Refuted(Violation),
    /// The steps were too few.
    Later,
}

/// Decides whether a part is linearizable, by a polynomial decider if one applies, and otherwise in
/// so many steps, if there is a limit.
fn decide(
    task: &Task<'_>,
    budget: &Budget,
    threads: &Threads,
    limit: Option<u64>,
) -> Result<Decided, Stopped> {
    match monitor_large(task) {
        Some(Ok(order)) => return Ok(Decided::Linearizable(with_returns(task, &order))),
        Some(Err(violation)) => return Ok(Decided::Refuted(violation)),
        None => {}
    }
    Ok(match linearize_within(task, budget, threads, limit)? {
        None => Decided::Later,
        Some(Linearization::Found(order)) => Decided::Linearizable(order),
        Some(Linearization::Stuck { stuck, attempts }) => {
            let suspect = attempts.first().map(|&(_, unexplained)| unexplained);
            Decided::Stuck { stuck, suspect }
        }
    })
}

/// Gives with each operation of a linearization the one that returns first of it and those behind
/// it; pending operations at the end are left out.
fn with_returns(task: &Task<'_>, order: &[Place]) -> Vec<(Place, Place)> {
    let mut first: Option<Place> = None;
    let mut found = Vec::with_capacity(order.len());
    for &place in order.iter().rev() {
        let returned = (!task.is_pending(place)).then_some(place);
        first = first.into_iter().chain(returned).min_by_key(|&place| return_key(task, place));
        found.extend(first.map(|first| (place, first)));
    }
    found.reverse();
    found
}

/// Gives what was called before the last of some returns, with only these looked at.
fn prefix<'h>(task: &Task<'h>, is_before: impl Fn(Place) -> bool) -> Part<'h> {
    let calls = task.calls();
    let returned = calls.places().filter(|&place| !task.is_pending(place) && is_before(place));
    let last = returned.map(|place| calls.get(place).end).max().unwrap_or(i64::MIN);
    let places: Vec<Place> =
        calls.places().filter(|&place| calls.get(place).start <= last).collect();
    let task = task.restricted(&places).relaxed(|place| is_before(places[place.index()]));
    Part { task, places }
}

/// Asks a polynomial decider about a prefix; `None` if none applies. Places are those of the whole
/// history.
fn find_by_monitor(prefix: &Part<'_>) -> Option<Result<Vec<Place>, Violation>> {
    let places = |some: Vec<Place>| some.into_iter().map(|place| prefix.place(place)).collect();
    let wrong = |wrong: Violation| Violation { core: places(wrong.core), ..wrong };
    Some(by_monitor(&prefix.task)?.map(places).map_err(wrong))
}

/// Looks for a linearization of a prefix by its parts; `None` if there is none.
///
/// It is found on one thread, so that it is always the same.
fn find_by_parts(
    prefix: &Part<'_>,
    budget: &Budget,
    alone: u64,
) -> Result<Option<Vec<Place>>, Stopped> {
    let threads = Threads::new(1, alone);
    let mut found: Vec<(Place, Place)> = Vec::with_capacity(prefix.task.len());
    let parts = parts(&prefix.task);
    for part in &parts {
        let Decided::Linearizable(order) = decide(&part.task, budget, &threads, None)? else {
            return Ok(None);
        };
        found.extend(order.iter().map(|&(op, at)| (part.place(op), part.place(at))));
    }
    if parts.len() > 1 {
        found.sort_by_key(|&(_, at)| return_key(&prefix.task, at));
    }
    Ok(Some(found.into_iter().map(|(place, _)| prefix.place(place)).collect()))
}

/// How often the end of a shortest prefix is guessed from a core before it is found by bisection.
const GUESSES: usize = 8;

/// Makes a judgement of a core, for the shortest prefix if the deciders know all prefixes that are
/// asked for and the time suffices.
fn refuted(task: &Task<'_>, violation: &Violation, budget: &Budget) -> Judgement {
    match shortest_refuted(task, violation, budget) {
        Some(Refuted { violation, last, before }) => {
            let before = LinearizationCertificate { order: ids(task, &before), vis: None };
            let last = task.calls().get(last).id;
            core(task, &violation, Some(Prefix { last, before }))
        }
        None => core(task, violation, None),
    }
}

fn core(task: &Task<'_>, violation: &Violation, prefix: Option<Prefix>) -> Judgement {
    let pattern = violation.pattern.name().into();
    let operations = ids(task, &violation.core);
    Core { pattern, operations, prefix }.into()
}

/// The shortest prefix that a polynomial decider refutes.
struct Refuted {
    violation: Violation,
    /// The call whose return is its end.
    last: Place,
    /// What explains all that returned before.
    before: Vec<Place>,
}

fn shortest_refuted(task: &Task<'_>, violation: &Violation, budget: &Budget) -> Option<Refuted> {
    let calls = task.calls();
    let returned = |place: &Place| !task.is_pending(*place);
    let end = |place: Place| calls.get(place).end;
    let mut ends: Vec<i64> = calls.places().filter(returned).map(end).collect();
    ends.sort_unstable();
    ends.dedup();
    // Up to the end with this number all is wrong; up to the one before `low` all is explained.
    let mut wrong = (ends.len().checked_sub(1)?, violation.clone());
    let (mut low, mut explained) = (0, Vec::new());
    let mut guesses = 0;
    while low < wrong.0 {
        budget.check().ok()?;
        let core = wrong.1.core.iter().copied().filter(returned).map(end);
        let last = core.filter(|&end| end <= ends[wrong.0]).max().unwrap_or(ends[wrong.0]);
        let guess = ends.partition_point(|&end| end < last).min(wrong.0 - 1);
        let middle = low + (wrong.0 - low) / 2;
        let probe = if guess >= low && guesses < GUESSES { guess } else { middle };
        guesses += 1;
        match find_by_monitor(&prefix(task, |place| end(place) <= ends[probe]))? {
            Ok(order) => (low, explained) = (probe + 1, order),
            Err(violation) => wrong = (probe, violation),
        }
    }
    let (at, violation) = wrong;
    let is_last = |place: &Place| !task.is_pending(*place) && end(*place) == ends[at];
    let in_core = violation.core.iter().copied().find(is_last);
    let last = in_core.or_else(|| calls.places().find(is_last))?;
    Some(Refuted { violation, last, before: explained })
}

fn judge_linearizability(
    task: &Task<'_>,
    budget: &Budget,
    threads: &Threads,
) -> Result<Judgement, Stopped> {
    match monitor_large(task) {
        Some(Ok(order)) => {
            let certificate = LinearizationCertificate { order: ids(task, &order), vis: None };
            return Ok(certificate.into());
        }
        Some(Err(violation)) => return Ok(refuted(task, &violation, budget)),
        None => {}
    }
    let key = |place: Place| return_key(task, place);
    let mut open = parts(task);
    let count = open.len();
    let most = if task.len() < LARGE { 0 } else { count - 1 };
    let mut limit = Some(FIRST_TURN).filter(|&first| count > 1 && first < threads.alone);
    // What was linearized, each with the operation at whose return that happened; operations of
    // all parts are sorted by that.
    let mut found: Vec<(Place, Place)> = Vec::with_capacity(task.len());
    let mut undecided = None;
    let mut shortest: Option<Failure<'_>> = None;
    while !open.is_empty() {
        let decided = decide_all(&open, budget, threads, most, limit);
        let mut stuck: Vec<(Place, Option<Place>, Part<'_>)> = Vec::new();
        let mut later = Vec::new();
        for (part, decided) in std::mem::take(&mut open).into_iter().zip(decided) {
            match decided {
                Ok(Decided::Linearizable(order)) => {
                    found.extend(order.iter().map(|&(op, at)| (part.place(op), part.place(at))));
                }
                Ok(Decided::Stuck { stuck: at, suspect }) => stuck.push((at, suspect, part)),
                Ok(Decided::Refuted(violation)) => {
                    let whole = |places: &mut Vec<Place>| {
                        places.iter_mut().for_each(|place| *place = part.place(*place));
                    };
                    let Some(refuted) = shortest_refuted(&part.task, &violation, budget) else {
                        let mut violation = violation;
                        whole(&mut violation.core);
                        return Ok(core(task, &violation, None));
                    };
                    let last = part.place(refuted.last);
                    let mut violation = refuted.violation;
                    whole(&mut violation.core);
                    Failure { last, evidence: Evidence::Core(violation) }.keep(&mut shortest, key);
                }
                Ok(Decided::Later) => later.push(part),
                Err(stopped) => undecided = Some(stopped),
            }
        }
        stuck.sort_by_key(|(at, _, part)| key(part.place(*at)));
        for (at, suspect, part) in stuck {
            // A part that fails at `at` fails there or later.
            let first = key(part.place(at));
            if shortest.as_ref().is_some_and(|failure| key(failure.last) <= first) {
                break;
            }
            failure(part, at, suspect, budget, threads)?.keep(&mut shortest, key);
        }
        open = match &shortest {
            None => later,
            Some(Failure { last, .. }) => {
                later.iter().map(|part| part.until(|place| key(place) < key(*last))).collect()
            }
        };
        let longer = limit.map(|limit| limit.saturating_mul(LONGER));
        limit = longer.filter(|&limit| limit < threads.alone);
    }
    let Some(Failure { last, evidence }) = shortest else {
        if let Some(stopped) = undecided {
            return Err(stopped);
        }
        if count > 1 {
            found.sort_by_key(|&(_, at)| key(at));
        }
        let order = found.iter().map(|&(place, _)| task.calls().get(place).id).collect();
        return Ok(LinearizationCertificate { order, vis: None }.into());
    };
    let before = prefix(task, |place| key(place) < key(last));
    let order = match (find_by_monitor(&before), &evidence) {
        (Some(found), _) => found.ok().map(|order| ids(task, &order)),
        // What came as far as the last return explains all that returned before it.
        (None, Evidence::Attempts { explained: Some(order), .. }) if count == 1 => {
            Some(order.clone())
        }
        (None, _) => {
            let found = find_by_parts(&before, budget, threads.alone);
            found.ok().flatten().map(|order| ids(task, &order))
        }
    };
    let before = order.map(|order| LinearizationCertificate { order, vis: None });
    let as_prefix = |before| Prefix { last: task.calls().get(last).id, before };
    match evidence {
        Evidence::Core(violation) => Ok(core(task, &violation, before.map(as_prefix))),
        Evidence::Attempts { mut unexplained, part, .. } => {
            if task.len() > SMALL {
                let whole = part.until(|place| key(place) <= key(last));
                if let Some(few) = few_reads(&whole.task, budget, threads.alone) {
                    let few = few.into_iter().map(|place| whole.place(place)).collect();
                    let violation = Violation { pattern: Pattern::Overwritten, core: few };
                    return Ok(core(task, &violation, before.map(as_prefix)));
                }
            }
            unexplained.before = before;
            Ok(unexplained.into())
        }
    }
}

/// How many steps the search of a part takes in the first turn, and how many times as many in each
/// further one.
const FIRST_TURN: u64 = 1 << 12;
const LONGER: u64 = 16;

/// A prefix of a part that fails, up to the return of `last`, and what shows it.
struct Failure<'h> {
    last: Place,
    evidence: Evidence<'h>,
}

enum Evidence<'h> {
    Core(Violation),
    Attempts {
        unexplained: Unexplained,
        /// An order that comes as far as the last return, if there is one.
        explained: Option<Vec<OpId>>,
        part: Box<Part<'h>>,
    },
}

impl<'h> Failure<'h> {
    /// Takes the place of another one that is not shorter.
    fn keep<K: Ord>(self, shortest: &mut Option<Self>, key: impl Fn(Place) -> K) {
        if shortest.as_ref().is_none_or(|best| key(self.last) < key(best.last)) {
            *shortest = Some(self);
        }
    }
}

/// Finds the shortest prefix of a part that fails.
fn failure<'h>(
    part: Part<'h>,
    stuck: Place,
    suspect: Option<Place>,
    budget: &Budget,
    threads: &Threads,
) -> Result<Failure<'h>, Stopped> {
    let places: Vec<Place> = part.task.calls().places().collect();
    let returns = by_return(&part.task, &places);
    let mut came_to = None;
    let attempts = |task: &Task<'_>| match linearize(task, budget, threads)? {
        Linearization::Found(_) => Ok(None),
        Linearization::Stuck { attempts, stuck } => {
            came_to = Some(stuck);
            let attempt = |(order, unexplained): (Vec<Place>, Place)| Attempt {
                linearization: LinearizationCertificate { order: ids(task, &order), vis: None },
                unexplained: task.calls().get(unexplained).id,
            };
            Ok(Some((stuck, attempts.into_iter().map(attempt).collect())))
        }
    };
    let (last, unexplained) = shortest_prefix(&part.task, &returns, stuck, suspect, attempts)?;
    let explained = unexplained.attempts.first().filter(|_| came_to == Some(last));
    let explained = explained.map(|attempt| attempt.linearization.order.clone());
    let last = part.place(last);
    Ok(Failure {
        last,
        evidence: Evidence::Attempts { unexplained, explained, part: Box::new(part) },
    })
}

/// How many operations a history has at least whose parts are worth a thread each.
const LARGE: usize = 1000;

/// Decides each part, on up to `most` threads beside this one; who is done leaves its thread to
/// the searches of the others.
fn decide_all(
    parts: &[Part<'_>],
    budget: &Budget,
    threads: &Threads,
    most: usize,
    limit: Option<u64>,
) -> Vec<Result<Decided, Stopped>> {
    let others = threads.take(most);
    if others.count == 0 {
        return parts.iter().map(|part| decide(&part.task, budget, threads, limit)).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(i) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < parts.len())
        {
            done.push((i, decide(&parts[i].task, budget, threads, limit)));
        }
        done
    };
    let count = others.count;
    let others = Mutex::new(others);
    let mut done: Vec<(usize, Result<Decided, Stopped>)> = std::thread::scope(|scope| {
        let work_and_leave = || {
            let done = work();
            others.lock().expect("no worker panics").give_back();
            done
        };
        // With fewer threads than hoped for, those that there are do more.
        let others: Vec<_> = (0..count)
            .map_while(|_| Builder::new().spawn_scoped(scope, work_and_leave).ok())
            .collect();
        let mut done = work();
        threads.leave();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        threads.come_back();
        done
    });
    done.sort_unstable_by_key(|&(i, _)| i);
    done.into_iter().map(|(_, decided)| decided).collect()
}

/// Finds the shortest prefix that fails; one that ends before the return of `stuck` does not, and
/// the whole history does. If there is a suspect, it is tried first. What is tried and fails says
/// where it is stuck, too.
fn shortest_prefix(
    task: &Task<'_>,
    returns: &[Place],
    stuck: Place,
    suspect: Option<Place>,
    mut attempts: impl FnMut(&Task<'_>) -> Result<Option<(Place, Vec<Attempt>)>, Stopped>,
) -> Result<(Place, Unexplained), Stopped> {
    let mut rank = vec![usize::MAX; task.len()];
    for (i, place) in returns.iter().enumerate() {
        rank[place.index()] = i;
    }
    let mut try_until = |last: usize| attempts(&task.relaxed(|place| rank[place.index()] <= last));
    // What fails at `high` does not at `low - 1`; steps double until something fails.
    let mut low = rank[stuck.index()];
    let mut high = suspect.map_or(low, |place| rank[place.index()].max(low));
    let mut step = 1;
    let mut failed = loop {
        if let Some((stuck, attempts)) = try_until(high)? {
            low = low.max(rank[stuck.index()]);
            break attempts;
        }
        low = high + 1;
        high = (high + step).min(returns.len() - 1);
        step *= 2;
    };
    while low < high {
        let middle = low + (high - low) / 2;
        match try_until(middle)? {
            Some((stuck, attempts)) => {
                (high, failed) = (middle, attempts);
                low = low.max(rank[stuck.index()]);
            }
            None => low = middle + 1,
        }
    }
    let returned = ids(task, &returns[..=high]);
    Ok((returns[high], Unexplained { returned, attempts: failed, before: None }))
}

/// Sorts the completed operations among some by return.
fn by_return(task: &Task<'_>, places: &[Place]) -> Vec<Place> {
    let mut returns: Vec<Place> =
        places.iter().copied().filter(|&place| !task.is_pending(place)).collect();
    returns.sort_by_key(|&place| return_key(task, place));
    returns
}

/// Gives what completed operations are sorted by: their returns or, without times, their places
/// in their sessions.
fn return_key(task: &Task<'_>, place: Place) -> (i64, Place) {
    let calls = task.calls();
    let op = calls.get(place);
    match calls.is_timed() {
        true => (op.end, place),
        false => (i64::from(calls.history().index_in_session(op.id)), place),
    }
}

/// Operations that are a history of their own.
struct Part<'h> {
    task: Task<'h>,
    /// For each of them its place among all.
    places: Vec<Place>,
}

impl<'h> Part<'h> {
    /// Gives the place among all operations.
    fn place(&self, place: Place) -> Place {
        self.places[place.index()]
    }

    /// Gives what was called before the last of some returns, with only these looked at.
    fn until(&self, is_before: impl Fn(Place) -> bool) -> Part<'h> {
        let Part { task, mut places } = prefix(&self.task, |place| is_before(self.place(place)));
        places.iter_mut().for_each(|place| *place = self.place(*place));
        Part { task, places }
    }
}

/// Divides the operations into parts that are objects of their own, if there are several.
fn parts<'h>(task: &Task<'h>) -> Vec<Part<'h>> {
    let part = |places: Vec<Place>| Part { task: task.restricted(&places), places };
    let whole = || vec![part(task.calls().places().collect())];
    if !task.calls().is_timed() || task.calls().sessions_meet() {
        return whole();
    }
    let mut index: FxHashMap<Value, usize> = FxHashMap::default();
    let mut of_invocation: FxHashMap<u32, usize> = FxHashMap::default();
    let mut parts: Vec<Vec<Place>> = Vec::new();
    for place in task.calls().places() {
        let number = task.invocation_of(place);
        let at = match of_invocation.get(&number) {
            Some(&at) => at,
            None => {
                let invocation = task.invocation(place);
                let Some(part) = task.object().part(&invocation.method, &invocation.args) else {
                    return whole();
                };
                let at = *index.entry(part).or_insert_with(|| {
                    parts.push(Vec::new());
                    parts.len() - 1
                });
                of_invocation.insert(number, at);
                at
            }
        };
        parts[at].push(place);
    }
    parts.into_iter().map(part).collect()
}

fn ids(task: &Task<'_>, places: &[Place]) -> Vec<OpId> {
    places.iter().map(|&place| task.calls().get(place).id).collect()
}
