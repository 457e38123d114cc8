//! Weak models of objects decided online.
//!
//! Every model of the axioms' grammar is closed under prefixes: the first part of a linearization
//! that explains a history, up to the last call that returned in a prefix, explains the prefix,
//! because `po`, `hb` and `vis` are contained in `lin`. So the first return without an explanation
//! ends the watch.
//!
//! Two engines judge a model:
//!
//! - [`state_sets`] decides return-value consistency, read my writes and happens-before visibility
//!   exactly, in memory that depends on the reachable states and not on the number of calls. For
//!   other models it decides the strongest of these three that the model implies: violations of it
//!   are violations of the model.
//! - [`calls`] keeps calls with an explanation, for every model. It forgets the oldest calls if there
//!   are too many; then it still proves that there is an explanation, but no longer that there is
//!   none.
//!
//! The first engine has priority where it is exact. It gives up beyond a limit of states; the second
//! one continues. Beside them, [`Online`] decides linearizability, which implies every model: as long
//! as the calls are linearizable, a search of the second engine that stops, or fails after calls were
//! forgotten, is not needed.

mod bits;
mod calls;
mod state_sets;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use consistory_history::{History, Value};
use consistory_spec::{Object, ObjectModel, Returns};
use consistory_verdict::{Budget, Stopped};

use self::calls::{CallWindow, Effort, Extended, NewCall, required};
use self::state_sets::{Base, Outcome, Precision, StateSets};
use super::{Inexplicable, Online, OnlineError, OnlineOptions, RunningId};

/// Limits of online checking by a weak model.
#[derive(Clone, Debug)]
pub struct WeakOptions {
    /// Largest number of stored states and configurations of the engine that keeps no calls.
    pub states: usize,
    /// Number of kept calls beyond which the oldest ones are forgotten.
    pub calls: usize,
    /// Largest number of indeterminate calls kept; beyond it the first ones are given up.
    pub pending: usize,
    /// Number of other calls that may return while one is running, before it counts as
    /// indeterminate.
    pub overdue: u64,
    /// Time and memory of the search at one return.
    pub budget: Budget,
}

impl Default for WeakOptions {
    fn default() -> Self {
        WeakOptions {
            states: 100_000,
            calls: 1000,
            pending: 64,
            overdue: 10_000,
            budget: Budget::unlimited(),
        }
    }
}

/// The amount of stored data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WeakSize {
    /// Number of kept calls.
    pub calls: usize,
    /// Number of stored states and configurations.
    pub states: usize,
    /// Number of calls forgotten or given up.
    pub forgotten: u64,
    /// Number of calls that ran so long that their returns are ignored.
    pub overdue: u64,
}

/// A running call: its session, how many calls had returned when it was made, and the kind of its
/// return.
struct Running {
    session: Arc<str>,
    since: u64,
    returns: Returns,
}

/// Whether the calls so far are linearizable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Linearizable {
    Yes,
    /// A later return shows whether they are.
    Later,
    /// They are not, or it is not known.
    Unknown,
}

/// Judges the calls of an object by a weak model online.
pub struct WeakOnline {
    object: Arc<dyn Object>,
    options: WeakOptions,
    /// The engine that keeps no calls, until it gives up.
    sets: Option<StateSets>,
    precision: Precision,
    /// Linearizability, as long as it holds.
    strong: Option<Online>,
    /// The kept calls, until they are of no use.
    window: Option<CallWindow>,
    /// The running calls, the oldest first.
    running: BTreeMap<RunningId, Running>,
    /// Running calls that count as indeterminate.
    overdue: BTreeSet<RunningId>,
    were_overdue: u64,
    /// Number of returns.
    returns: u64,
    /// Id of the next call.
    next: u64,
    /// Number of kept calls above which some are forgotten.
    forget_above: usize,
}

/// Largest number of configurations for linearizability, which is judged beside the model.
const MAX_STRONG_CONFIGURATIONS: usize = 4096;
/// Number of kept calls, as a multiple of the limit, at which the verdict becomes unknown.
const MOST_CALLS_FACTOR: usize = 2;

