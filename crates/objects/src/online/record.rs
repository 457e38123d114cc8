//! The calls of a queue, a stack or a priority queue as they come, kept as long as they matter.
//!
//! Where elements go in at the same time, their order stays open until they come out, so there are
//! far too many states to keep. But as long as no element is put in while an equal one may still be
//! inside, the polynomial deciders ([`crate::monitors`]) judge the calls themselves, whatever their
//! number. They are asked again and again, each time when a quarter of what is kept is new; the
//! first return that is wrong is then found by bisection. In between, what can no longer matter is
//! forgotten. Say that `T` is a time before which no call that is running now was made.
//!
//! *A queue* is wrong if of two elements one goes in before the other and comes out behind it, or
//! if something is inside throughout a call that found it empty. An element that came out before
//! `T` cannot be either of two that are found wrong later: an element that went in before it and is
//! still inside comes out behind it, and that was wrong already. So it is forgotten, and so is a
//! call that found the queue empty before `T`. (`T` is also before every call that found the queue
//! empty and returned behind it, as what came out while that ran may matter to it.)
//!
//! *A stack.* Let `T` be moreover in no call that took an element out or found the stack empty.
//! What came out before `T` is nested in itself: the ranges in which something of it is surely
//! inside, joined where they overlap, are components, each of which was found right, whatever is
//! outside of it. To what comes out behind `T` they matter only in that nothing that stays may go
//! in during a component, as it would come out too early. So they are forgotten, and the insertion
//! of an element that stays is cut to end before the component or to start behind it. Elements that
//! may come out as soon as they go in are in nobody's way.
//!
//! ```text
//!   ├ push(1) ┤                           ├ pop => 1 ┤
//!               ├ push(2) ┤  ├ pop => 2 ┤                T
//!                      ├────── push(3) ──────┤              3 goes in behind 1, so it starts here ^
//! ```
//!
//! *A priority queue* is wrong if an element comes out, or the queue is found empty, though at each point
//! of that call something that comes first is surely inside, from the end of its insertion to the start
//! of its removal ([`crate::monitors`]). Let `T` be before each call to take out that is running, and
//! also before each that returned behind the first of these was made. What came out by a call that was
//! made before `T` is inside at no point that can matter.
//!
//! *Calls to take out that nobody knows the end of.* In a queue the first of them took the element
//! whose insertion ended first of those that nobody else takes, the second the second, and so on, if
//! they took any ([`crate::monitors`]). An element is lost for good if one that went in behind it
//! came out before `T`, or if the queue was found empty behind it before `T`: no later call may take
//! it. Lost elements are the first ones by the ends of their insertions, and who took them was
//! called before `T`, so nobody else will take their places: both are forgotten. A call that found
//! the queue empty stays as long as it takes such a call to explain it, and `T` is before it then.
//!
//! In a stack such a call may as well wait until something below comes out, and in a priority queue until
//! something behind comes out, or either is found empty: before that, what it takes is in nobody's way.
//! So an element is forced out if it went in during a component that is over; or if it was surely inside
//! when something behind it came out at the earliest before `T`. A call that was made before the
//! insertion ended takes it at once, and both are forgotten. Of those the last one is chosen: the earlier
//! ones are as good or better for all others. Only where each call was made later does it depend on
//! what comes whom it serves best. Then everything is kept, up to a limit; then calls have taken effect
//! as in the order that was found, or never do. The same goes for the first ones of very many calls that
//! nobody knows the end of. What was found right stays right. But what is found wrong from then on may
//! be the fault of that choice, so nothing more is called wrong: see [`Wrong::is_certain`]. (A call to put
//! in that was given up matters only if what it put in comes out.)
//!
//! What is kept is what is inside, and a little more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use consistory_history::{Action, Call, Details, History, HistoryBuilder, Interval, Value};
use consistory_spec::{Family, Object, ObjectModel};
use consistory_verdict::Budget;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::calls::Calls;
use crate::court::is_explained;
use crate::monitors::{Outcome, Unsuitable, monitor};
use crate::task::Task;

use super::RunningId;

/// How many calls are kept at most.
pub(crate) const MOST_KEPT: usize = 1 << 20;
/// How many calls that nobody knows the end of are kept at most.
const MOST_PENDING: usize = 4096;
/// How many elements that came out a stack keeps because of those at most.
const PATIENT: usize = 1 << 14;
/// How long the general search may take where the deciders do not know.
const PATIENCE: Duration = Duration::from_millis(200);
/// How many values are tried to say what could have been returned.
const TRIES: usize = 20;

