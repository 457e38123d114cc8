//! A log of the calls of a queue, a stack or a priority queue, kept as long as they matter.
//!
//! If elements are inserted concurrently, their order stays open until they are removed, so there
//! are far too many states to keep. But as long as no element is inserted while an equal one may
//! still be inside, the polynomial deciders ([`crate::monitors`]) judge the calls themselves,
//! whatever their number. They run each time a quarter of the kept calls is new, and the first
//! wrong return is then found by bisection. In between, calls that can no longer matter are
//! forgotten; the condition depends on the collection ([`queue`], [`stack`], [`priority_queue`]).
//!
//! *Indeterminate removals* may remove an element at any time, or none. Each file says when such a
//! call and its element can be forgotten together. If that depends on later calls, everything is
//! kept, up to a limit. Beyond the limit, the calls are assumed to have taken effect as in the
//! order that was found, or never. The same holds for the first ones of very many indeterminate
//! calls. Consistent results remain valid, but a later violation may be due to this assumption, so
//! it is doubtful. (An indeterminate insertion matters only if its element is removed.)
//!
//! Memory: the elements inside, and a little more.

mod priority_queue;
mod queue;
mod stack;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use consistory_history::{Action, Call, Details, History, HistoryBuilder, Interval, Value};
use consistory_spec::{Family, Object, ObjectModel, PriorityOrder};
use consistory_verdict::Budget;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::calls::Calls;
use crate::linearizability::is_explained;
use crate::monitors::{Outcome, Unsuitable, monitor};
use crate::task::Task;

use super::engine::{Certainty, Completed, Incoming, Taken};
use super::{OnlineError, RunningId};

/// Largest number of calls kept.
const MAX_CALLS_KEPT: usize = 1 << 20;
/// Largest number of indeterminate calls kept.
const MAX_INDETERMINATE_CALLS: usize = 4096;
/// Largest number of removed elements kept because of indeterminate removals.
const MAX_REMOVED_KEPT: usize = 1 << 14;
/// Time limit of the general search, for calls that the deciders do not support.
const SEARCH_TIME: Duration = Duration::from_millis(200);
/// Number of values tried to list what could have been returned.
const VALUES_TRIED: usize = 20;

/// A time that has not come.
const NEVER: i64 = i64::MAX;

/// Number of an element; equal elements inserted at different times have different numbers.
type Element = i64;

/// A call that is kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    id: RunningId,
    does: Does,
    start: i64,
    /// [`NEVER`] if the call is indeterminate or running.
    end: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Does {
    Insert(Element),
    /// A removal whose element is not yet known.
    Remove,
    Removed(Element),
    FoundNothing,
}

/// The order in which elements are removed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RemovalOrder {
    Queue,
    Stack,
    Priority(PriorityOrder),
}

/// Whether all calls that can no longer matter could be forgotten.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Forgotten {
    All,
    /// Indeterminate removals prevented it.
    NotAll,
}

/// Result of the deciders.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decision {
    Fine,
    Wrong,
    Unknown,
}

/// The calls of a queue, a stack or a priority queue.
pub(super) struct CallLog {
    object: Arc<dyn Object>,
    shape: RemovalOrder,
    running: FxHashMap<RunningId, Kept>,
    /// The calls that returned, and the indeterminate ones.
    ended: Vec<Kept>,
    values: FxHashMap<Element, Value>,
    /// For each value, the element inserted last and whether it was removed.
    last: FxHashMap<Value, (Element, bool)>,
    next: Element,
    clock: i64,
    /// The returns since the last consistent result, with their calls.
    returns: Vec<(i64, RunningId)>,
    /// Number of returns since the deciders ran, and number of calls kept then.
    since: usize,
    before: usize,
    /// Number of indeterminate calls that were given up although they might matter.
    given_up: u64,
    /// Number of insertions among the calls given up; they matter only if their elements are
    /// removed.
    given_up_inserts: u64,
    /// Number of calls given up that were reported.
    reported: u64,
}

