//! Linearizability: chooses the decider or search, and builds the certificate.
//!
//! A large history is decided in polynomial time if a decider applies ([`crate::monitors`]).
//! Otherwise it is searched ([`crate::just_in_time`]), part by part if every call is confined to a
//! part of the object: linearizability is local (Herlihy and Wing), so a history is linearizable if
//! and only if the calls of each part are. The proof needs that `hb` comes from intervals, so a
//! history without times, or one in which operations of a session meet, is searched as a whole.
//!
//! A long part, or a history without parts, is searched by all free threads. Parts take turns of
//! increasing length. Once a part fails, the others are searched only up to that point, since only
//! a shorter failing prefix would matter.
//!
//! If there is no linearization, the shortest failing prefix is computed. Prefixes of a
//! linearizable history are linearizable (an operation that has not returned in the prefix is
//! pending), so the prefix can be found by bisection. The search provides the start: its furthest
//! point fails if later returns are taken into account, and usually without them too. A core from a
//! polynomial decider belongs to some prefix; the operations that returned before its last return
//! are decided again, until they are linearizable. The certificate shows that a prefix is the
//! shortest by explaining everything that returned before its end.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use consistory_history::{OpId, Value};
use consistory_spec::ObjectModel;
use consistory_verdict::{
    Attempt, Budget, Core, Linearization as LinearizationCertificate, Prefix, Stopped, Unexplained,
};
use consistory_work::spawn_scoped;
use rustc_hash::FxHashMap;

use crate::calls::CallIndex;
use crate::just_in_time::{Linearization, Threads, linearize, linearize_within};
use crate::monitors::{Outcome, Pattern, Violation, monitor};
use crate::reads::few_reads;
use crate::task::Task;
use crate::visibility::{Explanation, Strategy, Visibility, explain};
use crate::{Judgement, Options};

/// Number of operations up to which a history is searched even if a polynomial decider applies: the
/// shortest failing prefix says more than a core.
const SMALL_HISTORY_OPERATIONS: usize = 64;

/// Checks whether a history satisfies a model, without a certificate.
pub(crate) fn is_explained(
    task: &Task<'_>,
    model: &ObjectModel,
    budget: &Budget,
) -> Result<bool, Stopped> {
    if !model.is_linearizability() {
        let found = explain(task, model, Strategy::default(), Visibility::default(), budget)?;
        return Ok(matches!(found, Explanation::Found(_)));
    }
    // No certificate is needed, so polynomial deciders are used for small histories too.
    if let Some(decided) = by_monitor(task) {
        return Ok(decided.is_ok());
    }
    let threads = crate::court::threads(&Options::default());
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

/// Runs a polynomial decider on a history that is not small; `None` if none applies.
fn monitor_large(task: &Task<'_>) -> Option<Result<Vec<CallIndex>, Violation>> {
    if task.len() > SMALL_HISTORY_OPERATIONS { by_monitor(task) } else { None }
}

fn by_monitor(task: &Task<'_>) -> Option<Result<Vec<CallIndex>, Violation>> {
    match monitor(task.calls(), task.object()) {
        Outcome::Linearizable(order) => Some(Ok(order)),
        Outcome::Violation(violation) => Some(Err(violation)),
        Outcome::NotApplicable(_) => None,
    }
}

/// Result for a part of a history.
enum Decided {
    /// The operations in order, each with the operation at whose return it was linearized.
    Linearizable(Vec<(CallIndex, CallIndex)>),
    /// The search failed at the operation `stuck`; a furthest attempt does not explain `suspect`.
    Stuck { stuck: CallIndex, suspect: Option<CallIndex> },
    /// A polynomial decider refuted it.
    Refuted(Violation),
    /// The step limit was reached.
    Later,
}

/// Decides whether a part is linearizable, by a polynomial decider if one applies, and otherwise by
/// a search with an optional step limit.
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

/// Pairs each operation of a linearization with the earliest return among it and the operations
/// after it. Pending operations at the end are left out.
fn with_returns(task: &Task<'_>, order: &[CallIndex]) -> Vec<(CallIndex, CallIndex)> {
    let mut first: Option<CallIndex> = None;
    let mut found = Vec::with_capacity(order.len());
    for &place in order.iter().rev() {
        let returned = (!task.is_pending(place)).then_some(place);
        first = first.into_iter().chain(returned).min_by_key(|&place| return_key(task, place));
        found.extend(first.map(|first| (place, first)));
    }
    found.reverse();
    found
}

/// Returns the operations called before the latest of some returns; operations whose returns are
/// not among these become pending.
fn prefix<'h>(task: &Task<'h>, is_before: impl Fn(CallIndex) -> bool) -> HistoryPart<'h> {
    let calls = task.calls();
    let returned = calls.places().filter(|&place| !task.is_pending(place) && is_before(place));
    let last = returned.map(|place| calls.get(place).end).max().unwrap_or(i64::MIN);
    let places: Vec<CallIndex> =
        calls.places().filter(|&place| calls.get(place).start <= last).collect();
    let task = task.restricted(&places).relaxed(|place| is_before(places[place.index()]));
    HistoryPart { task, places }
}