/// A time that has not come.
const NEVER: i64 = i64::MAX;

/// An element, numbered: equal ones that are put in again have other numbers.
type Element = i64;

/// A call that is kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    id: RunningId,
    does: Does,
    start: i64,
    /// [`NEVER`] if nobody knows its end, or it is running.
    end: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Does {
    Insert(Element),
    /// Takes out; what, is not known yet.
    Remove,
    Removed(Element),
    FoundNothing,
}

/// In which order elements come out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Queue,
    Stack,
    Priority { greatest_first: bool },
}

/// What was found wrong.
pub(crate) struct Wrong {
    pub(crate) id: RunningId,
    pub(crate) possible: Vec<Value>,
    /// Whether it is wrong whatever the calls did that were given up.
    pub(crate) is_certain: bool,
}

/// What the deciders say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Finding {
    Fine,
    Wrong,
    Unknown,
}

/// The calls of a queue or a stack.
pub(crate) struct Record {
    object: Arc<dyn Object>,
    shape: Shape,
    running: FxHashMap<RunningId, Kept>,
    /// The calls that ended, and those that nobody knows the end of.
    ended: Vec<Kept>,
    values: FxHashMap<Element, Value>,
    /// The element that was put in last of each value, and whether it was taken out.
    last: FxHashMap<Value, (Element, bool)>,
    next: Element,
    clock: i64,
    /// The returns since all was found right, with their calls.
    returns: Vec<(i64, RunningId)>,
    /// How many returns there were since the deciders were asked, and what was kept then.
    since: usize,
    before: usize,
    /// How many calls were given up whose end nobody knows, though that might matter.
    given_up: u64,
    /// How many of these were to put something in, which matters only if that comes out.
    given_up_inserts: u64,
    /// How many elements that came out are kept because of those at most.
    patience: usize,
}

impl Record {
    /// Starts with nothing called, if the object is one that can be judged so.
    pub(crate) fn new(object: &Arc<dyn Object>) -> Option<Self> {
        let shape = match object.family()? {
            Family::Queue => Shape::Queue,
            Family::Stack => Shape::Stack,
            Family::LeastFirst => Shape::Priority { greatest_first: false },
            Family::GreatestFirst => Shape::Priority { greatest_first: true },
            _ => return None,
        };
        Some(Record {
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
            patience: PATIENT,
        })
    }

    fn tick(&mut self) -> i64 {
        // Between two times there is room for one more.
        self.clock += 2;
        self.clock
    }

    /// Counts the calls that are kept.
    pub(crate) fn len(&self) -> usize {
        self.ended.len() + self.running.len()
    }

    /// Says whether nothing is inside and nothing is running.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a call; says whether the calls can still be judged so.
    #[must_use]
    pub(crate) fn invoke(&mut self, id: RunningId, method: &str, args: &[Value]) -> bool {
        let does = match (method, args) {
            ("enqueue" | "offer" | "push" | "insert", [value]) => {
                let is_inside = matches!(self.last.get(value), Some((_, false)));
                if is_inside || *value == Value::Null {
                    return false;
                }
                self.next += 1;
                self.values.insert(self.next, value.clone());
                self.last.insert(value.clone(), (self.next, false));
                Does::Insert(self.next)
            }
            ("dequeue" | "pop" | "poll", []) => Does::Remove,
            _ => return false,
        };
        let start = self.tick();
        self.running.insert(id, Kept { id, does, start, end: NEVER });
        true
    }