impl WeakOnline {
    /// Starts with no call.
    pub fn new(object: Arc<dyn Object>, model: &ObjectModel, options: WeakOptions) -> Self {
        let (base, precision) = Base::of(model);
        let strong = OnlineOptions {
            configurations: options.states.min(MAX_STRONG_CONFIGURATIONS),
            pending: options.pending,
            // Which calls are overdue is decided here.
            overdue: u64::MAX,
            ..OnlineOptions::default()
        };
        WeakOnline {
            strong: Some(Online::new(Arc::clone(&object), strong)),
            sets: Some(StateSets::new(&object, base, options.states)),
            precision,
            window: Some(CallWindow::new(&object, model, options.budget.clone())),
            object,
            forget_above: options.calls,
            options,
            running: BTreeMap::new(),
            overdue: BTreeSet::new(),
            were_overdue: 0,
            returns: 0,
            next: 0,
        }
    }

    /// Adds a call of a session that starts at a time.
    pub fn invoke(
        &mut self,
        session: &str,
        method: &str,
        args: Vec<Value>,
        start: i64,
    ) -> Result<RunningId, OnlineError> {
        let resolved = self.object.resolve(method, args.len())?;
        let returns = resolved.map_or(Returns::Value, |method| method.returns);
        let name: Box<str> = resolved.map_or_else(|| method.into(), |method| method.name.clone());
        let id = RunningId(self.next);
        self.next += 1;
        let session: Arc<str> = session.into();
        // Real time does not order the calls of a session that meet. Both number calls alike.
        if self.running.values().any(|running| *running.session == *session) {
            self.strong = None;
        }
        if let Some(strong) = &mut self.strong
            && strong.invoke(method, args.clone()) != Ok(id)
        {
            self.strong = None;
        }
        let call = NewCall {
            id,
            session: Arc::clone(&session),
            is_read_only: self.object.is_read_only(&name, None),
            name: method.into(),
            method: name,
            args,
            returns,
            start,
        };
        self.running.insert(id, Running { session, since: self.returns, returns });
        if let Some(sets) = &mut self.sets {
            let outcome = sets.invoke(&call);
            self.drop_sets_if(outcome);
        }
        if let Some(window) = &mut self.window {
            window.invoke(call);
        }
        Ok(id)
    }

    /// Processes the return of a call; reports a violation if nothing explains it. The verdict after
    /// a violation, or after an error, is unspecified.
    pub fn complete(
        &mut self,
        id: RunningId,
        returned: Option<Value>,
        end: i64,
    ) -> Result<Option<Inexplicable>, OnlineError> {
        if self.overdue.remove(&id) {
            return Ok(None);
        }
        let returns = self.running.remove(&id).ok_or(OnlineError::NotRunning)?.returns;
        self.returns += 1;
        let value = required(returns, returned.clone());
        let outcome = self.sets.as_mut().map(|sets| sets.complete(id, value.as_ref()));
        let linearizable = match &mut self.strong {
            None => Linearizable::Unknown,
            Some(strong) => match strong.complete(id, returned.clone()) {
                // A return that is ignored there is not ignored here.
                _ if strong.were_overdue > 0 => {
                    self.strong = None;
                    Linearizable::Unknown
                }
                Ok(None) if strong.unjudged() == 0 => Linearizable::Yes,
                Ok(None) => Linearizable::Later,
                _ => {
                    self.strong = None;
                    Linearizable::Unknown
                }
            },
        };
        let found = self.judge(id, outcome, linearizable, |window, effort| {
            window.complete(id, returned, end, effort)
        })?;
        if found.is_none() {
            self.forget()?;
        }
        Ok(found)
    }

    /// Records that a call had no effect; reports a violation if a return needs its effect.
    pub fn fail(&mut self, id: RunningId) -> Result<Option<Inexplicable>, OnlineError> {
        if self.overdue.remove(&id) {
            return Ok(None);
        }
        self.running.remove(&id).ok_or(OnlineError::NotRunning)?;
        let outcome = self.sets.as_mut().map(|sets| sets.fail(id));
        let failed = self.strong.as_mut().map(|strong| strong.fail(id));
        let linearizable = match failed {
            Some(Ok(())) => Linearizable::Later,
            _ => {
                self.strong = None;
                Linearizable::Unknown
            }
        };
        let found =
            self.judge(id, outcome, linearizable, |window, effort| window.fail(id, effort))?;
        Ok(found.map(|found| Inexplicable { possible: Vec::new(), ..found }))
    }

    /// Records that a call is indeterminate.
    pub fn abandon(&mut self, id: RunningId) -> Result<(), OnlineError> {
        if self.overdue.remove(&id) {
            return Ok(());
        }
        self.running.remove(&id).ok_or(OnlineError::NotRunning)?;
        self.lose(id);
        Ok(())
    }

