//! Budgets of time and memory.
//!
//! # Which clock
//!
//! A budget of time is meant as work: on a loaded machine, a question that takes one second of a
//! processor must not become undecided because the processor was elsewhere. So a budget that has a
//! [`Meter`] ends when the time has passed on the clock *and* the process has used as much processor
//! time; at the latest when [`MAX_STRETCH`] times the time has passed on the clock, so that somebody who
//! waits is not kept for ever. On an idle machine both are the same. Without a meter only the clock
//! counts. [`Budget::of_thread`] counts the processor time of one thread alone, for work that also waits
//! for others, such as reading from a pipe.
//!
//! # Which memory
//!
//! [`Budget::reserve`] is asked before a large table is allocated, so that it is not allocated at all.
//! [`Budget::check`] compares what the process has allocated with the limit, if there is a meter; it
//! finds what nobody accounted for.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use consistory_faults::{Point, fails};

/// How many times as long as its limit a budget may last on the clock while the process is not given
/// a processor.
pub const MAX_STRETCH: u32 = 4;

/// Measures what this process uses.
pub trait Meter: fmt::Debug + Send + Sync {
    /// Returns the processor time of the process, if the system tells it.
    fn processor_time(&self) -> Option<Duration>;

    /// Returns the processor time of the calling thread, if the system tells it.
    fn thread_time(&self) -> Option<Duration>;

    /// Returns how many bytes are allocated.
    fn allocated(&self) -> u64;
}

/// A meter, and the number of histories that share what it measures.
#[derive(Clone, Debug)]
pub struct Gauge(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    meter: Arc<dyn Meter>,
    /// Number of histories that are at work.
    tenants: AtomicUsize,
    /// The origin of the times of samples.
    origin: Instant,
    /// When the processor time was read last, counted from the origin, and what it was.
    sample: Mutex<Option<(Duration, Option<Duration>)>>,
}

/// How old a sample of the processor time may be: reading it takes some microseconds, and a batch of
/// small histories starts very many budgets.
const MAX_SAMPLE_AGE: Duration = Duration::from_millis(5);

impl Gauge {
    /// Makes a gauge; every history may use the whole limit, so the process may use it once for each
    /// that is at work.
    pub fn new(meter: Arc<dyn Meter>) -> Self {
        let (tenants, sample) = Default::default();
        Gauge(Arc::new(Shared { meter, tenants, origin: Instant::now(), sample }))
    }

    /// Counts one more history as long as the result lives.
    #[must_use]
    pub fn enter(&self) -> Tenant {
        self.0.tenants.fetch_add(1, Ordering::Relaxed);
        Tenant(self.clone())
    }

    /// Returns the processor time of the process, as it was a few milliseconds ago.
    fn processor_time(&self) -> Option<Duration> {
        let Shared { meter, origin, sample, .. } = &*self.0;
        let now = origin.elapsed();
        let mut sample = sample.lock().unwrap_or_else(PoisonError::into_inner);
        match *sample {
            Some((at, time)) if now.saturating_sub(at) < MAX_SAMPLE_AGE => time,
            _ => {
                let time = meter.processor_time();
                *sample = Some((now, time));
                time
            }
        }
    }

    /// Fails when more is allocated than the histories at work may use together.
    fn check(&self, limit: u64) -> Result<(), Stopped> {
        let tenants = self.0.tenants.load(Ordering::Relaxed).max(1) as u64;
        match self.0.meter.allocated() / tenants {
            needed if needed > limit => Err(Stopped::Memory { limit, needed }),
            _ => Ok(()),
        }
    }
}

/// A history that is at work.
#[derive(Debug)]
pub struct Tenant(Gauge);

impl Drop for Tenant {
    fn drop(&mut self) {
        self.0.0.tenants.fetch_sub(1, Ordering::Relaxed);
    }
}

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
    /// The definition of a model expands to more steps than can be compiled.
    Expansion {
        /// The largest number of steps.
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
            Stopped::Expansion { limit } => {
                write!(f, "the definition expands to more than {limit} steps")
            }
            Stopped::Interrupted => f.write_str("it was interrupted"),
            Stopped::Rejected => f.write_str("the certificate was rejected"),
        }
    }
}

/// How much time and memory a search may take; the default is without bounds.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    deadline: Option<Deadline>,
    memory: Option<u64>,
    /// Limit of what the process may have allocated for each history.
    measured: Option<u64>,
    gauge: Option<Gauge>,
    scope: Scope,
    interrupts: Vec<Arc<AtomicBool>>,
}

/// Whose processor time counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Scope {
    #[default]
    Process,
    Thread,
}

/// When the time is over.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    limit: Duration,
    /// When the time is over on the clock.
    at: Instant,
    /// The processor time at which it is over, if it is measured.
    processor: Option<Duration>,
}