/// Runs a polynomial decider on a prefix; `None` if none applies. Positions are those in the whole
/// history.
fn find_by_monitor(prefix: &HistoryPart<'_>) -> Option<Result<Vec<CallIndex>, Violation>> {
    let places = |some: Vec<CallIndex>| some.into_iter().map(|place| prefix.place(place)).collect();
    let wrong = |wrong: Violation| Violation { core: places(wrong.core), ..wrong };
    Some(by_monitor(&prefix.task)?.map(places).map_err(wrong))
}

/// Searches for a linearization of a prefix by its parts; `None` if there is none.
///
/// Uses one thread, so that the result is deterministic.
fn find_by_parts(
    prefix: &HistoryPart<'_>,
    budget: &Budget,
    alone: u64,
) -> Result<Option<Vec<CallIndex>>, Stopped> {
    let threads = Threads::new(1, alone);
    let mut found: Vec<(CallIndex, CallIndex)> = Vec::with_capacity(prefix.task.len());
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

/// Number of attempts to guess the end of the shortest failing prefix from a core, before
/// bisection.
const MAX_PREFIX_GUESSES: usize = 8;

/// Builds a judgement from a core. It refutes the shortest failing prefix, if polynomial deciders
/// apply to all prefixes that are tried and the time suffices.
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
    /// Call whose return ends the prefix.
    last: CallIndex,
    /// Order that explains all calls that returned before the end of the prefix.
    before: Vec<CallIndex>,
}

fn shortest_refuted(task: &Task<'_>, violation: &Violation, budget: &Budget) -> Option<Refuted> {
    let calls = task.calls();
    let returned = |place: &CallIndex| !task.is_pending(*place);
    let end = |place: CallIndex| calls.get(place).end;
    let mut ends: Vec<i64> = calls.places().filter(returned).map(end).collect();
    ends.sort_unstable();
    ends.dedup();
    // Prefixes that end at this number or later fail; the prefix before `low` is explained.
    let mut wrong = (ends.len().checked_sub(1)?, violation.clone());
    let (mut low, mut explained) = (0, Vec::new());
    let mut guesses = 0;
    while low < wrong.0 {
        budget.check().ok()?;
        let core = wrong.1.core.iter().copied().filter(returned).map(end);
        let last = core.filter(|&end| end <= ends[wrong.0]).max().unwrap_or(ends[wrong.0]);
        let guess = ends.partition_point(|&end| end < last).min(wrong.0 - 1);
        let middle = low + (wrong.0 - low) / 2;
        let probe = if guess >= low && guesses < MAX_PREFIX_GUESSES { guess } else { middle };
        guesses += 1;
        match find_by_monitor(&prefix(task, |place| end(place) <= ends[probe]))? {
            Ok(order) => (low, explained) = (probe + 1, order),
            Err(violation) => wrong = (probe, violation),
        }
    }
    let (at, violation) = wrong;
    let is_last = |place: &CallIndex| !task.is_pending(*place) && end(*place) == ends[at];
    let in_core = violation.core.iter().copied().find(is_last);
    let last = in_core.or_else(|| calls.places().find(is_last))?;
    Some(Refuted { violation, last, before: explained })
}

/// Judges a history of an object's calls for linearizability.
pub(crate) fn judge_linearizability(
    task: &Task<'_>,
    budget: &Budget,
    threads: &Threads,
) -> Result<Judgement, Stopped> {
    budget.reserve(task.len() as u64 * DECIDER_BYTES_PER_CALL)?;
    match monitor_large(task) {
        Some(Ok(order)) => {
            let certificate = LinearizationCertificate { order: ids(task, &order), vis: None };
            return Ok(certificate.into());
        }
        Some(Err(violation)) => return Ok(refuted(task, &violation, budget)),
        None => {}
    }
    match PartsInTurns::new(task, budget, threads).decide()? {
        PartsDecision::Linearizable(order) => {
            let order = ids(task, &order);
            Ok(LinearizationCertificate { order, vis: None }.into())
        }
        PartsDecision::Core(violation) => Ok(core(task, &violation, None)),
        PartsDecision::Fails(failure) => Ok(certified_failure(task, failure, budget, threads)),
    }
}

