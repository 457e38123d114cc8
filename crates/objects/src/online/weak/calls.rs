//! The calls that are kept, and the explanation of their returns: a linearization and the calls
//! that each call sees.
//!
//! Most returns extend the explanation: the call is appended to the linearization and sees its base
//! (what the axioms require), everything, or its base and one more call. If a value needs the effect
//! of a call that is still running, that call is appended first. A return that does not extend it
//! makes the search of [`crate::visibility`] redo the end of the linearization: the last 8 calls, the
//! last 64, then all. Only the search over all of them can prove that there is no explanation.
//!
//! If more calls are kept than the limit, the first part of the linearization is replaced by the
//! state that it leads to ([`CallWindow::forget`]). From then on every call is assumed to see all of
//! that part. An explanation under this assumption is one of the whole history: calls that are
//! forgotten come first in the linearization, so seeing all of them violates no axiom, and every
//! axiom about the kept calls composes kept calls only. But if there is none, there may be one in
//! which a call misses a forgotten one, and the answer is that the verdict is unknown.

use std::any::Any;
use std::sync::Arc;

use consistory_history::{
    Action, Call, Details, History, HistoryBuilder, HistoryError, Interval, Status, Value,
};
use consistory_spec::{
    Atom, CallRef, Family, Goal, Method, Object, ObjectModel, Operation, Returns, State,
};
use consistory_verdict::{Budget, Stopped};
use rustc_hash::FxHashMap;

use super::super::RunningId;
use super::bits::Bits;
use crate::calls::{CallIndex, Calls};
use crate::definition::Execution;
use crate::task::Task;
use crate::visibility::{
    Demand, Explanation, Strategy, Visibility, demands, explain, explain_after,
};

/// Numbers of calls at the end of the linearization that are linearized again, before all are.
const REDONE_CALLS: [usize; 2] = [8, 64];
/// Share of the budget for redoing the end of the linearization.
const SHARE_FOR_REDOING: u32 = 16;
/// Largest number of calls of which each one is tried as the only one seen beyond the base.
const MAX_SINGLE_SOURCES: usize = 256;
/// Number of dropped calls that are not worth being removed.
const MIN_DROPPED_CALLS: usize = 64;
/// Number of ways to divide the linearization that are tried before nothing is forgotten.
const DIVISIONS_TRIED: usize = 4;

/// A call that is added.
#[derive(Clone)]
pub(super) struct NewCall {
    pub(super) id: RunningId,
    pub(super) session: Arc<str>,
    /// Name of the method as it was called, and in the specification.
    pub(super) name: Box<str>,
    pub(super) method: Box<str>,
    pub(super) args: Vec<Value>,
    pub(super) returns: Returns,
    pub(super) is_read_only: bool,
    pub(super) start: i64,
}

/// The end of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
enum End {
    Running,
    /// Its time, the recorded return, and the return that is required.
    Returned(i64, Option<Value>, Option<Value>),
    Indeterminate,
    /// The call took no effect, or was given up.
    Dropped,
}

#[derive(Clone)]
struct KeptCall {
    call: NewCall,
    end: End,
    /// Calls before this one in `hb` and in `po`.
    hb: Bits,
    po: Bits,
}

/// Result for a return.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Extended {
    /// There is an explanation.
    Explained,
    /// There is none, if every later call sees the forgotten ones.
    Unexplained,
    /// The return is recorded; no explanation is known.
    Unknown,
}