impl CallLog {
    /// Starts an empty log, if the object is a supported collection.
    pub(super) fn new(object: &Arc<dyn Object>) -> Option<Self> {
        let shape = match object.family()? {
            Family::Queue => RemovalOrder::Queue,
            Family::Stack => RemovalOrder::Stack,
            Family::LeastFirst => RemovalOrder::Priority(PriorityOrder::LeastFirst),
            Family::GreatestFirst => RemovalOrder::Priority(PriorityOrder::GreatestFirst),
            _ => return None,
        };
        Some(CallLog {
            object: Arc::clone(object),
            shape,
            running: FxHashMap::default(),
            ended: Vec::new(),
            values: FxHashMap::default(),
            last: FxHashMap::default(),
            next: 0,
            clock: 0,
            returns: Vec::new(),
            since: 0,
            before: 0,
            given_up: 0,
            given_up_inserts: 0,
            reported: 0,
        })
    }

    fn tick(&mut self) -> i64 {
        // Times are spaced so that one more fits between two of them.
        self.clock += 2;
        self.clock
    }

    /// Counts the calls that are kept.
    pub(super) fn len(&self) -> usize {
        self.ended.len() + self.running.len()
    }

    /// Checks whether nothing is inside and no call is running.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a call, if the calls can still be judged by the log.
    #[must_use]
    pub(super) fn invoke(&mut self, id: RunningId, call: &Incoming<'_>) -> Taken {
        let does = match (call.method, call.args) {
            ("enqueue" | "offer" | "push" | "insert", [value]) => {
                let is_inside = matches!(self.last.get(value), Some((_, false)));
                if is_inside || *value == Value::Null {
                    return Taken::No;
                }
                self.next += 1;
                self.values.insert(self.next, value.clone());
                self.last.insert(value.clone(), (self.next, false));
                Does::Insert(self.next)
            }
            ("dequeue" | "pop" | "poll", []) => Does::Remove,
            _ => return Taken::No,
        };
        let start = self.tick();
        self.running.insert(id, Kept { id, does, start, end: NEVER });
        Taken::Yes
    }

    /// Adds a return, if the calls can still be judged by the log.
    #[must_use]
    pub(super) fn complete(&mut self, id: RunningId, returned: Option<&Value>) -> Taken {
        let Some(mut call) = self.running.remove(&id) else { return Taken::No };
        call.does = match (call.does, returned) {
            (Does::Insert(_), Some(Value::Bool(false))) | (Does::Remove, None) => {
                return Taken::No;
            }
            (Does::Remove, Some(Value::Null)) => Does::FoundNothing,
            (Does::Remove, Some(value)) => {
                let fresh = self.next + 1;
                let (element, is_removed) =
                    self.last.entry(value.clone()).or_insert((fresh, false));
                // An element that was never inserted gets a number, too.
                self.next = self.next.max(*element);
                *is_removed = true;
                self.values.entry(*element).or_insert_with(|| value.clone());
                Does::Removed(*element)
            }
            (does, _) => does,
        };
        call.end = self.tick();
        self.returns.push((call.end, id));
        self.since += 1;
        self.ended.push(call);
        Taken::Yes
    }

    /// Records that a call took no effect.
    pub(super) fn fail(&mut self, id: RunningId) {
        if let Some(Kept { does: Does::Insert(element), .. }) = self.running.remove(&id)
            && let Some(value) = self.values.remove(&element)
        {
            self.last.remove(&value);
        }
    }

    /// Records that a call is indeterminate.
    pub(super) fn abandon(&mut self, id: RunningId) {
        self.ended.extend(self.running.remove(&id));
        let pending = || self.ended.iter().enumerate().filter(|(_, call)| call.end == NEVER);
        if pending().count() > MAX_INDETERMINATE_CALLS
            && let Some((oldest, _)) = pending().min_by_key(|(_, call)| call.start)
        {
            let call = self.ended.remove(oldest);
            if let Does::Insert(element) = call.does {
                self.forget_values([element]);
                self.given_up_inserts += 1;
            } else {
                self.given_up += 1;
            }
        }
    }

    /// Returns the number of calls given up since the last query.
    pub(super) fn take_given_up(&mut self) -> u64 {
        let all = self.given_up + self.given_up_inserts;
        all - std::mem::replace(&mut self.reported, all)
    }

