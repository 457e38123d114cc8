//! Limits of reading: every input is read through [`Limited`], which asks the budget before it takes
//! more bytes, so that neither a huge file nor a device without an end takes more time or memory than
//! it may.
//!
//! Each history has the whole budget. A file may hold a million small ones, so the time starts again
//! only with the first bytes that are taken after a history has begun.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use consistory_faults::{Point, fail};
use consistory_verdict::{Budget, Stopped, Tenant};

/// The budget of an input, shared by those who read it and those who parse it.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    state: Arc<Mutex<State>>,
    /// Whether a parser reached a limit, which is asked for every line.
    is_stopped: Arc<AtomicBool>,
}

#[derive(Debug)]
struct State {
    budget: Budget,
    /// Whether a history has begun since bytes were taken last.
    is_new: bool,
    /// Number of steps of parsers since the last look at the budget.
    steps: u32,
    /// The limit that a parser reached.
    stopped: Option<Stopped>,
    /// What is read takes memory beside what is judged meanwhile.
    _tenant: Option<Tenant>,
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

    /// Says that the next history begins.
    pub(crate) fn begin(&self) {
        self.state().is_new = true;
    }

    /// Fails when the time or the memory is over.
    pub(crate) fn check(&self) -> Result<(), Stopped> {
        let mut state = self.state();
        if std::mem::take(&mut state.is_new) {
            state.budget = state.budget.clone().of_thread();
        }
        state.budget.check()
    }
}

/// Number of steps of a parser between two looks at the budget.
const STEPS_PER_CHECK: u32 = 256;

impl Limits {
    /// Counts a step of a parser that works on what was read before; returns whether it may go on.
    ///
    /// A parser that may not go on can end as it likes: nothing of what it found is used.
    pub(crate) fn has_time(&self) -> bool {
        let mut state = self.state();
        state.steps += 1;
        if state.steps >= STEPS_PER_CHECK && state.stopped.is_none() {
            state.steps = 0;
            state.stopped = state.budget.check().err();
            self.is_stopped.store(state.stopped.is_some(), Ordering::Relaxed);
        }
        state.stopped.is_none()
    }

    /// Returns the limit that a parser reached.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        match self.is_stopped.load(Ordering::Relaxed) {
            true => self.state().stopped.clone(),
            false => None,
        }
    }
}

/// The budget ended while bytes were read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct OverLimit(Stopped);

/// Returns why reading stopped, if an error says that the budget ended.
pub(crate) fn over_limit(error: &io::Error) -> Option<Stopped> {
    let OverLimit(stopped) = error.get_ref()?.downcast_ref()?;
    Some(stopped.clone())
}

/// Bytes that are taken under limits.
///
/// It belongs under a buffer, and after decompression: a few bytes may decompress to very many.
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