/// The kept calls of an object, with an explanation of their returns.
#[derive(Clone)]
pub(super) struct CallWindow {
    object: Arc<dyn Object>,
    model: ObjectModel,
    demands: Arc<[Demand]>,
    budget: Budget,
    /// State after the forgotten calls.
    start: State,
    /// Kept calls, in the order of their starts.
    calls: Vec<KeptCall>,
    lin: Vec<usize>,
    linearized: Bits,
    /// Calls linearized before each call, and calls that it sees, by its position.
    before: Vec<Bits>,
    vis: Vec<Bits>,
    /// State after all calls of the linearization; `None` if they are not possible in this order.
    end_state: Option<State>,
    /// Whether the linearization explains all returns; if not, it is not extended.
    is_explained: bool,
    /// Whether it did so before the last search.
    was_explained: bool,
    /// Number of calls that are kept and not dropped.
    live: usize,
    forgotten: u64,
    given_up: u64,
}

impl CallWindow {
    pub(super) fn new(object: &Arc<dyn Object>, model: &ObjectModel, budget: Budget) -> Self {
        CallWindow {
            object: Arc::clone(object),
            model: model.clone(),
            demands: demands(model).into(),
            budget,
            start: object.initial(),
            calls: Vec::new(),
            lin: Vec::new(),
            linearized: Bits::default(),
            before: Vec::new(),
            vis: Vec::new(),
            end_state: Some(object.initial()),
            is_explained: true,
            was_explained: false,
            live: 0,
            forgotten: 0,
            given_up: 0,
        }
    }

    /// Returns the number of kept calls.
    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// Returns the number of calls that were forgotten or given up; without any, an unexplained
    /// return is a violation.
    pub(super) fn lost(&self) -> u64 {
        self.forgotten + self.given_up
    }

    /// Adds a call.
    pub(super) fn invoke(&mut self, call: NewCall) {
        self.compact();
        let mut hb = Bits::default();
        let mut po = Bits::default();
        for (at, kept) in self.calls.iter().enumerate() {
            let End::Returned(end, ..) = kept.end else { continue };
            if kept.call.session == call.session {
                po.insert(at);
                hb.insert(at);
            } else if end < call.start {
                hb.insert(at);
            }
        }
        self.calls.push(KeptCall { call, end: End::Running, hb, po });
        self.before.push(Bits::default());
        self.vis.push(Bits::default());
        self.live += 1;
    }

    /// Returns the position of a call that is kept.
    fn find(&self, id: RunningId) -> Option<usize> {
        self.calls.binary_search_by_key(&id, |kept| kept.call.id).ok()
    }

    /// Adds the return of a call.
    pub(super) fn complete(
        &mut self,
        id: RunningId,
        returned: Option<Value>,
        end: i64,
        effort: Effort,
    ) -> Result<Extended, Stopped> {
        let Some(at) = self.find(id) else { return Ok(Extended::Explained) };
        let required = required(self.calls[at].call.returns, returned.clone());
        self.calls[at].end = End::Returned(end, returned, required);
        // A call of the same session that started at this very time comes after this one.
        let mut kept = self.lin.len();
        for next in at + 1..self.calls.len() {
            let other = &self.calls[next].call;
            if other.start == end && other.session == self.calls[at].call.session {
                self.calls[next].hb.insert(at);
                self.calls[next].po.insert(at);
                kept = self.lin.iter().position(|&p| p == next).map_or(kept, |p| kept.min(p));
            }
        }
        if effort == Effort::Nothing {
            return Ok(Extended::Unknown);
        }
        if self.is_explained && kept == self.lin.len() && self.extend(at) {
            return Ok(Extended::Explained);
        }
        let own = self.lin.iter().position(|&p| p == at).unwrap_or(kept);
        self.search(kept.min(own), effort)
    }

    /// Records that a call took no effect.
    pub(super) fn fail(&mut self, id: RunningId, effort: Effort) -> Result<Extended, Stopped> {
        let Some(at) = self.find(id) else { return Ok(Extended::Explained) };
        let place = self.lin.iter().position(|&p| p == at);
        self.drop_call(at);
        match place {
            None if self.is_explained => Ok(Extended::Explained),
            place => self.search(place.unwrap_or(0), effort),
        }
    }

