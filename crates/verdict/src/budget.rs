//! Budgets of time and memory.
//!
//! # Which clock
//!
//! A budget of time limits work: on a loaded machine, a question that takes one second of processor
//! time must not become undecided because the processor was busy elsewhere. So a budget with a
//! [`Meter`] ends when the time has passed on the clock *and* the process has used as much
//! processor time; at the latest when [`MAX_STRETCH`] times the limit has passed on the clock, so
//! that a waiting user gets an answer. On an idle machine both are the same. Without a meter only
//! the clock counts. [`Budget::of_thread`] counts the processor time of one thread alone, for work
//! that also waits for others, such as reading from a pipe.
//!
//! # Which memory
//!
//! [`Budget::reserve`] is called before a large table is allocated, so that a table that is too
//! large is not allocated at all. [`Budget::check`] compares the allocated bytes of the process
//! with the limit, if there is a meter; this also covers memory that was not reserved.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use consistory_faults::{Point, fails};

/// Largest factor between the clock time and the limit of a budget, if the process is not given a
/// processor.
pub const MAX_STRETCH: u32 = 4;

/// Measures the resources that this process uses.
pub trait Meter: fmt::Debug + Send + Sync {
    /// Returns the processor time of the process, if the system provides it.
    fn processor_time(&self) -> Option<Duration>;

    /// Returns the processor time of the calling thread, if the system provides it.
    fn thread_time(&self) -> Option<Duration>;

    /// Returns the number of allocated bytes.
    fn allocated(&self) -> u64;
}

/// A meter, and the number of histories that share its measurements.
#[derive(Clone, Debug)]
pub struct Gauge(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    meter: Arc<dyn Meter>,
    /// Number of histories being processed.
    tenants: AtomicUsize,
    /// The origin of the times of samples.
    origin: Instant,
    /// Time of the last reading of the processor time, counted from the origin, and the reading.
    sample: Mutex<Option<(Duration, Option<Duration>)>>,
}

/// Largest age of a sample of the processor time: reading it takes some microseconds, and a batch
/// of small histories starts very many budgets.
const MAX_SAMPLE_AGE: Duration = Duration::from_millis(5);

impl Gauge {
    /// Builds a gauge. Every history may use the whole limit, so the process may use it once per
    /// history in progress.
    pub fn new(meter: Arc<dyn Meter>) -> Self {
        let (tenants, sample) = Default::default();
        Gauge(Arc::new(Shared { meter, tenants, origin: Instant::now(), sample }))
    }

    /// Counts one more history until the result is dropped.
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

    /// Fails if more is allocated than the histories in progress may use together.
    fn check(&self, limit: u64) -> Result<(), Stopped> {
        let tenants = self.0.tenants.load(Ordering::Relaxed).max(1) as u64;
        match self.0.meter.allocated() / tenants {
            needed if needed > limit => Err(Stopped::Memory { limit, needed }),
            _ => Ok(()),
        }
    }
}

/// A history in progress.
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
        /// The limit.
        limit: Duration,
    },
    /// The next step would have taken more memory than allowed.
    Memory {
        /// The limit in bytes.
        limit: u64,
        /// The bytes that the next step needs.
        needed: u64,
    },
    /// The history is larger than this decider supports.
    Size {
        /// Number of operations.
        operations: usize,
        /// Largest supported number of operations.
        limit: usize,
    },
    /// The definition of a model expands to more steps than can be compiled.
    Expansion {
        /// The largest number of steps.
        limit: usize,
    },
    /// The caller asked to stop.
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

/// Limits of time and memory for a search; unlimited by default.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    deadline: Option<Deadline>,
    memory: Option<u64>,
    /// Limit of the bytes that the process may allocate per history.
    measured: Option<u64>,
    gauge: Option<Gauge>,
    scope: Scope,
    interrupts: Vec<Arc<AtomicBool>>,
}

/// The processor time that counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Scope {
    #[default]
    Process,
    Thread,
}

/// The end of the time.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    limit: Duration,
    /// The end on the clock.
    at: Instant,
    /// The end in processor time, if it is measured.
    processor: Option<Duration>,
}

impl Budget {
    /// Builds an unlimited budget.
    pub fn unlimited() -> Self {
        Self::default()
    }

    /// Measures time and memory by a gauge; must be called before the limits are set.
    #[must_use]
    pub fn with_gauge(mut self, gauge: Gauge) -> Self {
        self.gauge = Some(gauge);
        self
    }

    /// Counts one more history in progress until the result is dropped, if there is a gauge.
    pub fn enter(&self) -> Option<Tenant> {
        self.gauge.as_ref().map(Gauge::enter)
    }

    /// Counts the processor time of the calling thread only, from now; without a gauge, the clock.
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

    /// Limits the time, counted from now.
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

    /// Returns the same budget with a share of its time, counted from now.
    #[must_use]
    pub fn share(&self, one_in: u32) -> Self {
        match self.deadline {
            Some(Deadline { limit, .. }) => self.clone().with_time(limit / one_in.max(1)),
            None => self.clone(),
        }
    }

    /// Returns the same budget with its end extended by a share of its time, to complete a result.
    #[must_use]
    pub fn extended(&self, one_in: u32) -> Self {
        let deadline = self.deadline.map(|Deadline { limit, at, processor }| {
            let more = limit / one_in.max(1);
            let at = at.checked_add(more).unwrap_or(at);
            Deadline { limit, at, processor: processor.and_then(|time| time.checked_add(more)) }
        });
        Budget { deadline, ..self.clone() }
    }

    /// Returns the same budget with its time counted from now, minus the time already spent. At
    /// least a tenth of the time remains, to complete a result.
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

    /// Limits the memory of tables in bytes; with a gauge, also that of the whole process.
    #[must_use]
    pub fn with_memory(mut self, limit: u64) -> Self {
        self.memory = Some(limit);
        self.measured = self.gauge.is_some().then_some(limit);
        self
    }

    /// Returns the same budget with a share of its memory, for one of several parallel tasks.
    #[must_use]
    pub fn with_part_of_memory(&self, one_in: usize) -> Self {
        let memory = self.memory.map(|limit| limit / one_in.max(1) as u64);
        Budget { memory, ..self.clone() }
    }

    /// Stops as soon as the flag, or one that was given before, is set.
    #[must_use]
    pub fn with_interrupt(mut self, flag: Arc<AtomicBool>) -> Self {
        self.interrupts.push(flag);
        self
    }

    /// Fails if the time or the memory is used up or a stop was requested. It reads the clock: call
    /// it every few thousand steps.
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

    /// Checks whether the time is over: the module's documentation says which time.
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

    /// Fails if a table of `needed` bytes exceeds the budget.
    pub fn reserve(&self, needed: u64) -> Result<(), Stopped> {
        match self.memory {
            Some(limit) if needed > limit || fails(Point::Memory) => {
                Err(Stopped::Memory { limit, needed })
            }
            _ => Ok(()),
        }
    }
}
