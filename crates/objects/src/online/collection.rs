//! A queue, stack or priority queue judged online: by configurations while these are few, and then
//! by the log of its calls.
//!
//! Both engines receive every call. If there are too many configurations, or too many indeterminate
//! calls for them, the log continues alone; when the collection is empty again and no call is
//! running, configurations start again. If the log does not support the calls (an element is
//! inserted while an equal one may be inside, or another method is called), configurations continue
//! alone.

use std::sync::Arc;

use consistory_history::Value;
use consistory_spec::Object;

use super::call_log::CallLog;
use super::configurations::Configurations;
use super::engine::{Completed, Engine, EngineSize, GivenUpCalls, Incoming, Taken};
use super::{INDETERMINATE_ALWAYS_KEPT, OnlineError, RunningId};

/// A collection judged by two engines.
pub(super) struct Collection {
    object: Arc<dyn Object>,
    /// `None` after configurations were abandoned because there were too many.
    configurations: Option<Configurations>,
    /// `None` after the log was abandoned because it did not support a call.
    log: Option<CallLog>,
    /// Largest number of indeterminate calls that configurations keep.
    few: usize,
    /// Largest number of configurations, for an error.
    limit: usize,
}

impl Collection {
    /// Starts without calls; `None` if the object is not a queue, stack or priority queue.
    pub(super) fn new(object: &Arc<dyn Object>, most: usize, limit: usize) -> Option<Self> {
        Some(Collection {
            object: Arc::clone(object),
            configurations: Some(Configurations::new(object, most)),
            log: Some(CallLog::new(object)?),
            few: INDETERMINATE_ALWAYS_KEPT.min(most),
            limit,
        })
    }

    /// Lets the log judge the returns since its last run.
    fn check_log(&mut self) -> Result<Completed, OnlineError> {
        let too_many = OnlineError::TooMany { limit: self.limit };
        let log = self.log.as_mut().ok_or_else(|| too_many.clone())?;
        let Some(completed) = log.check() else {
            self.log = None;
            return Err(too_many);
        };
        log.check_length()?;
        if log.is_empty() {
            // The state is the initial one.
            self.configurations = Some(Configurations::new(&self.object, self.few));
        }
        if completed != Completed::Explained {
            self.log = None;
        }
        Ok(completed)
    }
}

impl Engine for Collection {
    fn invoke(&mut self, id: RunningId, call: &Incoming<'_>) -> Taken {
        if self.log.as_mut().is_some_and(|log| log.invoke(id, call) == Taken::No) {
            self.log = None;
        }
        match &mut self.configurations {
            Some(all) => all.invoke(id, call),
            None => Taken::Yes,
        }
    }

    fn complete(
        &mut self,
        id: RunningId,
        returned: Option<&Value>,
        limit: usize,
    ) -> Result<Completed, OnlineError> {
        if self.log.as_mut().is_some_and(|log| log.complete(id, returned) == Taken::No) {
            self.log = None;
        }
        let Some(all) = &mut self.configurations else {
            let is_due = self.log.as_ref().is_none_or(CallLog::is_due);
            return if is_due { self.check_log() } else { Ok(Completed::Explained) };
        };
        let completed = all.complete(id, returned, limit)?;
        if completed == Completed::TooMany && self.log.is_some() {
            self.configurations = None;
            return self.check_log();
        }
        if completed == Completed::Explained
            && let Some(log) = self.log.as_mut().filter(|log| log.is_large())
        {
            // The configurations explain every return; the log is checked so that it drops old
            // calls.
            let is_suitable = log.check().is_some() && log.check_length().is_ok();
            self.log = self.log.take().filter(|_| is_suitable);
        }
        Ok(completed)
    }

    fn fail(&mut self, id: RunningId) {
        self.log.iter_mut().for_each(|log| log.fail(id));
        self.configurations.iter_mut().for_each(|all| all.fail(id));
    }

    fn abandon(&mut self, id: RunningId) {
        self.log.iter_mut().for_each(|log| log.abandon(id));
        let Some(all) = &mut self.configurations else { return };
        all.abandon(id);
        if self.log.is_some() && all.size().indeterminate > self.few {
            // The log of calls is more precise than configurations without some of them.
            self.configurations = None;
        }
    }

    fn finish(&mut self) -> Result<Completed, OnlineError> {
        if self.configurations.is_none() { self.check_log() } else { Ok(Completed::Explained) }
    }

    fn keep_indeterminate(&mut self, most: usize) {
        self.configurations.iter_mut().for_each(|all| all.keep_indeterminate(most));
    }

    fn give_up_one(&mut self) -> bool {
        self.configurations.as_mut().is_some_and(Engine::give_up_one)
    }

    fn take_given_up(&mut self) -> GivenUpCalls {
        let of_log = self.log.as_mut().map_or(0, CallLog::take_given_up);
        let all = self.configurations.as_mut().map(Engine::take_given_up).unwrap_or_default();
        GivenUpCalls { count: all.count + of_log, ..all }
    }

    fn has_alternative(&self) -> bool {
        self.log.is_some() || self.configurations.as_ref().is_some_and(Engine::has_alternative)
    }

    fn size(&self) -> EngineSize {
        let all = self.configurations.as_ref().map(Engine::size).unwrap_or_default();
        EngineSize { kept: self.log.as_ref().map_or(0, CallLog::len), ..all }
    }

    fn is_initial(&self) -> bool {
        // The log may hold calls that have already returned.
        false
    }

    fn unjudged(&self) -> usize {
        match (&self.configurations, &self.log) {
            (None, Some(log)) => log.unjudged(),
            _ => 0,
        }
    }

    fn check_invariants(&self) {
        self.configurations.iter().for_each(Engine::check_invariants);
        self.log.iter().for_each(CallLog::check_invariants);
    }
}