    /// Records that a call is indeterminate; at most `most` such calls that are not linearized are
    /// kept.
    pub(super) fn abandon(&mut self, id: RunningId, most: usize) {
        let Some(at) = self.find(id) else { return };
        self.calls[at].end = End::Indeterminate;
        if self.calls[at].call.is_read_only && !self.linearized.contains(at) {
            // Its return is unknown, and it changes nothing.
            self.drop_call(at);
            return;
        }
        let is_open = |kept: &KeptCall| kept.end == End::Indeterminate;
        let mut open: Vec<usize> = (0..self.calls.len())
            .filter(|&p| is_open(&self.calls[p]) && !self.linearized.contains(p))
            .collect();
        open.reverse();
        while open.len() > most
            && let Some(first) = open.pop()
        {
            self.given_up += 1;
            self.drop_call(first);
        }
    }

    fn drop_call(&mut self, at: usize) {
        self.calls[at].end = End::Dropped;
        self.live -= 1;
    }

    /// Removes the dropped calls, if they are many.
    fn compact(&mut self) {
        if self.calls.len() <= 2 * self.live + MIN_DROPPED_CALLS {
            return;
        }
        if !self.is_explained {
            // The linearization is of no use, and may contain dropped calls.
            self.lin.clear();
        }
        let mut renumbered: Vec<Option<usize>> = Vec::with_capacity(self.calls.len());
        let mut live = 0;
        for kept in &self.calls {
            let is_live = kept.end != End::Dropped;
            renumbered.push(is_live.then_some(live));
            live += usize::from(is_live);
        }
        let map = |bits: &Bits| -> Bits { bits.iter().filter_map(|p| renumbered[p]).collect() };
        let is_live = |at: usize| renumbered[at].is_some();
        let mapped = |rows: &[Bits]| -> Vec<Bits> {
            (0..rows.len()).filter(|&at| is_live(at)).map(|at| map(&rows[at])).collect()
        };
        (self.before, self.vis) = (mapped(&self.before), mapped(&self.vis));
        self.lin = self.lin.iter().filter_map(|&p| renumbered[p]).collect();
        self.linearized = self.lin.iter().copied().collect();
        self.calls.retain(|kept| kept.end != End::Dropped);
        for kept in &mut self.calls {
            (kept.hb, kept.po) = (map(&kept.hb), map(&kept.po));
        }
    }

    /// Extends the explanation by a call that returned.
    fn extend(&mut self, at: usize) -> bool {
        if self.linearized.contains(at) {
            let state = self.state_before(at, &self.vis[at].clone());
            return state.is_some_and(|state| self.fits(at, &state));
        }
        if self.append_fitting(at) {
            return true;
        }
        let helpers: Vec<usize> = (0..self.calls.len())
            .filter(|&p| {
                matches!(self.calls[p].end, End::Running | End::Indeterminate)
                    && !self.linearized.contains(p)
                    && !self.calls[p].call.is_read_only
                    && self.calls[p].hb.is_subset(&self.linearized)
            })
            .collect();
        for helper in helpers {
            let end_state = self.end_state.clone();
            if self.append_fitting(helper) {
                if self.append_fitting(at) {
                    return true;
                }
                self.lin.pop();
                self.linearized.remove(helper);
                self.end_state = end_state;
            }
        }
        false
    }

    /// Appends a call to the linearization, if it returns its value after some visible calls.
    fn append_fitting(&mut self, at: usize) -> bool {
        let Some(sees) = self.fitting(at) else { return false };
        self.append(at, sees);
        true
    }