    /// Fails if too many calls cannot be forgotten.
    pub(super) fn check_length(&self) -> Result<(), OnlineError> {
        match self.len() {
            calls if calls > MAX_CALLS_KEPT => Err(OnlineError::TooLong { calls }),
            _ => Ok(()),
        }
    }

    /// Asserts the invariants of the kept calls.
    pub(super) fn check_invariants(&self) {
        let mut ids: FxHashSet<RunningId> = FxHashSet::default();
        for call in self.calls() {
            assert!(ids.insert(call.id), "a call is kept once");
            if let Does::Insert(element) | Does::Removed(element) = call.does {
                assert!(self.values.contains_key(&element), "an element has a value");
            }
        }
        assert!(self.running.values().all(|call| call.end == NEVER));
        for (value, (element, _)) in &self.last {
            assert_eq!(self.values.get(element), Some(value));
        }
    }

    /// Checks whether there are enough new calls to run the deciders again.
    pub(super) fn is_due(&self) -> bool {
        4 * self.since >= self.ended.len()
    }

    /// Checks whether enough calls are kept that some should be forgotten.
    pub(super) fn is_large(&self) -> bool {
        self.ended.len() >= 2 * self.before + 4096
    }

    /// Counts the returns that are not judged yet.
    pub(super) fn unjudged(&self) -> usize {
        self.returns.len()
    }