/// Memory of the polynomial deciders per call, in bytes.
const DECIDER_BYTES_PER_CALL: u64 = 256;

/// Parts of a history, decided in turns of increasing length.
struct PartsInTurns<'t, 'h> {
    task: &'t Task<'h>,
    budget: &'t Budget,
    threads: &'t Threads,
    /// Number of parts.
    count: usize,
    /// Parts not yet decided.
    open: Vec<HistoryPart<'h>>,
    /// Linearized operations, each with the operation at whose return it was linearized.
    found: Vec<(CallIndex, CallIndex)>,
    /// Reason why a part is undecided.
    undecided: Option<Stopped>,
    /// Shortest failing prefix found so far.
    shortest: Option<FailedPart<'h>>,
}

/// Result for all parts.
enum PartsDecision<'h> {
    Linearizable(Vec<CallIndex>),
    /// A core refutes the history, and the shortest prefix is unknown.
    Core(Violation),
    Fails(FailedPart<'h>),
}

impl<'t, 'h> PartsInTurns<'t, 'h> {
    fn new(task: &'t Task<'h>, budget: &'t Budget, threads: &'t Threads) -> Self {
        let open = parts(task);
        let found = Vec::with_capacity(task.len());
        let count = open.len();
        PartsInTurns { task, budget, threads, count, open, found, undecided: None, shortest: None }
    }

    fn key(&self, place: CallIndex) -> (i64, CallIndex) {
        return_key(self.task, place)
    }