    /// Finds a set of visible calls after which a call returns its value, among a few.
    fn fitting(&self, at: usize) -> Option<Bits> {
        let base = self.base(at);
        let part = self.part(at);
        let all = || {
            let fits = self.end_state.as_ref().is_some_and(|state| self.fits(at, state));
            fits.then(|| self.linearized.clone())
        };
        let smallest = || {
            let state = self.state_before(at, &base)?;
            self.fits(at, &state).then(|| base.clone())
        };
        if part.is_none()
            && let Some(all) = all()
        {
            return Some(all);
        }
        if let Some(smallest) = smallest() {
            return Some(smallest);
        }
        let sources = self.lin.iter().rev().copied().filter(|&p| {
            !base.contains(p)
                && !self.calls[p].call.is_read_only
                && (part.is_none() || self.part(p) == part)
        });
        for source in sources.take(MAX_SINGLE_SOURCES) {
            let sees = self.closed(at, base.clone().with(source));
            if self.state_before(at, &sees).is_some_and(|state| self.fits(at, &state)) {
                return Some(sees);
            }
        }
        if part.is_some() { all() } else { None }
    }

    fn part(&self, at: usize) -> Option<Value> {
        let call = &self.calls[at].call;
        self.object.part(&call.method, &call.args)
    }

    fn append(&mut self, at: usize, sees: Bits) {
        self.before[at] = self.linearized.clone();
        self.vis[at] = sees;
        self.linearized.insert(at);
        self.lin.push(at);
        let call = &self.calls[at].call;
        if !call.is_read_only
            && let Some(state) = &mut self.end_state
            && self.object.invoke(state, &call.method, &call.args).is_none()
        {
            self.end_state = None;
        }
    }

    /// Returns the state after the calls of a set, in the order of the linearization; `None` if they
    /// are not possible in this order.
    fn state_before(&self, at: usize, sees: &Bits) -> Option<State> {
        let mut state = self.start.clone();
        for &p in self.lin.iter().take_while(|&&p| p != at) {
            let call = &self.calls[p].call;
            if sees.contains(p) && !call.is_read_only {
                self.object.invoke(&mut state, &call.method, &call.args)?;
            }
        }
        Some(state)
    }

    /// Checks whether a call is possible in a state and returns its recorded value.
    fn fits(&self, at: usize, state: &State) -> bool {
        let KeptCall { call, end, .. } = &self.calls[at];
        let mut state = state.clone();
        let returned = self.object.invoke(&mut state, &call.method, &call.args);
        match (returned, end) {
            (None, _) => false,
            (Some(value), End::Returned(_, _, Some(required))) => value == *required,
            (Some(_), _) => true,
        }
    }

    fn demands_of(&self, at: usize) -> impl Iterator<Item = &Demand> {
        let method = &*self.calls[at].call.method;
        self.demands.iter().filter(move |d| self.model.axioms[d.axiom].concerns(method))
    }

    /// Returns everything that reaches some calls by a composition of relations.
    fn reaching(&self, relations: &[Atom], calls: &Bits) -> Bits {
        relations.iter().rev().fold(calls.clone(), |reached, relation| {
            let mut all = Bits::default();
            for p in reached.iter() {
                all.extend(match relation {
                    Atom::Po => &self.calls[p].po,
                    Atom::Hb => &self.calls[p].hb,
                    Atom::Lin => &self.before[p],
                    Atom::Vis => &self.vis[p],
                });
            }
            all
        })
    }

    /// Returns the calls that the next linearized call must see in any case.
    fn base(&self, at: usize) -> Bits {
        let mut base = Bits::default();
        for demand in self.demands_of(at) {
            let last = match demand.last {
                Atom::Po => &self.calls[at].po,
                Atom::Hb => &self.calls[at].hb,
                Atom::Lin => &self.linearized,
                Atom::Vis => continue,
            };
            base.extend(&self.reaching(&demand.prefix, last));
        }
        self.closed(at, base)
    }

    /// Closes the set of calls that a call sees under the axioms.
    fn closed(&self, at: usize, mut sees: Bits) -> Bits {
        loop {
            let mut more = sees.clone();
            for demand in self.demands_of(at).filter(|demand| demand.last == Atom::Vis) {
                more.extend(&self.reaching(&demand.prefix, &sees));
            }
            if more.is_subset(&sees) {
                return sees;
            }
            sees = more;
        }
    }