    fn lose(&mut self, id: RunningId) {
        if let Some(strong) = &mut self.strong
            && strong.abandon(id).is_err()
        {
            self.strong = None;
        }
        if let Some(sets) = &mut self.sets {
            let outcome = sets.abandon(id);
            self.drop_sets_if(outcome);
        }
        if let Some(window) = &mut self.window {
            window.abandon(id, self.options.pending);
        }
    }

    fn drop_sets_if(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::TooMany => self.sets = None,
            Outcome::Unknown => self.precision = Precision::Weaker,
            Outcome::Explained | Outcome::Unexplained => {}
        }
    }

    /// Combines the results of the engines for an event.
    fn judge(
        &mut self,
        id: RunningId,
        outcome: Option<Outcome>,
        linearizable: Linearizable,
        event: impl FnOnce(&mut CallWindow, Effort) -> Result<Extended, Stopped>,
    ) -> Result<Option<Inexplicable>, OnlineError> {
        if let Some(outcome) = outcome {
            self.drop_sets_if(outcome);
        }
        let is_exact = outcome == Some(Outcome::Explained) && self.precision == Precision::Exact;
        let is_decided = is_exact || linearizable == Linearizable::Yes;
        let can_wait = is_decided || linearizable == Linearizable::Later;
        let effort = if can_wait { Effort::Little } else { Effort::Full };
        if outcome == Some(Outcome::Unexplained) {
            let possible = match &mut self.window {
                Some(window) => {
                    // It records the end of the call, for the history; the verdict is known.
                    let _ = event(window, Effort::Nothing);
                    window.possible(id)
                }
                None => Vec::new(),
            };
            return Ok(Some(Inexplicable { call: id, possible, part: None, configurations: 0 }));
        }
        let Some(window) = &mut self.window else {
            return match can_wait {
                true => Ok(None),
                false => Err(OnlineError::TooMany { limit: self.options.states }),
            };
        };
        match event(window, effort) {
            Ok(Extended::Explained) => Ok(None),
            result if is_decided => {
                debug_assert!(
                    window.lost() > 0 || result != Ok(Extended::Unexplained),
                    "the engines contradict each other"
                );
                Ok(None)
            }
            Ok(Extended::Unexplained) if window.lost() > 0 && !can_wait => {
                Err(OnlineError::Forgotten { calls: window.lost() })
            }
            Ok(Extended::Unexplained) if window.lost() == 0 => {
                let possible = window.possible(id);
                Ok(Some(Inexplicable { call: id, possible, part: None, configurations: 0 }))
            }
            // Either the calls are linearizable, or a later return shows that they are not.
            _ if can_wait => Ok(None),
            Ok(_) => unreachable!("a search with full effort is not put off"),
            Err(stopped) => Err(OnlineError::Stopped(stopped)),
        }
    }

    /// Forgets calls, if too many are kept.
    fn forget(&mut self) -> Result<(), OnlineError> {
        while let Some((&oldest, running)) = self.running.first_key_value()
            && self.returns - running.since > self.options.overdue
        {
            self.running.remove(&oldest);
            self.lose(oldest);
            self.overdue.insert(oldest);
            self.were_overdue += 1;
        }
        let limit = self.options.calls;
        let Some(window) = &mut self.window else { return Ok(()) };
        if window.len() <= self.forget_above {
            return Ok(());
        }
        // The result of a search that stops is not needed, or was reported.
        let _ = window.explain();
        if window.forget() {
            self.forget_above = limit;
            return Ok(());
        }
        // More calls may divide the linearization elsewhere.
        self.forget_above = window.len() + limit / 16;
        if window.len() < MOST_CALLS_FACTOR * limit {
            return Ok(());
        }
        let calls = window.len();
        self.window = None;
        match (&self.sets, self.precision, &self.strong) {
            (Some(_), Precision::Exact, _) | (_, _, Some(_)) => Ok(()),
            _ => Err(OnlineError::TooLong { calls }),
        }
    }

    /// Returns the history of all calls so far, if none was forgotten.
    pub fn history(&self) -> Option<History> {
        self.window.as_ref()?.history()
    }

    /// Returns the amount of stored data.
    pub fn size(&self) -> WeakSize {
        WeakSize {
            calls: self.window.as_ref().map_or(0, CallWindow::len),
            states: self.sets.as_ref().map_or(0, StateSets::entries),
            forgotten: self.window.as_ref().map_or(0, CallWindow::lost),
            overdue: self.were_overdue,
        }
    }
}