    fn decide(mut self) -> Result<PartsDecision<'h>, Stopped> {
        let alone = self.threads.alone;
        let mut limit = Some(FIRST_TURN_STEPS).filter(|&first| self.count > 1 && first < alone);
        while !self.open.is_empty() {
            if let Some(violation) = self.take_turn(limit)? {
                return Ok(PartsDecision::Core(violation));
            }
            let longer = limit.map(|limit| limit.saturating_mul(TURN_GROWTH));
            limit = longer.filter(|&limit| limit < alone);
        }
        if let Some(failure) = self.shortest {
            return Ok(PartsDecision::Fails(failure));
        }
        if let Some(stopped) = self.undecided {
            return Err(stopped);
        }
        // Operations of all parts are sorted by the returns at which they were linearized.
        if self.count > 1 {
            let task = self.task;
            self.found.sort_by_key(|&(_, at)| return_key(task, at));
        }
        let order = self.found.into_iter().map(|(place, _)| place).collect();
        Ok(PartsDecision::Linearizable(order))
    }

    /// Runs the search of every open part for at most `limit` steps. Returns a core if its shortest
    /// prefix is unknown.
    fn take_turn(&mut self, limit: Option<u64>) -> Result<Option<Violation>, Stopped> {
        let most = if self.task.len() < MIN_OPERATIONS_FOR_THREADS { 0 } else { self.count - 1 };
        let decided = decide_all(&self.open, self.budget, self.threads, most, limit);
        let mut stuck: Vec<(CallIndex, Option<CallIndex>, HistoryPart<'h>)> = Vec::new();
        let mut later = Vec::new();
        for (part, decided) in std::mem::take(&mut self.open).into_iter().zip(decided) {
            match decided {
                Ok(Decided::Linearizable(order)) => {
                    let whole = order.iter().map(|&(op, at)| (part.place(op), part.place(at)));
                    self.found.extend(whole);
                }
                Ok(Decided::Stuck { stuck: at, suspect }) => stuck.push((at, suspect, part)),
                Ok(Decided::Refuted(violation)) => {
                    match shortest_refuted(&part.task, &violation, self.budget) {
                        None => return Ok(Some(part.whole(violation))),
                        Some(refuted) => {
                            let last = part.place(refuted.last);
                            let evidence = Evidence::Core(part.whole(refuted.violation));
                            self.keep(FailedPart { last, evidence });
                        }
                    }
                }
                Ok(Decided::Later) => later.push(part),
                Err(stopped) => self.undecided = Some(stopped),
            }
        }
        self.find_shortest(stuck)?;
        self.open = match &self.shortest {
            None => later,
            Some(FailedPart { last, .. }) => {
                let last = self.key(*last);
                later.iter().map(|part| part.until(|place| self.key(place) < last)).collect()
            }
        };
        Ok(None)
    }

    /// Finds the shortest failing prefixes of failing parts, as long as they may be shorter than
    /// the one found so far.
    fn find_shortest(
        &mut self,
        mut stuck: Vec<(CallIndex, Option<CallIndex>, HistoryPart<'h>)>,
    ) -> Result<(), Stopped> {
        stuck.sort_by_key(|(at, _, part)| return_key(self.task, part.place(*at)));
        for (at, suspect, part) in stuck {
            // A part that is stuck at `at` fails there or later.
            let first = self.key(part.place(at));
            if self.shortest.as_ref().is_some_and(|failure| self.key(failure.last) <= first) {
                break;
            }
            let extent = if self.count == 1 { Extent::Whole } else { Extent::HistoryPart };
            let failure = failure(part, at, suspect, extent, self.budget, self.threads)?;
            self.keep(failure);
        }
        Ok(())
    }

    /// Records a failure, unless another one is at least as short.
    fn keep(&mut self, failure: FailedPart<'h>) {
        let last = self.key(failure.last);
        if self.shortest.as_ref().is_none_or(|best| last < self.key(best.last)) {
            self.shortest = Some(failure);
        }
    }
}

/// Builds the judgement of the shortest failing prefix: an order of all operations before its end,
/// and attempts or, for a register, a few reads that refute it.
fn certified_failure(
    task: &Task<'_>,
    failure: FailedPart<'_>,
    budget: &Budget,
    threads: &Threads,
) -> Judgement {
    let FailedPart { last, evidence } = failure;
    let end = return_key(task, last);
    let before = prefix(task, |place| return_key(task, place) < end);
    let order = match (find_by_monitor(&before), &evidence) {
        (Some(found), _) => found.ok().map(|order| ids(task, &order)),
        // An attempt that reached the last return explains everything that returned before it.
        (None, Evidence::Attempts { explained: Some(order), .. }) => Some(order.clone()),
        (None, _) => {
            let found = find_by_parts(&before, budget, threads.alone);
            found.ok().flatten().map(|order| ids(task, &order))
        }
    };
    let before = order.map(|order| LinearizationCertificate { order, vis: None });
    let as_prefix = |before| Prefix { last: task.calls().get(last).id, before };
    match evidence {
        Evidence::Core(violation) => core(task, &violation, before.map(as_prefix)),
        Evidence::Attempts { mut unexplained, part, .. } => {
            if task.len() > SMALL_HISTORY_OPERATIONS {
                let whole = part.until(|place| return_key(task, place) <= end);
                if let Some(few) = few_reads(&whole.task, budget, threads.alone) {
                    let few = few.into_iter().map(|place| whole.place(place)).collect();
                    let violation = Violation { pattern: Pattern::Overwritten, core: few };
                    return core(task, &violation, before.map(as_prefix));
                }
            }
            unexplained.before = before;
            unexplained.into()
        }
    }
}

/// Steps of the first turn of a part.
const FIRST_TURN_STEPS: u64 = 1 << 12;
/// Factor between the lengths of successive turns.
const TURN_GROWTH: u64 = 16;

/// A failing prefix of a part, up to the return of `last`, with its evidence.
struct FailedPart<'h> {
    last: CallIndex,
    evidence: Evidence<'h>,
}

enum Evidence<'h> {
    Core(Violation),
    Attempts {
        unexplained: Unexplained,
        /// Order of all operations that returned before the last return, if one is known.
        explained: Option<Vec<OpId>>,
        part: Box<HistoryPart<'h>>,
    },
}

/// Whether the part is the whole history.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    HistoryPart,
}

/// Finds the shortest prefix of a part that fails.
fn failure<'h>(
    part: HistoryPart<'h>,
    stuck: CallIndex,
    suspect: Option<CallIndex>,
    extent: Extent,
    budget: &Budget,
    threads: &Threads,
) -> Result<FailedPart<'h>, Stopped> {
    let places: Vec<CallIndex> = part.task.calls().places().collect();
    let returns = by_return(&part.task, &places);
    let mut came_to = None;
    let attempts = |task: &Task<'_>| match linearize(task, budget, threads)? {
        Linearization::Found(_) => Ok(None),
        Linearization::Stuck { attempts, stuck } => {
            came_to = Some(stuck);
            let attempt = |(order, unexplained): (Vec<CallIndex>, CallIndex)| Attempt {
                linearization: LinearizationCertificate { order: ids(task, &order), vis: None },
                unexplained: task.calls().get(unexplained).id,
            };
            Ok(Some((stuck, attempts.into_iter().map(attempt).collect())))
        }
    };
    let (last, unexplained) = shortest_prefix(&part.task, &returns, stuck, suspect, attempts)?;
    let explains_all = extent == Extent::Whole && came_to == Some(last);
    let explained = unexplained.attempts.first().filter(|_| explains_all);
    let explained = explained.map(|attempt| attempt.linearization.order.clone());
    let last = part.place(last);
    Ok(FailedPart {
        last,
        evidence: Evidence::Attempts { unexplained, explained, part: Box::new(part) },
    })
}