    /// Searches for an explanation, if none is known.
    pub(super) fn explain(&mut self) -> Result<Extended, Stopped> {
        match self.is_explained {
            true => Ok(Extended::Explained),
            false => self.find_explanation(0, Effort::Little),
        }
    }

    /// Searches for an explanation that keeps at most the first `kept` calls of the linearization.
    ///
    /// With little effort, and if the last such search failed, the search is put off.
    fn search(&mut self, kept: usize, effort: Effort) -> Result<Extended, Stopped> {
        if effort == Effort::Nothing || (!self.is_explained && effort == Effort::Little) {
            return Ok(Extended::Unknown);
        }
        let kept = if self.is_explained { kept } else { 0 };
        self.was_explained = self.is_explained;
        self.is_explained = false;
        self.find_explanation(kept, effort)
    }

    fn find_explanation(&mut self, kept: usize, effort: Effort) -> Result<Extended, Stopped> {
        let Ok((history, positions)) = self.history_of(|_| true) else {
            return Err(Stopped::Size { operations: self.live, limit: 0 });
        };
        let calls = Calls::new(&history).expect("the kept calls have times and are calls");
        let task = Task::new(calls, self.resumed()).expect("the object has the kept calls");
        // Position of each call of the task, and the call of each position.
        let to: Vec<usize> =
            task.calls().operations().iter().map(|op| positions[op.id.0 as usize]).collect();
        let mut from: FxHashMap<usize, CallIndex> = FxHashMap::default();
        for (i, &p) in to.iter().enumerate() {
            from.insert(p, CallIndex::new(i));
        }
        let place = |p: &usize| from[p];
        for redone in REDONE_CALLS {
            let Some(length) = self.lin.len().checked_sub(redone).filter(|&l| l > 0) else { break };
            let length = length.min(kept);
            if length == 0 {
                break;
            }
            let past = &self.lin[..length];
            let past = Execution {
                lin: past.iter().map(place).collect(),
                vis: past.iter().map(|&p| self.seen(p).map(|p| from[&p]).collect()).collect(),
            };
            let budget = self.budget.share(SHARE_FOR_REDOING);
            if let Ok(Explanation::Found(found)) = explain_after(&task, &self.model, &past, &budget)
            {
                self.adopt(&found, &to);
                return Ok(Extended::Explained);
            }
        }
        let budget = match effort {
            Effort::Full => self.budget.renewed(),
            Effort::Little | Effort::Nothing => self.budget.share(SHARE_FOR_REDOING),
        };
        let (strategy, visibility) = (Strategy::default(), Visibility::default());
        match explain(&task, &self.model, strategy, visibility, &budget)? {
            Explanation::Found(found) => {
                self.adopt(&found, &to);
                Ok(Extended::Explained)
            }
            Explanation::Stuck { .. } => Ok(Extended::Unexplained),
        }
    }

    /// Iterates over the calls that a linearized call sees.
    fn seen(&self, at: usize) -> impl Iterator<Item = usize> {
        let vis = &self.vis[at];
        self.lin.iter().copied().take_while(move |&p| p != at).filter(|&p| vis.contains(p))
    }

    /// Replaces the explanation; `to` maps the positions of a task.
    fn adopt(&mut self, found: &Execution, to: &[usize]) {
        let position = |place: &CallIndex| to[place.index()];
        self.is_explained = true;
        self.lin.clear();
        self.linearized = Bits::default();
        self.end_state = Some(self.start.clone());
        for (place, seen) in found.lin.iter().zip(&found.vis) {
            self.append(position(place), seen.iter().map(position).collect());
        }
    }

    /// Returns the object, started in the state after the forgotten calls.
    fn resumed(&self) -> Arc<dyn Object> {
        match self.forgotten {
            0 => Arc::clone(&self.object),
            _ => Arc::new(Resumed { object: Arc::clone(&self.object), start: self.start.clone() }),
        }
    }