    /// Takes a return; says whether the calls can still be judged so.
    #[must_use]
    pub(crate) fn complete(&mut self, id: RunningId, returned: Option<&Value>) -> bool {
        let Some(mut call) = self.running.remove(&id) else { return false };
        call.does = match (call.does, returned) {
            (Does::Insert(_), Some(Value::Bool(false))) | (Does::Remove, None) => return false,
            (Does::Remove, Some(Value::Null)) => Does::FoundNothing,
            (Does::Remove, Some(value)) => {
                let fresh = self.next + 1;
                let (element, is_removed) =
                    self.last.entry(value.clone()).or_insert((fresh, false));
                // What nobody put in has a number, too.
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
        true
    }

    /// Takes that a call did not take effect.
    pub(crate) fn fail(&mut self, id: RunningId) {
        if let Some(Kept { does: Does::Insert(element), .. }) = self.running.remove(&id)
            && let Some(value) = self.values.remove(&element)
        {
            self.last.remove(&value);
        }
    }

    /// Takes that nobody will know the end of a call.
    pub(crate) fn abandon(&mut self, id: RunningId) {
        self.ended.extend(self.running.remove(&id));
        let pending = || self.ended.iter().enumerate().filter(|(_, call)| call.end == NEVER);
        if pending().count() > MOST_PENDING
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

    /// Counts the calls that were given up.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up + self.given_up_inserts
    }

    /// Says whether enough is new to ask the deciders again.
    pub(crate) fn is_due(&self) -> bool {
        4 * self.since >= self.ended.len()
    }

    /// Says whether so much is kept that some of it should be forgotten.
    pub(crate) fn is_large(&self) -> bool {
        self.ended.len() >= 2 * self.before + 4096
    }

    /// Counts the returns that are not judged yet.
    pub(crate) fn unjudged(&self) -> usize {
        self.returns.len()
    }

    /// Asks the deciders; finds the first return that is wrong, if one is. `None` if the calls
    /// cannot be judged so.
    pub(crate) fn check(&mut self) -> Option<Option<Wrong>> {
        self.since = 0;
        match self.decide(NEVER, None)? {
            Finding::Fine => {
                self.returns.clear();
                if !self.forget_settled() && self.settle() {
                    self.forget_settled();
                }
                self.before = self.ended.len();
                return Some(None);
            }
            Finding::Unknown => {
                self.before = self.ended.len();
                return Some(None);
            }
            Finding::Wrong => {}
        }
        let (mut low, mut high) = (0, self.returns.len().checked_sub(1)?);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.decide(self.returns[middle].0, None)? {
                Finding::Wrong => high = middle,
                _ => low = middle + 1,
            }
        }
        let (end, id) = self.returns[high];
        let possible = self.possible(end, id);
        let removed = self.ended.iter().find(|call| call.id == id).map(|call| call.does);
        let comes_from_nowhere = matches!(removed, Some(Does::Removed(removed))
            if !self.calls().any(|call| call.does == Does::Insert(removed)));
        let is_certain = self.given_up == 0 && !(comes_from_nowhere && self.given_up_inserts > 0);
        Some(Some(Wrong { id, possible, is_certain }))
    }

    fn calls(&self) -> impl Iterator<Item = &Kept> {
        self.ended.iter().chain(self.running.values())
    }

    /// Lists what a call could have returned.
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
            Shape::Queue => {}
            // A stack gives what was put in last.
            Shape::Stack => inside.reverse(),
            Shape::Priority { greatest_first } => {
                inside.sort_by_key(|&(_, element)| self.values.get(&element));
                if greatest_first {
                    inside.reverse();
                }
            }
        }
        let elements = inside.into_iter().map(|(_, element)| Does::Removed(element)).take(TRIES);
        let could = [Does::FoundNothing].into_iter().chain(elements);
        let could = could.filter(|&does| self.decide(end, Some((id, does))) == Some(Finding::Fine));
        let mut possible: Vec<Value> = could
            .filter_map(|does| match does {
                Does::Removed(element) => self.values.get(&element).cloned(),
                _ => Some(Value::Null),
            })
            .collect();
        possible.sort();
        possible
    }

    /// Judges the calls up to a time, one of them perhaps with another return.
    fn decide(&self, until: i64, instead: Option<(RunningId, Does)>) -> Option<Finding> {
        let history = self.history(until, instead);
        let calls = Calls::new(&history).ok()?;
        match monitor(&calls, &*self.object) {
            Outcome::Linearizable(_) => Some(Finding::Fine),
            Outcome::Violation(_) => Some(Finding::Wrong),
            Outcome::NotApplicable(Unsuitable::PendingRemovals) if until == NEVER => {
                Some(Finding::Unknown)
            }
            Outcome::NotApplicable(Unsuitable::PendingRemovals) => {
                let task = Task::new(calls, Arc::clone(&self.object)).ok()?;
                let model = ObjectModel::named("linearizability")?;
                let budget = Budget::unlimited().with_time(PATIENCE);
                Some(match is_explained(&task, &model, &budget) {
                    Ok(true) => Finding::Fine,
                    Ok(false) => Finding::Wrong,
                    Err(_) => Finding::Unknown,
                })
            }
            Outcome::NotApplicable(_) => None,
        }
    }

    fn history(&self, until: i64, instead: Option<(RunningId, Does)>) -> History {
        let (insert, remove) = match self.shape {
            Shape::Queue => ("enqueue", "dequeue"),
            Shape::Stack => ("push", "pop"),
            Shape::Priority { .. } => ("insert", "poll"),
        };
        let number = |builder: &mut HistoryBuilder, element: Element| match self.shape {
            Shape::Queue | Shape::Stack => builder.int(element),
            Shape::Priority { .. } => {
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

    /// Forgets what can no longer matter; says whether calls that nobody knows the end of are in the
    /// way of that.
    fn forget_settled(&mut self) -> bool {
        match self.shape {
            Shape::Queue => {
                self.forget_of_queue();
                true
            }
            Shape::Stack => self.forget_of_stack(),
            Shape::Priority { greatest_first } => self.forget_of_priorities(greatest_first),
        }
    }

    fn forget_of_queue(&mut self) {
        let open = self.running.values().map(|call| call.start).min().unwrap_or(NEVER);
        let mut inserts: FxHashMap<Element, &Kept> = FxHashMap::default();
        let mut removed: Vec<(Element, &Kept)> = Vec::new();
        let (mut empties, mut pending) = (Vec::new(), Vec::new());
        for call in &self.ended {
            match call.does {
                Does::Insert(element) => {
                    inserts.insert(element, call);
                }
                Does::Removed(element) => removed.push((element, call)),
                Does::FoundNothing => empties.push(call),
                Does::Remove => pending.push((call.start, call.id)),
            }
        }
        pending.sort_unstable();
        let taken: FxHashSet<Element> = removed.iter().map(|&(element, _)| element).collect();
        let stays = |(e, call): &(&Element, &&Kept)| call.end != NEVER && !taken.contains(e);
        let left = inserts.iter().filter(stays).map(|(&element, call)| (call.end, element));
        let mut left: Vec<(i64, Element)> = left.collect();
        left.sort_unstable();
        let late = empties.iter().filter(|call| call.end >= open).map(|call| call.start);
        let mut past = late.min().unwrap_or(NEVER).min(open);
        let (mut lost, mut needs_pending);
        loop {
            // What went in before this is lost, if nobody has taken it.
            let out = removed.iter().filter(|(_, call)| call.end < past);
            let behind = out.filter_map(|(element, _)| inserts.get(element)).map(|call| call.start);
            let empty = empties.iter().filter(|call| call.end < past).map(|call| call.start);
            let since = behind.chain(empty).max().unwrap_or(i64::MIN);
            lost = left.partition_point(|&(end, _)| end < since);
            if lost > pending.len() {
                return;
            }
            let first_left = left.get(lost).map_or(NEVER, |&(end, _)| end);
            let first_pending = pending.get(lost).map_or(NEVER, |&(start, _)| start);
            needs_pending = move |call: &Kept| call.end > first_left && call.end > first_pending;
            let held = empties.iter().filter(|call| needs_pending(call)).map(|call| call.start);
            match held.min() {
                Some(held) if held < past => past = held,
                _ => break,
            }
        }
        let out = removed.iter().filter(|(_, call)| call.end < past).map(|&(element, _)| element);
        let gone: FxHashSet<Element> =
            out.chain(left[..lost].iter().map(|&(_, element)| element)).collect();
        let served: FxHashSet<RunningId> = pending[..lost].iter().map(|&(_, id)| id).collect();
        self.ended.retain(|call| match call.does {
            Does::FoundNothing => call.end >= open || needs_pending(call),
            _ => !served.contains(&call.id),
        });
        self.forget(&gone);
    }

    /// Gives up the calls that took something out of a stack or a priority queue and that nobody
    /// knows the end of, if too much is kept because of them; says whether it did.
    fn settle(&mut self) -> bool {
        let out = self.ended.iter().filter(|call| matches!(call.does, Does::Removed(_)));
        let has_pending = self.ended.iter().any(|call| call.does == Does::Remove);
        if !has_pending || out.count() < self.patience {
            return false;
        }
        let history = self.history(NEVER, None);
        let Ok(calls) = Calls::new(&history) else { return false };
        let Outcome::Linearizable(order) = monitor(&calls, &*self.object) else { return false };
        // By priority, or as they came.
        let mut inside: BTreeSet<(Option<&Value>, usize, Element)> = BTreeSet::new();
        let is_priority = matches!(self.shape, Shape::Priority { .. });
        let priority = |element| self.values.get(&element).filter(|_| is_priority);
        let first = self.shape == Shape::Priority { greatest_first: false };
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

    /// Gives elements that must have come out, each with the end of its insertion, to calls that
    /// nobody knows the end of; `None` if a call for one of them was made too late to be nobody's
    /// concern.
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

    /// Lists the elements that nobody is known to have taken out, with the calls that put them in.
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

    fn forget_of_priorities(&mut self, greatest_first: bool) -> bool {
        let inserts = self.calls().filter_map(|call| match call.does {
            Does::Insert(element) => Some((element, *call)),
            _ => None,
        });
        let inserts: FxHashMap<Element, Kept> = inserts.collect();
        let removed = self.ended.iter().filter_map(|call| match call.does {
            Does::Removed(element) => Some((element, inserts.get(&element)?, call)),
            _ => None,
        });
        let removed: Vec<(Element, &Kept, &Kept)> = removed.collect();
        let open = self.running.values().filter(|call| call.does == Does::Remove);
        let open = open.map(|call| call.start).min().unwrap_or(NEVER);
        let is_removal = |call: &&Kept| matches!(call.does, Does::Removed(_) | Does::FoundNothing);
        let late = self.ended.iter().filter(is_removal).filter(|call| call.end >= open);
        let past = late.map(|call| call.start).min().unwrap_or(NEVER).min(open);
        let mut served = Vec::new();
        if self.ended.iter().any(|call| call.does == Does::Remove) {
            // Those that came out, and those that did not, the first ones first.
            let left = self.left();
            let out = removed.iter().map(|&(element, insert, call)| (element, insert, Some(call)));
            let mut all: Vec<(Element, &Kept, Option<&Kept>)> =
                out.chain(left.iter().map(|(element, insert)| (*element, insert, None))).collect();
            all.sort_by_cached_key(|(element, _, _)| (self.values.get(element), *element));
            if greatest_first {
                all.reverse();
            }
            let mut covered = Covered::default();
            // When each came out at the earliest, if that was before.
            let mut at: Vec<i64> = Vec::with_capacity(all.len());
            for (_, insert, removal) in &all {
                let Some(removal) = removal else {
                    at.push(i64::MIN);
                    continue;
                };
                let start = removal.start.max(insert.start);
                let is_before = removal.end < open;
                at.push(if is_before { covered.first_free(start) } else { i64::MIN });
                covered.add(insert.end.min(removal.end), start);
            }
            let empty = self.ended.iter().filter(|call| call.does == Does::FoundNothing);
            let empty = empty.filter(|call| call.end < open);
            let empty = empty.map(|call| covered.first_free(call.start));
            let mut latest = empty.max().unwrap_or(i64::MIN);
            let mut forced = Vec::new();
            for (&(element, insert, removal), at) in all.iter().zip(at).rev() {
                if removal.is_none() && insert.end <= latest {
                    forced.push((insert.end, element));
                }
                latest = latest.max(at);
            }
            match self.serve(forced) {
                Some(found) => served = found,
                None => return false,
            }
        }
        let gone = removed.iter().filter(|(_, insert, removal)| {
            let start = removal.start.max(insert.start);
            start < past && removal.end < open && !self.running.contains_key(&insert.id)
        });
        let mut gone: FxHashSet<Element> = gone.map(|&(element, _, _)| element).collect();
        gone.extend(served.iter().map(|&(element, _)| element));
        let served: FxHashSet<RunningId> = served.into_iter().map(|(_, id)| id).collect();
        let is_over = |call: &Kept| call.does == Does::FoundNothing && call.end < open;
        self.ended.retain(|call| !is_over(call) && !served.contains(&call.id));
        self.forget(&gone);
        true
    }

    fn forget_of_stack(&mut self) -> bool {
        let mut inserts: FxHashMap<Element, Kept> = FxHashMap::default();
        for call in self.ended.iter().chain(self.running.values()) {
            if let Does::Insert(element) = call.does {
                inserts.insert(element, *call);
            }
        }
        // Of each element that came out: when it was surely inside, if ever, and when that ended.
        let mut gone: FxHashSet<Element> = FxHashSet::default();
        // What came out though it is still going in, which is nobody's concern.
        let mut free: FxHashSet<Element> = FxHashSet::default();
        let mut zones: Vec<(Element, i64, Kept)> = Vec::new();
        let mut removals: Vec<(i64, i64)> = Vec::new();
        for call in &self.ended {
            match call.does {
                Does::Removed(element) => match inserts.get(&element) {
                    Some(insert) if insert.end < call.start => {
                        zones.push((element, insert.end, *call));
                        removals.push((call.end, call.start));
                    }
                    Some(insert) if !self.running.contains_key(&insert.id) => {
                        gone.insert(element);
                    }
                    _ => {
                        free.insert(element);
                    }
                },
                Does::FoundNothing => removals.push((call.end, call.start)),
                _ => {}
            }
        }
        let open = self.running.values().filter(|call| call.does == Does::Remove);
        let open = open.map(|call| call.start);
        let mut past = open.min().unwrap_or(NEVER);
        removals.sort_unstable();
        for &(end, start) in removals.iter().rev() {
            if end >= past {
                past = past.min(start);
            }
        }
        let mut covered = Covered::default();
        for (_, from, removal) in &zones {
            covered.add(*from, removal.start);
        }
        zones.retain(|(_, _, removal)| removal.end < past);
        zones.sort_unstable_by_key(|&(_, from, _)| from);
        let mut components: Vec<(i64, i64)> = Vec::new();
        for &(element, from, removal) in &zones {
            gone.insert(element);
            match components.last_mut() {
                Some((_, to)) if from < *to => *to = (*to).max(removal.start),
                _ => components.push((from, removal.start)),
            }
        }
        let around = |time: i64| {
            let at = components.partition_point(|&(from, _)| from < time).checked_sub(1)?;
            Some(components[at]).filter(|&(_, to)| time < to)
        };
        let empty = self.ended.iter().filter(|call| call.does == Does::FoundNothing);
        let empty = empty.filter(|call| call.end < past);
        let latest = empty.map(|call| covered.first_free(call.start)).max().unwrap_or(i64::MIN);
        let forced = self.left().into_iter().filter(|(_, insert)| {
            let component = around(insert.start);
            insert.end <= latest || (component.is_some() && component == around(insert.end))
        });
        let forced = forced.map(|(element, insert)| (insert.end, element)).collect();
        let Some(served) = self.serve(forced) else { return false };
        gone.extend(served.iter().map(|&(element, _)| element));
        let served: FxHashSet<RunningId> = served.into_iter().map(|(_, id)| id).collect();
        self.ended.retain(|call| !served.contains(&call.id));
        for call in self.ended.iter_mut().chain(self.running.values_mut()) {
            if let Does::Insert(element) = call.does
                && !gone.contains(&element)
                && !free.contains(&element)
            {
                call.start = around(call.start).map_or(call.start, |(_, to)| to);
                if call.end != NEVER {
                    call.end = around(call.end).map_or(call.end, |(from, _)| from);
                }
            } else if call.does == Does::Remove {
                // Whatever it took out stays throughout the component.
                call.start = around(call.start).map_or(call.start, |(from, _)| from - 1);
            }
        }
        self.ended.retain(|call| call.does != Does::FoundNothing || call.end >= past);
        self.forget(&gone);
        true
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

/// Times at which something is surely inside, as disjoint ranges.
#[derive(Default)]
struct Covered(BTreeMap<i64, i64>);

impl Covered {
    /// Adds a range, if it is one.
    fn add(&mut self, from: i64, to: i64) {
        if from >= to {
            return;
        }
        let (mut from, mut to) = (from, to);
        while let Some((&start, &end)) = self.0.range(..=to).next_back()
            && end >= from
        {
            self.0.remove(&start);
            (from, to) = (from.min(start), to.max(end));
        }
        self.0.insert(from, to);
    }

    /// Finds the first time from one on that is not covered.
    fn first_free(&self, time: i64) -> i64 {
        let around = self.0.range(..=time).next_back().filter(|&(_, &to)| to > time);
        around.map_or(time, |(_, &to)| to)
    }
}