    /// Runs the deciders, and finds the first wrong return, if there is one; `None` if the calls
    /// cannot be judged by the log.
    pub(super) fn check(&mut self) -> Option<Completed> {
        self.since = 0;
        match self.decide(NEVER, None)? {
            Decision::Fine => {
                self.returns.clear();
                if self.forget_settled() == Forgotten::NotAll && self.settle() {
                    self.forget_settled();
                }
                self.before = self.ended.len();
                return Some(Completed::Explained);
            }
            Decision::Unknown => {
                self.before = self.ended.len();
                return Some(Completed::Explained);
            }
            Decision::Wrong => {}
        }
        let (mut low, mut high) = (0, self.returns.len().checked_sub(1)?);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.decide(self.returns[middle].0, None)? {
                Decision::Wrong => high = middle,
                _ => low = middle + 1,
            }
        }
        let (end, id) = self.returns[high];
        let possible = self.possible(end, id);
        let removed = self.ended.iter().find(|call| call.id == id).map(|call| call.does);
        let comes_from_nowhere = matches!(removed, Some(Does::Removed(removed))
            if !self.calls().any(|call| call.does == Does::Insert(removed)));
        let is_doubtful = self.given_up > 0 || (comes_from_nowhere && self.given_up_inserts > 0);
        let certainty = if is_doubtful { Certainty::Doubtful } else { Certainty::Certain };
        Some(Completed::Unexplained { call: id, possible, configurations: 0, certainty })
    }

    fn calls(&self) -> impl Iterator<Item = &Kept> {
        self.ended.iter().chain(self.running.values())
    }

    /// Lists values that a call could have returned.
    fn possible(&self, end: i64, id: RunningId) -> Vec<Value> {
        let is_removal = |call: &&Kept| call.id == id && !matches!(call.does, Does::Insert(_));
        if !self.ended.iter().any(|call| is_removal(&call)) {
            return Vec::new();
        }
        let calls = || self.ended.iter().chain(self.running.values());
        let removed: FxHashSet<Element> = calls()
            .filter(|call| call.end < end)
            .filter_map(|call| match call.does {
                Does::Removed(element) => Some(element),
                _ => None,
            })
            .collect();
        let mut inside: Vec<(i64, Element)> = calls()
            .filter_map(|call| match call.does {
                Does::Insert(element) if call.start < end => Some((call.start, element)),
                _ => None,
            })
            .filter(|(_, element)| !removed.contains(element))
            .collect();
        inside.sort_unstable();
        match self.shape {
            RemovalOrder::Queue => {}
            // A stack returns the element inserted last.
            RemovalOrder::Stack => inside.reverse(),
            RemovalOrder::Priority(order) => {
                inside.sort_by_key(|&(_, element)| self.values.get(&element));
                if order == PriorityOrder::GreatestFirst {
                    inside.reverse();
                }
            }
        }
        let elements =
            inside.into_iter().map(|(_, element)| Does::Removed(element)).take(VALUES_TRIED);
        let could = [Does::FoundNothing].into_iter().chain(elements);
        let could =
            could.filter(|&does| self.decide(end, Some((id, does))) == Some(Decision::Fine));
        let mut possible: Vec<Value> = could
            .filter_map(|does| match does {
                Does::Removed(element) => self.values.get(&element).cloned(),
                _ => Some(Value::Null),
            })
            .collect();
        possible.sort();
        possible
    }

    /// Judges the calls up to a time; one of them may be given another return.
    fn decide(&self, until: i64, instead: Option<(RunningId, Does)>) -> Option<Decision> {
        let history = self.history(until, instead);
        let calls = Calls::new(&history).ok()?;
        match monitor(&calls, &*self.object) {
            Outcome::Linearizable(_) => Some(Decision::Fine),
            Outcome::Violation(_) => Some(Decision::Wrong),
            Outcome::NotApplicable(Unsuitable::PendingRemovals) if until == NEVER => {
                Some(Decision::Unknown)
            }
            Outcome::NotApplicable(Unsuitable::PendingRemovals) => {
                let task = Task::new(calls, Arc::clone(&self.object)).ok()?;
                let model = ObjectModel::named("linearizability")?;
                let budget = Budget::unlimited().with_time(SEARCH_TIME);
                Some(match is_explained(&task, &model, &budget) {
                    Ok(true) => Decision::Fine,
                    Ok(false) => Decision::Wrong,
                    Err(_) => Decision::Unknown,
                })
            }
            Outcome::NotApplicable(_) => None,
        }
    }

    fn history(&self, until: i64, instead: Option<(RunningId, Does)>) -> History {
        let (insert, remove) = match self.shape {
            RemovalOrder::Queue => ("enqueue", "dequeue"),
            RemovalOrder::Stack => ("push", "pop"),
            RemovalOrder::Priority(_) => ("insert", "poll"),
        };
        let number = |builder: &mut HistoryBuilder, element: Element| match self.shape {
            RemovalOrder::Queue | RemovalOrder::Stack => builder.int(element),
            RemovalOrder::Priority(_) => {
                let priority = self.values.get(&element).cloned().unwrap_or(Value::Null);
                builder.value(Value::List(vec![priority, Value::Int(element)]))
            }
        };
        let mut builder = HistoryBuilder::new();
        let session = builder.session("t");
        let called = |call: &&Kept| call.start <= until;
        for call in self.ended.iter().chain(self.running.values()).filter(called) {
            let end = Some(call.end).filter(|&end| end != NEVER && end <= until);
            let does = instead.filter(|(id, _)| *id == call.id).map_or(call.does, |(_, does)| does);
            let call_of = match does {
                Does::Insert(element) => {
                    let args = vec![number(&mut builder, element)];
                    Call { method: insert.into(), args, returns: None }
                }
                _ => {
                    let returns = match does {
                        _ if end.is_none() => None,
                        Does::Removed(element) => Some(number(&mut builder, element)),
                        _ => Some(builder.value(Value::Null)),
                    };
                    Call { method: remove.into(), args: Vec::new(), returns }
                }
            };
            let action = Action::Call(builder.call(call_of));
            let time = Some(Interval { start: call.start, end });
            builder.push_with(session, action, Details { time, ..Details::default() });
        }
        builder.finish().expect("there are fewer calls than ids")
    }

    /// Forgets calls that can no longer matter.
    fn forget_settled(&mut self) -> Forgotten {
        match self.shape {
            RemovalOrder::Queue => {
                self.forget_of_queue();
                Forgotten::All
            }
            RemovalOrder::Stack => self.forget_of_stack(),
            RemovalOrder::Priority(order) => self.forget_of_priority_queue(order),
        }
    }

    /// Gives up the indeterminate removals of a stack or a priority queue if too many calls are
    /// kept because of them. Returns whether it did.
    fn settle(&mut self) -> bool {
        let out = self.ended.iter().filter(|call| matches!(call.does, Does::Removed(_)));
        let has_pending = self.ended.iter().any(|call| call.does == Does::Remove);
        if !has_pending || out.count() < MAX_REMOVED_KEPT {
            return false;
        }
        let history = self.history(NEVER, None);
        let Ok(calls) = Calls::new(&history) else { return false };
        let Outcome::Linearizable(order) = monitor(&calls, &*self.object) else { return false };
        // By priority, or by time.
        let mut inside: BTreeSet<(Option<&Value>, usize, Element)> = BTreeSet::new();
        let is_priority = matches!(self.shape, RemovalOrder::Priority(_));
        let priority = |element| self.values.get(&element).filter(|_| is_priority);
        let first = self.shape == RemovalOrder::Priority(PriorityOrder::LeastFirst);
        let mut served: FxHashMap<RunningId, Element> = FxHashMap::default();
        let kept: Vec<Kept> = self.calls().copied().collect();
        for (at, place) in order.into_iter().enumerate() {
            let call = &kept[calls.get(place).id.index()];
            let mut take = || match first {
                true => inside.pop_first(),
                false => inside.pop_last(),
            };
            match call.does {
                Does::Insert(element) => _ = inside.insert((priority(element), at, element)),
                Does::Removed(_) => _ = take(),
                Does::Remove => served.extend(take().map(|(_, _, element)| (call.id, element))),
                Does::FoundNothing => {}
            }
        }
        let now = self.tick();
        let before = self.ended.len();
        let mut settled = 0;
        self.ended.retain_mut(|call| match (call.does, served.get(&call.id)) {
            (Does::Remove, Some(&element)) => {
                (call.does, call.end) = (Does::Removed(element), now);
                settled += 1;
                true
            }
            (does, _) => does != Does::Remove,
        });
        self.given_up += settled + (before - self.ended.len()) as u64;
        true
    }

    /// Assigns elements that must have been removed, each with the end of its insertion, to
    /// indeterminate removals. Returns `None` if a removal for one of them was called so late that
    /// other calls could observe it.
    fn serve(&self, mut forced: Vec<(i64, Element)>) -> Option<Vec<(Element, RunningId)>> {
        let pending = self.ended.iter().filter(|call| call.does == Does::Remove);
        let mut pending: Vec<(i64, RunningId)> =
            pending.map(|call| (call.start, call.id)).collect();
        pending.sort_unstable();
        forced.sort_unstable();
        let mut pending = pending.into_iter().peekable();
        let mut called = Vec::new();
        let served = forced.into_iter().map(|(end, element)| {
            while let Some((_, id)) = pending.next_if(|&(start, _)| start < end) {
                called.push(id);
            }
            called.pop().map(|id| (element, id))
        });
        served.collect()
    }

    /// Lists the elements not known to be removed, with their insertions.
    fn left(&self) -> Vec<(Element, Kept)> {
        let taken = self.ended.iter().filter_map(|call| match call.does {
            Does::Removed(element) => Some(element),
            _ => None,
        });
        let taken: FxHashSet<Element> = taken.collect();
        let left = self.ended.iter().filter_map(|call| match call.does {
            Does::Insert(element) if call.end != NEVER && !taken.contains(&element) => {
                Some((element, *call))
            }
            _ => None,
        });
        left.collect()
    }

    /// Forgets elements and their calls.
    fn forget(&mut self, gone: &FxHashSet<Element>) {
        self.ended.retain(|call| match call.does {
            Does::Insert(element) | Does::Removed(element) => !gone.contains(&element),
            Does::FoundNothing | Does::Remove => true,
        });
        self.forget_values(gone.iter().copied());
    }

    fn forget_values(&mut self, gone: impl IntoIterator<Item = Element>) {
        for element in gone {
            if let Some(value) = self.values.remove(&element)
                && self.last.get(&value).is_some_and(|&(last, _)| last == element)
            {
                self.last.remove(&value);
            }
        }
    }
}