    /// Returns the history of all calls, if none was forgotten or given up.
    pub(super) fn history(&self) -> Option<History> {
        if self.lost() > 0 {
            return None;
        }
        self.history_of(|_| true).ok().map(|(history, _)| history)
    }

    /// Builds the history of some of the calls that were not dropped; also returns the position of
    /// each operation.
    fn history_of(
        &self,
        is_included: impl Fn(usize) -> bool,
    ) -> Result<(History, Vec<usize>), HistoryError> {
        let mut b = HistoryBuilder::new();
        let mut of_session: Vec<Vec<usize>> = Vec::new();
        for (at, KeptCall { call, end, .. }) in self.calls.iter().enumerate() {
            if *end == End::Dropped || !is_included(at) {
                continue;
            }
            let session = b.session(&call.session);
            let index = session.0 as usize;
            of_session.resize(of_session.len().max(index + 1), Vec::new());
            of_session[index].push(at);
            let args = call.args.iter().map(|arg| b.value_copy(arg)).collect();
            let (end, returns, status) = match end {
                End::Returned(end, value, _) => (Some(*end), value.as_ref(), Status::Ok),
                _ => (None, None, Status::Unknown),
            };
            let returns = returns.map(|value| b.value_copy(value));
            let call_id = b.call(Call { method: call.name.clone(), args, returns });
            let time = Some(Interval { start: call.start, end });
            b.push_with(
                session,
                Action::Call(call_id),
                Details { status, time, transaction: None },
            );
        }
        let history = b.finish()?;
        // The operations of a session have consecutive ids.
        let positions = history.ops().map(|op| {
            let session = history.session_of(op).0 as usize;
            of_session[session][history.index_in_session(op) as usize]
        });
        let positions = positions.collect();
        Ok((history, positions))
    }

    /// Lists values that a running call could have returned after the explained calls: those for the
    /// largest and for the smallest set of visible calls.
    pub(super) fn possible(&self, id: RunningId) -> Vec<Value> {
        let Some(at) = self.find(id) else { return Vec::new() };
        if self.linearized.contains(at) || !(self.is_explained || self.was_explained) {
            return Vec::new();
        }
        let call = &self.calls[at].call;
        let smallest = self.state_before(at, &self.base(at));
        let states = [self.end_state.clone(), smallest];
        let returned = states
            .into_iter()
            .flatten()
            .filter_map(|mut state| self.object.invoke(&mut state, &call.method, &call.args));
        let mut values: Vec<Value> = returned.collect();
        values.sort();
        values.dedup();
        values
    }

    /// Replaces about half of the kept calls by the state that they lead to; returns whether it was
    /// possible.
    ///
    /// The forgotten calls are the first ones of the linearization. None of them may be running: it
    /// could return another value, or fail.
    pub(super) fn forget(&mut self) -> bool {
        if !self.is_explained {
            return false;
        }
        let mut longest = self.lin.len().saturating_sub(1);
        if let Some(first) = self.lin.iter().position(|&p| self.calls[p].end == End::Running) {
            longest = longest.min(first);
        }
        let half = self.live / 2;
        for tried in 0..DIVISIONS_TRIED {
            // The middle first, then ever closer to the end.
            let length = half + (longest.saturating_sub(half)) * tried / DIVISIONS_TRIED;
            if length == 0 || length > longest {
                continue;
            }
            if let Some(rest) = self.without_first(length) {
                *self = rest;
                return true;
            }
        }
        false
    }