impl Budget {
    /// Builds a budget without bounds.
    pub fn unlimited() -> Self {
        Self::default()
    }

    /// Measures time and memory by a gauge; call it before the limits are set.
    #[must_use]
    pub fn with_gauge(mut self, gauge: Gauge) -> Self {
        self.gauge = Some(gauge);
        self
    }

    /// Counts one more history at work as long as the result lives, if there is a gauge.
    pub fn enter(&self) -> Option<Tenant> {
        self.gauge.as_ref().map(Gauge::enter)
    }

    /// Counts the processor time of the calling thread alone, from now; without a gauge the clock.
    ///
    /// The budget must then be checked on this thread.
    #[must_use]
    pub fn of_thread(mut self) -> Self {
        self.scope = Scope::Thread;
        self.renewed()
    }

    /// Returns the processor time that counts.
    fn processor_time(&self) -> Option<Duration> {
        let gauge = self.gauge.as_ref()?;
        match self.scope {
            Scope::Process => gauge.processor_time(),
            Scope::Thread => gauge.0.meter.thread_time(),
        }
    }

    /// Bounds the time, counted from now.
    #[must_use]
    pub fn with_time(mut self, limit: Duration) -> Self {
        let processor = self.processor_time().and_then(|now| now.checked_add(limit));
        let at = Instant::now().checked_add(limit);
        self.deadline = at.map(|at| Deadline { limit, at, processor });
        self
    }

    /// Returns the same budget with its time counted from now.
    #[must_use]
    pub fn renewed(&self) -> Self {
        match self.deadline {
            Some(Deadline { limit, .. }) => self.clone().with_time(limit),
            None => self.clone(),
        }
    }

    /// Returns the same budget with a part of its time, counted from now.
    #[must_use]
    pub fn share(&self, one_in: u32) -> Self {
        match self.deadline {
            Some(Deadline { limit, .. }) => self.clone().with_time(limit / one_in.max(1)),
            None => self.clone(),
        }
    }

    /// Returns the same budget with its deadline later by a part of its time: for work that brings a
    /// result home when the time is over.
    #[must_use]
    pub fn extended(&self, one_in: u32) -> Self {
        let deadline = self.deadline.map(|Deadline { limit, at, processor }| {
            let more = limit / one_in.max(1);
            let at = at.checked_add(more).unwrap_or(at);
            Deadline { limit, at, processor: processor.and_then(|time| time.checked_add(more)) }
        });
        Budget { deadline, ..self.clone() }
    }

    /// Returns the same budget with its time counted from now, less what was spent already. A tenth of
    /// the time is left in any case: for work that brings a result home.
    #[must_use]
    pub fn after(&self, spent: Duration) -> Self {
        let Some(Deadline { limit, .. }) = self.deadline else { return self.clone() };
        let left = limit.saturating_sub(spent).max(limit / 10);
        let mut budget = self.clone().with_time(left);
        if let Some(deadline) = &mut budget.deadline {
            deadline.limit = limit;
        }
        budget
    }

    /// Bounds the memory that tables may take, in bytes; with a gauge, that of the whole process too.
    #[must_use]
    pub fn with_memory(mut self, limit: u64) -> Self {
        self.memory = Some(limit);
        self.measured = self.gauge.is_some().then_some(limit);
        self
    }

    /// Returns the same budget with a part of its memory: for one of several that take some at a time.
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

    /// Fails when the time or the memory is over or a stop was asked for. It reads the clock: call it
    /// every few thousand steps.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.interrupts.iter().any(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Stopped::Interrupted);
        }
        if let (Some(limit), Some(gauge)) = (self.measured, &self.gauge) {
            gauge.check(limit)?;
        }
        match self.deadline {
            Some(deadline) if self.is_over(&deadline) || fails(Point::Clock) => {
                Err(Stopped::Time { limit: deadline.limit })
            }
            _ => Ok(()),
        }
    }

    /// Checks whether the time is over: see the module's documentation for which time.
    fn is_over(&self, deadline: &Deadline) -> bool {
        let now = Instant::now();
        if now < deadline.at {
            return false;
        }
        let Some((end, used)) = deadline.processor.zip(self.processor_time()) else { return true };
        let stretched = deadline.at.checked_add(deadline.limit * (MAX_STRETCH - 1));
        let is_kept_waiting = self.scope == Scope::Thread || stretched.is_none_or(|at| now < at);
        used >= end || !is_kept_waiting
    }

    /// Fails when a table of `needed` bytes is more than the budget allows.
    pub fn reserve(&self, needed: u64) -> Result<(), Stopped> {
        match self.memory {
            Some(limit) if needed > limit || fails(Point::Memory) => {
                Err(Stopped::Memory { limit, needed })
            }
            _ => Ok(()),
        }
    }
}