/// Smallest number of operations for which parts are worth a thread each.
const MIN_OPERATIONS_FOR_THREADS: usize = 1000;

/// Decides each part, on up to `most` additional threads. A thread that is done is lent to the
/// searches of the others.
fn decide_all(
    parts: &[HistoryPart<'_>],
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
        // If a thread cannot be started, its parts are left to the others.
        let others: Vec<_> =
            (0..count).map_while(|_| spawn_scoped(scope, work_and_leave).ok()).collect();
        let mut done = work();
        threads.leave();
        for other in others {
            done.extend(other.join().expect("a search does not panic"));
        }
        threads.come_back();
        done
    });
    done.sort_unstable_by_key(|&(i, _)| i);
    done.into_iter().map(|(_, decided)| decided).collect()
}

/// Finds the shortest failing prefix. The whole history fails, and no prefix that ends before the
/// return of `stuck` does. A suspect is tried first, if there is one. A failing attempt also
/// reports where it is stuck.
pub(crate) fn shortest_prefix(
    task: &Task<'_>,
    returns: &[CallIndex],
    stuck: CallIndex,
    suspect: Option<CallIndex>,
    mut attempts: impl FnMut(&Task<'_>) -> Result<Option<(CallIndex, Vec<Attempt>)>, Stopped>,
) -> Result<(CallIndex, Unexplained), Stopped> {
    let mut rank = vec![usize::MAX; task.len()];
    for (i, place) in returns.iter().enumerate() {
        rank[place.index()] = i;
    }
    let mut try_until = |last: usize| attempts(&task.relaxed(|place| rank[place.index()] <= last));
    // The prefix at `high` fails and the one at `low - 1` does not; steps double until one fails.
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
pub(crate) fn by_return(task: &Task<'_>, places: &[CallIndex]) -> Vec<CallIndex> {
    let mut returns: Vec<CallIndex> =
        places.iter().copied().filter(|&place| !task.is_pending(place)).collect();
    returns.sort_by_key(|&place| return_key(task, place));
    returns
}

/// Returns the sort key of completed operations: their returns or, without times, their positions
/// in their sessions.
pub(crate) fn return_key(task: &Task<'_>, place: CallIndex) -> (i64, CallIndex) {
    let calls = task.calls();
    let op = calls.get(place);
    match calls.is_timed() {
        true => (op.end, place),
        false => (i64::from(calls.history().index_in_session(op.id)), place),
    }
}

/// Operations that form a history of their own.
struct HistoryPart<'h> {
    task: Task<'h>,
    /// Index of each operation among all operations of the history.
    places: Vec<CallIndex>,
}

impl<'h> HistoryPart<'h> {
    /// Converts the indices of a violation to those of the whole history.
    fn whole(&self, mut violation: Violation) -> Violation {
        violation.core.iter_mut().for_each(|place| *place = self.place(*place));
        violation
    }

    /// Returns the index of an operation in the whole history.
    fn place(&self, place: CallIndex) -> CallIndex {
        self.places[place.index()]
    }

    /// Returns the operations called before the latest of some returns; operations whose returns
    /// are not among these become pending.
    fn until(&self, is_before: impl Fn(CallIndex) -> bool) -> HistoryPart<'h> {
        let HistoryPart { task, mut places } =
            prefix(&self.task, |place| is_before(self.place(place)));
        places.iter_mut().for_each(|place| *place = self.place(*place));
        HistoryPart { task, places }
    }
}

/// Divides the operations into parts that are independent objects, if there are several.
fn parts<'h>(task: &Task<'h>) -> Vec<HistoryPart<'h>> {
    let part = |places: Vec<CallIndex>| HistoryPart { task: task.restricted(&places), places };
    let whole = || vec![part(task.calls().places().collect())];
    if !task.calls().is_timed() || task.calls().sessions_meet() {
        return whole();
    }
    let mut index: FxHashMap<Value, usize> = FxHashMap::default();
    let mut of_invocation: FxHashMap<u32, usize> = FxHashMap::default();
    let mut parts: Vec<Vec<CallIndex>> = Vec::new();
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

pub(crate) fn ids(task: &Task<'_>, places: &[CallIndex]) -> Vec<OpId> {
    places.iter().map(|&place| task.calls().get(place).id).collect()
}