    /// Returns the kept calls without the first ones of the linearization, if the others are
    /// explained although they see all of these.
    fn without_first(&self, length: usize) -> Option<CallWindow> {
        let mut start = self.start.clone();
        for &p in &self.lin[..length] {
            let call = &self.calls[p].call;
            if !call.is_read_only {
                self.object.invoke(&mut start, &call.method, &call.args)?;
            }
        }
        let gone: Bits = self.lin[..length].iter().copied().collect();
        let mut renumbered: Vec<Option<usize>> = vec![None; self.calls.len()];
        let mut rest = CallWindow {
            start: start.clone(),
            calls: Vec::new(),
            lin: Vec::new(),
            linearized: Bits::default(),
            before: Vec::new(),
            vis: Vec::new(),
            end_state: Some(start),
            is_explained: true,
            was_explained: false,
            live: 0,
            forgotten: self.forgotten + length as u64,
            object: Arc::clone(&self.object),
            model: self.model.clone(),
            demands: Arc::clone(&self.demands),
            budget: self.budget.clone(),
            given_up: self.given_up,
        };
        for (at, kept) in self.calls.iter().enumerate() {
            if gone.contains(at) || kept.end == End::Dropped {
                continue;
            }
            renumbered[at] = Some(rest.calls.len());
            let map = |bits: &Bits| bits.iter().filter_map(|p| renumbered[p]).collect();
            let kept = KeptCall { hb: map(&kept.hb), po: map(&kept.po), ..kept.clone() };
            rest.calls.push(kept);
        }
        rest.live = rest.calls.len();
        rest.before = vec![Bits::default(); rest.live];
        rest.vis = vec![Bits::default(); rest.live];
        for &p in &self.lin[length..] {
            let at = renumbered[p]?;
            let sees: Bits = self.vis[p].iter().filter_map(|p| renumbered[p]).collect();
            let sees = rest.closed(at, sees);
            match rest.state_before(at, &sees) {
                Some(state) if rest.fits(at, &state) => rest.append(at, sees),
                _ if rest.append_fitting(at) => {}
                _ => return None,
            }
        }
        Some(rest)
    }
}

/// Amount of work that a search may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effort {
    /// The whole budget.
    Full,
    /// A share of it, since the result is not needed.
    Little,
    /// None: the event is recorded only.
    Nothing,
}

/// Returns the return that a call must have, given the recorded one; `None` if any is allowed.
pub(super) fn required(returns: Returns, recorded: Option<Value>) -> Option<Value> {
    match (returns, recorded) {
        (Returns::Nothing, _) => None,
        (Returns::Unordered, Some(Value::List(mut list))) => {
            list.sort();
            Some(Value::List(list))
        }
        (_, recorded) => recorded,
    }
}

/// An object that starts in another state.
struct Resumed {
    object: Arc<dyn Object>,
    start: State,
}

impl Object for Resumed {
    fn initial(&self) -> State {
        self.start.clone()
    }

    fn invoke(&self, state: &mut State, method: &str, args: &[Value]) -> Option<Value> {
        self.object.invoke(state, method, args)
    }

    fn methods(&self) -> &[Method] {
        self.object.methods()
    }

    fn part(&self, method: &str, args: &[Value]) -> Option<Value> {
        self.object.part(method, args)
    }

    fn looks_ahead(&self) -> bool {
        self.object.looks_ahead()
    }

    fn can_reach(&self, state: &State, goal: &Goal<'_>, by: &[CallRef<'_>]) -> bool {
        self.object.can_reach(state, goal, by)
    }

    fn is_read_only(&self, method: &str, returns: Option<&Value>) -> bool {
        self.object.is_read_only(method, returns)
    }

    fn overwrites(&self, method: &str, args: &[Value]) -> bool {
        self.object.overwrites(method, args)
    }

    fn depends(&self, state: &State, op: &Operation<'_>, other: &Operation<'_>) -> bool {
        self.object.depends(state, op, other)
    }

    fn family(&self) -> Option<Family> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn footprint(&self, state: &State) -> usize {
        self.object.footprint(state)
    }

    fn show(&self, state: &State) -> Option<String> {
        self.object.show(state)
    }
}
