//! Limits of reading: every input is read through [`Limited`], which checks the budget before it
//! reads more bytes, so that neither a huge file nor an endless device exceeds the limits of time
//! or memory.
//!
//! Each history may use the whole budget. A file may contain a million small histories, so the time
//! restarts at the first check of the budget after a history has begun.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use consistory_faults::{Point, fail};
use consistory_verdict::{Budget, Stopped, Tenant};

/// The budget of an input, shared by its reader and its parser.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    state: Arc<Mutex<State>>,
    /// Whether a parser reached a limit; checked for every line.
    is_stopped: Arc<AtomicBool>,
}

#[derive(Debug)]
struct State {
    budget: Budget,
    /// Whether a history has begun since the last check of the budget.
    is_new: bool,
    /// Number of steps of parsers since the last check of the budget.
    steps: u32,
    /// Limit that a parser reached.
    stopped: Option<Stopped>,
    /// Reservation for memory that is used by reading while other histories are judged.
    _tenant: Option<Tenant>,
}

impl State {
    /// Checks the budget, whose time restarts with each history.
    fn check(&mut self) -> Result<(), Stopped> {
        if std::mem::take(&mut self.is_new) {
            self.budget = self.budget.clone().of_thread();
        }
        self.budget.check()
    }
}

impl Limits {
    pub(crate) fn new(budget: Budget) -> Self {
        let _tenant = budget.enter();
        let state = State { budget, is_new: true, steps: 0, stopped: None, _tenant };
        Limits { state: Arc::new(Mutex::new(state)), is_stopped: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the beginning of the next history.
    pub(crate) fn begin(&self) {
        self.state().is_new = true;
    }

    /// Fails if the time or the memory is used up.
    pub(crate) fn check(&self) -> Result<(), Stopped> {
        self.state().check()
    }

    /// Returns the time that was used to read since the history began, or zero if the budget was
    /// not checked since then.
    pub(crate) fn spent(&self) -> Duration {
        let state = self.state();
        if state.is_new { Duration::ZERO } else { state.budget.spent() }
    }
}

/// Number of steps of a parser between two checks of the budget.
const STEPS_PER_CHECK: u32 = 256;

impl Limits {
    /// Counts a step of a parser that works on data in memory; returns whether it may continue.
    ///
    /// After `false` the parser may end in any way: its results are not used.
    pub(crate) fn has_time(&self) -> bool {
        self.has_time_after(1)
    }

    /// Counts many steps of a parser; returns whether it may continue.
    pub(crate) fn has_time_after(&self, steps: u32) -> bool {
        let mut state = self.state();
        state.steps = state.steps.saturating_add(steps);
        if state.steps >= STEPS_PER_CHECK && state.stopped.is_none() {
            state.steps = 0;
            state.stopped = state.check().err();
            self.is_stopped.store(state.stopped.is_some(), Ordering::Relaxed);
        }
        state.stopped.is_none()
    }

    /// Checks the budget; returns whether a parser may continue.
    pub(crate) fn goes_on(&self) -> bool {
        self.has_time_after(STEPS_PER_CHECK)
    }

    /// Returns the limit that a parser reached.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        match self.is_stopped.load(Ordering::Relaxed) {
            true => self.state().stopped.clone(),
            false => None,
        }
    }
}

/// Error: the budget ran out while bytes were read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct OverLimit(Stopped);

/// Returns the reached limit, if an error says that the budget ran out.
pub(crate) fn over_limit(error: &io::Error) -> Option<Stopped> {
    let OverLimit(stopped) = error.get_ref()?.downcast_ref()?;
    Some(stopped.clone())
}

/// A stream of bytes that checks the limits.
///
/// It must be below a buffer, and after decompression: a few bytes may decompress to very many.
pub(crate) struct Limited<R> {
    pub(crate) bytes: R,
    pub(crate) limits: Limits,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        fail(Point::Read)?;
        self.limits.check().map_err(|stopped| io::Error::other(OverLimit(stopped)))?;
        self.bytes.read(buffer)
    }
}
