//! Budgets of time and memory.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Why a search stopped without an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// The time ran out.
    Time {
        /// How much there was.
        limit: Duration,
    },
    /// The next step would have taken more memory than allowed.
    Memory {
        /// How much is allowed, in bytes.
        limit: u64,
        /// How much the next step needs, in bytes.
        needed: u64,
    },
    /// The history is larger than this way of deciding can take.
    Size {
        /// How many operations it has.
        operations: usize,
        /// How many are the most.
        limit: usize,
    },
    /// Somebody asked to stop.
    Interrupted,
    /// The independent checker did not accept the certificate.
    Rejected,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Time { limit } => write!(f, "the time budget of {limit:?} ran out"),
            Stopped::Memory { limit, needed } => {
                write!(f, "it needs {} MiB, the memory budget is {} MiB", needed >> 20, limit >> 20)
            }
            Stopped::Size { operations, limit } => write!(
                f,
                "it has {operations} operations, this way of deciding takes at most {limit}"
            ),
            Stopped::Interrupted => f.write_str("it was interrupted"),
            Stopped::Rejected => f.write_str("the certificate was rejected"),
        }
    }
}

/// How much time and memory a search may take; the default is without bounds.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    deadline: Option<(Instant, Duration)>,
    memory: Option<u64>,
    interrupts: Vec<Arc<AtomicBool>>,
}

impl Budget {
    /// Makes a budget without bounds.
    pub fn unlimited() -> Self {
        Self::default()
    }

    /// Bounds the time, counted from now.
    #[must_use]
    pub fn with_time(mut self, limit: Duration) -> Self {
        self.deadline = Instant::now().checked_add(limit).map(|at| (at, limit));
        self
    }

    /// Gives the same budget with its time counted from now.
    #[must_use]
    pub fn renewed(&self) -> Self {
        match self.deadline {
            Some((_, limit)) => self.clone().with_time(limit),
            None => self.clone(),
        }
    }

    /// Gives the same budget with a part of its time, counted from now.
    #[must_use]
    pub fn share(&self, one_in: u32) -> Self {
        match self.deadline {
            Some((_, limit)) => self.clone().with_time(limit / one_in.max(1)),
            None => self.clone(),
        }
    }

    /// Gives the same budget with its deadline later by a part of its time: for work that brings a
    /// result home when the time is over.
    #[must_use]
    pub fn extended(&self, one_in: u32) -> Self {
        let deadline = self
            .deadline
            .map(|(at, limit)| (at.checked_add(limit / one_in.max(1)).unwrap_or(at), limit));
        Budget { deadline, ..self.clone() }
    }

    /// Bounds the memory that tables may take, in bytes.
    #[must_use]
    pub fn with_memory(mut self, limit: u64) -> Self {
        self.memory = Some(limit);
        self
    }

    /// Gives the same budget with a part of its memory: for one of several that take some at a time.
    #[must_use]
    pub fn with_part_of_memory(&self, one_in: usize) -> Self {
        let memory = self.memory.map(|limit| limit / one_in.max(1) as u64);
        Budget { memory, ..self.clone() }
    }

    /// Stops as soon as the flag is set, or one that was given before.
    #[must_use]
    pub fn with_interrupt(mut self, flag: Arc<AtomicBool>) -> Self {
        self.interrupts.push(flag);
        self
    }

    /// Fails when the time is over or a stop was asked for. It reads the clock: call it every few
    /// thousand steps.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.interrupts.iter().any(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Stopped::Interrupted);
        }
        match self.deadline {
            Some((at, limit)) if Instant::now() >= at => Err(Stopped::Time { limit }),
            _ => Ok(()),
        }
    }

    /// Fails when a table of `needed` bytes is more than the budget allows.
    pub fn reserve(&self, needed: u64) -> Result<(), Stopped> {
        match self.memory {
            Some(limit) if needed > limit => Err(Stopped::Memory { limit, needed }),
            _ => Ok(()),
        }
    }
}
